"""The function under measurement: one call of it, and whether its result is still pending."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from opbench import profiler

__all__ = ["Pedantic", "Target", "wait"]


def _waiters(result: Any) -> list[Any]:
    """The parts of ``result`` that can be waited for (MXNet's ``wait_to_read``)."""
    parts = result if isinstance(result, (list, tuple)) else (result,)
    return [part for part in parts if callable(getattr(part, "wait_to_read", None))]


def wait(result: Any) -> bool:
    """Wait for whatever is pending in ``result``; true if there was something to wait for.

    An object is pending if it has a method ``wait_to_read``; a list or tuple is looked into.
    Nothing of opbench's runtime is imported for this, so a foreign asynchronous array counts too.
    """
    waiters = _waiters(result)
    for part in waiters:
        part.wait_to_read()
    return bool(waiters)


@dataclass(frozen=True, slots=True)
class Target:
    """A function with its arguments.

    Attributes:
        function: what the test measures.
        args: positional arguments.
        kwargs: keyword arguments.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """The function's own name, for the ``call`` slice."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def call(self) -> Any:
        """One complete call: the function, and the wait for what it left pending."""
        result = self.function(*self.args, **(self.kwargs or {}))
        wait(result)
        return result

    def timed(self, *, pending: bool) -> Callable[..., Any]:
        """What pytest-benchmark gets: the bare function, or call and wait for a pending one."""
        if not pending:
            return self.function
        function = self.function

        def call_and_wait(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            wait(result)
            return result

        return call_and_wait

    def into_new_output(self, function: Callable[..., Any]) -> Target:
        """Another function on the same operands; an ``out=`` array of the test stays untouched."""
        kwargs = dict(self.kwargs or {})
        if kwargs.get("out") is not None:
            import numpy as np

            kwargs["out"] = np.empty_like(kwargs["out"])
        return Target(function, self.args, kwargs)

    def describe(self) -> dict[str, Any]:
        """The arguments of the ``call`` slice: function, argument shapes and dtypes."""
        return profiler.call_args(self.function, self.args, dict(self.kwargs or {}))


@dataclass(frozen=True, slots=True)
class Pedantic:
    """A target whose arguments are made for each call, as in ``benchmark.pedantic``.

    Attributes:
        function: what is measured.
        args: positional arguments, unless ``setup`` returns them.
        kwargs: keyword arguments, unless ``setup`` returns them.
        setup: called before each call; may return ``(args, kwargs)``.
        teardown: called after each call with its arguments.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    setup: Callable[[], Any] | None = None
    teardown: Callable[..., Any] | None = None

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
            args, kwargs = made
        try:
            yield Target(self.function, tuple(args), kwargs)
        finally:
            if self.teardown is not None:
                self.teardown(*args, **kwargs)
