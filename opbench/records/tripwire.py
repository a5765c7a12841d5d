"""One launch that has just been measured, beside a stored record: worth a look, never evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opbench.records.comparable import check_distinct, environment_differences
from opbench.records.compare import DEFAULT_FLOOR
from opbench.records.environment import Environment
from opbench.records.floors import Floor, Floors
from opbench.records.launches import SCHEMA_VERSION, Launch
from opbench.records.record import RunRecord, record_of
from opbench.records.samples import Sample, samples_of
from opbench.records.statistics import median
from opbench.records.stored import TRIPWIRE
from opbench.records.summary import launch_value

__all__ = ["Tripwires", "Wire", "live_record", "tripwires"]


@dataclass(frozen=True, slots=True)
class Wire:
    """One benchmark on both sides."""

    id: str
    label: str
    before: float
    """Fastest round of the baseline, seconds per call: median over its launches; above 0."""
    after: float
    """Fastest round of the launch, seconds per call."""
    typical: float
    """Ratio of the typical times; shown, and not looked at."""
    limit: float
    """The ratio of the fastest rounds from which on it trips."""

    @property
    def ratio(self) -> float:
        """After over before: above 1 is slower."""
        return self.after / self.before

    @property
    def tripped(self) -> bool:
        """Whether it is beyond the limit."""
        return self.ratio > self.limit


@dataclass(frozen=True, slots=True)
class Tripwires:
    """A launch beside a baseline."""

    baseline: str
    """The baseline's record, as a reader calls it."""
    wires: tuple[Wire, ...]
    """Each benchmark of both sides, the slowest first."""
    skipped: tuple[tuple[str, str], ...]
    """Benchmarks of the launch that have no wire, with the reason."""
    not_run: int
    """Benchmarks that the baseline alone has."""
    reason: str
    """Why nothing was compared; empty if something was."""
    notes: tuple[str, ...]
    """What the reader must know, a sentence each."""

    @property
    def tripped(self) -> tuple[Wire, ...]:
        """Those beyond their limit."""
        return tuple(wire for wire in self.wires if wire.tripped)


def live_record(
    entries: Sequence[dict[str, Any]], launch_id: str, environment: Environment
) -> RunRecord:
    """The record of a launch that is not saved, or not yet.

    Args:
        entries: as pytest-benchmark's JSON has its benchmarks, with all values.
        launch_id: of this process.
        environment: in which it measured.

    Raises:
        ValueError: an entry is no benchmark; says which.
    """
    warnings: list[str] = []
    samples, excluded = samples_of(entries, launch_id, warnings)
    launch = Launch(
        path=Path(launch_id),
        schema_version=SCHEMA_VERSION,
        record_id=launch_id,
        launch_id=launch_id,
        date=None,
        commit=None,
        dirty=None,
        environment=environment,
        samples=samples,
        excluded=excluded,
        warnings=tuple(warnings),
    )
    return record_of([launch])


def tripwires(
    baseline: RunRecord, candidate: RunRecord, default: Floor = DEFAULT_FLOOR
) -> Tripwires:
    """Compare the fastest rounds, which a busy machine disturbs least, and nothing else.

    A wire trips above 1.15 times; where the benchmark's floor is larger than that, beyond it.

    Args:
        baseline: what is compared against.
        candidate: one launch.
        default: the floor where neither side was saved with one.

    Raises:
        RecordError: both sides hold the same launch.
    """
    check_distinct(baseline, candidate)
    forbidding, _, unknown = environment_differences(baseline, candidate)
    skipped = [(name, why) for name, why in candidate.excluded.items()]
    wires: list[Wire] = []
    differences = [f"{name} is {after}, and was {before}" for name, before, after in forbidding]
    for name, samples in candidate.samples.items():
        others = baseline.samples.get(name)
        if others is None:
            skipped.append((name, baseline.excluded.get(name, "not in the baseline")))
        elif not differences:
            found = _wire(others, samples, Floors(default))
            wires += [found] if isinstance(found, Wire) else []
            skipped += [(name, found)] if isinstance(found, str) else []
    wires.sort(key=lambda wire: (-wire.ratio / wire.limit, wire.id))
    reason = ""
    if differences:
        more = f", and {len(differences) - 1} more" if len(differences) > 1 else ""
        reason = f"another environment: {differences[0]}{more}"
    elif not wires:
        reason = "no benchmark was timed" if not candidate.samples else "no benchmark on both sides"
    notes = [f"only one side knows {', '.join(unknown)}"] if unknown else []
    return Tripwires(
        baseline=baseline.name,
        wires=tuple(wires),
        skipped=tuple(skipped),
        not_run=len(set(baseline.samples) - set(candidate.samples) - set(candidate.excluded)),
        reason=reason,
        notes=tuple(notes),
    )


def _wire(before: Sequence[Sample], after: Sequence[Sample], floors: Floors) -> Wire | str:
    """The wire of a benchmark, or why it has none."""
    latest = after[-1]
    # Of several launches the typical fastest round: the least of all gets lower with each launch.
    first, second = (median([min(one.values) for one in side]) for side in (before, after))
    usual = median([launch_value(one.values) for one in before])
    if first <= 0 or usual <= 0:
        return "took no time by its clock; give the test more work a call"
    floor = floors.floor_of(latest.benchmark, latest.group, latest.floor, before[-1].floor)
    return Wire(
        id=latest.benchmark,
        label=latest.label,
        before=first,
        after=second,
        typical=median([launch_value(one.values) for one in after]) / usual,
        limit=max(TRIPWIRE, 1 + floor.share(first)),
    )
