"""What a program marks by hand, in MXNet's words: domains, tasks, frames, counters and markers.

All of it is recorded in every mode, also in none, while the recorder runs and is not paused.
Each is a context manager and a decorator too. What begins before the window, or before its last
resume, is left out, as everything is (docs/profiler.md).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from opbench.errors import ConfigError, nearest
from opbench.profiler.intervals import Arguments, Interval, checked_arguments, checked_name
from opbench.profiler.profiler import RECORDER
from opbench.profiler.wrapping import around

__all__ = ["Counter", "Domain", "Frame", "Marker", "Task"]

P = ParamSpec("P")
R = TypeVar("R")

MARKER_SCOPES = {"global": "g", "process": "p", "task": "p", "marker": "p", "thread": "t"}


class Domain:
    """A name that groups instruments: the category of what they record.

    Two domains of one name are the same group.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = checked_name("Domain", name)

    def __repr__(self) -> str:
        return f"Domain({self.name!r})"

    def new_task(self, name: str, args: Arguments = None) -> Task:
        """A `Task` of this domain."""
        return Task(self, name, args)

    def new_frame(self, name: str, args: Arguments = None) -> Frame:
        """A `Frame` of this domain."""
        return Frame(self, name, args)

    def new_counter(self, name: str, value: float | None = None) -> Counter:
        """A `Counter` of this domain."""
        return Counter(self, name, value)

    def new_marker(self, name: str) -> Marker:
        """A `Marker` of this domain."""
        return Marker(self, name)


class Task(Interval):
    """A piece of work, which may overlap others and end in another thread than it began in.

    Its category is the domain's name.

    Args:
        domain: the group.
        name: any text that is not empty.
        args: what the trace shows of it; arrays by dtype and shape, never their values.
    """

    __slots__ = ("domain",)

    def __init__(self, domain: Domain, name: str, args: Arguments = None) -> None:
        self.domain = _domain("Task", domain)
        super().__init__(name, self.domain.name, args)


class Frame(Interval):
    """A stretch of a repeated course, such as one iteration; category ``<domain>,frame``.

    Arguments as those of `Task`.
    """

    __slots__ = ("domain",)

    def __init__(self, domain: Domain, name: str, args: Arguments = None) -> None:
        self.domain = _domain("Frame", domain)
        super().__init__(name, f"{self.domain.name},frame", args)


class Counter:
    """A number that changes: signed, whole or not, set or moved from any thread.

    Its category is the domain's name. As a context manager, and as a decorator, it is one higher
    inside: what is in flight.

    Args:
        domain: the group.
        name: any text that is not empty.
        value: the first value, recorded at once; None begins at 0 and records nothing yet.

    Raises:
        ConfigError: a value that is no number. NaN and infinities are none that a viewer can draw:
            they are taken, left out of the trace, and counted as dropped.
    """

    __slots__ = ("_lock", "_value", "domain", "name")

    def __init__(self, domain: Domain, name: str, value: float | None = None) -> None:
        self.domain = _domain("Counter", domain)
        self.name = checked_name("Counter", name)
        self._value: float = 0
        # Re-entrant: the handler of a signal may count in the middle of counting.
        self._lock = threading.RLock()
        if value is not None:
            self.set_value(value)

    def __repr__(self) -> str:
        return f"Counter({self.name!r}, {self._value!r})"

    @property
    def value(self) -> float:
        """What it stands at."""
        return self._value

    def set_value(self, value: float) -> None:
        """Set it."""
        number = self._number(value)
        with self._lock:
            self._value = number
            self._record()

    def increment(self, delta: float = 1) -> None:
        """Move it up."""
        self._move(self._number(delta))

    def decrement(self, delta: float = 1) -> None:
        """Move it down, below zero too."""
        self._move(-self._number(delta))

    def __iadd__(self, delta: float) -> Counter:  # noqa: PYI034 - Self needs Python 3.11
        self.increment(delta)
        return self

    def __isub__(self, delta: float) -> Counter:  # noqa: PYI034 - Self needs Python 3.11
        self.decrement(delta)
        return self

    def __enter__(self) -> Counter:  # noqa: PYI034 - Self needs Python 3.11
        self.increment()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.decrement()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate: it counts the calls in flight."""
        return around(function, self.increment, lambda _: self.decrement())

    def _move(self, delta: float) -> None:
        with self._lock:
            self._value += delta
            self._record()

    def _record(self) -> None:
        # With the lock held, so that the values stand in the trace in the order they were reached.
        # The domain names the series: Perfetto tells counters of one name apart by it, and
        # chrome://tracing by the category.
        domain = self.domain.name
        if RECORDER.recording:
            RECORDER.counter(self.name, {domain: self._value}, domain)

    def _number(self, value: Any) -> float:
        if not isinstance(value, (str, bytes, bytearray)) and not getattr(value, "shape", ()):
            if type(value) is int:
                return value
            for convert in ("__index__", "__float__"):
                if hasattr(value, convert):
                    try:
                        return getattr(value, convert)()  # type: ignore[no-any-return] # by its name
                    except (TypeError, ValueError, OverflowError):
                        continue  # a NumPy array without dimensions has both methods
        raise ConfigError(f"{self!r} counts numbers, not {value!r}")


class Marker:
    """A moment; category ``<domain>,instant_marker``.

    As a context manager, and as a decorator, it marks where the block or the call begins.

    Args:
        domain: the group.
        name: any text that is not empty.
    """

    __slots__ = ("_category", "domain", "name")

    def __init__(self, domain: Domain, name: str) -> None:
        self.domain = _domain("Marker", domain)
        self.name = checked_name("Marker", name)
        self._category = f"{self.domain.name},instant_marker"

    def __repr__(self) -> str:
        return f"Marker({self.name!r})"

    def mark(self, scope: str = "process", args: Arguments = None) -> None:
        """Mark this moment.

        Args:
            scope: what it concerns: ``thread``, ``process``, ``task``, ``marker`` or ``global``.
                The viewers know three: a task and a marker are drawn as the process's.
            args: as those of `Task`.

        Raises:
            ConfigError: another scope.
        """
        if scope not in MARKER_SCOPES:
            raise ConfigError(f"unknown scope {scope!r}{nearest(str(scope), MARKER_SCOPES)}")
        if RECORDER.recording:
            given = checked_arguments("mark", args)
            RECORDER.instant(self.name, self._category, given, scope=MARKER_SCOPES[scope])

    def __enter__(self) -> Marker:  # noqa: PYI034 - Self needs Python 3.11
        self.mark()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Nothing: a moment has no end."""

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate: each call is marked where it begins."""
        return around(function, self.mark, lambda _: None)


def _domain(kind: str, domain: Any) -> Domain:
    if not isinstance(domain, Domain):
        raise ConfigError(
            f"a {kind} belongs to a Domain, not to {domain!r}; "
            f"make one: {kind}(Domain('my domain'), ...)"
        )
    return domain
