"""Mode api: one slice per call of a marked function, and how many calls there are.

The runtime marks its public functions, and users theirs. Nothing of the profiler is marked, so its
own calls are never recorded.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from opbench.errors import ConfigError
from opbench.profiler.modes import Mode
from opbench.profiler.profiler import RECORDER
from opbench.profiler.wrapping import forwarding, is_async, refuse_generator

__all__ = ["api", "part", "part_begins", "traced"]

P = ParamSpec("P")
R = TypeVar("R")

API = int(Mode.API)
CATEGORY = "api"
IN_FLIGHT = "api calls in flight"
TOTAL = "api calls"


class _Calls:
    """The calls of one window.

    A call that was under way when the window opened was never counted in, so it is not counted out;
    one that is under way when it closes is counted out here, and not in the next window.
    """

    __slots__ = ("_inside", "_lock", "_total", "_window")

    def __init__(self, window: _Window) -> None:
        self._window = window
        # Held while a value is recorded, so that values stand in the trace in the order they were
        # reached. Re-entrant, for a call made by the handler of a signal.
        self._lock = threading.RLock()
        self._inside = 0
        self._total = 0

    def enter(self) -> None:
        with self._lock:
            if not self._total:  # until now there were none, which the mean has to know
                RECORDER.counter_at(IN_FLIGHT, {"calls": 0}, RECORDER.since, CATEGORY)
            self._inside += 1
            self._total += 1
            RECORDER.counter(IN_FLIGHT, {"calls": self._inside}, CATEGORY)
            RECORDER.counter(TOTAL, {"calls": self._total}, CATEGORY)

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._window.calls is self:
                RECORDER.counter(IN_FLIGHT, {"calls": self._inside}, CATEGORY)

    def tell(self) -> None:
        """What became of them in a pause."""
        with self._lock:
            if self._total and RECORDER.mask & API:
                RECORDER.counter(IN_FLIGHT, {"calls": self._inside}, CATEGORY)


class _Window:
    """The calls of the present window; the recorder tells when it closes."""

    def __init__(self) -> None:
        self.calls = _Calls(self)

    def opened(self, modes: Mode) -> None:
        """Nothing has been called in it, which is how it is already."""

    def closed(self) -> None:
        self.calls = _Calls(self)

    def paused(self) -> None:
        """Calls go on being counted, and none is recorded."""

    def resumed(self) -> None:
        """Say how many are in flight by now: until the next call, that is what holds."""
        self.calls.tell()


WINDOW = _Window()
RECORDER.add_listener(WINDOW)


def api(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Have mode api record one slice per call of a function, on its own thread, under this name.

    A call that raises is recorded too: it took its time. One that began before the window opened is
    not in it. Of a coroutine function the call lasts until it has been awaited, and may overlap
    others of its thread.

    Args:
        name: what stands in the trace, such as ``nd.dot``.

    Raises:
        ConfigError: the name is empty or no text; or, at the decoration, no function or a
            generator, whose call does none of its work.
    """
    if not isinstance(name, str) or not name:
        raise ConfigError(
            f"api takes the name that the trace shows, not {name!r}; @traced needs no name"
        )

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        refuse_generator(function)
        if is_async(function):
            return _awaited(name, function)

        def recorded(*args: P.args, **kwargs: P.kwargs) -> R:
            calls, iteration = WINDOW.calls, RECORDER.iteration
            calls.enter()
            start = RECORDER.clock()
            try:
                return function(*args, **kwargs)
            finally:
                RECORDER.complete(name, CATEGORY, start, RECORDER.clock(), {"iteration": iteration})
                calls.leave()

        return forwarding(function, recorded, RECORDER, API)

    return decorate


def traced(function: Callable[P, R]) -> Callable[P, R]:
    """`api` under the function's own name: its module and qualified name."""
    module = getattr(function, "__module__", None) or ""
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return api(f"{module}.{name}".removeprefix("."))(function)


def _awaited(name: str, function: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(function)
    async def entry(*args: Any, **kwargs: Any) -> Any:
        if not RECORDER.mask & API:
            return await cast("Any", function)(*args, **kwargs)
        calls, iteration = WINDOW.calls, RECORDER.iteration
        calls.enter()
        start = RECORDER.clock()
        try:
            return await cast("Any", function)(*args, **kwargs)
        finally:
            RECORDER.span(name, CATEGORY, start, RECORDER.clock(), {"iteration": iteration})
            calls.leave()

    return cast("Callable[P, R]", entry)


def part_begins() -> int:
    """When a part of the present call begins, for `part`; 0 while mode api is off."""
    return RECORDER.clock() if RECORDER.mask & API else 0


def part(call: str, name: str, start: int) -> int:
    """Record a part of the present call, such as ``nd.dot: check``; when the next one begins.

    Args:
        call: the name of the call.
        name: of the part.
        start: from `part_begins`, or from the part before; 0 records nothing.
    """
    if not start:
        return 0
    end = RECORDER.clock()
    RECORDER.complete(f"{call}: {name}", CATEGORY, start, end, {"iteration": RECORDER.iteration})
    return end
