"""The verdict on one benchmark of two stored records, each of several launches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from opbench.records.floors import Floor
from opbench.records.samples import Sample
from opbench.records.statistics import (
    bootstrap_ratio_interval,
    lower_quartile,
    mann_whitney_exact,
    median,
    superiority,
)
from opbench.records.summary import (
    bimodal,
    launch_value,
    open_yet,
    steady,
    steady_rounds,
    tick,
)
from opbench.records.verdict import Comparison, Summary, Verdict

__all__ = [
    "BIMODAL_SHARE",
    "LEAST_LAUNCHES",
    "TRIPWIRE",
    "Judged",
    "judge_launches",
    "judge_values",
]

LEAST_LAUNCHES = 5
"""The fewest a side with which the rank test can reach its p."""
LARGEST_P = 0.01
LEAST_SUPERIORITY = 0.85
CONFIDENCE = 0.95
TRIPWIRE = 1.15
"""Ratio of the fastest rounds beyond which single launches are worth a second look."""
BIMODAL_SHARE = 0.25
"""Of the launches of a side: from there on two modes are the benchmark's own."""
TICKS = 10
UNSTABLE = 0.05
MOST = 0.5
PREEMPTED, PREEMPTED_SHARE = 1.5, 0.25


@dataclass(frozen=True, slots=True)
class Judged:
    """What the values of the launches say, before anything else is looked at."""

    ratio: float
    low: float
    high: float
    p: float
    superiority: float
    floor: float
    detectable: float | None
    verdict: Verdict


def judge_values(
    baseline: Sequence[float], candidate: Sequence[float], floor: float | Floor
) -> Judged:
    """The rule for stored records: a rank test, an effect size and a floor, all three of them.

    Args:
        baseline: one value a launch, seconds per call, above 0.
        candidate: the same of the other side.
        floor: the smallest change that matters.
    """
    if not isinstance(floor, Floor):
        floor = Floor(floor)
    before, after = median(baseline), median(candidate)
    ratio, share = after / before, floor.share(before)
    interval = bootstrap_ratio_interval(baseline, candidate, CONFIDENCE)
    p, won = mann_whitney_exact(baseline, candidate), superiority(baseline, candidate)
    changed = (
        p < LARGEST_P
        and max(won, 1 - won) >= LEAST_SUPERIORITY
        and (won > 1 / 2) == (ratio > 1)
        and abs(math.log(ratio)) >= math.log1p(share)
    )
    limit = 1 + share
    if changed:
        verdict = Verdict.REGRESSED if ratio > 1 else Verdict.IMPROVED
    elif 1 / limit < interval.low and interval.high < limit:
        verdict = Verdict.UNCHANGED
    else:
        verdict = Verdict.INCONCLUSIVE
    detectable = _detectable(baseline, candidate, ratio, share)
    return Judged(ratio, interval.low, interval.high, p, won, share, detectable, verdict)


@lru_cache
def _wins_needed(size: int, other: int) -> int | None:
    """Pairs that head must win for a significant and large effect, where there are no ties."""
    for wins in range(math.ceil(LEAST_SUPERIORITY * size * other), size * other + 1):
        # A baseline of rank numbers and a candidate that wins exactly so many pairs.
        if _p_of_wins(size, other, wins) < LARGEST_P:
            return wins
    return None


def _p_of_wins(size: int, other: int, wins: int) -> float:
    whole, rest = divmod(wins, size)
    base = [float(rank) for rank in range(size)]
    head = [size + rank / other for rank in range(whole)]
    head += [rest - 0.5] if whole < other else []
    head += [-1.0 - rank for rank in range(other - len(head))]
    return mann_whitney_exact(base, head)


def _detectable(
    baseline: Sequence[float], candidate: Sequence[float], ratio: float, floor: float
) -> float | None:
    """The smallest slowdown of these very values that the rule would have called one."""
    needed = _wins_needed(len(baseline), len(candidate))
    if needed is None:
        return None
    # A slowdown wins the pair once it is larger than their distance, the sides being centred.
    distances = sorted(before * ratio / after for before in baseline for after in candidate)
    return max(floor, distances[needed - 1] - 1)


