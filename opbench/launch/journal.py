"""What a session has measured so far, on disk, so that it can go on after an end of any kind."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from opbench.errors import ConfigError, RecordError
from opbench.launch import guard_process
from opbench.launch.turn import Turn

__all__ = ["SCHEMA_VERSION", "Journal", "clear_stale", "locked"]

# 2: looks at fixed numbers of pairs; a session that was begun under another rule does not go on.
SCHEMA_VERSION = 2
_PLAN, _TURNS, _END = "plan.json", "turns.jsonl", "report.json"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the folder of the sessions; the kernel lets go for a process that dies.

    Raises:
        ConfigError: another session holds it, or the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        ignore = folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="ascii")
        stream = (folder / "lock").open("a+", encoding="utf-8")
    except OSError as error:
        msg = (
            f"cannot write to {folder}: {error.strerror or error}; nothing was measured. Name "
            "another folder with --results"
        )
        raise ConfigError(msg) from error
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConfigError(_taken(folder, stream)) from error
        stream.truncate(0)
        stream.write(f"{os.getpid()} since {datetime.now().astimezone():%H:%M:%S}")
        stream.flush()
        try:
            yield
        finally:
            stream.truncate(0)


def _taken(folder: Path, stream: IO[str]) -> str:
    stream.seek(0)
    who = stream.read().strip()
    return (
        f"another session measures here (process {who or 'unknown'}, lock {folder / 'lock'}); two "
        "at once would disturb each other, so wait until it has ended"
    )


class Journal:
    """One session's folder: its plan, a line for each launch, and at the end its report.

    Attributes:
        folder: where it lies; its name is the session's id.
        plan: what was asked for, in plain values.
        turns: what was measured, in order.
    """

    def __init__(self, folder: Path, plan: dict[str, Any], turns: list[Turn]) -> None:
        self.folder, self.plan, self.turns = folder, plan, turns

    @property
    def id(self) -> str:
        """Names the session."""
        return self.folder.name

    @classmethod
    def create(cls, parent: Path, name: str, plan: Mapping[str, Any]) -> Journal:
        """A new session.

        Raises:
            ConfigError: the folder cannot be written.
        """
        folder = parent / name
        journal = cls(folder, {"schema_version": SCHEMA_VERSION, **plan}, [])
        try:
            folder.mkdir(parents=True)
            (folder / _TURNS).touch()
        except OSError as error:
            msg = f"cannot write to {folder}: {error.strerror or error}; choose another --results"
            raise ConfigError(msg) from error
        journal.save_plan()
        return journal

    @classmethod
    def unfinished(
        cls, parent: Path, name: str | None = None, *, self_check: bool = False
    ) -> Journal:
        """The session of that name, or the newest that has not ended.

        Args:
            parent: the folder of the sessions.
            name: which one; None for the newest.
            self_check: whether self-checks are looked for, or else those of base against head.

        Raises:
            ConfigError: there is none.
            RecordError: its files cannot be read, or are of a newer opbench.
        """
        folders = sorted(path.parent for path in parent.glob(f"*/{_PLAN}"))
        open_ones = [
            path
            for path in folders
            if not (path / _END).exists() and _is_self_check(path) in {None, self_check}
        ]
        chosen = [path for path in open_ones if name in {None, path.name}]
        if not chosen:
            known = ", ".join(path.name for path in open_ones) or "none"
            wanted = f"session {name!r}" if name else "session"
            msg = f"no unfinished {wanted} in {parent} (unfinished: {known}); start a new one"
            raise ConfigError(msg)
        return cls._read(chosen[-1])

    @classmethod
    def _read(cls, folder: Path) -> Journal:
        try:
            plan = json.loads((folder / _PLAN).read_bytes())
            version = plan["schema_version"]
            if version != SCHEMA_VERSION:
                msg = (
                    f"{folder} is of schema {version}, this opbench goes on with "
                    f"{SCHEMA_VERSION}; start a new session"
                )
                raise RecordError(msg)
            text = (folder / _TURNS).read_text("utf-8")
            if text and not text.endswith("\n"):  # or the next launch would end a broken line
                with (folder / _TURNS).open("a", encoding="utf-8") as out:
                    out.write("\n")
        except (OSError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, RecordError):
                raise
            msg = f"cannot resume {folder}: {error}; start a new session"
            raise RecordError(msg) from error
        turns = []
        for line in text.splitlines():
            # A line that a kill cut off, or that is damaged, is a launch that did not happen.
            with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
                turns.append(Turn.from_dict(json.loads(line)))
        return cls(folder, plan, turns)

    def save_plan(self) -> None:
        """Write the plan over the one before."""
        partial = self.folder / f".{_PLAN}"
        partial.write_text(json.dumps(self.plan, indent=1) + "\n", encoding="utf-8")
        partial.replace(self.folder / _PLAN)

    def add(self, turn: Turn) -> None:
        """Keep one launch; a full disk costs the way back, not the session."""
        self.turns.append(turn)
        with (
            contextlib.suppress(OSError),
            (self.folder / _TURNS).open("a", encoding="utf-8") as out,
        ):
            out.write(json.dumps(turn.as_dict()) + "\n")

    def finish(self, report: str) -> None:
        """The session has ended by itself, with nothing that more time would decide."""
        with contextlib.suppress(OSError):
            (self.folder / _END).write_text(report, encoding="utf-8")

    def pairs(self, stage: int, file: str) -> dict[int, dict[str, Turn]]:
        """Both launches of each attempt that has both; the later one where one was repeated."""
        found: dict[int, dict[str, Turn]] = {}
        for turn in self.turns:
            if (turn.stage, turn.file) == (stage, file):
                found.setdefault(turn.pair, {})[turn.side] = turn
        return {pair: sides for pair, sides in sorted(found.items()) if len(sides) == 2}  # noqa: PLR2004 - base and head


def _is_self_check(folder: Path) -> bool | None:
    """What kind of session it is; None for one whose plan is damaged, which is told later."""
    try:
        return bool(json.loads((folder / _PLAN).read_bytes())["options"]["self_check"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def clear_stale(parent: Path) -> list[str]:
    """Remove what sessions that died with their guard have left; the caller holds the lock.

    Returns:
        The folders that were removed.
    """
    removed = []
    for path in sorted(parent.glob(f"*/{_PLAN}")):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            folder = json.loads(path.read_bytes()).get("folder")
            if folder and Path(folder).name.startswith("opbench-") and Path(folder).is_dir():
                guard_process.end_strays(folder)
                shutil.rmtree(folder, ignore_errors=True)
                removed.append(folder)
    return removed
