"""The statistics behind verdicts: order statistics with binomial weights, and nothing that draws.

Each is exact where a textbook would resample or approximate: a bootstrap of a median can be
summed over all of its resamples, and a rank test over all of its arrangements. So equal data give
equal verdicts, without a seed. Pure Python: the samples are small, and importing this room must
stay light.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

__all__ = [
    "Interval",
    "benjamini_hochberg",
    "bootstrap_median_interval",
    "bootstrap_ratio_interval",
    "lower_quartile",
    "mann_whitney_exact",
    "median",
    "median_log_ratio",
    "quantile",
    "sign_interval",
    "spread",
    "superiority",
]

# Above this size the two middle values of an even sample are taken one at a time: they lie so
# close that it no longer makes a difference, and their joint distribution has thousands of entries.
JOINT_SIZE = 100
# From so many combinations on NumPy sums faster than a loop, and is worth loading.
MANY = 600
# Resamples less likely than this cannot move a percentile that anybody reports.
NEGLIGIBLE = 1e-9
# From there on the normal approximation of the rank sum is as good, and counting takes seconds.
COUNTED_PAIRS, COUNTED_TIED = 10_000, 40
# 1.4826 median absolute deviations are one standard deviation of normal noise.
MAD_TO_SD = 1.4826


class Interval(NamedTuple):
    """Two ends, and how often such an interval holds the truth."""

    low: float
    high: float
    confidence: float


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which that share of the values lies, interpolated as NumPy does by default.

    Raises:
        ValueError: there is no value.
    """
    if not values:
        msg = "no value has no quantile"
        raise ValueError(msg)
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    low, high = ordered[below], ordered[above]
    return low if low == high else low + (high - low) * (position - below)


def lower_quartile(values: Sequence[float]) -> float:
    """The value of a launch: low enough to leave out what a neighbour slowed, yet no extreme."""
    return quantile(values, 0.25)


def median(values: Sequence[float]) -> float:
    """The middle one, or the mean of the two in the middle."""
    return quantile(values, 0.5)


def spread(values: Sequence[float]) -> float:
    """Robust standard deviation of the logarithms: 0.05 is a spread of about 5 %.

    Args:
        values: above 0.
    """
    logs = [math.log(value) for value in values]
    centre = median(logs)
    return MAD_TO_SD * median([abs(value - centre) for value in logs])


def median_log_ratio(base: Sequence[float], head: Sequence[float]) -> float:
    """Median over pairs of ``log(head / base)``; both sides in the order of the pairs."""
    return median([math.log(after / before) for before, after in zip(base, head, strict=True)])


