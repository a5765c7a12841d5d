"""What recording itself costs, timed where it is paid: in this process, on this machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from opbench.profiler.events import Trace

__all__ = ["WORKERS", "Cost", "Counts", "Overhead", "counted", "joined", "overhead", "taken_out"]

WORKERS = "numba workers"  # the group of lanes that the workers of parallel kernels stand in
MOST = 0.01  # of the window: from here on the recording disturbs what it records
NS_PER_MS = 1e6


class Cost(NamedTuple):
    """The price of one record.

    Attributes:
        span_ns: of an empty slice: two readings of the clock and one event.
        worker_record_ns: of one record that a worker of a parallel kernel writes, which its call
            pays; None where no such kernel was asked.
        worker_event_ns: of one of the events that such records become, which is paid after the
            call; None where there was none.
    """

    span_ns: float
    worker_record_ns: float | None = None
    worker_event_ns: float | None = None


class Counts(NamedTuple):
    """How much there is to pay for in a trace.

    Attributes:
        events: recorded one by one, also those that were dropped or spilled.
        worker_records: written by workers.
        worker_events: what those have become: a slice each, arrows and counters.
    """

    events: int
    worker_records: int
    worker_events: int


class Overhead(NamedTuple):
    """What a trace's recording took out of its windows.

    Attributes:
        span_ns: the price of an event, ns.
        worker_record_ns: the price of a worker's record, ns; None if nobody timed it.
        worker_event_ns: the price of an event made of such records, ns; None if nobody timed it.
        events: recorded one by one, also those that were dropped or spilled.
        worker_records: written by workers.
        worker_events: what those have become: a slice each, arrows and counters.
        recorded_ns: length of all windows, less the pauses.
        share: of that length, 0 to 1; 0 for a window without length.
    """

    span_ns: float
    worker_record_ns: float | None
    worker_event_ns: float | None
    events: int
    worker_records: int
    worker_events: int
    recorded_ns: int
    share: float

    @property
    def warning(self) -> str:
        """What to make of it when it is more than 1 % of the window; else empty."""
        if self.share <= MOST:
            return ""
        return (
            "recording took more than 1 % of the window: the times in it are longer than without "
            "it; record fewer modes, or operators that take longer"
        )

    def sentence(self) -> str:
        """The figures in words, for the end of a table."""
        spent = self.share * self.recorded_ns / NS_PER_MS
        workers = f" and {self.worker_records} worker records" if self.worker_records else ""
        return (
            f"recording {self.events} events{workers} took about {spent:.3g} ms, {self.share:.2%} "
            f"of the window (an empty span {self.span_ns:.0f} ns)"
        )


def joined(costs: Iterable[Cost | None]) -> Cost | None:
    """One cost of several windows of a process; None where nobody timed any record.

    Each price is the first one that was timed: a window without workers states none for theirs,
    and shall not hide that of a later one.
    """
    whole: Cost | None = None
    for cost in costs:
        if whole is not None and cost is not None:
            timed = {name: ns for name, ns in whole._asdict().items() if ns is not None}
            whole = cost._replace(**timed)
        else:
            whole = whole or cost
    return whole


def taken_out(cost: Cost | None, counts: Counts, recorded_ns: int) -> Overhead | None:
    """What recording took out of its windows; None where nobody timed a record.

    Args:
        cost: the price of one record.
        counts: how many of each kind there are.
        recorded_ns: length of all windows, less the pauses.
    """
    if cost is None:
        return None
    # Nobody timed the events of workers in files of before, and in one that is still growing.
    event_ns = cost.span_ns if cost.worker_event_ns is None else cost.worker_event_ns
    spent = counts.events * cost.span_ns
    spent += counts.worker_records * (cost.worker_record_ns or 0.0)
    spent += counts.worker_events * event_ns
    share = spent / recorded_ns if recorded_ns > 0 else 0.0
    return Overhead(*cost, *counts, recorded_ns, share)


def overhead(trace: Trace) -> Overhead | None:
    """What the recording of one trace cost; None where nobody timed a record."""
    recorded = sum(end - start for start, end in trace.windows)
    recorded -= sum(end - start for start, end in trace.pauses)
    return taken_out(trace.cost, counted(trace), recorded)


def counted(trace: Trace) -> Counts:
    """How much there is to pay for in a trace."""
    there = len(trace.events) + trace.spilled + trace.dropped
    groups = {pid for pid, name in trace.process_names.items() if name == WORKERS}
    if not groups:
        return Counts(there, 0, 0)
    phases = Counter(event.phase for event in trace.events if event.pid in groups)
    # Each arrow to a worker has its other end on the thread of the call.
    made = phases.total() + phases["f"]
    return Counts(there - made, phases["X"], made)
