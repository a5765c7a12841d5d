"""What differs between two traces, as a table and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

from opbench.profiler import AggregateStat, Difference
from opbench.records import Interval, bootstrap_ratio_interval
from opbench.report.table import Column, Style, table_lines
from opbench.units import format_seconds

__all__ = ["difference_lines", "differences_json"]

DASH = "–"
NANOSECOND = 1e-9
CONFIDENCE = 0.95
# The bootstrap over all resamples there are takes seconds from some hundred calls.
MOST_RESAMPLED = 100
WHAT_IT_IS = (
    "the interval is what the spread of the calls in these two launches leaves open; launches "
    "differ by more, so it describes them and judges no change"
)


def difference_lines(rows: Sequence[Difference], style: Style) -> list[str]:
    """One line a row, in the order given, and a sentence where there is no row."""
    if not rows:
        return ["no time in either trace"]
    names = [
        f"{row.category} · {row.name}" + (f" · {row.shape}" if row.shape else "") for row in rows
    ]
    intervals = [_interval(row) for row in rows]
    columns = [
        Column("name", names, name=True),
        Column("calls", [_pair(_count(row.before), _count(row.after)) for row in rows]),
        Column("total A", [_total(row.before) for row in rows], droppable=True),
        Column("total B", [_total(row.after) for row in rows], droppable=True),
        Column("grew by", [_signed(row.growth_ns) for row in rows]),
        Column("median A", [_median(row.before) for row in rows]),
        Column("median B", [_median(row.after) for row in rows]),
        Column("B / A", [DASH if row.ratio is None else f"{row.ratio:.3f}" for row in rows]),
        Column("95 % of calls", [_ends(interval) for interval in intervals]),
        Column("", [row.verdict for row in rows]),
    ]
    return table_lines(columns, style) + [WHAT_IT_IS] * any(intervals)


def differences_json(rows: Sequence[Difference]) -> str:
    """The same with all digits; times in nanoseconds."""
    return json.dumps([_plain(row) for row in rows], allow_nan=False, indent=1)


def _plain(row: Difference) -> dict[str, Any]:
    interval = _interval(row)
    return {
        "category": row.category,
        "name": row.name,
        "shape": row.shape,
        "before": row.before and row.before._asdict(),
        "after": row.after and row.after._asdict(),
        "growth_ns": row.growth_ns,
        "ratio": row.ratio,
        "interval": interval and interval._asdict(),
        "verdict": row.verdict,
    }


def _interval(row: Difference) -> Interval | None:
    """For the ratio of medians, the calls taken as independent draws within each launch.

    None of few calls, or where one took no time and a ratio says nothing.
    """
    if not row.comparable or 0 in (min(row.before_ns), min(row.after_ns)):
        return None
    if max(len(row.before_ns), len(row.after_ns)) <= MOST_RESAMPLED:
        return bootstrap_ratio_interval(row.before_ns, row.after_ns, CONFIDENCE)
    before, after = (_log_median(calls) for calls in (row.before_ns, row.after_ns))
    # Each end is as far off as the two intervals together let it be (Donner and Zou's MOVER).
    centre = after[1] - before[1]
    low = centre - math.hypot(after[1] - after[0], before[2] - before[1])
    high = centre + math.hypot(after[2] - after[1], before[1] - before[0])
    return Interval(math.exp(low), math.exp(high), CONFIDENCE)


def _log_median(calls: Sequence[int]) -> tuple[float, float, float]:
    """Logarithms of the median and of the two order statistics that enclose it, it in between."""
    ordered, size = sorted(calls), len(calls)
    off = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * math.sqrt(size) / 2
    low = max(0, math.floor(size / 2 - off))
    middle = (ordered[(size - 1) // 2] + ordered[size // 2]) / 2
    return math.log(ordered[low]), math.log(middle), math.log(ordered[size - 1 - low])


def _ends(interval: Interval | None) -> str:
    return f"{interval.low:.3f} to {interval.high:.3f}" if interval else DASH


def _count(row: AggregateStat | None) -> str:
    return str(row.count) if row else DASH


def _pair(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _total(row: AggregateStat | None) -> str:
    return format_seconds((row.total or 0) * NANOSECOND) if row else DASH


def _median(row: AggregateStat | None) -> str:
    return format_seconds(row.median * NANOSECOND) if row else DASH


def _signed(growth_ns: int) -> str:
    sign = "+" if growth_ns > 0 else "-" if growth_ns < 0 else ""
    return f"{sign}{format_seconds(abs(growth_ns) * NANOSECOND)}"
