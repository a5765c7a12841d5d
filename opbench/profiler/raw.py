"""From what an emit point appends to the frozen events of a trace."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from opbench.profiler.events import Lane, TraceEvent

__all__ = ["Built", "Detail", "RawEvent", "build_events", "group_pid", "whole_arrows"]

# Above the largest process number of Linux, 2**22; other systems have smaller ones.
GROUP_BITS = 22
# As many as fit into the 32 bits that Perfetto has for a process number.
MOST_GROUPS = 1000


class Detail(NamedTuple):
    """The args of an event that has more to say than a slice or a counter."""

    args: Mapping[str, Any]
    id: int = 0
    scope: str = "t"


# phase, name, category, start ns, duration ns, tid or lane, args: what an emit point appends.
RawEvent = tuple[str, str, str, int, int, "int | Lane", "dict[str, Any] | Detail | None"]


class Built(NamedTuple):
    """The events of a process.

    Attributes:
        events: by start, a parent before its children.
        lost: counter values that are no finite number.
        lanes: the lanes in them, by process group and number.
        half_arrows: the ids of arrows of which only one end is here.
    """

    events: tuple[TraceEvent, ...]
    lost: int
    lanes: dict[tuple[int, int], Lane]
    half_arrows: set[int]


def build_events(raw: Iterable[RawEvent], pid: int, groups: dict[str, int]) -> Built:
    """The frozen events, in order.

    Args:
        raw: what was appended.
        pid: the process.
        groups: the number of each group of lanes, from 1; new groups are added.
    """
    slices: list[TraceEvent] = []
    points: list[TraceEvent] = []
    lanes: dict[tuple[int, int], Lane] = {}
    lost = 0
    nothing: dict[str, Any] = {}
    ends: dict[str, set[int]] = {"s": set(), "f": set()}
    for phase, name, category, start, duration, tid, args in raw:
        if isinstance(tid, Lane):
            process, track = group_pid(pid, groups, tid.group), tid.number
            lanes[process, track] = tid
        else:
            process, track = pid, tid
        if phase == "C":
            values, unusable = _finite(args or nothing)  # type: ignore[arg-type] # no Detail here
            lost += unusable
            if values:
                points.append(TraceEvent(name, category, phase, start, 0, process, track, values))
            continue
        if isinstance(args, Detail):
            if phase in "sf":
                ends[phase].add(args.id)
            event = TraceEvent(name, category, phase, start, duration, process, track, *args)
        else:
            event = TraceEvent(
                name, category, phase, start, duration, process, track, args or nothing
            )
        (slices if duration else points).append(event)
    # A child completes before its parent. Turning the slices round makes the stable sort put the
    # parent first even where both have the very same times; what has no duration keeps its order,
    # since of two counter values at one time the later one must stay.
    events = slices[::-1] + points
    events.sort(key=lambda event: (event.start_ns, -event.duration_ns))
    return Built(tuple(events), lost, lanes, ends["s"] ^ ends["f"])


def whole_arrows(built: Built) -> Built:
    """Without the arrows of which a full buffer has swallowed one end; each counts as lost."""
    half = built.half_arrows
    if not half:
        return built
    events = [event for event in built.events if event.phase not in "sf" or event.id not in half]
    return Built(tuple(events), built.lost + len(half), built.lanes, set())


def group_pid(pid: int, groups: dict[str, int], group: str) -> int:
    """The process number under which a viewer shows a group of lanes."""
    ordinal = groups.setdefault(group, len(groups) + 1)
    return pid + (min(ordinal, MOST_GROUPS) << GROUP_BITS)


def _finite(values: Mapping[str, Any]) -> tuple[dict[str, int | float], int]:
    """The series that a viewer can draw: one NaN in a counter makes Perfetto 52 spin for ever."""
    kept: dict[str, int | float] = {}
    for series, value in values.items():
        number = _number(value)
        if number is not None:
            kept[series] = number
    return kept, len(values) - len(kept)


def _number(value: Any) -> int | float | None:
    if isinstance(value, str):
        return None
    try:
        if not math.isfinite(float(value)):
            return None
        return operator.index(value) if hasattr(value, "__index__") else float(value)
    except (TypeError, ValueError, OverflowError):  # no number, or beyond the largest float
        return None
