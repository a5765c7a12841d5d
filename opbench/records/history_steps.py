"""Where a series steps: a slow layer that can be trusted, and a fast one that is tentative.

The slow layer is ruptures' kernel change point search on ranks, which single outliers do not move;
it needs 4 records on either side, and more of them where the series is short. The fast layer looks
for two records in a row that lie outside of what went before; it sees a step at once, and only
large ones. Without ruptures it is all there is.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType

from opbench.records.floors import Floor
from opbench.records.history_series import Series
from opbench.records.statistics import MAD_TO_SD, median

__all__ = ["LEAST_RECORDS", "LEAST_STEP_LAUNCHES", "Step", "search", "steps_of"]

LEAST_RECORDS = 4
"""Of a segment, and before the fast layer judges at all."""
PENALTY = 6.0
# Neighbours in time that resemble each other make drifts look like steps.
CORRELATED, CORRELATED_CHANGE = 0.4, 0.05
# The fast layer: outside the median by 5 % and by 4 robust standard deviations.
FAST_CHANGE, FAST_DEVIATIONS = 0.05, 4.0
LEAST_STEP_LAUNCHES = 3
"""Of a record that the fast layer looks at: the value of a single launch is one draw."""


@dataclass(frozen=True, slots=True)
class Step:
    """A lasting change of one series."""

    series: Series
    index: int
    """Of the first point after it."""
    before: float
    """Median of the segment before, seconds per call."""
    after: float
    tentative: bool
    """Whether the fast layer alone has seen it."""
    lasted: int
    """Records from the step to the next one, or to the end."""
    control: str = ""
    """What the control kernels say of the machine at that record; empty if they stood still."""

    @property
    def ratio(self) -> float:
        """After over before: above 1 is slower."""
        return self.after / self.before

    @property
    def position(self) -> int:
        """Of the record among those of its environment."""
        return self.series.points[self.index].position


def search() -> ModuleType | None:
    """ruptures, where it is installed (``opbench[history]``); else None."""
    try:
        import ruptures  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        return None
    found: ModuleType = ruptures
    return found


def steps_of(series: Series, ruptures: ModuleType | None) -> tuple[list[Step], bool]:
    """Every step of a series in the order of time, and whether its end looks like the next one.

    Args:
        series: at least one point.
        ruptures: the slow layer's library, or None for the fast layer alone.
    """
    logs = [math.log(point.value) for point in series.points]
    trusted = [] if ruptures is None else _slow(logs, series.floor, ruptures)
    tentative: list[int] = []
    waiting = False
    for first, last in pairwise([0, *trusted, len(logs)]):
        judged = [
            index
            for index in range(first, last)
            if series.points[index].launches >= LEAST_STEP_LAUNCHES
        ]
        found, waiting = _fast([logs[index] for index in judged], series.floor)
        tentative += [judged[index] for index in found]
    bounds = sorted({0, *trusted, *_lasting(tentative, trusted, len(logs)), len(logs)})
    # A blip has left a bound behind it that changes nothing.
    bounds = [0, *_merged(logs, bounds, series.floor), len(logs)]
    steps = [
        Step(
            series=series,
            index=index,
            before=math.exp(median(logs[before:index])),
            after=math.exp(median(logs[index:after])),
            tentative=index not in trusted,
            lasted=after - index,
        )
        for before, index, after in zip(bounds, bounds[1:], bounds[2:], strict=False)
    ]
    return steps, waiting


def _lasting(found: Sequence[int], trusted: Sequence[int], count: int) -> list[int]:
    """Without those that went away before 4 records; the newest may yet become old."""
    ends = sorted({*found, *trusted, count})
    return [
        index
        for index in found
        for end in [ends[ends.index(index) + 1]]
        if end == count or end - index >= LEAST_RECORDS
    ]


def _slow(logs: Sequence[float], floor: Floor, ruptures: ModuleType) -> list[int]:
    """First points of segments, found on ranks; neighbours that are about equal are one."""
    import numpy as np

    if len(logs) < 2 * LEAST_RECORDS:
        return []
    _, inverse, counts = np.unique(logs, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse.reshape(-1)]
    jumps = np.diff(ranks)
    noise = MAD_TO_SD * float(np.median(np.abs(jumps))) / math.sqrt(2)
    if noise == 0:  # most values are equal, as with a coarse clock
        noise = float(np.std(jumps)) / math.sqrt(2)
    if noise == 0:
        return []
    model = ruptures.KernelCPD(kernel="linear", min_size=LEAST_RECORDS)
    penalty = PENALTY * math.log(len(logs))
    ends = model.fit((ranks / noise).reshape(-1, 1)).predict(pen=penalty)
    return _merged(logs, [0, *map(int, ends)], floor)


def _merged(logs: Sequence[float], bounds: list[int], floor: Floor) -> list[int]:
    """Takes bounds away, the smallest change first, until every one that is left counts."""
    least = 0.0
    if _correlation(logs, bounds) > CORRELATED:
        least = CORRELATED_CHANGE
    while len(bounds) > 2:  # noqa: PLR2004 - the beginning and the end
        levels = [median(logs[first:last]) for first, last in pairwise(bounds)]
        sizes = [
            abs(after - before) - math.log1p(max(least, floor.share(math.exp(min(before, after)))))
            for before, after in pairwise(levels)
        ]
        smallest = min(range(len(sizes)), key=sizes.__getitem__)
        if sizes[smallest] >= 0:
            break
        del bounds[smallest + 1]
    return bounds[1:-1]


def _correlation(logs: Sequence[float], bounds: Sequence[int]) -> float:
    """How alike neighbours are, less the levels of their segments: from -1 to 1."""
    rest = [
        value - level
        for first, last in pairwise(bounds)
        for level in [median(logs[first:last])]
        for value in logs[first:last]
    ]
    power = sum(value * value for value in rest)
    return sum(a * b for a, b in pairwise(rest)) / power if power else 0.0


def _fast(logs: Sequence[float], floor: Floor) -> tuple[list[int], bool]:
    """First of two points in a row outside, on one side; and whether the last one is alone."""
    found: list[int] = []
    level: list[float] = []
    waiting: tuple[int, bool] | None = None
    for index, value in enumerate(logs):
        if not _outside(value, level, floor):
            if waiting is not None:
                insort(level, logs[waiting[0]])
                waiting = None
            insort(level, value)
            continue
        side = value > _middle(level)
        if waiting is None:
            waiting = (index, side)
        elif waiting[1] == side:
            found.append(waiting[0])
            level = sorted((logs[waiting[0]], value))
            waiting = None
        else:
            insort(level, logs[waiting[0]])
            waiting = (index, side)
    return found, waiting is not None


def _middle(ordered: Sequence[float]) -> float:
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _outside(value: float, level: Sequence[float], floor: Floor) -> bool:
    """Whether a point is none of the level's.

    Args:
        value: logarithm of seconds.
        level: the others, sorted.
        floor: of the benchmark.
    """
    if len(level) < LEAST_RECORDS:
        return False
    middle = _middle(level)
    distance = abs(value - middle)
    share = max(FAST_CHANGE, floor.share(math.exp(middle)))
    return distance > math.log1p(share) and (
        distance > FAST_DEVIATIONS * MAD_TO_SD * _deviation(level, middle)
    )


def _deviation(ordered: Sequence[float], middle: float) -> float:
    """Median absolute deviation from the middle, in logarithmic time: a history is long.

    The values nearest to the middle lie side by side; so the deviation is the least reach of a
    window of half of them. Of an even number it is the upper of the two in the middle.
    """
    half = len(ordered) // 2 + 1
    low, high = 0, len(ordered) - half
    while low < high:
        at = (low + high) // 2
        if middle - ordered[at] > ordered[at + half] - middle:
            low = at + 1
        else:
            high = at
    return max(middle - ordered[low], ordered[low + half - 1] - middle)
