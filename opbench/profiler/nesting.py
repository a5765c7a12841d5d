"""On one lane two slices are apart or nested: Perfetto drops a slice that crosses another."""

from __future__ import annotations

from opbench.errors import TraceError
from opbench.profiler.events import Trace, TraceEvent

__all__ = ["LARGEST_ID", "OpenSlices", "separate"]

LARGEST_ID = 2**32 - 1
# Lanes that the writer adds are numbered from here; no system numbers its threads this high.
ADDED_LANES = 2**31


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

    def place(self, event: TraceEvent) -> int | None:
        """The first lane that the slice fits into; None if it crosses something in each."""
        for tid, slices in self.rows:
            if slices.accepts(event.start_ns, event.end_ns):
                return tid
        return None


def separate(trace: Trace) -> tuple[list[TraceEvent], dict[tuple[int, int], str]]:
    """The events in the order to write, and the names of all lanes.

    A slice that would cross another of its thread is moved to an added lane, named after the
    thread. So is everything of a thread whose number does not fit into 32 bits.

    Raises:
        TraceError: a process number that no viewer can hold.
    """
    names = dict(trace.thread_names)
    lanes: dict[tuple[int, int], _Lanes] = {}
    added = ADDED_LANES
    placed = []
    for event in sorted(trace.events, key=lambda event: (event.start_ns, -event.duration_ns)):
        thread = (event.pid, event.tid)
        own = lanes.get(thread)
        if own is None:
            if not 1 <= event.pid <= LARGEST_ID:
                raise TraceError(f"process number {event.pid} does not fit: 1 to {LARGEST_ID}")
            own = lanes[thread] = _Lanes(event.tid)
            if not 1 <= event.tid <= LARGEST_ID:
                own.rows[0] = (added, OpenSlices())
                names[event.pid, added] = names.pop(thread, f"thread {event.tid}")
                added += 1
        tid = own.place(event) if event.phase == "X" else own.rows[0][0]
        if tid is None:
            tid = added
            added += 1
            own.rows.append((tid, OpenSlices()))
            own.place(event)
            name = names.get((event.pid, own.rows[0][0]), f"thread {event.tid}")
            names[event.pid, tid] = f"{name} (crossing {len(own.rows) - 1})"
        placed.append(event if tid == event.tid else event._replace(tid=tid))
    return placed, names
