"""Two records side by side: a verdict on every benchmark of either."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from opbench.records.attribution import explain
from opbench.records.comparable import (
    check_distinct,
    environment_differences,
    has_controls,
    machine_moved,
)
from opbench.records.floors import Floor, Floors
from opbench.records.record import RunRecord
from opbench.records.rename import Rename
from opbench.records.samples import Sample
from opbench.records.statistics import benjamini_hochberg
from opbench.records.stored import LARGEST_P, judge_launches
from opbench.records.summary import launch_value, summary_of
from opbench.records.verdict import CHANGED, Comparison, ComparisonSet, Verdict

__all__ = ["DEFAULT_FLOOR", "Selection", "compare"]

DEFAULT_FLOOR = Floor(0.05)
# From this many launches a side the rate of false discoveries is held as well.
DISCOVERY_LAUNCHES, DISCOVERY_RATE = 10, 0.05
# Without controls, so many benchmarks that move together look just like a slower machine.
TOGETHER, LEAST_TOGETHER = 0.5, 6

Selection = Callable[[str, str, "str | None"], bool]
"""Whether a benchmark is looked at: its id, its label, its group."""


@dataclass(frozen=True, slots=True)
class _Sides:
    """The benchmarks of both records under the names of the candidate."""

    baseline: Mapping[str, tuple[Sample, ...]]
    candidate: Mapping[str, tuple[Sample, ...]]
    lost: Mapping[str, str]
    """Benchmarks that a file has without usable values, with the reason."""


def compare(
    baseline: RunRecord,
    candidate: RunRecord,
    floors: Floors | Floor | None = None,
    rename: Rename | None = None,
    *,
    although: Collection[str] = (),
    selection: Selection | None = None,
) -> ComparisonSet:
    """Judge the candidate against the baseline, benchmark by benchmark.

    Args:
        baseline: what is compared against.
        candidate: what is judged.
        floors: the smallest changes that matter; 5 % and 20 ns if None.
        rename: old names with their new ones.
        although: facts of the environment that may differ.
        selection: which benchmarks are looked at; all if None.

    Raises:
        RecordError: both sides hold the same launch.
        ConfigError: the rename map gives two benchmarks one name, or ``although`` names no fact.
    """
    check_distinct(baseline, candidate)
    floors = floors if isinstance(floors, Floors) else Floors(floors or DEFAULT_FLOOR)
    rename = rename or Rename()
    sides = _matched(baseline, candidate, rename, selection)
    forbidding, allowed, unknown = environment_differences(baseline, candidate, although)
    reason = _forbidden(forbidding) or machine_moved(baseline, candidate, floors.default.relative)
    same_source = _same_sources(baseline, candidate)
    judged: dict[str, tuple[Comparison, float | None]] = {
        name: _one(name, sides, floors, reason) for name in _names(sides)
    }
    comparisons = _without_false_discoveries(judged)
    comparisons = [_not_the_code(one, sides, same_source) for one in comparisons]
    context = []
    if not reason and not has_controls(baseline, candidate):
        comparisons, told = _without_controls(comparisons)
        context.append(told)
    comparisons = [_explained(one, sides) for one in comparisons]
    context += _told(baseline, candidate, unknown, allowed)
    context += [
        f"rename: the baseline has no {old!r}" for old in rename.unused(list(baseline.samples))
    ]
    if any(one.verdict is Verdict.ADDED for one in comparisons) and any(
        one.verdict is Verdict.REMOVED for one in comparisons
    ):
        context.append(
            "some are gone and some are new: if they were renamed, give --rename OLD NEW"
        )
    launches = f"{len(baseline.launches)} and {len(candidate.launches)} launches"
    return ComparisonSet(
        title=f"opbench compare   {baseline.name} -> {candidate.name}",
        context=(f"{launches}   floor {floors.default}", *context),
        comparisons=tuple(comparisons),
        sides=("baseline", "candidate"),
        differences=(*forbidding, *allowed),
        reason=reason or ("" if comparisons else "no benchmark matches"),
        facts={"baseline": baseline.id, "candidate": candidate.id},
    )


def _matched(
    baseline: RunRecord, candidate: RunRecord, rename: Rename, selection: Selection | None
) -> _Sides:
    new_names = rename.applied([*baseline.samples, *baseline.excluded])
    before = {new_names[name]: samples for name, samples in baseline.samples.items()}
    lost = {
        **{new_names[n]: f"baseline: {why}" for n, why in baseline.excluded.items()},
        **{name: f"candidate: {why}" for name, why in candidate.excluded.items()},
    }
    after = dict(candidate.samples)
    if selection is not None:
        kept = {
            name
            for name in (*before, *after, *lost)
            if selection(name, *_label_and_group(after.get(name) or before.get(name)))
        }
        before = {name: samples for name, samples in before.items() if name in kept}
        after = {name: samples for name, samples in after.items() if name in kept}
        lost = {name: why for name, why in lost.items() if name in kept}
    return _Sides(before, after, lost)


def _label_and_group(samples: tuple[Sample, ...] | None) -> tuple[str, str | None]:
    return (samples[-1].label, samples[-1].group) if samples else ("", None)


def _names(sides: _Sides) -> list[str]:
    """Every benchmark once: those of the candidate in its order, then those that are gone."""
    return list(dict.fromkeys((*sides.candidate, *sides.baseline, *sides.lost)))


def _one(name: str, sides: _Sides, floors: Floors, reason: str) -> tuple[Comparison, float | None]:
    before, after = sides.baseline.get(name), sides.candidate.get(name)
    if before and after:
        if reason:
            return _unrelated(name, before, after, reason), None
        stored = (after[-1].floor, before[-1].floor)
        floor = floors.floor_of(name, after[-1].group, *stored)
        return judge_launches(name, before, after, floor)
    lost = sides.lost.get(name)
    if lost is not None:
        verdict, reason = Verdict.INCOMPARABLE, lost
    elif after:
        verdict, reason = Verdict.ADDED, "only in the candidate"
    else:
        verdict, reason = Verdict.REMOVED, "only in the baseline"
    return _unrelated(name, before, after, reason, verdict), None


def _unrelated(
    name: str,
    before: tuple[Sample, ...] | None,
    after: tuple[Sample, ...] | None,
    reason: str,
    verdict: Verdict = Verdict.INCOMPARABLE,
) -> Comparison:
    """Both sides as they are, and no relation between them."""
    label, group = _label_and_group(after or before)
    summaries = [
        summary_of([launch_value(sample.values) for sample in samples]) if samples else None
        for samples in (before, after)
    ]
    return Comparison(
        id=name,
        baseline=summaries[0],
        candidate=summaries[1],
        ratio=None,
        low=None,
        high=None,
        verdict=verdict,
        warnings=(reason,),
        label=label,
        group=group,
    )


def _without_false_discoveries(
    judged: Mapping[str, tuple[Comparison, float | None]],
) -> list[Comparison]:
    """Of many benchmarks with 10 launches or more, doubts those whose p could well be chance.

    With fewer launches no p is small enough for that, and the floor has to do.
    """
    tested = [
        (name, p)
        for name, (one, p) in judged.items()
        if p is not None and min(_launches(one)) >= DISCOVERY_LAUNCHES
    ]
    adjusted = benjamini_hochberg([p for _, p in tested])
    doubtful = {
        name
        for (name, p), rate in zip(tested, adjusted, strict=True)
        if rate > DISCOVERY_RATE and p < LARGEST_P and _could_pass(judged[name][0], len(tested))
    }
    return [
        _doubted(one, "may be chance among so many benchmarks; measure it again")
        if name in doubtful
        else one
        for name, (one, _) in judged.items()
    ]


def _launches(one: Comparison) -> tuple[int, int]:
    return (one.baseline.n if one.baseline else 0, one.candidate.n if one.candidate else 0)


def _could_pass(one: Comparison, tests: int) -> bool:
    """Whether a single changed benchmark among so many could be told from chance at all."""
    ours, theirs = _launches(one)
    return 2 / math.comb(ours + theirs, ours) <= DISCOVERY_RATE / tests


def _doubted(one: Comparison, reason: str) -> Comparison:
    """A change that is none to be acted on; anything else stays."""
    if one.verdict not in CHANGED:
        return one
    return replace(one, verdict=Verdict.INCONCLUSIVE, warnings=(reason, *one.warnings))


def _same_sources(baseline: RunRecord, candidate: RunRecord) -> set[str]:
    """Operators whose source has the same fingerprint on both sides."""
    ours, theirs = baseline.sources, candidate.sources
    return {name for name, mark in ours.items() if theirs.get(name) == mark}


def _not_the_code(one: Comparison, sides: _Sides, same_source: set[str]) -> Comparison:
    """A kernel whose source is the same has not changed; only its surroundings can have."""
    if one.verdict not in CHANGED:
        return one
    kernels = {s.kernel for side in (sides.baseline, sides.candidate) for s in side[one.id]}
    if len(kernels) != 1 or not kernels <= same_source:
        return one
    (kernel,) = kernels
    return _doubted(one, f"the source of {kernel} is the same on both sides, so this is noise")


def _without_controls(comparisons: list[Comparison]) -> tuple[list[Comparison], str]:
    """Doubts changes that most benchmarks share, where nothing vouches for the machine."""
    told = "no control kernels in both records: a slower machine cannot be told from slower code"
    ratios = [one.ratio for one in comparisons if one.ratio is not None and one.judged]
    for slower, word in ((True, "slower"), (False, "faster")):
        moved = [
            one
            for one in comparisons
            if one.judged
            and one.ratio is not None
            and (one.ratio > 1) == slower
            and abs(math.log(one.ratio)) > math.log1p((one.floor or 0) / 2)
        ]
        if len(ratios) >= LEAST_TOGETHER and len(moved) > TOGETHER * len(ratios):
            reason = (
                f"{len(moved)} of {len(ratios)} benchmarks are {word} together, as on a machine "
                "that moved, and there are no control kernels"
            )
            return [_doubted(one, reason) for one in comparisons], f"{told}; {reason}"
    return comparisons, told


def _explained(one: Comparison, sides: _Sides) -> Comparison:
    if one.verdict not in CHANGED or one.baseline is None or one.candidate is None:
        return one
    before, after = one.baseline.centre, one.candidate.centre
    found = explain(sides.baseline[one.id], sides.candidate[one.id], before, after)
    return replace(one, attributions=found)


def _forbidden(differences: list[tuple[str, str, str]]) -> str:
    if not differences:
        return ""
    name, ours, theirs = differences[0]
    more = f", and {len(differences) - 1} more" if len(differences) > 1 else ""
    return f"another environment: {name} is {theirs}, and was {ours}{more}"


def _told(
    baseline: RunRecord,
    candidate: RunRecord,
    unknown: list[str],
    allowed: list[tuple[str, str, str]],
) -> list[str]:
    """What the reader must know of both records."""
    told = [
        f"{'both sides' if warning in candidate.warnings else 'baseline'}: {warning}"
        for warning in baseline.warnings
    ]
    told += [
        f"candidate: {warning}"
        for warning in candidate.warnings
        if warning not in baseline.warnings
    ]
    if unknown:
        told.append(f"only one side knows {', '.join(unknown)}")
    told += [f"allowed to differ: {name} was {ours}, is {theirs}" for name, ours, theirs in allowed]
    return told
