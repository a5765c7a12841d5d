"""Why: which part of a benchmark accounts for its change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opbench.records.samples import Part, Sample, samples_of
from opbench.records.statistics import median
from opbench.records.summary import launch_value
from opbench.records.verdict import Attribution

__all__ = ["explain", "explain_launches"]

# What contributes less than this share of a change explains nothing.
LEAST_SHARE = 0.1
# Of an imbalance: a smaller step is noise.
LEAST_IMBALANCE = 0.05
IMBALANCE, REST = "imbalance", "rest"


def explain(
    baseline: Sequence[Sample], candidate: Sequence[Sample], before: float, after: float
) -> tuple[Attribution, ...]:
    """The parts that account for a change, the largest first; none where nothing is known.

    A part counts if it went the same way as the whole and makes up a tenth of it. What the
    profiled parts do not account for is the rest: code outside the operators.

    Args:
        baseline: one sample per launch.
        candidate: the same of the other side.
        before: seconds a call.
        after: seconds a call.
    """
    kernels = {sample.kernel for sample in (*baseline, *candidate)}
    ours, theirs = _parts(baseline), _parts(candidate)
    timed = sorted({key for key in ours | theirs if key[0] != IMBALANCE})
    change = after - before
    if not timed:
        kernel = kernels.pop() if len(kernels) == 1 else None
        found = [Attribution("operator", kernel, before, after)] if kernel else []
    else:
        found = [
            Attribution(side, name, ours.get((side, name), 0.0), theirs.get((side, name), 0.0))
            for side, name in timed
        ]
        known_before = sum(part.before for part in found)
        known_after = sum(part.after for part in found)
        found.append(
            Attribution(REST, "outside the operators", before - known_before, after - known_after)
        )
    counted = [part for part in found if change and part.change / change >= LEAST_SHARE]
    counted.sort(key=lambda part: -abs(part.change))
    return (*counted, *_imbalance(ours, theirs))


def _parts(samples: Sequence[Sample]) -> dict[tuple[str, str], float]:
    """Median over launches of each part; a launch without it counts as 0, if it has any parts."""
    profiled = [sample.parts for sample in samples if sample.parts]
    keys = {(part.side, part.name) for parts in profiled for part in parts}
    totals = [_added(parts) for parts in profiled]
    return {key: median([total.get(key, 0.0) for total in totals]) for key in keys}


def _added(parts: Sequence[Part]) -> dict[tuple[str, str], float]:
    added: dict[tuple[str, str], float] = {}
    for part in parts:
        key = (part.side, part.name)
        added[key] = added.get(key, 0.0) + part.value
    return added


def _imbalance(
    ours: Mapping[tuple[str, str], float], theirs: Mapping[tuple[str, str], float]
) -> tuple[Attribution, ...]:
    key = (IMBALANCE, IMBALANCE)
    if key not in ours or key not in theirs or abs(theirs[key] - ours[key]) < LEAST_IMBALANCE:
        return ()
    return (Attribution(IMBALANCE, IMBALANCE, ours[key], theirs[key], unit=""),)


def explain_launches(
    documents: Mapping[str, Mapping[str, Any] | None], ids: Sequence[str]
) -> dict[str, tuple[Attribution, ...]]:
    """The same from one profiled launch of each side, as its file or its process gave it.

    Args:
        documents: pytest-benchmark's document of ``base`` and of ``head``; None for none.
        ids: the benchmarks that have changed.

    Returns:
        By id, for those that both documents know.
    """
    sides = {side: _samples(documents.get(side)) for side in ("base", "head")}
    found = {}
    for name in ids:
        base, head = (sides[side].get(name) for side in ("base", "head"))
        if base is not None and head is not None:
            before, after = launch_value(base.values), launch_value(head.values)
            found[name] = explain([base], [head], before, after)
    return found


def _samples(document: Mapping[str, Any] | None) -> dict[str, Sample]:
    entries = (document or {}).get("benchmarks")
    try:
        samples, _ = samples_of(entries if isinstance(entries, list) else [], "", [])
    except ValueError:
        return {}
    return {sample.benchmark: sample for sample in samples}
