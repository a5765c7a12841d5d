"""What stands in the place of a function that is decorated, whatever kind of function it is."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

from opbench.errors import ConfigError
from opbench.profiler.emit import Emitter

__all__ = ["around", "forwarding", "is_async", "refuse_generator"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

# Flags of a code object; `inspect` has them too, and is slow to load.
VARARGS, VARKEYWORDS = 0x04, 0x08
# Names of our own in the text; a function with such a parameter gets the dear wrapper.
OWN = frozenset(("_opbench_recorder", "_opbench_function", "_opbench_recorded"))
TEXT = """
def make(_opbench_recorder, _opbench_function, _opbench_recorded):
    def entry({parameters}):
        if _opbench_recorder.mask & {bit}:
            return _opbench_recorded({arguments})
        return _opbench_function({arguments})
    return entry
"""


def around(
    function: Callable[P, R], before: Callable[[], T], after: Callable[[T], object]
) -> Callable[P, R]:
    """Call ``before``, the function, and ``after`` with what ``before`` gave, also on an exception.

    Of a coroutine function the call lasts until it has been awaited.

    Raises:
        ConfigError: no function, or a generator, whose call does none of its work.
    """
    refuse_generator(function)
    if is_async(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            begun = before()
            try:
                return await cast("Any", function)(*args, **kwargs)
            finally:
                after(begun)

        return cast("Callable[P, R]", awaited)

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        begun = before()
        try:
            return function(*args, **kwargs)
        finally:
            after(begun)

    return called


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine."""
    import inspect  # half of the standard library, which no pytest should load for a plugin

    return inspect.iscoroutinefunction(function)


def refuse_generator(function: Any) -> None:
    """Require a function whose call does its work.

    Raises:
        ConfigError: it is none.
    """
    import inspect

    if not callable(function):
        raise ConfigError(f"only a function can be decorated, not {function!r}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigError(
            f"{getattr(function, '__qualname__', function)!r} is a generator: its call returns "
            "before any of its work is done; use a 'with' block inside it"
        )


def forwarding(
    function: Callable[P, R], recorded: Callable[P, R], recorder: Emitter, bit: int
) -> Callable[P, R]:
    """A function that looks like the first and calls one of the two.

    ``def entry(*args, **kwargs)`` packs and unpacks the arguments of each call, which is as dear as
    six empty calls. A wrapper with the very parameters of the function is as dear as three; it has
    to be made from text, as dataclasses make theirs.

    Args:
        function: called while the mode is off.
        recorded: called while it is on, with the same arguments.
        recorder: whose mask is asked.
        bit: of the mode.
    """
    entry = _exact(function, recorded, recorder, bit)
    if entry is None:
        entry = _general(function, recorded, recorder, bit)
    functools.update_wrapper(entry, function)
    return entry


def _exact(
    function: Callable[P, R], recorded: Callable[P, R], recorder: Emitter, bit: int
) -> Callable[P, R] | None:
    if not isinstance(function, FunctionType):
        return None
    code = function.__code__
    plain, only = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames[: plain + only]
    if code.co_flags & (VARARGS | VARKEYWORDS) or OWN & set(names):
        return None
    if not all(name.isidentifier() for name in names):
        return None
    parameters = list(names[:plain])
    if code.co_posonlyargcount:
        parameters.insert(code.co_posonlyargcount, "/")
    arguments = list(names[:plain]) + [f"{name}={name}" for name in names[plain:]]
    if only:
        parameters += ["*", *names[plain:]]
    text = TEXT.format(
        parameters=", ".join(parameters), arguments=", ".join(arguments), bit=int(bit)
    )
    made: dict[str, Any] = {}
    # The text holds nothing but the names of parameters, which are identifiers.
    exec(compile(text, "<opbench api>", "exec"), made)  # noqa: S102 - see `forwarding`
    entry = cast("FunctionType", made["make"](recorder, function, recorded))
    entry.__defaults__ = function.__defaults__
    entry.__kwdefaults__ = function.__kwdefaults__
    return entry


def _general(
    function: Callable[P, R], recorded: Callable[P, R], recorder: Emitter, bit: int
) -> Callable[P, R]:
    def entry(*args: P.args, **kwargs: P.kwargs) -> R:
        if recorder.mask & bit:
            return recorded(*args, **kwargs)
        if kwargs:
            return function(*args, **kwargs)
        return function(*args)  # type: ignore[call-arg] # there are no others

    return entry
