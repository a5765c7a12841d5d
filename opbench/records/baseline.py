"""Baselines: full copies of records under a name, moved by a command and by nothing else."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from opbench.errors import ConfigError, RecordError
from opbench.records.find import Library, in_order
from opbench.records.record import RunRecord, read_records
from opbench.records.store import runs

__all__ = ["Baseline", "baselines", "prune_baselines", "set_baseline"]

_LONGEST = 100
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@-]*")


@dataclass(frozen=True, slots=True)
class Baseline:
    """One baseline as a list shows it."""

    name: str
    folder: Path
    record_id: str
    launches: int
    date: str
    """ISO 8601, empty where it is not known."""
    problem: str = ""
    """Why it cannot be read; empty if it can."""


def set_baseline(library: Library, name: str, record: RunRecord, *, replace: bool = False) -> Path:
    """Keep full copies of a record's files under a name.

    The copies are complete before the name appears, and a baseline that is replaced stays whole
    until its successor is.

    Args:
        library: where baselines lie.
        name: letters, digits and any of ``._+@-``.
        record: what is copied.
        replace: whether a baseline of that name gives way.

    Returns:
        The baseline's folder.

    Raises:
        ConfigError: the name cannot be one, or is taken.
        RecordError: the files cannot be copied; what was there is unchanged.
    """
    _check_name(name)
    folder = library.baselines / name
    if folder.exists() and not replace:
        msg = (
            f"there is a baseline {name!r} already ({_told(folder)}); give --replace to move it, "
            "or choose another name"
        )
        raise ConfigError(msg)
    token = secrets.token_hex(4)
    fresh = library.baselines / f".{name}.{token}.new"
    old = library.baselines / f".{name}.{token}.old"
    try:
        fresh.mkdir(parents=True)
        for number, launch in enumerate(record.launches, 1):
            # Numbered anew: launches of several folders can have one number.
            tail = re.sub(r"^[0-9]{4,}_", "", launch.path.name)
            shutil.copyfile(launch.path, fresh / f"{number:04}_{tail}")
        if folder.exists():
            folder.rename(old)
        fresh.rename(folder)
    except OSError as error:
        if old.exists() and not folder.exists():
            old.rename(folder)
        msg = (
            f"cannot set the baseline {name!r} in {library.baselines}: "
            f"{error.strerror or error}; nothing was changed"
        )
        raise RecordError(msg) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
    return folder


def baselines(library: Library) -> list[Baseline]:
    """Every baseline, by name; one that cannot be read says why."""
    return [_looked_at(library.baselines / name) for name in library.names()]


def prune_baselines(
    library: Library,
    names: Iterable[str] = (),
    *,
    older_than: timedelta | None = None,
    now: datetime | None = None,
    dry_run: bool = False,
) -> list[str]:
    """Remove baselines: those named, and those older than an age; none by itself.

    Args:
        library: where baselines lie.
        names: each must be there.
        older_than: by the date of the record, and not of its copy.
        now: with its time zone; needed with an age.
        dry_run: remove nothing.

    Returns:
        The names of those that went, or would.

    Raises:
        ConfigError: there is no baseline of a name.
        RecordError: one cannot be removed.
    """
    there = library.names()
    gone = list(dict.fromkeys(names))
    for name in gone:
        if name not in there:
            known = ", ".join(there) or "none at all"
            msg = f"there is no baseline {name!r} in {library.baselines}; there is {known}"
            raise ConfigError(msg)
    if older_than is not None and now is not None:
        limit = now - older_than
        gone += [
            one.name
            for one in baselines(library)
            if one.date and _moment(one.date) < limit and one.name not in gone
        ]
    try:
        for name in gone if not dry_run else ():
            shutil.rmtree(library.baselines / name)
    except OSError as error:
        msg = f"cannot remove all of {', '.join(gone)}: {error.strerror or error}"
        raise RecordError(msg) from error
    return gone


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _check_name(name: str) -> None:
    if len(name) > _LONGEST or not _NAME.fullmatch(name):
        msg = (
            f"{name[:_LONGEST]!r} cannot name a baseline: give up to {_LONGEST} letters, digits "
            "and any of ._+@-, a letter or a digit first"
        )
        raise ConfigError(msg)


def _told(folder: Path) -> str:
    one = _looked_at(folder)
    return one.problem or f"{one.launches} launches of record {one.record_id}"


def _looked_at(folder: Path) -> Baseline:
    try:
        paths = runs(folder)
        if not paths:
            return Baseline(folder.name, folder, "", 0, "", "it holds no saved run")
        first = read_records([in_order(paths)[0].path])[0]
    except RecordError as error:
        return Baseline(folder.name, folder, "", 0, "", str(error))
    date = first.date.isoformat() if first.date else ""
    return Baseline(folder.name, folder, first.id, len(paths), date)
