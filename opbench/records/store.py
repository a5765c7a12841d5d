"""Keeps saved runs in pytest-benchmark's own layout: ``NNNN_name.json`` in one folder."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from opbench.errors import RecordError
from opbench.records.environment import Environment
from opbench.records.launches import SCHEMA_VERSION
from opbench.records.strict import strict_json

__all__ = ["new_launch_id", "opbench_block", "runs", "save_run"]

_RUN = re.compile(r"([0-9]{4,})_.+\.json", re.DOTALL)
# What pytest-benchmark refuses in --benchmark-save, and what no file name can hold.
_ILLEGAL = re.compile("[\\\\/:*?<>|\x00-\x1f\x7f\ud800-\udfff]")


def new_launch_id(now_utc: datetime, token: str) -> str:
    """An id for one process launch; ids sort by time as text.

    Args:
        now_utc: the moment, with its time zone.
        token: what tells launches of the same second apart; the caller draws it.

    Raises:
        RecordError: the moment has no time zone, or the token is empty.
    """
    if now_utc.tzinfo is None or not token:
        msg = f"a launch id needs a time zone and a token, got {now_utc!r} and {token!r}"
        raise RecordError(msg)
    return f"{now_utc.astimezone(timezone.utc):%Y%m%dT%H%M%SZ}-{token}"


def opbench_block(launch_id: str, record_id: str, environment: Environment) -> dict[str, Any]:
    """The top-level ``opbench`` block of a saved run, in the present schema."""
    return {
        "schema_version": SCHEMA_VERSION,
        "record_id": record_id,
        "launch_id": launch_id,
        "environment": environment.as_dict(),
    }


def runs(folder: Path | str) -> tuple[Path, ...]:
    """The saved runs of a folder in numeric order: 10000 comes after 9999, not before.

    A folder that does not exist holds none.

    Raises:
        RecordError: the folder cannot be read, or is a file.
    """
    return tuple(path for _, _, path in sorted(_numbered(Path(folder))))


def save_run(folder: Path | str, document: Mapping[str, Any], name: str) -> tuple[Path, int]:
    """Saves one run under the next number, atomically, and never over another.

    The document is written as strict JSON, nothing cut. Numbers are unique whatever the names,
    also between processes that save at the same time: a writer owns number N while it holds the
    file ``.NNNN.claim``, which is also where it writes. The claim of a killed writer costs its
    number and nothing else, so no writer must judge whether another is still alive.

    Args:
        folder: where the runs of this machine id lie; made if missing.
        document: pytest-benchmark's JSON document.
        name: what follows the number, as --benchmark-save takes it.

    Returns:
        The file, and its number.

    Raises:
        RecordError: the name cannot be part of a file name, the document is no mapping or holds
            itself, or the folder cannot be written. What lay in the folder is unchanged.
    """
    folder = Path(folder)
    _check_name(name)
    text = _encoded(document)
    path = folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        number = _last(folder) + 1
        while True:
            path = folder / f"{number:04}_{name}.json"
            if _write_claimed(path, number, text):
                return path, number
            number = max(number, _last(folder)) + 1
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        msg = f"cannot save a run in {folder}: {reason}; choose another folder"
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            msg = f"cannot save a run as {path}: {reason}; choose a shorter name"
        raise RecordError(msg) from error


def _check_name(name: object) -> None:
    """Raises unless it can follow the number in a file name."""
    if not isinstance(name, str):
        msg = f"cannot save a run as {name!r}: a name is text, not {type(name).__name__}"
        raise RecordError(msg)
    if not name or _ILLEGAL.search(name):
        msg = (
            f"cannot save a run as {name!r}: a name must not be empty nor hold any of \\/:*?<>|, a "
            "control character or half of a surrogate pair; choose another one"
        )
        raise RecordError(msg)


def _encoded(document: object) -> bytes:
    if not isinstance(document, Mapping):
        msg = (
            f"cannot save a run: its document is {type(document).__name__}, expected a mapping as "
            "pytest-benchmark makes it"
        )
        raise RecordError(msg)
    try:
        return strict_json(document).encode("ascii")
    except RecursionError as error:
        msg = (
            "cannot save a run: its document holds itself, or is nested too deeply; "
            "look into what the tests put into extra_info"
        )
        raise RecordError(msg) from error


def _write_claimed(path: Path, number: int, text: bytes) -> bool:
    """Writes the run if its number is still free; False if another writer has or had it.

    The number is looked up again after the claim: the writer before us may have finished
    between our first look and our claim.
    """
    claim = path.parent / f".{number:04}.claim"
    try:
        descriptor = os.open(claim, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        return False
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        return _last(path.parent) < number and _publish(claim, path)
    finally:
        claim.unlink(missing_ok=True)


def _publish(claim: Path, path: Path) -> bool:
    """Gives the finished claim its name; False if the name exists.

    A link, since it never replaces a file, not even one of a writer that knows no claims. Where
    the file system has no links, a rename; the claim keeps other opbench writers away.
    """
    try:
        os.link(claim, path)
    except FileExistsError:
        return False
    except OSError:
        if path.exists():
            return False
        claim.rename(path)
    return True


def _last(folder: Path) -> int:
    return max((number for number, _, _ in _numbered(folder)), default=0)


def _numbered(folder: Path) -> list[tuple[int, str, Path]]:
    """Each saved run with its number and its name, unsorted."""
    try:
        names = [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        msg = f"cannot read the runs in {folder}: {reason}; name a folder that can be read"
        raise RecordError(msg) from error
    found = ((_RUN.fullmatch(name), name) for name in names)
    return [(int(match[1]), name, folder / name) for match, name in found if match]
