"""Finds records by what a user types: a baseline's name, an id, a number, files, a folder."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opbench.errors import RecordError, nearest
from opbench.records.launches import MOST_BYTES, read_run
from opbench.records.record import RunRecord, pooled, read_records
from opbench.records.store import runs

__all__ = ["Library", "StoredFile"]

LATEST = "latest"
_TAIL_BYTES = 1 << 16
_RECORD = re.compile(rb'"record_id":\s*"([^"\\]+)"')
_LAUNCH = re.compile(rb'"launch_id":\s*"([^"\\]+)"')
_DATE = re.compile(rb'"datetime":\s*"([^"\\]+)"')
_WILD = re.compile(r"[*?\[]")
_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """What the end of a saved launch tells without reading all of it."""

    path: Path
    record_id: str
    """Empty where the file names none."""
    launch_id: str
    moment: str
    """ISO 8601, empty where it is not known."""


class Library:
    """The records of one project.

    Attributes:
        runs: the folder of saved launches, one folder for each kind of machine below it.
        baselines: the folder of baselines.
    """

    def __init__(self, results: Path) -> None:
        """Take the folder of the results; it need not exist."""
        self.runs = results / "runs"
        self.baselines = results / "baseline"

    def names(self) -> tuple[str, ...]:
        """The baselines there are, sorted."""
        try:
            return tuple(sorted(one.name for one in self.baselines.iterdir() if _is_baseline(one)))
        except FileNotFoundError:
            return ()
        except OSError as error:
            msg = (
                f"cannot read {self.baselines}: {error.strerror}; name another folder by --results"
            )
            raise RecordError(msg) from error

    def stored(self) -> list[StoredFile]:
        """Every saved launch below ``runs``, the oldest first."""
        folders = [self.runs]
        if self.runs.is_dir():
            folders += sorted(path for path in self.runs.iterdir() if path.is_dir())
        return in_order([path for folder in folders for path in runs(folder)])

    def find(self, word: str) -> RunRecord:
        """The record that a word names.

        In this order: the word ``latest``; a baseline's name; a file or a folder; a pattern of
        files; a record's or a launch's id, or the beginning of one; a number in ``runs``.

        Raises:
            RecordError: it names none, or several; or a file of it cannot be read.
        """
        if word == LATEST:
            return self.latest()
        if word in self.names():
            return _newest(runs(self.baselines / word), word)
        path = Path(word).expanduser()
        try:
            if path.is_dir():
                return _newest(_files_below(path), word)
            if path.exists():
                return read_records([path])[0]
        except OSError as error:
            msg = f"{word[:200]}: cannot be read: {error.strerror}; name a file or a folder"
            raise RecordError(msg) from error
        if _WILD.search(word):
            return _matching(word)
        return self._stored(word)

    def latest(self, other_than: RunRecord | None = None) -> RunRecord:
        """The newest record of ``runs``.

        Args:
            other_than: a record that does not count, nor does a copy of it.

        Raises:
            RecordError: there is none.
        """
        taken = {one.launch_id for one in other_than.launches} if other_than else set()
        files = [
            one
            for one in self.stored()
            if one.launch_id not in taken
            and not (other_than and one.record_id == other_than.id)
            and not (other_than and one.path.stem in {p.path.stem for p in other_than.launches})
        ]
        if not files:
            other = " other than the baseline" if other_than else ""
            msg = f"no saved run{other} in {self.runs}; make one with 'opbench run'"
            raise RecordError(msg)
        for one in files:
            if not one.moment:
                # Nobody knows how new it is: if it cannot be read at all, it may be the newest.
                read_run(one.path)
        return _with_its_launches(files[-1], files)

    def _stored(self, word: str) -> RunRecord:
        """By id, by the beginning of one, or by number."""
        files = self.stored()
        number = int(word) if _NUMBER.fullmatch(word) else None
        ways = (
            [one for one in files if word in {one.record_id, one.launch_id, one.path.stem}],
            [one for one in files if int(one.path.name.partition("_")[0]) == number],
            [one for one in files if one.record_id.startswith(word)],
        )
        hits = next(filter(None, ways), [])
        if not hits:
            there = self.names()
            known = nearest(word, there) if there else "; there is no baseline yet"
            msg = (
                f"{word!r} is no record: no baseline, file, folder or saved run is called so in "
                f"{self.runs.parent}{known}"
            )
            raise RecordError(msg)
        records = {one.record_id or str(one.path) for one in hits}
        if len(records) > 1:
            shown = ", ".join(sorted(one.path.name for one in hits)[:5])
            msg = f"{word!r} is not one record but {len(records)}: {shown}; name one of the files"
            raise RecordError(msg)
        return _with_its_launches(hits[0], files)


def _is_baseline(path: Path) -> bool:
    return path.is_dir() and not path.name.startswith(".")


def _with_its_launches(one: StoredFile, files: Sequence[StoredFile]) -> RunRecord:
    """The record of a file, together with the others that name the same record."""
    mates = [other for other in files if other.record_id == one.record_id] if one.record_id else []
    return read_records([other.path for other in mates] or [one.path])[0]


def _files_below(folder: Path) -> tuple[Path, ...]:
    """Saved launches of a folder, or of the folders in it."""
    found = runs(folder)
    if found:
        return found
    below = [path for path in sorted(folder.iterdir()) if path.is_dir()]
    return tuple(path for one in below for path in runs(one))


def _newest(paths: Sequence[Path], word: str) -> RunRecord:
    """The newest record among files; of files that name no record, those of the newest's commit."""
    if not paths:
        msg = f"{word}: no saved run in this folder; name one that holds files such as 0001_x.json"
        raise RecordError(msg)
    files = in_order(paths)
    newest = files[-1]
    if newest.record_id:
        mates = [one.path for one in files if one.record_id == newest.record_id]
        return read_records(mates)[0]
    plain = read_records([one.path for one in files if not one.record_id])
    last = plain[-1]
    same = [
        one
        for one in plain
        if (one.commit, one.dirty, one.environment) == (last.commit, last.dirty, last.environment)
    ]
    return pooled(same, word)


def _matching(pattern: str) -> RunRecord:
    paths = [Path(path) for path in sorted(glob.glob(pattern, recursive=True))]  # noqa: PTH207 - a Path knows no pattern that begins with a slash
    files = [path for path in paths if path.is_file()]
    if not files:
        msg = f"{pattern!r} matches no file; quote it, and see that it ends in .json"
        raise RecordError(msg)
    return pooled(read_records(files), pattern)


def in_order(paths: Sequence[Path]) -> list[StoredFile]:
    """The files with their ids, the oldest first; those without a date by their names."""
    return sorted(map(_peek, paths), key=lambda one: (one.moment, one.path.name))


def _peek(path: Path) -> StoredFile:
    """Ids and date, which stand at the end of a file; the whole file only where they do not."""
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            stream.seek(max(0, size - _TAIL_BYTES))
            text = stream.read(_TAIL_BYTES)
            if (
                not (_RECORD.search(text) and _DATE.search(text))
                and _TAIL_BYTES < size < MOST_BYTES
            ):
                stream.seek(0)
                text = stream.read()
    except OSError as error:
        msg = f"{path}: cannot be read: {error.strerror}; take it out of the folder"
        raise RecordError(msg) from error
    # The last one: a test may have put anything into the part before.
    found = [pattern.findall(text)[-1:] for pattern in (_RECORD, _LAUNCH, _DATE)]
    words = [hits[0].decode("utf-8", "replace") if hits else "" for hits in found]
    return StoredFile(path, words[0], words[1], words[2])
