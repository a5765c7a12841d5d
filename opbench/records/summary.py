"""From the rounds of a launch to its value, and from launches to a summary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from opbench.records.statistics import lower_quartile, median, quantile, sign_interval, spread
from opbench.records.verdict import Comparison, Summary, Verdict

__all__ = [
    "bimodal",
    "launch_value",
    "open_yet",
    "steady",
    "steady_rounds",
    "summary_of",
    "tick",
    "without_values",
]

CONFIDENCE = 0.95
# A launch's first rounds still warm caches and branch predictors.
DROPPED_SHARE = 10
# Of the median: how far the last third of a steady launch may lie from the middle one.
TREND = 0.02
LEAST_ROUNDS = 9


def steady_rounds(rounds: Sequence[float]) -> Sequence[float]:
    """Without the first tenth, which still warms up."""
    return rounds[len(rounds) // DROPPED_SHARE :]


def launch_value(rounds: Sequence[float]) -> float:
    """What one launch says of a benchmark: the lower quartile of its steady rounds."""
    return lower_quartile(steady_rounds(rounds))


def summary_of(values: Sequence[float], warnings: Sequence[str] = ()) -> Summary:
    """One side: the median of its launches' values and an interval for it.

    Where so few launches have no interval of 95 %, it is from the least to the largest value, with
    the confidence that this has.

    Args:
        values: one per launch, at least one.
        warnings: what its reader must know.
    """
    interval = sign_interval(values, CONFIDENCE)
    low, high = min(values), max(values)
    confidence = 1 - 2.0 ** (1 - len(values))
    if interval is not None:
        low, high, confidence = interval
    return Summary(
        centre=median(values),
        low=low,
        high=high,
        confidence=confidence,
        n=len(values),
        warnings=tuple(warnings),
        spread=spread(values) if min(values) > 0 else 0.0,
    )


def open_yet(name: str, baseline: Sequence[float], candidate: Sequence[float]) -> Comparison:
    """A benchmark before its values are judged: both sides, and no verdict.

    Where a launch took no time there is no ratio to judge; the comparison then carries that as its
    warning, and is the last word.

    Args:
        name: the benchmark's id.
        baseline: one value a launch, seconds per call; at least one.
        candidate: the same of the other side.
    """
    reason = "a launch took no time by its clock; give the test more work a call"
    return Comparison(
        id=name,
        baseline=summary_of(baseline),
        candidate=summary_of(candidate),
        ratio=None,
        low=None,
        high=None,
        verdict=Verdict.INCONCLUSIVE,
        warnings=(reason,) if min(*baseline, *candidate) <= 0 else (),
    )


def without_values(name: str, verdict: Verdict, reason: str) -> Comparison:
    """A benchmark of which there is nothing to compare, and why."""
    return Comparison(
        id=name,
        baseline=None,
        candidate=None,
        ratio=None,
        low=None,
        high=None,
        verdict=verdict,
        warnings=(reason,),
    )


def steady(rounds: Sequence[float]) -> bool:
    """Whether a launch had settled: its last third is about as fast as its middle one.

    Not steady is a difference of the medians above 2 % and above the rounds' own deviation.
    """
    third = len(rounds) // 3
    if len(rounds) < LEAST_ROUNDS:
        return True
    middle, last = median(rounds[third : 2 * third]), median(rounds[-third:])
    centre = median(rounds)
    deviation = median([abs(value - centre) for value in rounds])
    return abs(last - middle) <= max(TREND * middle, deviation)


def tick(rounds: Sequence[float]) -> float:
    """The clock's step per call, where rounds show it: most of them equal another one; else 0."""
    distinct = sorted(set(rounds))
    if len(rounds) < LEAST_ROUNDS or len(distinct) > len(rounds) / 2:
        return 0.0
    steps = [high - low for low, high in pairwise(distinct)]
    # Sums of ticks over iterations carry rounding errors of their own.
    noise = 1e-6 * distinct[-1]
    return min((step for step in steps if step > noise), default=0.0)


# Both modes hold at least this share of the rounds, lie this far apart, and leave between them a
# gap of at least this share of their distance; each is this much narrower than their distance.
MODE_SHARE, MODE_DISTANCE, MODE_GAP, MODE_WIDTH = 0.2, 0.08, 0.4, 5.0
MODE_ROUNDS = 10
STEPS = 2.001


def bimodal(rounds: Sequence[float]) -> bool:
    """Whether the rounds of a launch lie around two values instead of one.

    A heavy tail is not a mode: its rounds lie scattered, with no gap before them. Nor are two
    readings of a coarse clock that are a step or two apart.
    """
    if len(rounds) < MODE_ROUNDS or min(rounds) <= 0:
        return False
    logs = sorted(math.log(value) for value in rounds)
    least = max(3, math.ceil(MODE_SHARE * len(logs)))
    splits = range(least, len(logs) - least + 1)
    cut = max(splits, key=lambda index: logs[index] - logs[index - 1], default=None)
    if cut is None:
        return False
    low, high = logs[:cut], logs[cut:]
    distance = median(high) - median(low)
    gap = high[0] - low[-1]
    if math.exp(median(high)) - math.exp(median(low)) <= STEPS * tick(rounds):
        return False
    width = max(quantile(part, 0.75) - quantile(part, 0.25) for part in (low, high))
    return (
        distance >= math.log1p(MODE_DISTANCE)
        and gap >= MODE_GAP * distance
        and distance >= MODE_WIDTH * width
    )
