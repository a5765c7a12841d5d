"""The recorder's emit points: what the rest of the package calls while work goes on.

They are called from any thread, from finalizers and from signal handlers, and their price is part
of what is measured, so they take no lock: all that one looks at of the window is one tuple.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from operator import index
from typing import Any, NamedTuple

from opbench.errors import TraceError
from opbench.profiler.buffer import Buffer
from opbench.profiler.clock import Clock
from opbench.profiler.events import Lane
from opbench.profiler.raw import Detail, RawEvent

__all__ = ["Emitter", "Mark", "Sink", "Thread"]

# events, limit, earliest start, thread, buffer: the window as an emit point sees it. A tuple, so
# that an emit under way while the window closes or pauses finds the old one whole, never half of
# each.
Sink = tuple["list[RawEvent]", int, int, "Thread", Buffer]


class Mark(NamedTuple):
    """A span that has begun and not ended, for a file that may be all that is left."""

    name: str
    category: str
    start_ns: int
    tid: int
    args: Mapping[str, Any]


class Thread(threading.local):
    """What one run remembers of each thread: its number, which costs a system call.

    A thread that has not made itself known yet has none.
    """

    tid: int


class Emitter:
    """The emit methods, and what they share with the transitions of `Profiler`.

    Attributes:
        mask: the modes being recorded, as a plain integer; 0 while stopped or paused.
        clock: the clock of all events, ns.
        iteration: the iteration being recorded, or None; emit points copy it.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._forget_window()

    def _forget_window(self) -> None:
        # Re-entrant, since a finalizer or a signal handler may emit inside an emit of its thread.
        self._lock = threading.RLock()
        self.mask = 0
        self.iteration: int | None = None
        self._sink: Sink | None = None  # None while stopped or paused
        self._open_sink: Sink | None = None  # None while stopped
        self._ids = itertools.count(1)
        self._groups: dict[str, int] = {}
        self._marks: dict[int, Mark] = {}
        self._names: dict[int, list[str]] = {}

    @property
    def since(self) -> int:
        """When recording began, by the last run or resume; 0 while stopped or paused."""
        sink = self._sink
        return 0 if sink is None else sink[2]

    def open_for_timing(self, buffer: Buffer) -> None:
        """Record into a buffer that belongs to no window."""
        self._sink = self._open_sink = (buffer.events, buffer.limit, 0, Thread(), buffer)

    def complete(
        self,
        name: str,
        category: str,
        start_ns: int,
        end_ns: int,
        args: dict[str, Any] | None = None,
        # Keyword-only parameters would cost a tenth of the whole call.
        across_pauses: bool = False,
        lane: Lane | None = None,
    ) -> None:
        """Record a slice.

        Args:
            name: what groups in a viewer.
            category: the mode's name, ``iteration`` or ``call``.
            start_ns: when it began, by `clock`.
            end_ns: when it ended.
            args: plain JSON values; kept, not copied, so pass a fresh dictionary and no arrays.
            across_pauses: keep a slice that reaches over a pause, as an iteration does; it must
                still have begun inside the window. Such a slice finds room in a full buffer too.
            lane: the track it stands on; the calling thread's if None.

        Raises:
            TraceError: it ends before it starts, or a time is no whole number.
        """
        if type(start_ns) is not int or type(end_ns) is not int:
            start_ns, end_ns = _whole(name, start_ns, end_ns)
        if end_ns < start_ns:
            raise TraceError(
                f"slice {name!r} ends {start_ns - end_ns} ns before it starts; "
                "take both times from the recorder's clock"
            )
        sink = self._open_sink if across_pauses else self._sink
        if sink is None:
            return
        events, limit, since, thread, buffer = sink
        if start_ns < since:
            return
        track: int | Lane | None = lane
        if track is None:
            try:
                track = thread.tid
            except AttributeError:
                track = self._introduce(thread)
        if len(events) < limit:
            events.append(("X", name, category, start_ns, end_ns - start_ns, track, args))
            return
        event: RawEvent = ("X", name, category, start_ns, end_ns - start_ns, track, args)
        with self._lock:
            buffer.overflow(event, protected=across_pauses)

    def counter(
        self,
        name: str,
        values: Mapping[str, float],
        category: str = "memory",
        *,
        lane: Lane | None = None,
    ) -> None:
        """Record the present values of a quantity.

        Args:
            name: the quantity; one per name.
            values: series to number; copied. A value that is no finite number is left out and
                counted as dropped when the window closes, since it would hang a viewer.
            category: the mode's name.
            lane: any track of the group that the counter belongs to; the process's if None.
        """
        self._append("C", name, category, self.clock(), 0, dict(values), lane)

    def counter_at(
        self,
        name: str,
        values: Mapping[str, float],
        at_ns: int,
        category: str = "memory",
        *,
        lane: Lane | None = None,
    ) -> None:
        """`counter` for values that held from a past moment on, by `clock`."""
        self._append("C", name, category, at_ns, 0, dict(values), lane)

    def instant(
        self,
        name: str,
        category: str,
        args: dict[str, Any] | None = None,
        *,
        scope: str = "t",
        lane: Lane | None = None,
    ) -> None:
        """Record a moment of the calling thread; `args` and `lane` as in `complete`.

        Args:
            name: what groups in a viewer.
            category: the mode's name.
            args: plain JSON values.
            scope: what it concerns: ``t`` the thread, ``p`` the process, ``g`` the whole trace.
            lane: the track it stands on.
        """
        detail = args if scope == "t" else Detail(args or {}, scope=scope)
        self._append("i", name, category, self.clock(), 0, detail, lane)

    def span(
        self,
        name: str,
        category: str,
        start_ns: int,
        end_ns: int,
        args: dict[str, Any] | None = None,
    ) -> None:
        """Record a slice that may overlap others of its thread; arguments as in `complete`.

        Raises:
            TraceError: it ends before it starts, or a time is no whole number.
        """
        start_ns, end_ns = _whole(name, start_ns, end_ns)
        if end_ns < start_ns:
            raise TraceError(f"span {name!r} ends {start_ns - end_ns} ns before it starts")
        detail = Detail(args or {}, next(self._ids))
        self._append("b", name, category, start_ns, end_ns - start_ns, detail, None)

    def flow(
        self,
        name: str,
        category: str,
        source: tuple[int, Lane | None],
        target: tuple[int, Lane | None],
    ) -> None:
        """Record an arrow.

        Args:
            name: what groups in a viewer.
            category: the mode's name.
            source: a moment by `clock` inside the slice where it begins, and that slice's lane;
                None for the calling thread.
            target: likewise where it ends.
        """
        ident = next(self._ids)
        for phase, (at, lane) in (("s", source), ("f", target)):
            self._append(phase, name, category, at, 0, Detail({}, ident), lane)

    def mark_open(
        self, name: str, category: str, start_ns: int, args: Mapping[str, Any] | None = None
    ) -> int:
        """Say that a span of the calling thread has begun; records nothing.

        If the process dies before `mark_closed`, the file of a continuous dump shows the span as
        open, and so what the process was at.

        Returns:
            What `mark_closed` takes.
        """
        sink = self._open_sink
        if sink is None:
            return 0
        thread = sink[3]
        tid = thread.tid if hasattr(thread, "tid") else self._introduce(thread)
        token = next(self._ids)
        self._marks[token] = Mark(name, category, start_ns, tid, dict(args or {}))
        return token

    def mark_closed(self, token: int) -> None:
        """The span has ended, or will never be recorded; harmless the second time."""
        self._marks.pop(token, None)

    def _append(
        self,
        phase: str,
        name: str,
        category: str,
        start: int,
        duration: int,
        args: dict[str, Any] | Detail | None,
        lane: Lane | None,
    ) -> None:
        sink = self._sink
        if sink is None or start < sink[2]:
            return
        events, limit, _, thread, buffer = sink
        track: int | Lane | None = lane
        if track is None:
            track = thread.tid if hasattr(thread, "tid") else self._introduce(thread)
        event: RawEvent = (phase, name, category, start, duration, track, args)
        if len(events) < limit:
            events.append(event)
            return
        with self._lock:
            buffer.overflow(event, protected=False)

    def _introduce(self, thread: Thread) -> int:
        """Note number and name of a thread at its first event of a run."""
        with self._lock:
            thread.tid = threading.get_native_id()
            name = str(threading.current_thread().name) or f"thread {thread.tid}"
            self._names.setdefault(thread.tid, []).append(name)
        return thread.tid


def _whole(name: str, start: Any, end: Any) -> tuple[int, int]:
    try:
        return index(start), index(end)
    except TypeError:
        raise TraceError(
            f"slice {name!r} has the times {start!r} and {end!r}, but nanoseconds are "
            "whole numbers; take both times from the recorder's clock"
        ) from None
