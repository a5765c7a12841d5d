"""On one lane two slices are apart or nested: Perfetto drops a slice that crosses another."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from opbench.errors import TraceError
from opbench.profiler.events import Trace, TraceEvent

__all__ = ["LARGEST_ID", "OpenSlices", "Placed", "separate"]

LARGEST_ID = 2**32 - 1
# Lanes that the writer adds are numbered from here, past numbers that a thread has already.
ADDED_LANES = 2**31
# Nobody reads more lanes of one thread, and each slice may have to be tried on all of them.
LANES_OF_A_THREAD = 64


class OpenSlices:
    """The slices of one lane that are open at the present point of a walk by (start, -duration)."""

    def __init__(self) -> None:
        self._ends: list[int] = []

    def accepts(self, start: int, end: int) -> bool:
        """Open a slice and return True, or return False because it would cross an open one."""
        ends = self._ends
        while ends and ends[-1] <= start:
            ends.pop()
        if ends and end > ends[-1]:
            return False
        ends.append(end)
        return True


class _Lanes:
    """One thread's lanes: its own, and those added for slices that cross."""

    def __init__(self, tid: int) -> None:
        self.rows = [(tid, OpenSlices())]

    def place(self, start: int, end: int) -> int | None:
        """The first lane that the slice fits into; None if it crosses something in each."""
        for tid, slices in self.rows:
            if slices.accepts(start, end):
                return tid
        return None

    def add(self, tid: int, event: TraceEvent) -> None:
        """One more lane, with the slice on it."""
        slices = OpenSlices()
        slices.accepts(event.start_ns, event.end_ns)
        self.rows.append((tid, slices))


class Placed(NamedTuple):
    """What is to be written of a trace.

    Attributes:
        events: in the order to write.
        names: of all lanes, by process and lane.
        left_out: slices that crossed others on all the lanes that their thread may have.
    """

    events: list[TraceEvent]
    names: dict[tuple[int, int], str]
    left_out: int


def separate(trace: Trace) -> Placed:
    """The events on lanes, where all slices are apart or nested.

    A slice that would cross another of its thread is moved to an added lane, named after the
    thread; there are up to 64 lanes per thread. So is everything of a thread whose number does not
    fit into 32 bits.

    Raises:
        TraceError: a process number that no viewer can hold.
    """
    names = {thread: name for thread, name in trace.thread_names.items() if _fits(thread[1])}
    lanes: dict[tuple[int, int], _Lanes] = {}
    taken = {event.tid for event in trace.events} | {tid for _, tid in names}
    free = (number for number in itertools.count(ADDED_LANES) if number not in taken)
    events: list[TraceEvent] = []
    left_out = 0
    for event in sorted(trace.events, key=lambda event: (event.start_ns, -event.duration_ns)):
        _, _, phase, start, duration, pid, number, *_ = event
        thread = (pid, number)
        own = lanes.get(thread)
        if own is None:
            if not _fits(event.pid):
                raise TraceError(f"process number {event.pid} does not fit: 1 to {LARGEST_ID}")
            own = lanes[thread] = _Lanes(event.tid if _fits(event.tid) else next(free))
            if not _fits(event.tid):
                name = trace.thread_names.get(thread, f"thread {event.tid}")
                names[event.pid, own.rows[0][0]] = name
        first = own.rows[0][0]
        tid = own.place(start, start + duration) if phase == "X" else first
        if tid is None:
            if len(own.rows) == LANES_OF_A_THREAD:
                left_out += 1
                continue
            tid = next(free)
            own.add(tid, event)
            name = names.get((event.pid, first), f"thread {event.tid}")
            names[event.pid, tid] = f"{name} (crossing {len(own.rows) - 1})"
        events.append(event if tid == number else event._replace(tid=tid))
    return Placed(events, names, left_out)


def _fits(number: int) -> bool:
    return 1 <= number <= LARGEST_ID
