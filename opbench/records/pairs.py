"""The verdict of ``ab``: launches of base and head in pairs, in two stages.

The first stage screens: it is sensitive, and whatever it suspects costs more measuring and no
trust. The second stage confirms, with fresh pairs only, so that nothing was picked for being
extreme; its interval assumes nothing about the shape of the noise.

Either stage looks at its pairs at fixed numbers of them, and asks for more until it has an answer.
Looking often makes chance win more often, so all looks of the second stage share one promise: of
unchanged code at most 5 % would be confirmed by it alone, whatever the shape of the noise, and also
where a session ends in between and goes on. It holds for pairs that are independent of each other;
taking turns is what makes them nearly so on a machine whose speed drifts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from opbench.records.floors import Floor
from opbench.records.statistics import (
    Interval,
    bootstrap_median_interval,
    median,
    median_log_ratio,
    sign_interval,
)
from opbench.records.summary import open_yet, without_values
from opbench.records.verdict import Comparison, Verdict

__all__ = [
    "CONFIRM_LOOKS",
    "LEAST_PAIRS",
    "SCREEN_LOOKS",
    "PairEstimate",
    "confirm",
    "judge_pairs",
    "pairs_to_confirm",
    "pairs_to_screen",
    "screen",
]

LEAST_PAIRS = 6
"""The fewest that screening takes: with less its interval means nothing."""
SCREEN_LOOKS = (8, 16, 24, 36, 48, 72)
"""Pairs after which screening is looked at."""
CONFIRM_LOOKS = (12, 24, 36, 48, 72, 96)
"""Fresh pairs after which a suspect is looked at."""
# The first two were chosen on real launches of two busy cores, before the trials of
# docs/verdicts.md. With 95 % and 99 % a slowdown of 10 % was shown in 77 % of trials, with these
# in 89 %; there was no false alarm either way, as both stages must agree and reach the floor. A
# wider screen costs launches alone. The others were computed: of 12, 24, 36, 48, 72 and 96 signs 2,
# 4, 9, 13, 23 and 33 may then differ, and none before 12, which fair coins pass in 4.8 % of cases.
SCREEN_CONFIDENCE = 0.90
FIRST_CONFIDENCE = 0.95
LATER_CONFIDENCE = 0.995
EARLY_CONFIDENCE = 0.99
NOISY, NOISY_PAIRS = 2.0, 24
"""Times the floor: while no smaller change could be seen, up to so many pairs are screened."""


@dataclass(frozen=True, slots=True)
class PairEstimate:
    """What one stage says of head over base."""

    ratio: float
    low: float
    high: float
    confidence: float
    floor: float
    """As a share of base."""
    pairs: int

    @property
    def beyond_floor(self) -> bool:
        """Whether the estimate reaches the floor, surely or not."""
        return abs(math.log(self.ratio)) >= math.log1p(self.floor)

    @property
    def changed(self) -> bool:
        """Whether the interval excludes equality, and the change reaches the floor."""
        return self.beyond_floor and (self.low > 1 or self.high < 1)

    @property
    def within_floor(self) -> bool:
        """Whether the whole interval lies closer to equality than the floor."""
        limit = 1 + self.floor
        return 1 / limit < self.low and self.high < limit

    @property
    def settled(self) -> bool:
        """Whether it is an answer, so that no pair more is asked for."""
        return self.changed or self.within_floor

    @property
    def detectable(self) -> float:
        """Smallest slowdown whose interval would have excluded equality, as a share."""
        return max(self.floor, self.ratio / self.low - 1)


def screen(base: Sequence[float], head: Sequence[float], floor: float | Floor) -> bool:
    """Whether the pairs of the first stage make a benchmark suspect, with an interval of 90 %.

    Args:
        base: one value a launch, seconds per call, in the order of the pairs; above 0.
        head: the same of the other side.
        floor: the smallest change that matters.
    """
    return len(base) >= LEAST_PAIRS and _screened(base, head, floor).changed


def pairs_to_screen(base: Sequence[float], head: Sequence[float], floor: float | Floor) -> int:
    """How many pairs screening wants in all, after those that it has.

    More than there are, if the estimate reaches the floor and the interval still holds equality;
    up to 24 also if no change below twice the floor could have been seen. Whoever looks again
    suspects a little more often. That costs time and no trust: fresh pairs alone confirm.
    """
    count = len(base)
    if count < SCREEN_LOOKS[0]:
        return SCREEN_LOOKS[0]
    found = _screened(base, head, floor)
    noisy = count < NOISY_PAIRS and found.detectable > NOISY * found.floor
    more = not found.settled and (found.beyond_floor or noisy)
    return _next(SCREEN_LOOKS, count) if more else count


def confirm(
    base: Sequence[float], head: Sequence[float], floor: float | Floor
) -> PairEstimate | None:
    """What fresh pairs say of a suspect: the first look with an answer, or else the last one.

    A look has a sign interval of at least 95 % at 12 pairs, and of 99.5 % at each later one.
    Where a session ended before the first 12, they are looked at as they are, with 99 %.
    ``changed`` is the confirmation.

    Returns:
        None where so few pairs have no interval of that confidence: 8 are the least.
    """
    logs = _logs(base, head)
    found = None
    for size in [look for look in CONFIRM_LOOKS if look <= len(logs)] or [len(logs)]:
        interval = sign_interval(logs[:size], _confidence(size))
        if interval is None:
            return None
        found = _estimate(base[:size], floor, logs[:size], interval)
        if found.settled:
            break
    return found


def _confidence(size: int) -> float:
    if size == CONFIRM_LOOKS[0]:
        return FIRST_CONFIDENCE
    return LATER_CONFIDENCE if size > CONFIRM_LOOKS[0] else EARLY_CONFIDENCE


def pairs_to_confirm(base: Sequence[float], head: Sequence[float], floor: float | Floor) -> int:
    """How many fresh pairs a suspect wants in all, after those that it has.

    None are left to want where a look has an answer, or its estimate fell below the floor: what is
    so small, or so lost in noise, is open, and more pairs would seldom change that.
    """
    count = len(base)
    found = confirm(base, head, floor)
    if found is None or count < CONFIRM_LOOKS[0]:
        return count if found is not None and found.settled else CONFIRM_LOOKS[0]
    hopeful = found.beyond_floor and not found.changed
    return _next(CONFIRM_LOOKS, count) if hopeful else count


def _next(looks: Sequence[int], count: int) -> int:
    return next((look for look in looks if look > count), count)


def judge_pairs(
    name: str,
    base_values: Sequence[float],
    head_values: Sequence[float],
    floor: float | Floor,
    stage1: int,
) -> Comparison:
    """The verdict on one benchmark from all of its pairs.

    Args:
        name: the benchmark's id.
        base_values: one value a launch, seconds per call; those of the first stage first.
        head_values: the same of the other side, pair by pair.
        floor: the smallest change that matters; a share, or a Floor.
        stage1: how many of the pairs belong to the first stage.

    Raises:
        ValueError: the sides have different numbers of values.
    """
    if len(base_values) != len(head_values):
        counts = f"{len(base_values)} values of base and {len(head_values)} of head"
        msg = f"{name}: {counts}; pairs need both"
        raise ValueError(msg)
    if not base_values:
        reason = "no pair of launches in which both sides gave a value"
        return without_values(name, Verdict.INCONCLUSIVE, reason)
    comparison = open_yet(name, base_values, head_values)
    if comparison.warnings:
        return comparison
    if stage1 < LEAST_PAIRS:
        ratio = math.exp(median_log_ratio(base_values, head_values))
        reason = f"{stage1} pairs only; at least {LEAST_PAIRS} are needed"
        return replace(comparison, ratio=ratio, warnings=(reason,))
    first = _screened(base_values[:stage1], head_values[:stage1], floor)
    if not first.changed:
        verdict = Verdict.UNCHANGED if first.within_floor else Verdict.INCONCLUSIVE
        return _told(comparison, first, verdict)
    fresh = confirm(base_values[stage1:], head_values[stage1:], floor)
    return _second(comparison, first, fresh, len(base_values) - stage1)


def _second(
    comparison: Comparison, first: PairEstimate, fresh: PairEstimate | None, pairs: int
) -> Comparison:
    """The verdict on a suspect."""
    if fresh is None:
        reason = f"suspected, and not confirmed: {pairs} fresh pairs cannot show it"
        return _told(comparison, first, Verdict.INCONCLUSIVE, reason)
    if fresh.changed and (fresh.ratio > 1) == (first.ratio > 1):
        verdict = Verdict.REGRESSED if fresh.ratio > 1 else Verdict.IMPROVED
        return _told(comparison, fresh, verdict)
    verdict = Verdict.UNCHANGED if fresh.within_floor else Verdict.INCONCLUSIVE
    reason = f"suspected by screening, and not confirmed by {fresh.pairs} fresh pairs"
    return _told(comparison, fresh, verdict, reason)


def _told(
    comparison: Comparison, estimate: PairEstimate, verdict: Verdict, reason: str = ""
) -> Comparison:
    return replace(
        comparison,
        ratio=estimate.ratio,
        low=estimate.low,
        high=estimate.high,
        confidence=estimate.confidence,
        floor=estimate.floor,
        detectable=estimate.detectable,
        verdict=verdict,
        warnings=(reason,) if reason else (),
    )


def _screened(base: Sequence[float], head: Sequence[float], floor: float | Floor) -> PairEstimate:
    logs = _logs(base, head)
    interval = bootstrap_median_interval(logs, SCREEN_CONFIDENCE)
    return _estimate(base, floor, logs, interval)


def _logs(base: Sequence[float], head: Sequence[float]) -> list[float]:
    return [math.log(after / before) for before, after in zip(base, head, strict=True)]


def _estimate(
    base: Sequence[float],
    floor: float | Floor,
    logs: Sequence[float],
    interval: Interval,
) -> PairEstimate:
    if not isinstance(floor, Floor):
        floor = Floor(floor)
    return PairEstimate(
        ratio=math.exp(median(logs)),
        low=math.exp(interval.low),
        high=math.exp(interval.high),
        confidence=interval.confidence,
        floor=floor.share(median(base)),
        pairs=len(logs),
    )
