"""A record: the launches that belong together, whichever files they lie in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from opbench.errors import RecordError
from opbench.records.environment import Environment
from opbench.records.launches import Launch, read_run
from opbench.records.samples import Sample

__all__ = ["RunRecord", "pooled", "read_records", "record_of"]

_LONG_AGO = datetime.min.replace(tzinfo=timezone.utc)
SHOWN = 3


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One saved measurement of the suite, of one or more launches."""

    id: str
    launches: tuple[Launch, ...]
    """In the order in which they were measured; at least one."""
    samples: dict[str, tuple[Sample, ...]]
    """By benchmark, one of each launch that has it; benchmarks in the order of the files."""
    warnings: tuple[str, ...]
    """What its files lack, each once, with the number of files where it is not all of them."""

    @property
    def environment(self) -> Environment:
        """That of the first launch; a warning says where others differ."""
        return self.launches[0].environment

    @property
    def commit(self) -> str | None:
        """The revision that was measured."""
        return self.launches[0].commit

    @property
    def dirty(self) -> bool | None:
        """Whether the tree held what the commit does not."""
        return self.launches[0].dirty

    @property
    def date(self) -> datetime | None:
        """When its first launch was saved, UTC."""
        return self.launches[0].date

    @property
    def machine(self) -> tuple[tuple[str, str], ...]:
        """Facts beside the environment's."""
        return self.launches[0].machine

    @property
    def sources(self) -> dict[str, str]:
        """The fingerprint of each operator's source on which all launches agree."""
        return dict(set.intersection(*(set(one.sources.items()) for one in self.launches)))

    @property
    def excluded(self) -> dict[str, str]:
        """Benchmarks that gave no sample in any launch, with a reason."""
        return {
            name: reason
            for launch in self.launches
            for name, reason in launch.excluded
            if name not in self.samples
        }

    @property
    def name(self) -> str:
        """What a reader calls it: the commit with a mark of a dirty tree, or else the id."""
        if self.commit is None:
            return self.id
        return self.commit[:10] + ("+changes" if self.dirty else "")


def record_of(launches: Sequence[Launch], name: str | None = None) -> RunRecord:
    """The record of these launches; a copy of one of them counts once.

    Args:
        launches: at least one.
        name: the record's id; that of the first launch if None.

    Raises:
        RecordError: there is no launch.
    """
    if not launches:
        msg = "a record needs at least one launch"
        raise RecordError(msg)
    # Equal moments are told apart by their files, which are numbered.
    ordered = sorted(launches, key=lambda one: (one.date or _LONG_AGO, str(one.path)))
    distinct: dict[str, Launch] = {}
    for launch in ordered:
        distinct.setdefault(launch.launch_id, launch)
    kept = tuple(distinct.values())
    by_benchmark: dict[str, list[Sample]] = {}
    for launch in kept:
        for sample in launch.samples:
            by_benchmark.setdefault(sample.benchmark, []).append(sample)
    warnings = [*_lacks(kept), *_disagreements(kept)]
    if len(kept) < len(ordered):
        warnings.append(f"{len(ordered) - len(kept)} copies of launches are left out")
    return RunRecord(
        id=name or kept[0].record_id,
        launches=kept,
        samples={benchmark: tuple(found) for benchmark, found in by_benchmark.items()},
        warnings=tuple(warnings),
    )


def _lacks(launches: Sequence[Launch]) -> list[str]:
    """Each warning of the files once."""
    counts: dict[str, int] = {}
    for launch in launches:
        for warning in dict.fromkeys(launch.warnings):
            counts[warning] = counts.get(warning, 0) + 1
    every = len(launches)
    return [
        warning if count == every else f"{warning} (in {count} of {every} launches)"
        for warning, count in counts.items()
    ]


def _disagreements(launches: Sequence[Launch]) -> list[str]:
    """What the launches of one record should share and do not."""
    first, *others = launches
    fields = {
        name for other in others for name, _, _ in first.environment.differences(other.environment)
    } | {name for other in others for name, _ in set(first.machine) ^ set(other.machine)}
    found = []
    if fields:
        found.append(f"its launches differ in {', '.join(sorted(fields))}")
    if any((one.commit, one.dirty) != (first.commit, first.dirty) for one in others):
        found.append("its launches were not measured on one commit")
    return found


def read_records(paths: Iterable[Path | str]) -> tuple[RunRecord, ...]:
    """Reads files and puts the launches of one record id together.

    Files that name no record, as plain pytest-benchmark writes them, are records of their own.

    Returns:
        In the order of their first launches; a record without a date comes first.

    Raises:
        RecordError: a file cannot be read; nothing is skipped.
    """
    groups: dict[str, list[Launch]] = {}
    for path in paths:
        launch = read_run(path)
        groups.setdefault(launch.record_id, []).append(launch)
    found = [record_of(launches) for launches in groups.values()]
    return tuple(sorted(found, key=lambda one: (one.date or _LONG_AGO, one.id)))


def pooled(records: Sequence[RunRecord], words: str) -> RunRecord:
    """Several records as one: what somebody means who names several runs together.

    Args:
        records: at least one.
        words: how they were named.

    Raises:
        RecordError: they are of different commits or environments, so are no repetitions.
    """
    if len(records) == 1:
        return records[0]
    launches = [launch for record in records for launch in record.launches]
    first = launches[0]
    for other in launches[1:]:
        difference = _no_repetition(first, other)
        if difference:
            msg = (
                f"{words}: {len(records)} records that are no repetitions of each other: "
                f"{first.path.name} and {other.path.name} differ in {difference}; name the files "
                "of one commit and one machine"
            )
            raise RecordError(msg)
    one = record_of(launches)
    names = sorted(record.id for record in records)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    told = f"{len(records)} records taken together: {', '.join(names[:SHOWN])}{more}"
    return RunRecord(one.id, one.launches, one.samples, (*one.warnings, told))


def _no_repetition(first: Launch, other: Launch) -> str:
    if (first.commit, first.dirty) != (other.commit, other.dirty):
        return "commit"
    fields = [name for name, _, _ in first.environment.differences(other.environment)]
    return ", ".join(fields)