@lru_cache
def _sign_rank(size: int, confidence: float) -> tuple[int, float] | None:
    """How many values lie outside at each end, and what the interval then really covers."""
    outside, tail = None, 0
    for rank in range(size // 2 + 1):
        tail += math.comb(size, rank)
        if 2 * tail > (1 - confidence) * 2**size:
            break
        outside = (rank, 1 - 2 * tail / 2**size)
    return outside


def sign_interval(values: Sequence[float], confidence: float) -> Interval | None:
    """Distribution-free interval for the median of what the values were drawn from.

    It assumes independent draws and nothing else: no symmetry, no tail. Its ends are two of the
    values, so that its actual confidence is seldom the one asked for, and never lower.

    Returns:
        None where so few values cannot give that confidence: 6 are the least for 95 %, 8 for 99 %.
    """
    found = _sign_rank(len(values), confidence)
    if found is None:
        return None
    outside, actual = found
    ordered = sorted(values)
    return Interval(ordered[outside], ordered[-1 - outside], actual)


def _at_least(size: int, wanted: int, rank: int) -> int:
    """Of size**size resamples, those with ``wanted`` draws or more from the lowest ``rank``."""
    return sum(
        math.comb(size, drawn) * rank**drawn * (size - rank) ** (size - drawn)
        for drawn in range(wanted, size + 1)
    )


@lru_cache
def _median_weights(size: int) -> tuple[tuple[int, int, float], ...]:
    """Each median that a bootstrap of so many values can have, with its probability.

    A median is the mean of the values of two ranks, counted from 0; of an odd size twice the same.
    """
    total, half = size**size, size // 2
    if size % 2 or size > JOINT_SIZE:
        middles = {half + 1} if size % 2 else {half, half + 1}
        weights: dict[tuple[int, int], float] = {}
        for wanted in middles:
            below = [_at_least(size, wanted, rank) for rank in range(size + 1)]
            for rank in range(size):
                share = (below[rank + 1] - below[rank]) / total / len(middles)
                weights[rank, rank] = weights.get((rank, rank), 0.0) + share
    else:
        counts: dict[tuple[int, int], int] = {}
        below = [_at_least(size, half, rank) for rank in range(size + 1)]
        for low in range(size):
            lower = (low + 1) ** half - low**half
            for high in range(low + 1, size):
                upper = (size - high) ** half - (size - high - 1) ** half
                counts[low, high] = math.comb(size, half) * lower * upper
            apart = sum(counts[low, high] for high in range(low + 1, size))
            counts[low, low] = below[low + 1] - below[low] - apart
        weights = {ranks: count / total for ranks, count in counts.items()}
    return tuple((low, high, share) for (low, high), share in weights.items() if share > NEGLIGIBLE)


def _medians(values: Sequence[float]) -> list[tuple[float, float]]:
    """Each bootstrap median of the values with its probability."""
    ordered = sorted(values)
    return [
        ((ordered[low] + ordered[high]) / 2 if low != high else ordered[low], share)
        for low, high, share in _median_weights(len(ordered))
    ]


def _percentiles(weighted: list[tuple[float, float]], confidence: float) -> Interval:
    weighted.sort()
    tail = (1 - confidence) / 2 * math.fsum(share for _, share in weighted)
    low = _first_beyond(weighted, tail)
    high = _first_beyond(weighted[::-1], tail)
    return Interval(low, high, confidence)


def _first_beyond(weighted: Sequence[tuple[float, float]], tail: float) -> float:
    for (value, _), reached in zip(weighted, accumulate(s for _, s in weighted), strict=True):
        if reached > tail:
            return value
    return weighted[-1][0]


def bootstrap_median_interval(values: Sequence[float], confidence: float) -> Interval:
    """Percentile bootstrap for a median, over all resamples there are.

    It is short, and for 5 to 20 heavy-tailed values misses the truth in 6 to 12 % of cases where
    5 % were meant: a screen, and no proof.
    """
    return _percentiles(_medians(values), confidence)


def bootstrap_ratio_interval(
    base: Sequence[float], head: Sequence[float], confidence: float
) -> Interval:
    """Percentile bootstrap for ``median(head) / median(base)``, both sides on their own.

    Args:
        base: above 0.
        head: the same unit.
        confidence: such as 0.95.
    """
    below, above = _medians(base), _medians(head)
    if len(below) * len(above) > MANY:
        return _ratio_percentiles(below, above, confidence)
    ratios = [(after / before, p * q) for before, p in below for after, q in above]
    return _percentiles(ratios, confidence)


def _ratio_percentiles(
    below: Sequence[tuple[float, float]], above: Sequence[tuple[float, float]], confidence: float
) -> Interval:
    """What ``_percentiles`` gives for all ratios of two weighted lists."""
    import numpy as np

    (before, p), (after, q) = np.transpose(below), np.transpose(above)
    ratios = np.divide.outer(after, before).ravel()
    order = np.argsort(ratios, kind="stable")
    shares = np.multiply.outer(q, p).ravel()[order]
    tail = (1 - confidence) / 2 * shares.sum()
    low = np.searchsorted(np.cumsum(shares), tail, side="right")
    high = np.searchsorted(np.cumsum(shares[::-1]), tail, side="right")
    return Interval(
        float(ratios[order[low]]), float(ratios[order[len(order) - 1 - high]]), confidence
    )


def superiority(base: Sequence[float], head: Sequence[float]) -> float:
    """Share of all pairs in which head is the larger one; a tie counts half."""
    won = sum((after > before) + (after == before) / 2 for before in base for after in head)
    return won / (len(base) * len(head))


def mann_whitney_exact(base: Sequence[float], head: Sequence[float]) -> float:
    """Two-sided p of the rank-sum test, over all arrangements of the values that occurred.

    Ties share their mean rank, and the arrangements are those of the tied ranks. Very large
    samples, where counting takes too long, get the normal approximation.
    """
    size, other = len(base), len(head)
    pooled = sorted((*base, *head))
    ties = _tie_sizes(pooled)
    ranks: dict[float, int] = {}
    passed = 0
    for count in ties:
        # Twice the mean rank of the tied values, which is whole.
        ranks[pooled[passed]] = 2 * passed + count + 1
        passed += count
    observed = sum(ranks[value] for value in base)
    tied = len(ties) < size + other
    if size * other > COUNTED_PAIRS or (tied and size + other > COUNTED_TIED):
        return _normal_p(observed / 2, size, other, ties)
    lower, upper = _tails(size, ties if tied else size + other, observed)
    return min(1.0, 2 * min(lower, upper))


def _tie_sizes(ordered: Sequence[float]) -> tuple[int, ...]:
    sizes: list[int] = []
    for index, value in enumerate(ordered):
        if index and value == ordered[index - 1]:
            sizes[-1] += 1
        else:
            sizes.append(1)
    return tuple(sizes)


@lru_cache(maxsize=4096)
def _tails(size: int, ties: tuple[int, ...] | int, observed: int) -> tuple[float, float]:
    """P(rank sum <= observed) and P(rank sum >= observed), the sum being doubled."""
    counts = _arrangements(size, ties)
    total = sum(counts.values())
    lower = sum(count for value, count in counts.items() if value <= observed)
    upper = sum(count for value, count in counts.items() if value >= observed)
    return lower / total, upper / total


@lru_cache(maxsize=256)
def _arrangements(size: int, ties: tuple[int, ...] | int) -> dict[int, int]:
    """How many choices of ``size`` ranks have each doubled sum; a number of ranks is no ties."""
    if isinstance(ties, int):
        smallest = size * (size + 1)
        shifted = _rank_sums(size, ties - size)
        return {smallest + 2 * excess: count for excess, count in enumerate(shifted)}
    ways: list[dict[int, int]] = [{0: 1}, *({} for _ in range(size))]
    passed = 0
    for count in ties:
        rank = 2 * passed + count + 1
        passed += count
        for chosen in range(size, 0, -1):
            target = ways[chosen]
            for taken in range(1, min(count, chosen) + 1):
                choices = math.comb(count, taken)
                for value, before in ways[chosen - taken].items():
                    reached = value + taken * rank
                    target[reached] = target.get(reached, 0) + before * choices
    return ways[size]


def _rank_sums(size: int, other: int) -> list[int]:
    """Without ties: coefficients of the Gaussian binomial, by the excess over the least sum."""
    length = size * other + 1
    counts = [1] + [0] * (length - 1)
    for step in range(1, size + 1):
        for index in range(length - 1, other + step - 1, -1):
            counts[index] -= counts[index - other - step]
        for index in range(step, length):
            counts[index] += counts[index - step]
    return counts


def _normal_p(rank_sum: float, size: int, other: int, ties: Sequence[int]) -> float:
    """With the correction for ties and for continuity."""
    total = size + other
    tied = sum(count**3 - count for count in ties) / (total * (total - 1))
    variance = size * other / 12 * (total + 1 - tied)
    if variance <= 0:
        return 1.0
    distance = abs(rank_sum - size * (total + 1) / 2) - 0.5
    return min(1.0, math.erfc(max(0.0, distance) / math.sqrt(2 * variance)))


def benjamini_hochberg(values: Sequence[float]) -> list[float]:
    """The p-values as rates of false discovery, in the order given."""
    order = sorted(range(len(values)), key=lambda index: -values[index])
    adjusted, least = [0.0] * len(values), 1.0
    for above, index in enumerate(order):
        least = min(least, values[index] * len(values) / (len(values) - above))
        adjusted[index] = least
    return adjusted
