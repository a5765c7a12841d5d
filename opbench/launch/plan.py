"""What one session measures, however often it is taken up again."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from opbench import records
from opbench.errors import RecordError
from opbench.launch.journal import Journal
from opbench.launch.revision import Repository
from opbench.launch.side import SIDES
from opbench.launch.stages import Progress

__all__ = ["DEFAULT_FLOOR", "AbOptions", "Plan", "new_plan", "resumed_plan"]

DEFAULT_FLOOR = records.Floor(0.03)
_SEEDS = 1_000_000


@dataclass(frozen=True, slots=True)
class AbOptions:
    """What is asked for; ``opbench ab --help`` says what each means."""

    folder: Path
    results: Path
    base: str = "HEAD"
    head: str | None = None
    exact_base: bool = False
    self_check: bool = False
    """Base on both sides."""
    paths: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    """Options for pytest."""
    import_roots: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    """Packages of the checkout that are meant to come from the environment."""
    setup: str = ""
    budget_s: float | None = 600.0
    timeout_s: float | None = None
    threads: int | None = None
    cpus: tuple[int, ...] | None = None
    seed: int | None = None
    floor: records.Floor = DEFAULT_FLOOR
    long: bool = False

    def as_dict(self) -> dict[str, Any]:
        """What a session that goes on takes over, in plain values."""
        names = [name for name in self.__slots__ if name not in {"folder", "results", "budget_s"}]
        plain = {name: getattr(self, name) for name in names}
        return {**plain, "floor": self.floor.as_dict()}


@dataclass(frozen=True, slots=True)
class Plan:
    """What one session measures, however often it is taken up again."""

    options: AbOptions
    repository: Repository
    commits: Mapping[str, str]
    labels: Mapping[str, str]
    seed: int
    notes: tuple[str, ...]


def new_plan(options: AbOptions, repository: Repository, parent: Path) -> tuple[Journal, Plan]:
    """Start a session.

    Raises:
        ConfigError: a revision is not there, or the folder cannot be written.
    """
    commits, dirty = _commits(options, repository)
    seed = secrets.randbelow(_SEEDS) if options.seed is None else options.seed
    labels = {side: repository.label(commits[side]) for side in SIDES}
    if dirty:
        labels["head"] = f"{repository.label(repository.commit('HEAD', 'head'))}+changes"
    name = f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"
    stored = {
        "commits": commits,
        "labels": labels,
        "seed": seed,
        "options": options.as_dict(),
        "prefix": str(repository.prefix),
    }
    return Journal.create(parent, name, stored), _plan(options, repository, stored)


def _commits(options: AbOptions, repository: Repository) -> tuple[dict[str, str], bool]:
    """What both sides check out, and whether head holds what no commit does."""
    if options.self_check:
        commit = repository.commit(options.base, "--base")
        return {"base": commit, "head": commit}, False
    if options.head is None:
        snapshot = repository.snapshot()
        head, dirty = snapshot.commit, snapshot.dirty
    else:
        head, dirty = repository.commit(options.head, "--head"), False
    if options.exact_base:
        return {"base": repository.commit(options.base, "--base"), "head": head}, dirty
    return {"base": repository.merge_base(options.base, head, "--base"), "head": head}, dirty


def resumed_plan(
    options: AbOptions, repository: Repository, parent: Path, name: str, progress: Progress
) -> tuple[Journal, Plan]:
    """Take a session up again: its commits and options, with the budget and the folder of now.

    Raises:
        ConfigError: there is no such session, or git has dropped its snapshot.
        RecordError: its files cannot be read.
    """
    journal = Journal.unfinished(parent, name or None, self_check=options.self_check)
    try:
        kept: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in journal.plan["options"].items()
        }
        kept["floor"] = records.Floor.from_dict(kept["floor"], options.floor.relative)
        planned = replace(options, **kept)
        plan = _plan(planned, repository, journal.plan)
        for side in SIDES:
            repository.commit(plan.commits[side], f"{side} of session {journal.id}")
    except (KeyError, TypeError, AttributeError) as error:
        msg = f"cannot resume {journal.folder}: its plan lacks {error}; start a new session"
        raise RecordError(msg) from error
    repository.prefix = Path(journal.plan.get("prefix", "."))
    done = len(journal.turns)
    progress.say(f"going on with session {journal.id}, {done} launches of which are done")
    if planned.head is None and not planned.self_check:
        now = repository.snapshot().commit
        if now != plan.commits["head"]:
            progress.say("the working tree has changed since; what is measured is that of then")
    return journal, plan


def _plan(options: AbOptions, repository: Repository, stored: Mapping[str, Any]) -> Plan:
    notes: list[str] = []
    for side in SIDES:
        notes += [
            note for note in repository.not_carried(stored["commits"][side]) if note not in notes
        ]
    return Plan(
        options, repository, stored["commits"], stored["labels"], stored["seed"], tuple(notes)
    )
