"""The function under measurement: one call of it, and whether its result is still pending."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from opbench import profiler

__all__ = ["Pedantic", "Target", "same_layout", "wait", "wait_for_all"]

DEEPEST = 8
# Names that pytest-benchmark's own call takes, which a function may take as keywords.
TAKEN = {"self", "function_to_benchmark"}


def _waiters(result: Any, depth: int = 0) -> Iterator[Any]:
    """The parts of ``result`` that can be waited for (MXNet's ``wait_to_read``)."""
    # Asked of the type: an object that makes up attributes as they are asked for is not pending.
    if callable(getattr(type(result), "wait_to_read", None)):
        yield result
    elif isinstance(result, (list, tuple, dict)) and depth < DEEPEST:
        for part in result.values() if isinstance(result, dict) else result:
            yield from _waiters(part, depth + 1)


def wait(result: Any) -> bool:
    """Wait for whatever is pending in ``result``; true if there was something to wait for.

    An object is pending if its class has a method ``wait_to_read``; lists, tuples and the values
    of dictionaries are looked into. Nothing of opbench's runtime is imported for this, so a
    foreign asynchronous array counts too.
    """
    found = False
    for part in _waiters(result):
        part.wait_to_read()
        found = True
    return found


def wait_for_all(_result: Any) -> None:
    """Wait for everything that the engine has, where a result does not show what is pending.

    Raises:
        OperatorError: an operator failed, and no wait has said so yet.
    """
    from opbench import runtime

    runtime.nd.waitall()


def _checks_run() -> int:
    """How many users' operators have been checked in this process; loads no room for it."""
    if "opbench.operators" not in sys.modules:
        return 0
    from opbench import operators

    return operators.verified()


def same_layout(array: Any) -> Any:
    """A new array with the shape, dtype and strides of ``array``, in memory of its own."""
    import numpy as np

    if array.size == 0:
        return np.empty_like(array)
    reach = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    below = -sum(r for r in reach if r < 0)
    length = below + sum(r for r in reach if r > 0) + array.itemsize
    memory = np.empty(length, np.uint8)
    return np.ndarray(array.shape, array.dtype, memory, below, array.strides)


@dataclass(frozen=True, slots=True)
class Target:
    """A function with its arguments.

    Attributes:
        function: what the test measures.
        args: positional arguments.
        kwargs: keyword arguments.
        finish: waits for what a call left pending, given its result; None if it leaves nothing.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] | None = None
    finish: Callable[[Any], object] | None = None

    @property
    def name(self) -> str:
        """The function's own name, for the ``call`` slice."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def call(self) -> Any:
        """One complete call: the function, and the wait for what it left pending."""
        result = self.function(*self.args, **(self.kwargs or {}))
        if self.finish is not None:
            self.finish(result)
        return result

    def timed(self) -> Callable[..., Any]:
        """What pytest-benchmark gets: the bare function, or call and wait for a pending one."""
        function, finish = self.function, self.finish
        if TAKEN.isdisjoint(self.kwargs or ()):
            if finish is None:
                return function
        else:
            function = functools.partial(function, **(self.kwargs or {}))

        def call_and_wait(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            if finish is not None:
                finish(result)
            return result

        return call_and_wait

    @property
    def timed_kwargs(self) -> Mapping[str, Any]:
        """The keyword arguments that go with :meth:`timed`."""
        kwargs = self.kwargs or {}
        return kwargs if TAKEN.isdisjoint(kwargs) else {}

    def first_call(self, unfinished: Callable[[], bool]) -> tuple[Target, Any, float]:
        """Call once, and find out how such a call is waited for.

        Args:
            unfinished: whether an engine still has work, asked right after the call.

        Returns:
            The target that knows how to finish, the result, and the seconds of the call including
            its wait, but not the search for something to wait for.

        Raises:
            AccuracyError: the function is a user's operator, and its result is wrong.
        """
        checks = _checks_run()
        start = time.perf_counter()
        result = self.function(*self.args, **(self.kwargs or {}))
        returned = time.perf_counter()
        left = unfinished()
        finish: Callable[[Any], object] | None = None
        if wait(result):
            finish = wait
        elif left:
            finish = wait_for_all
            wait_for_all(result)
        end = time.perf_counter() if finish is not None else returned
        self._verify(result, checks)
        return replace(self, finish=finish), result, end - start

    def _verify(self, result: Any, checks: int) -> None:
        """Check the first result of a user's operator against its reference.

        After a check, also of the runtime's in the call itself, a rest: the reference may have
        woken BLAS workers.

        Args:
            result: of the call.
            checks: how many had run before it.
        """
        __tracebackhide__ = True
        if "opbench.operators" not in sys.modules:
            return
        from opbench import operators

        operators.verify_call(self.function, self.args, self.kwargs or {}, result)
        if operators.verified() != checks:
            time.sleep(operators.BLAS_REST_SECONDS)

    def with_own_output(self, function: Callable[..., Any], operands: int) -> Target:
        """Another function on the same operands, into an output array of its own.

        Args:
            function: called as this target's function is.
            operands: positional arguments that are read; one that follows them is the output.
        """
        args, kwargs = list(self.args), dict(self.kwargs or {})
        if len(args) > operands and args[operands] is not None:
            args[operands] = same_layout(args[operands])
        if kwargs.get("out") is not None:
            kwargs["out"] = same_layout(kwargs["out"])
        return Target(function, tuple(args), kwargs)

    def operator_event(self) -> tuple[str, dict[str, Any]] | None:
        """Name and arguments of the event of a user's operator; None for any other function."""
        if "opbench.operators" not in sys.modules:
            return None
        from opbench import operators

        return operators.call_event(self.function, self.args, self.kwargs or {})

    def describe(self) -> dict[str, Any]:
        """The arguments of the ``call`` slice: function, argument shapes and dtypes."""
        return profiler.call_args(self.function, self.args, dict(self.kwargs or {}))


def _made(made: Any) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """What ``setup`` returned, as arguments; raises TypeError if it is no (args, kwargs)."""
    pair = made if isinstance(made, (tuple, list)) and len(made) == 2 else (None, None)  # noqa: PLR2004
    args, kwargs = pair
    if not isinstance(args, (tuple, list)) or not isinstance(kwargs, Mapping):
        kind = type(made).__name__
        raise TypeError(
            f"setup must return (args, kwargs), such as ((a, b), {{}}), or nothing; not a {kind}"
        )
    return tuple(args), kwargs


@dataclass(frozen=True, slots=True)
class Pedantic:
    """A target whose arguments are made for each call, as in ``benchmark.pedantic``.

    Attributes:
        function: what is measured.
        args: positional arguments, unless ``setup`` returns them.
        kwargs: keyword arguments, unless ``setup`` returns them.
        setup: called before each call; may return ``(args, kwargs)``.
        teardown: called after each call with its arguments.
        finish: waits for what a call left pending, as in Target.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    setup: Callable[[], Any] | None = None
    teardown: Callable[..., Any] | None = None
    finish: Callable[[Any], object] | None = None

    def check(self, rounds: int, iterations: int, warmup_rounds: int) -> None:
        """Refuse what ``benchmark.pedantic`` refuses, before the first call and not after it.

        Raises:
            ValueError: a count that is no positive whole number; ``iterations`` with ``setup``.
        """
        counts = (("rounds", rounds, 1), ("iterations", iterations, 1))
        for name, value, least in (*counts, ("warmup_rounds", warmup_rounds, 0)):
            if not isinstance(value, int) or value < least:
                raise ValueError(f"{name} must be a whole number from {least} up, not {value!r}")
        if iterations > 1 and self.setup is not None:
            raise ValueError(
                f"iterations={iterations} goes with no setup: setup runs once a round, so later "
                "iterations would see what the first one changed; use iterations=1 and more rounds"
            )

    @contextmanager
    def prepared(self) -> Iterator[Target]:
        """One call's target: ``setup`` before it, ``teardown`` after it, also after an error.

        Raises:
            TypeError: ``setup`` returned arguments although some were given.
        """
        args, kwargs = self.args, self.kwargs
        made = self.setup() if self.setup is not None else None
        if made:
            if args or kwargs:
                raise TypeError("setup returned the arguments, so args and kwargs must be empty")
            args, kwargs = _made(made)
        try:
            yield Target(self.function, tuple(args), kwargs, self.finish)
        finally:
            if self.teardown is not None:
                self.teardown(*args, **kwargs)
