"""What a trace adds up to: times of slices, values of counters, totals of operators."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from opbench.errors import ConfigError, nearest
from opbench.profiler.events import Trace
from opbench.profiler.tally import (
    OPERATOR_CATEGORIES,
    Held,
    Key,
    Tally,
    Times,
    operator_name,
    tally_of,
)

__all__ = [
    "GROUPINGS",
    "AggregateStat",
    "OperatorTotal",
    "aggregate",
    "operator_totals",
    "rows_of",
    "sort_rows",
    "times_by",
]

GROUPINGS = ("operator", "shape", "thread")
SORT_KEYS = {
    "total": "total",
    "count": "count",
    "avg": "mean",
    "mean": "mean",
    "min": "min",
    "max": "max",
    "median": "median",
    "p90": "p90",
    "p99": "p99",
    "std": "std",
    "share": "share",
    "self": "self_total",
    "name": "name",
}


class AggregateStat(NamedTuple):
    """One row: the slices of one name in one category, or one series of one counter.

    Of a time (``unit`` is ``ns``) each call weighs the same, and a percentile lies between two
    values where it falls between them. Of a counter each value weighs as long as it held: the mean
    is the integral over recorded time by that time, and a percentile is the value below or at which
    the counter was for that share of it.

    Attributes:
        category: the events'.
        name: the operator's or the events'; of a counter with its series.
        shape: input shapes and dtype when grouped by shape, else empty.
        thread: name and number when grouped by thread, else empty.
        unit: ``ns`` of a time, ``bytes`` or nothing of a counter.
        count: calls, or how often the counter was set.
        total: time in all calls; None of a counter, whose values do not add up.
        min: smallest; likewise the largest, the mean, the median and two percentiles.
        std: standard deviation of all of them, not of a sample.
        share: the total by the time recorded: above 1 where threads overlap. None of a counter.
        self_total: the total less the time in slices inside them, on the same thread. None of a
            counter.
        flop: floating-point operations of all calls; None if any call did not state them, and of a
            counter. Likewise ``bytes``.
    """

    category: str
    name: str
    shape: str
    thread: str
    unit: str
    count: int  # type: ignore[assignment]  # hides tuple.count, which a row has no use for
    total: int | None
    min: float
    max: float
    mean: float
    median: float
    p90: float
    p99: float
    std: float
    share: float | None
    self_total: int | None
    flop: int | None = None
    bytes: int | None = None

    @property
    def is_time(self) -> bool:
        """Whether it is a row of times, and not of a counter."""
        return self.total is not None


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
    groups: dict[tuple[str, str], Times] = {}
    for event in trace.events:
        if event.phase == "X" and event.category in OPERATOR_CATEGORIES:
            groups.setdefault((event.category, operator_name(event)), Times()).note(event)
    rows = [_operator_row(category, name, times) for (category, name), times in groups.items()]
    return sorted(rows, key=lambda row: (-row.total_ns, row.category, row.name))


def _operator_row(category: str, name: str, times: Times) -> OperatorTotal:
    durations = sorted(times.durations)
    return OperatorTotal(
        category=category,
        name=name,
        count=len(durations),
        total_ns=sum(durations),
        min_ns=durations[0],
        max_ns=durations[-1],
        mean_ns=sum(durations) / len(durations),
        median_ns=percentile(durations, 0.5),
        flop=times.flop,
        bytes=times.bytes,
    )


def aggregate(trace: Trace, by: str = "operator") -> list[AggregateStat]:
    """The statistics of a trace: times by falling total, then counters by name.

    Args:
        trace: a finished one.
        by: what makes a row within a category: ``operator`` (and whatever else has a name),
            ``shape`` (operator and shapes), or ``thread`` (operator and thread).

    Raises:
        ConfigError: another grouping.
    """
    return rows_of(tally_of(trace), by)


def rows_of(tally: Tally, by: str = "operator") -> list[AggregateStat]:
    """What `aggregate` returns, of a tally."""
    times = times_by(tally, by)
    rows = [_time_row(key, found, tally.recorded_ns) for key, found in times.items()]
    rows += [_counter_row(key, held) for key, held in tally.counters.items()]
    return sort_rows(rows)


def times_by(tally: Tally, by: str) -> dict[Key, Times]:
    """The slices behind each row of times.

    Raises:
        ConfigError: another grouping.
    """
    if by not in GROUPINGS:
        raise ConfigError(f"unknown grouping by={by!r}{nearest(str(by), GROUPINGS)}")
    times: dict[Key, Times] = {}
    for key, found in tally.times.items():
        times.setdefault(_grouped(key, by), Times()).add(found)
    return times


def _grouped(key: Key, by: str) -> Key:
    return Key(
        key.category,
        key.name,
        key.shape if by == "shape" else "",
        key.thread if by == "thread" else "",
    )


def sort_rows(
    rows: Iterable[AggregateStat], sort_by: str = "total", *, ascending: bool = False
) -> list[AggregateStat]:
    """Times before counters, each in the order that is asked for, and by name where that is equal.

    Args:
        rows: as `aggregate` returns them.
        sort_by: ``total``, ``count``, ``avg`` or ``mean``, ``min``, ``max``, ``median``, ``p90``,
            ``p99``, ``std``, ``share``, ``self`` or ``name``. Counters have no total, share or self
            time, and are then sorted by name.
        ascending: the smallest first.

    Raises:
        ConfigError: another key.
    """
    if sort_by not in SORT_KEYS:
        raise ConfigError(f"unknown sort_by={sort_by!r}{nearest(str(sort_by), SORT_KEYS)}")
    field = SORT_KEYS[sort_by]
    ordered = sorted(rows, key=_identity, reverse=field == "name" and not ascending)
    if field != "name":
        # A stable sort: rows that tie keep the order of their names.
        ordered.sort(key=lambda row: _measure(row, field), reverse=not ascending)
    return sorted(ordered, key=lambda row: not row.is_time)


def _identity(row: AggregateStat) -> tuple[str, str, str, str]:
    return row.name, row.category, row.shape, row.thread


def _measure(row: AggregateStat, field: str) -> float:
    value = getattr(row, field)
    return 0.0 if value is None else value


def _time_row(key: Key, times: Times, recorded_ns: int) -> AggregateStat:
    values = sorted(times.durations)
    total, count = sum(values), len(values)
    mean = total / count
    return AggregateStat(
        *key,
        unit="ns",
        count=count,
        total=total,
        min=values[0],
        max=values[-1],
        mean=mean,
        median=percentile(values, 0.5),
        p90=percentile(values, 0.9),
        p99=percentile(values, 0.99),
        std=math.sqrt(math.fsum((value - mean) ** 2 for value in values) / count),
        share=total / recorded_ns if recorded_ns else None,
        self_total=times.self_ns,
        flop=times.flop,
        bytes=times.bytes,
    )


def percentile(ordered: Sequence[int], fraction: float) -> float:
    """The value that ``fraction`` of the ordered values lie below; between two, in proportion."""
    place = fraction * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    if ordered[below] == ordered[above]:
        return ordered[below]  # a whole number that a float might round
    value = ordered[below] + (ordered[above] - ordered[below]) * (place - below)
    return min(max(value, ordered[below]), ordered[above])


def _counter_row(key: Key, held: Held) -> AggregateStat:
    weights = _weights(held)
    values = sorted(weights)
    whole = math.fsum(weights.values())
    mean = math.fsum(value * (weights[value] / whole) for value in values)
    return AggregateStat(
        *key,
        unit="bytes" if key.name.endswith(" bytes") else "",
        count=sum(updates for updates, _ in held.values.values()),
        total=None,
        min=values[0],
        max=values[-1],
        # Rounding must not push a mean past the values that it is one of.
        mean=min(max(mean, values[0]), values[-1]),
        median=_weighted(values, weights, 0.5),
        p90=_weighted(values, weights, 0.9),
        p99=_weighted(values, weights, 0.99),
        std=math.sqrt(
            math.fsum((value - mean) ** 2 * (weights[value] / whole) for value in values)
        ),
        share=None,
        self_total=None,
    )


def _weights(held: Held) -> dict[float, int]:
    """How much each value counts: the time that it held; where none did, how often it was set."""
    times = {value: ns for value, (_, ns) in held.values.items()}
    if any(times.values()):
        return times
    return {value: updates for value, (updates, _) in held.values.items()}


def _weighted(values: Sequence[float], weights: dict[float, int], fraction: float) -> float:
    """The smallest value that, with all below it, has at least ``fraction`` of the weight."""
    wanted = fraction * sum(weights.values())
    reached = 0
    for value in values:
        reached += weights[value]
        if reached >= wanted and weights[value]:
            return value
    return values[-1]
