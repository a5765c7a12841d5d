"""Traces of several processes as one, on one axis of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opbench.errors import TraceError
from opbench.profiler.clock import ClockAnchor
from opbench.profiler.events import Trace, TraceEvent
from opbench.profiler.modes import Mode
from opbench.profiler.nesting import LARGEST_ID
from opbench.profiler.raw import GROUP_BITS

__all__ = ["Part", "join"]

# Two processes of one start of the machine read the same monotonic clock, and their wall clocks
# agree to what it was corrected by meanwhile. Beyond this it is another machine, or another start.
SAME_CLOCK_NS = 10_000_000_000
GROUP = 1 << GROUP_BITS


class Part(NamedTuple):
    """One of the traces to join.

    Attributes:
        label: what its processes are called in the whole, such as the file's name.
        trace: as it was recorded.
    """

    label: str
    trace: Trace


def join(parts: Sequence[Part], *, align: str = "clock") -> Trace:
    """One trace with all events, each process in a group of its own.

    Args:
        parts: one or more.
        align: ``clock``: events stand where they happened, by the clock that the processes share,
            or by the date if they share none; ``start``: all traces begin at one moment.

    Raises:
        TraceError: no part, or one that does not tell when it was recorded.
    """
    if not parts:
        raise TraceError("no trace to join: give at least one file")
    shifts = _by_start(parts) if align == "start" else _by_clock(parts)
    first = parts[0].trace
    events: list[TraceEvent] = []
    process_names: dict[int, str] = {}
    thread_names: dict[tuple[int, int], str] = {}
    modes = Mode(0)
    windows: list[tuple[int, int]] = []
    pauses: list[tuple[int, int]] = []
    merged = []
    last_id = 0
    for (label, trace), shift in zip(parts, shifts, strict=True):
        pids = _free_pids(trace, set(process_names))
        modes |= trace.modes
        windows += [(start + shift, end + shift) for start, end in trace.windows]
        pauses += [(start + shift, end + shift) for start, end in trace.pauses]
        # Arrows and overlapping slices are told apart by id in the whole file.
        raised = last_id
        for event in trace.events:
            ident = event.id + raised if event.id else 0
            last_id = max(last_id, ident)
            events.append(
                event._replace(start_ns=event.start_ns + shift, pid=pids[event.pid], id=ident)
            )
        for pid, new in pids.items():
            process_names[new] = f"{trace.process_names.get(pid, f'process {pid}')} · {label}"
        for (pid, tid), name in trace.thread_names.items():
            thread_names[pids[pid], tid] = name
        merged.append({"file": label, "processes": sorted(pids.values()), **trace.metadata})
    events.sort(key=lambda event: (event.start_ns, -event.duration_ns))
    return Trace(
        events=tuple(events),
        modes=modes,
        windows=tuple(sorted(windows)),
        dropped=sum(part.trace.dropped for part in parts),
        anchor=ClockAnchor(first.anchor.monotonic_ns + shifts[0], first.anchor.wall_ns),
        process_names=process_names,
        thread_names=thread_names,
        metadata={"merged": merged},
        pauses=tuple(sorted(pauses)),
        spilled=sum(part.trace.spilled for part in parts),
    )


def _by_start(parts: Sequence[Part]) -> list[int]:
    begins = [
        min(
            [start for start, _ in part.trace.windows]
            or [event.start_ns for event in part.trace.events[:1]]
            or [0]
        )
        for part in parts
    ]
    return [max(begins) - begin for begin in begins]


def _by_clock(parts: Sequence[Part]) -> list[int]:
    """What to add to the times of each, so that all count from one moment."""
    offsets = [part.trace.anchor.wall_ns - part.trace.anchor.monotonic_ns for part in parts]
    for part, offset in zip(parts, offsets, strict=True):
        if not offset and not _dated(part.trace):
            raise TraceError(
                f"{part.label} does not tell when it was recorded: it has no baseTimeNanoseconds; "
                "align the traces by their starts (--align start)"
            )
    recorders = [part.trace.anchor.monotonic_ns != 0 for part in parts]
    if all(recorders) and max(offsets) - min(offsets) < SAME_CLOCK_NS:
        return [0] * len(parts)
    return [offset - offsets[0] for offset in offsets]


def _dated(trace: Trace) -> bool:
    """Whether times without an anchor count from 1970, as MXNet's do."""
    year_2000 = 946_684_800_000_000_000
    return any(start > year_2000 for start, _ in trace.windows)


def _free_pids(trace: Trace, taken: set[int]) -> dict[int, int]:
    """A number for each process of a trace that no earlier one has; its own where that is free."""
    pids = sorted({event.pid for event in trace.events} | set(trace.process_names))
    own = {pid % GROUP for pid in taken}
    moved: dict[int, int] = {}
    for pid in pids:
        if pid not in taken and pid % GROUP not in own:
            moved[pid] = pid
            continue
        base, group = pid % GROUP, pid - pid % GROUP
        if base in moved and moved[base] + group not in taken:  # stay with one's process
            moved[pid] = moved[base] + group
            continue
        free = GROUP - 1
        while free in own or free + group in taken or free + group in moved.values():
            free -= 1
        moved[pid] = min(free + group, LARGEST_ID)
    return moved
