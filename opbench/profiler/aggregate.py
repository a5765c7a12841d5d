"""What the operators of a trace cost, added up."""

from __future__ import annotations

from typing import NamedTuple

from opbench.profiler.events import Trace, TraceEvent

__all__ = ["OperatorTotal", "operator_totals"]

OPERATOR_CATEGORIES = ("symbolic", "imperative")


class OperatorTotal(NamedTuple):
    """One row: an operator in one category.

    Attributes:
        category: ``symbolic`` or ``imperative``.
        name: the operator's.
        count: calls.
        total_ns: time in all calls; likewise the shortest, the longest, the mean and the median.
        flop: floating-point operations of all calls; None if any call did not state them.
        bytes: bytes moved by all calls; None if any call did not state them.
    """

    category: str
    name: str
    count: int  # type: ignore[assignment]  # hides tuple.count, which a row has no use for
    total_ns: int
    min_ns: int
    max_ns: int
    mean_ns: float
    median_ns: float
    flop: int | None
    bytes: int | None


def operator_totals(trace: Trace) -> list[OperatorTotal]:
    """One row per (category, operator), the largest total first; each call is counted once."""
    calls: dict[tuple[str, str], list[TraceEvent]] = {}
    for event in trace.events:
        if event.phase == "X" and event.category in OPERATOR_CATEGORIES:
            name = str(event.args.get("operator", event.name))
            calls.setdefault((event.category, name), []).append(event)
    rows = [_row(category, name, events) for (category, name), events in calls.items()]
    return sorted(rows, key=lambda row: (-row.total_ns, row.category, row.name))


def _row(category: str, name: str, events: list[TraceEvent]) -> OperatorTotal:
    durations = sorted(event.duration_ns for event in events)
    total, count = sum(durations), len(durations)
    return OperatorTotal(
        category=category,
        name=name,
        count=count,
        total_ns=total,
        min_ns=durations[0],
        max_ns=durations[-1],
        mean_ns=total / count,
        median_ns=(durations[(count - 1) // 2] + durations[count // 2]) / 2,
        flop=_sum_of("flop", events),
        bytes=_sum_of("bytes", events),
    )


def _sum_of(key: str, events: list[TraceEvent]) -> int | None:
    total = 0
    for event in events:
        value = event.args.get(key)
        if not isinstance(value, int):
            return None
        total += value
    return total
