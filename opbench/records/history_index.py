"""What history needs of every saved launch, in one file, so that none is read twice.

The file is derived: whatever is wrong with it, it is built anew from the saved runs, which alone
count. A saved run never changes, so its size and its time of change tell whether it is the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opbench.errors import RecordError
from opbench.records.environment import brief
from opbench.records.find import Library
from opbench.records.floors import Floor
from opbench.records.launches import SCHEMA_VERSION, Launch, read_run
from opbench.records.store import runs
from opbench.records.summary import launch_value

__all__ = ["INDEX_NAME", "HistoryIndex", "IndexedLaunch", "index_launches"]

INDEX_NAME = ".history.json"
INDEX_VERSION = 1
"""Goes up with the meaning of anything below, that of ``launch_value`` included."""
UNSET = "none set"

_SUITE, _ENVIRONMENT = "suites", "environments"


@dataclass(frozen=True, slots=True)
class IndexedLaunch:
    """One saved launch as far as history looks at it."""

    path: str
    """Relative to the folder of runs, with forward slashes."""
    record_id: str
    launch_id: str
    date: str
    """ISO 8601 in UTC; empty where it is not known."""
    commit: str | None
    dirty: bool | None
    facts: Mapping[str, str]
    """What is known of the environment, as text; a fact that is not known is not there."""
    benchmarks: tuple[str, ...]
    """Ids; shared between launches of one suite."""
    values: tuple[float, ...]
    """``launch_value`` of each, seconds per call."""
    controls: Mapping[str, float]
    """Seconds a call of each control kernel."""
    floors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """As ``Floor.as_dict`` gives them, for benchmarks that have one of their own."""


@dataclass(frozen=True, slots=True)
class HistoryIndex:
    """Every launch that could be read, and what could not."""

    launches: tuple[IndexedLaunch, ...]
    names: Mapping[str, tuple[str, str | None]]
    """Label and group of each benchmark, as its newest launch has them."""
    problems: tuple[str, ...]
    """One sentence for each saved run that cannot be read."""
    read: int
    """Files that were not in the index."""
    unkept: str = ""
    """Why the index could not be written; empty if it was, or had not changed."""


def index_launches(
    library: Library,
    *,
    rebuild: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> HistoryIndex:
    """Every saved launch, out of the index where that has it, else out of its file.

    What was read before an interrupt is kept. Of two processes at once the last one's index
    stays; what that lacks is read again the next time.

    Args:
        library: whose saved runs.
        rebuild: read every file again.
        progress: is told how many of the files are read.

    Raises:
        RecordError: the folder itself cannot be read.
    """
    place = library.runs / INDEX_NAME
    known = _Stored({}, {}) if rebuild else _load(place)
    files = list(_files(library.runs))
    kept = {name: known.rows[name] for name, stamp in files if _same(known.rows.get(name), stamp)}
    missing = [(name, stamp) for name, stamp in files if name not in kept]
    fresh = _Stored(kept, known.names)
    stale = rebuild or bool(missing) or len(known.rows) != len(kept)
    problems: list[str] = []
    read = 0
    try:
        for name, stamp in missing:
            progress(read + len(problems), len(missing))
            try:
                launch = read_run(library.runs / name)
            except RecordError as error:
                problems.append(str(error))
                continue
            fresh.add(name, stamp, launch)
            read += 1
    finally:
        unkept = _write(place, fresh) if stale and (read or len(kept) != len(known.rows)) else ""
    ordered = sorted(fresh.rows.values(), key=lambda row: (row[1].date, row[1].path))
    distinct: dict[str, IndexedLaunch] = {}
    for _, launch_row in ordered:
        distinct.setdefault(launch_row.launch_id, launch_row)
    names = {name: fresh.names.get(name, ("", None)) for name in _benchmarks(distinct.values())}
    return HistoryIndex(tuple(distinct.values()), names, tuple(problems), read, unkept)


_Stamp = tuple[int, int]
_Row = tuple[_Stamp, IndexedLaunch]


class _Stored:
    """The content of an index: rows by file, and what benchmarks are called."""

    def __init__(self, rows: dict[str, _Row], names: Mapping[str, tuple[str, str | None]]) -> None:
        self.rows, self.names = rows, dict(names)
        self._suites: dict[tuple[str, ...], tuple[str, ...]] = {}

    def add(self, name: str, stamp: _Stamp, launch: Launch) -> None:
        suite = tuple(sample.benchmark for sample in launch.samples)
        for sample in launch.samples:
            if sample.label or sample.benchmark not in self.names:
                self.names[sample.benchmark] = (sample.label, sample.group)
        row = IndexedLaunch(
            path=name,
            record_id=launch.record_id,
            launch_id=launch.launch_id,
            date=launch.date.isoformat() if launch.date else "",
            commit=launch.commit,
            dirty=launch.dirty,
            facts=_facts(launch),
            # One tuple for all launches of a suite: names are most of the memory.
            benchmarks=self._suites.setdefault(suite, suite),
            values=tuple(launch_value(sample.values) for sample in launch.samples),
            controls=dict(launch.controls),
            floors={one.benchmark: one.floor for one in launch.samples if one.floor is not None},
        )
        self.rows[name] = (stamp, row)


def _facts(launch: Launch) -> dict[str, str]:
    """The environment as text. Of a writer that looks, no thread setting is a setting, too."""
    facts = {
        name: str(value)
        for name, value in launch.environment.as_dict().items()
        if value is not None and name != "thread_settings"
    }
    settings = launch.environment.thread_settings
    if settings or launch.schema_version is not None:
        facts["thread_settings"] = ", ".join(f"{k}={v}" for k, v in settings) or UNSET
    return facts | dict(launch.machine)


def _benchmarks(launches: Iterable[IndexedLaunch]) -> list[str]:
    suites = dict.fromkeys(launch.benchmarks for launch in launches)
    return list(dict.fromkeys(name for suite in suites for name in suite))


def _files(folder: Path) -> Iterable[tuple[str, _Stamp]]:
    """Saved runs of the folder and of those in it: relative name, and size with time of change."""
    below = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    for place in (folder, *below):
        for path in runs(place):
            with contextlib.suppress(FileNotFoundError):  # removed in between
                status = path.stat()
                yield path.relative_to(folder).as_posix(), (status.st_size, status.st_mtime_ns)


def _same(row: _Row | None, stamp: _Stamp) -> bool:
    return row is not None and row[0] == stamp


def _load(place: Path) -> _Stored:
    """What an index holds; nothing if it is of another version, or damaged in any way."""
    try:
        document = json.loads(place.read_text("ascii"))
        if document["versions"] != [INDEX_VERSION, SCHEMA_VERSION]:
            return _Stored({}, {})
        suites = [tuple(map(_text, suite)) for suite in document[_SUITE]]
        environments = [_texts(facts) for facts in document[_ENVIRONMENT]]
        names = {
            name: (_text(label), None if group is None else _text(group))
            for name, (label, group) in document["names"].items()
        }
        rows = {
            name: _row(name, row, suites, environments) for name, row in document["files"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return _Stored({}, {})
    return _Stored(rows, names)


def _row(
    name: str,
    row: Sequence[Any],
    suites: Sequence[tuple[str, ...]],
    environments: Sequence[Mapping[str, str]],
) -> _Row:
    """One file's row, checked: a wrong number in an index would be a wrong step in a report."""
    size, changed, record, launch, date, commit, dirty, environment, suite, values, *rest = row
    controls, floors = rest
    benchmarks, numbers = suites[suite], tuple(values)
    if len(numbers) != len(benchmarks) or not all(type(one) is float for one in numbers):
        msg = f"values of {name} do not fit"
        raise ValueError(msg)
    for stored in floors.values():
        Floor.from_dict(stored, 0.0)  # its ConfigError is a ValueError
    made = IndexedLaunch(
        path=name,
        record_id=_text(record),
        launch_id=_text(launch),
        date=_text(date),
        commit=None if commit is None else _text(commit),
        dirty=None if dirty is None else bool(dirty),
        facts=environments[environment],
        benchmarks=benchmarks,
        values=numbers,
        controls={_text(key): float(value) for key, value in controls.items()},
        floors=floors,
    )
    return (int(size), int(changed)), made


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(brief(value))
    return value


