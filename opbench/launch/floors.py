"""What a project says of its own benchmarks: the smallest change that matters, for each."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from opbench import records
from opbench.errors import ConfigError
from opbench.launch.journal import Journal
from opbench.launch.launcher import WarmUp

__all__ = ["keep_floors", "kept_floors"]

_KEY = "floors"


def keep_floors(journal: Journal, default: records.Floor, both: Mapping[str, WarmUp]) -> None:
    """Note in the plan what the warm-ups of a file told: head's word counts, then base's.

    A session that goes on judges by them what it holds, also where no time is left to ask again.
    """
    floors = records.Floors(default)
    head, base = both["head"].floors, both["base"].floors
    found = {}
    for name in {**base, **head}:
        with contextlib.suppress(ConfigError):  # a damaged note is none
            found[name] = floors.floor_of(name, None, head.get(name), base.get(name)).as_dict()
    if found:
        journal.plan.setdefault(_KEY, {}).update(found)
        journal.save_plan()


def kept_floors(journal: Journal, default: records.Floor) -> dict[str, records.Floor]:
    """By test id, what was noted so far."""
    found = {}
    for name, stored in journal.plan.get(_KEY, {}).items():
        with contextlib.suppress(ConfigError):
            found[name] = records.Floor.from_dict(stored, default.relative)
    return found
