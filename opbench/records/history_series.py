"""The series of each benchmark in each environment: one value a record, in the order of time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opbench.errors import ConfigError
from opbench.records.floors import Floor
from opbench.records.history_index import HistoryIndex, IndexedLaunch
from opbench.records.statistics import median, spread

__all__ = ["Epoch", "History", "Moment", "Point", "Series", "history_of"]

LEAST_CHANGE = 0.03
"""A step smaller than this share is none."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One record: when, and of which revision."""

    record_id: str
    date: str
    """ISO 8601 in UTC; empty where it is not known."""
    commit: str | None
    dirty: bool | None

    @property
    def name(self) -> str:
        """The commit with a mark of a dirty tree, or else the record's id."""
        if self.commit is None:
            return self.record_id
        return self.commit[:10] + ("+changes" if self.dirty else "")


@dataclass(frozen=True, slots=True)
class Point:
    """A benchmark in one record."""

    moment: Moment
    position: int
    """Of the record among those of its environment, from 0."""
    value: float
    """Median over launches, seconds per call; above 0."""
    values: tuple[float, ...]
    """The lower quartile of each launch."""

    @property
    def launches(self) -> int:
        """How many."""
        return len(self.values)

    @property
    def spread(self) -> float:
        """Robust standard deviation between launches, as a share."""
        return spread(self.values)


@dataclass(frozen=True, slots=True)
class Series:
    """What is looked at for steps."""

    id: str
    """The benchmark's."""
    label: str
    """What a report calls it; may be empty."""
    group: str | None
    epoch: int
    points: tuple[Point, ...]
    floor: Floor


@dataclass(frozen=True, slots=True)
class Epoch:
    """Records that may be related: no fact that is known of two of them differs."""

    number: int
    """From 0, in the order of their first records."""
    facts: Mapping[str, str]
    moments: tuple[Moment, ...]
    controls: Mapping[str, tuple[float | None, ...]]
    """Seconds a call by control kernel, one for each record; None where it was not timed."""


@dataclass(frozen=True, slots=True)
class History:
    """All series of a project."""

    epochs: tuple[Epoch, ...]
    series: tuple[Series, ...]
    """By benchmark in the order of their first records, then by epoch."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Benchmarks with records in which they took no time by their clock, with how many."""

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """Ids, each once."""
        return tuple(dict.fromkeys(one.id for one in self.series))

    @property
    def records(self) -> int:
        """How many records there are."""
        return sum(len(epoch.moments) for epoch in self.epochs)

    def current(self) -> dict[str, Series]:
        """By benchmark the series of the environment in which it was measured last."""
        found: dict[str, Series] = {}
        for one in self.series:
            other = found.get(one.id)
            if other is None or other.points[-1].moment.date <= one.points[-1].moment.date:
                found[one.id] = one
        return found


def history_of(
    index: HistoryIndex,
    *,
    selection: Callable[[str, str, str | None], bool] | None = None,
    last: int | None = None,
    floor: Floor | None = None,
) -> History:
    """The series of an index.

    Args:
        index: every launch.
        selection: which benchmarks are looked at, by id, label and group; all if None.
        last: only the newest records, so many; all if None.
        floor: the smallest step that counts where a benchmark has no floor of its own; 3 % if
            None.

    Raises:
        ConfigError: ``last`` is no number of records.
    """
    if last is not None and last < 1:
        msg = f"--last is {last}; give the number of the newest records to look at, at least 1"
        raise ConfigError(msg)
    floor = Floor(LEAST_CHANGE) if floor is None else floor
    groups: dict[str, list[IndexedLaunch]] = {}
    for launch in index.launches:
        groups.setdefault(launch.record_id, []).append(launch)
    records = sorted(groups.values(), key=lambda group: (group[0].date, group[0].record_id))
    builders = _in_epochs(records[-last:] if last else records)
    kept = {
        name: (label, group)
        for name, (label, group) in index.names.items()
        if selection is None or selection(name, label, group)
    }
    left_out: dict[str, int] = {}
    series = [
        Series(
            id=name,
            label=kept[name][0],
            group=kept[name][1],
            epoch=number,
            points=points,
            floor=_floor(stored, floor),
        )
        for number, builder in enumerate(builders)
        for name, points, stored in builder.series(kept, left_out)
    ]
    order = {name: position for position, name in enumerate(index.names)}
    series.sort(key=lambda one: (order[one.id], one.epoch))
    epochs = tuple(builder.epoch(number) for number, builder in enumerate(builders))
    return History(epochs, tuple(series), left_out)


def _floor(stored: Mapping[str, Any] | None, default: Floor) -> Floor:
    return default if stored is None else Floor.from_dict(stored, default.relative)


def _in_epochs(records: Iterable[Sequence[IndexedLaunch]]) -> list[_Builder]:
    """Each record goes to the newest epoch that it does not contradict.

    Not only to the last one: hosted runners come and go between two machines.
    """
    builders: list[_Builder] = []
    recent: list[_Builder] = []
    for launches in records:
        facts = launches[0].facts
        found = next((one for one in recent if one.fits(facts)), None)
        if found is None:
            found = _Builder()
            builders.append(found)
        else:
            recent.remove(found)
        recent.insert(0, found)
        found.add(launches)
    return builders


class _Builder:
    """An epoch that still grows."""

    def __init__(self) -> None:
        self._facts: dict[str, str] = {}
        self._moments: list[Moment] = []
        self._records: list[Sequence[IndexedLaunch]] = []

    def fits(self, facts: Mapping[str, str]) -> bool:
        """Whether no fact that both know differs."""
        return all(self._facts.get(name, value) == value for name, value in facts.items())

    def add(self, launches: Sequence[IndexedLaunch]) -> None:
        first = launches[0]
        self._facts |= first.facts
        self._moments.append(Moment(first.record_id, first.date, first.commit, first.dirty))
        self._records.append(launches)

    def epoch(self, number: int) -> Epoch:
        names = sorted({name for launches in self._records for name in launches[0].controls})
        controls = {
            name: tuple(_control(launches, name) for launches in self._records) for name in names
        }
        return Epoch(number, dict(self._facts), tuple(self._moments), controls)

    def series(
        self, kept: Mapping[str, object], left_out: dict[str, int]
    ) -> list[tuple[str, tuple[Point, ...], Mapping[str, Any] | None]]:
        """Points by benchmark, with the floor that its newest launch names."""
        points: dict[str, list[Point]] = {}
        floors: dict[str, Mapping[str, Any]] = {}
        for position, launches in enumerate(self._records):
            values: dict[str, list[float]] = {}
            for launch in launches:
                for name, value in zip(launch.benchmarks, launch.values, strict=True):
                    if name in kept:
                        values.setdefault(name, []).append(value)
                if floors:
                    floors = {k: v for k, v in floors.items() if k not in launch.benchmarks}
                floors.update(launch.floors)
            for name, found in values.items():
                if min(found) <= 0:
                    left_out[name] = left_out.get(name, 0) + 1
                    continue
                point = Point(
                    moment=self._moments[position],
                    position=position,
                    value=median(found),
                    values=tuple(found),
                )
                points.setdefault(name, []).append(point)
        return [(name, tuple(found), floors.get(name)) for name, found in points.items()]


def _control(launches: Sequence[IndexedLaunch], name: str) -> float | None:
    known = [one.controls[name] for one in launches if one.controls.get(name, 0.0) > 0]
    return median(known) if known else None
