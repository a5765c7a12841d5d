"""Which benchmarks both sides have, and what is to be said of the others."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opbench.errors import ConfigError
from opbench.launch.launcher import WarmUp
from opbench.launch.side import SIDES, Side
from opbench.launch.survey import Item, Survey

__all__ = ["Selection", "after_warm_up", "places_of", "select"]

_WORDS = 200


@dataclass(slots=True)
class Selection:
    """The benchmarks of a session, sorted by what can be done with them."""

    work: dict[str, list[str]] = field(default_factory=dict)
    """By test file, the ids that both sides have."""
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    long: list[str] = field(default_factory=list)
    """Marked ``long`` and not named."""
    problems: dict[str, str] = field(default_factory=dict)
    """Ids that both sides have and that cannot be compared, with the reason."""

    @property
    def count(self) -> int:
        """How many are to be measured."""
        return sum(map(len, self.work.values()))

    def file_of(self, benchmark: str) -> str | None:
        """The file that a benchmark to be measured stands in."""
        return next((name for name, ids in self.work.items() if benchmark in ids), None)


def select(
    surveys: Mapping[str, Survey], cwd: Mapping[str, Path], paths: Sequence[str], *, long: bool
) -> Selection:
    """Sort what both sides have collected.

    Args:
        surveys: by side.
        cwd: by side, the folder that ``paths`` are relative to.
        paths: what the user named: files, folders or test ids; empty for all. A test named by its
            id runs although it is marked long.
        long: whether benchmarks marked long are measured as well.
    """
    named = [_as_id(path, surveys["head"].root, cwd["head"]) for path in paths]
    found = {
        side: {item.id: item for item in surveys[side].items if _is_named(item.id, named)}
        for side in SIDES
    }
    base, head = found["base"], found["head"]
    tests = [name for name in named if "::" in name]
    selection = Selection()
    for name, item in {**base, **head}.items():
        marked = any(found[side][name].long for side in SIDES if name in found[side])
        if marked and not long and not (tests and _is_named(name, tests)):
            selection.long.append(name)
            continue
        side = "base" if name not in base else "head" if name not in head else None
        file = _file(item, surveys["head" if name in head else "base"])
        if side is None:
            selection.work.setdefault(file, []).append(name)
        elif reason := _not_collected(surveys[side], name):
            selection.problems[name] = f"could not be collected on {side}: {reason}"
        else:
            (selection.added if side == "base" else selection.removed).append(name)
    return selection


def places_of(paths: Sequence[str], sides: Mapping[str, Side]) -> dict[str, list[str]]:
    """For each side the files and folders it has of those that were named.

    pytest would run nothing at all for want of one, and a new file is no mistake.

    Raises:
        ConfigError: neither side has one of them.
    """
    files = list(dict.fromkeys(path.partition("::")[0] for path in paths))
    found = {
        name: [file for file in files if (side.cwd / file).exists()] for name, side in sides.items()
    }
    missing = [file for file in files if not any(file in those for those in found.values())]
    if missing:
        msg = f"neither side has {', '.join(missing)}; name test files, folders or ids"
        raise ConfigError(msg)
    return found


def after_warm_up(selection: Selection, warm: Mapping[str, Mapping[str, WarmUp]]) -> Selection:
    """Keep what both sides could measure once; the rest becomes a problem with its reason.

    Args:
        selection: what was to be warmed up.
        warm: by file, then by side.
    """
    work: dict[str, list[str]] = {}
    problems = dict(selection.problems)
    for file, ids in selection.work.items():
        for name in ids:
            reasons = [
                f"{reason} on {side}"
                for side in SIDES
                if (reason := _not_measured(warm[file][side], name))
            ]
            if reasons:
                problems[name] = "; ".join(reasons)
            else:
                work.setdefault(file, []).append(name)
    return Selection(work, selection.added, selection.removed, selection.long, problems)


def _as_id(path: str, root: Path, cwd: Path) -> str:
    """What the user named, as pytest would spell it in an id: relative to its root."""
    file, separator, rest = path.partition("::")
    return Path(os.path.relpath(cwd / file, root)).as_posix() + separator + rest


def _is_named(name: str, named: Sequence[str]) -> bool:
    """Whether a test is one of those named, or stands in a class, file or folder that is."""
    return not named or any(
        one in {".", name} or name.startswith((f"{one}/", f"{one}::", f"{one}[")) for one in named
    )


def _file(item: Item, survey: Survey) -> str:
    return Path(os.path.relpath(item.file, survey.root)).as_posix()


def _not_collected(survey: Survey, name: str) -> str:
    """Why a side lacks a test: its file failed while it was read; empty if it is just not there."""
    for where, text in survey.errors:
        if where and name.startswith(where):
            return _short(text)
    return ""


def _not_measured(warm: WarmUp, name: str) -> str:
    if name in warm.values:
        return ""
    how, why = warm.survey.outcomes.get(name, ("", "")) if warm.survey else ("", "")
    if how in {"failed", "skipped"}:
        return f"{how} ({_short(why)})"
    return warm.problem or "its times are not in the report"


def _short(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    chosen = next((line for line in reversed(lines) if line.startswith("E ")), None)
    line = chosen or (lines[0] if lines else "no reason given")
    return line.removeprefix("E ").strip()[:_WORDS]
