"""The verdict of ``ab``: launches of base and head in pairs, in two stages.

The first stage screens: it is sensitive, and whatever it suspects costs more measuring and no
trust. The second stage confirms, with fresh pairs only, so that nothing was picked for being
extreme; its interval assumes nothing about the shape of the noise.
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
from opbench.records.summary import summary_of
from opbench.records.verdict import Comparison, Verdict

__all__ = ["LEAST_PAIRS", "PairEstimate", "confirm", "judge_pairs", "screen"]

LEAST_PAIRS = 6
"""The fewest that screening takes: with less no interval of 95 % exists to confirm with."""
# Both were chosen on real launches of two busy cores, before the trials of docs/verdicts.md. With
# 95 % and 99 % a slowdown of 10 % was shown in 77 % of trials, with these in 89 %; there was no
# false alarm either way, as both stages must agree and reach the floor. A wider screen costs
# launches alone: 1 % of unchanged benchmarks are suspected. 12 fresh pairs give 96.1 %.
SCREEN_CONFIDENCE = 0.90
CONFIRM_CONFIDENCE = 0.95


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
    def changed(self) -> bool:
        """Whether the interval excludes equality, and the change reaches the floor."""
        beyond = abs(math.log(self.ratio)) >= math.log1p(self.floor)
        return beyond and (self.low > 1 or self.high < 1)

    @property
    def within_floor(self) -> bool:
        """Whether the whole interval lies closer to equality than the floor."""
        limit = 1 + self.floor
        return 1 / limit < self.low and self.high < limit

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


def confirm(
    base: Sequence[float], head: Sequence[float], floor: float | Floor
) -> PairEstimate | None:
    """What fresh pairs say of a suspect, with a sign interval of at least 95 %.

    ``changed`` is the confirmation.

    Returns:
        None where so few pairs have no interval of that confidence.
    """
    logs = _logs(base, head)
    interval = sign_interval(logs, CONFIRM_CONFIDENCE)
    return None if interval is None else _estimate(base, floor, logs, interval)


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
        return _undecided(name, "no pair of launches in which both sides gave a value")
    comparison = Comparison(
        id=name,
        baseline=summary_of(base_values),
        candidate=summary_of(head_values),
        ratio=None,
        low=None,
        high=None,
        verdict=Verdict.INCONCLUSIVE,
    )
    if min(*base_values, *head_values) <= 0:
        reason = "a launch took no time by its clock; give the test more work a call"
        return replace(comparison, warnings=(reason,))
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
    reason = "suspected by screening, and not confirmed by fresh pairs"
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


def _undecided(name: str, reason: str) -> Comparison:
    return Comparison(name, None, None, None, None, None, Verdict.INCONCLUSIVE, (reason,))


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
