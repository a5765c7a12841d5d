"""What recording itself costs, timed where it is paid: in this process, on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from opbench.profiler.events import Trace

__all__ = ["WORKERS", "Cost", "Overhead", "overhead", "taken_out", "worker_records"]

WORKERS = "numba workers"  # the group of lanes that the workers of parallel kernels stand in
MOST = 0.01  # of the window: from here on the recording disturbs what it records
NS_PER_MS = 1e6


class Cost(NamedTuple):
    """The price of one record.

    Attributes:
        span_ns: of an empty slice: two readings of the clock and one event.
        worker_record_ns: of one record that a worker of a parallel kernel writes; None where no
            such kernel was asked.
    """

    span_ns: float
    worker_record_ns: float | None = None


class Overhead(NamedTuple):
    """What a trace's recording took out of its windows.

    Attributes:
        span_ns: the price of an event, ns.
        worker_record_ns: the price of a worker's record, ns; None if nobody timed it.
        events: recorded on threads, also those that were dropped.
        worker_records: recorded by workers.
        recorded_ns: length of all windows, less the pauses.
        share: of that length, 0 to 1; 0 for a window without length.
    """

    span_ns: float
    worker_record_ns: float | None
    events: int
    worker_records: int
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


def taken_out(cost: Cost | None, events: int, records: int, recorded_ns: int) -> Overhead | None:
    """What recording took out of its windows; None where nobody timed a record.

    Args:
        cost: the price of one record.
        events: recorded on threads, also those that were dropped.
        records: recorded by workers.
        recorded_ns: length of all windows, less the pauses.
    """
    if cost is None:
        return None
    spent = events * cost.span_ns + records * (cost.worker_record_ns or 0.0)
    share = spent / recorded_ns if recorded_ns > 0 else 0.0
    return Overhead(*cost, events, records, recorded_ns, share)


def overhead(trace: Trace) -> Overhead | None:
    """What the recording of one trace cost; None where nobody timed a record."""
    records = worker_records(trace)
    events = len(trace.events) + trace.spilled + trace.dropped - records
    recorded = sum(end - start for start, end in trace.windows)
    recorded -= sum(end - start for start, end in trace.pauses)
    return taken_out(trace.cost, events, records, recorded)


def worker_records(trace: Trace) -> int:
    """How many slices of a trace the workers of parallel kernels recorded."""
    groups = {pid for pid, name in trace.process_names.items() if name == WORKERS}
    if not groups:
        return 0
    return sum(event.pid in groups and event.phase == "X" for event in trace.events)