def judge_launches(
    name: str, baseline: Sequence[Sample], candidate: Sequence[Sample], floor: Floor
) -> tuple[Comparison, float | None]:
    """The verdict on one benchmark, and its p where there is one.

    Args:
        name: the benchmark's id.
        baseline: one sample per launch, at least one.
        candidate: the same of the other side.
        floor: the smallest change that matters.
    """
    before = [launch_value(sample.values) for sample in baseline]
    after = [launch_value(sample.values) for sample in candidate]
    latest = candidate[-1]
    comparison = replace(
        open_yet(name, before, after),
        label=latest.label,
        group=latest.group,
        floor=floor.relative,
    )
    if comparison.warnings:
        return comparison, None
    if min(len(before), len(after)) < LEAST_LAUNCHES:
        return _too_few(comparison, baseline, candidate), None
    raised = _above_ticks(floor, baseline, candidate)
    judged = judge_values(before, after, raised)
    if judged.verdict is Verdict.UNCHANGED and raised is not floor:
        # A clock too coarse to show a change does not show that there is none.
        judged = replace(judged, verdict=_or_open(judge_values(before, after, floor).verdict))
    comparison = replace(
        comparison,
        ratio=judged.ratio,
        low=judged.low,
        high=judged.high,
        verdict=judged.verdict,
        detectable=judged.detectable,
        floor=judged.floor,
        confidence=CONFIDENCE,
    )
    sides = (("baseline", baseline), ("candidate", candidate))
    modes = _modes(sides)
    if modes:
        return replace(comparison, verdict=Verdict.INCONCLUSIVE, warnings=(modes,)), None
    if comparison.verdict is Verdict.UNCHANGED:
        return comparison, judged.p
    summaries = {"baseline": comparison.baseline, "candidate": comparison.candidate}
    return replace(comparison, warnings=tuple(_noise(sides, summaries))), judged.p


def _or_open(verdict: Verdict) -> Verdict:
    return verdict if verdict is Verdict.UNCHANGED else Verdict.INCONCLUSIVE


def _too_few(
    comparison: Comparison, baseline: Sequence[Sample], candidate: Sequence[Sample]
) -> Comparison:
    """No verdict; with a single launch on a side at least the fastest rounds are compared."""
    counts = f"{len(baseline)} and {len(candidate)} launches"
    reason = f"{counts}: a verdict needs at least {LEAST_LAUNCHES} of each; see opbench run"
    ratio = _centre(comparison.candidate) / _centre(comparison.baseline)
    if min(len(baseline), len(candidate)) > 1:
        return replace(comparison, ratio=ratio, warnings=(reason,))
    least = _least(candidate) / _least(baseline) if _least(baseline) > 0 else None
    tripped = least is not None and least > TRIPWIRE
    reason = "single launch, not evidence"
    if tripped:
        reason += f": its fastest round took {least:.2f} times as long"
    return replace(comparison, ratio=ratio, warnings=(reason,), least_ratio=least, tripped=tripped)


def _centre(summary: Summary | None) -> float:
    return summary.centre if summary else math.nan


def _least(samples: Sequence[Sample]) -> float:
    """Of several launches the typical fastest round: their minimum gets lower with each launch."""
    return median([min(sample.values) for sample in samples])


def _above_ticks(floor: Floor, *sides: Sequence[Sample]) -> Floor:
    """The floor, raised to ten steps of the clock where the rounds show that it has steps."""
    steps = max(tick(sample.values) for side in sides for sample in side)
    return replace(floor, absolute=max(floor.absolute, TICKS * steps)) if steps else floor


def _modes(sides: Sequence[tuple[str, Sequence[Sample]]]) -> str:
    for side, samples in sides:
        count = sum(bimodal(steady_rounds(sample.values)) for sample in samples)
        if count >= BIMODAL_SHARE * len(samples):
            return (
                f"bimodal: in {count} of {len(samples)} launches of the {side} the rounds lie "
                "around two values; try one thread"
            )
    return ""


def _noise(
    sides: Sequence[tuple[str, Sequence[Sample]]], summaries: dict[str, Summary | None]
) -> list[str]:
    """What makes a benchmark hard to judge."""
    found = []
    for side, samples in sides:
        summary, count = summaries[side], len(samples)
        if summary and summary.spread > UNSTABLE:
            found.append(f"unstable: launches of the {side} spread by {100 * summary.spread:.1f} %")
        moving = sum(not steady(sample.values) for sample in samples)
        if moving >= MOST * count:
            found.append(f"not steady: {moving} of {count} launches of the {side} still changed")
        if median([_preempted(sample.values) for sample in samples]) > PREEMPTED_SHARE:
            found.append(f"preempted: many rounds of the {side} took over 1.5 times as long")
        if any(tick(sample.values) for sample in samples):
            found.append(f"coarse clock: most rounds of the {side} took equal times")
    return found


def _preempted(rounds: Sequence[float]) -> float:
    limit = PREEMPTED * lower_quartile(rounds)
    return sum(value > limit for value in rounds) / len(rounds)