def _texts(value: Mapping[str, Any]) -> dict[str, str]:
    return {_text(key): _text(text) for key, text in value.items()}


def _write(place: Path, stored: _Stored) -> str:
    """Puts the index in its place, atomically; why it cannot, or an empty string."""
    suites: dict[tuple[str, ...], int] = {}
    environments: dict[str, int] = {}
    files = {}
    for name, ((size, changed), row) in stored.rows.items():
        facts = json.dumps(dict(row.facts), sort_keys=True)
        files[name] = [
            size,
            changed,
            row.record_id,
            row.launch_id,
            row.date,
            row.commit,
            row.dirty,
            environments.setdefault(facts, len(environments)),
            suites.setdefault(row.benchmarks, len(suites)),
            row.values,
            dict(row.controls),
            dict(row.floors),
        ]
    document = {
        "versions": [INDEX_VERSION, SCHEMA_VERSION],
        _SUITE: list(suites),
        _ENVIRONMENT: [json.loads(facts) for facts in environments],
        "names": stored.names,
        "files": files,
    }
    fresh = place.with_name(f"{place.name}.{secrets.token_hex(4)}")
    try:
        fresh.write_text(json.dumps(document, separators=(",", ":")), "ascii")
        os.replace(fresh, place)  # noqa: PTH105 - Path.replace says the same
    except OSError as error:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        return f"the index of {place.parent} cannot be kept: {error.strerror or error}"
    return ""
