"""May two records be related at all? The same environment, and a machine that did not move."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import fields

from opbench.errors import ConfigError, RecordError, nearest
from opbench.records.environment import Environment
from opbench.records.record import RunRecord
from opbench.records.statistics import median

__all__ = [
    "FACTS",
    "check_distinct",
    "controls_moved",
    "environment_differences",
    "has_controls",
    "machine_moved",
]

_MACHINE = ("caches", "container", "governor", "kernel", "turbo", "virtual_machine")
FACTS = tuple(sorted({field.name for field in fields(Environment)} | set(_MACHINE)))
"""What may differ between two records, and keeps them from being compared if it does."""


def check_distinct(baseline: RunRecord, candidate: RunRecord) -> None:
    """Raises if both sides are the same measurement: that comparison is green by construction.

    Raises:
        RecordError: they share a launch.
    """
    shared = {one.launch_id for one in baseline.launches} & {
        one.launch_id for one in candidate.launches
    }
    if shared:
        msg = (
            f"baseline and candidate share {len(shared)} launches ({min(shared)}): a record "
            "compared with itself shows nothing; name two records"
        )
        raise RecordError(msg)


def environment_differences(
    baseline: RunRecord, candidate: RunRecord, although: Collection[str] = ()
) -> tuple[list[tuple[str, str, str]], list[tuple[str, str, str]], list[str]]:
    """What is not equal: (what forbids a comparison, what was allowed to differ, what is unknown).

    Args:
        baseline: one side.
        candidate: the other.
        although: facts that may differ.

    Raises:
        ConfigError: ``although`` names something that is no fact.
    """
    for name in although:
        if name not in FACTS:
            msg = f"--although {name!r} is no fact of an environment{nearest(name, FACTS)}"
            raise ConfigError(msg)
    found = [
        *baseline.environment.differences(candidate.environment),
        *_machine(baseline, candidate),
    ]
    forbidding, allowed, unknown = [], [], []
    for name, ours, theirs in found:
        if name in although:
            allowed.append((name, _told(ours), _told(theirs)))
        elif ours in (None, ()) or theirs in (None, ()):
            # An unset variable is a setting of its own, where the other side has one.
            settings = name == "thread_settings" and _knows(baseline) and _knows(candidate)
            if settings:
                forbidding.append((name, _told(ours), _told(theirs)))
            else:
                unknown.append(name)
        else:
            forbidding.append((name, _told(ours), _told(theirs)))
    return forbidding, allowed, unknown


def _knows(record: RunRecord) -> bool:
    """Whether a writer that looks at thread settings wrote it."""
    return record.launches[0].schema_version is not None


def _machine(baseline: RunRecord, candidate: RunRecord) -> list[tuple[str, str | None, str | None]]:
    ours, theirs = dict(baseline.machine), dict(candidate.machine)
    return [
        (name, ours.get(name), theirs.get(name))
        for name in sorted(ours | theirs)
        if ours.get(name) != theirs.get(name)
    ]


def _told(value: object) -> str:
    if value in (None, ()):
        return "–"
    if isinstance(value, tuple):
        return ", ".join(f"{name}={text}" for name, text in value)
    return str(value)


def has_controls(baseline: RunRecord, candidate: RunRecord) -> bool:
    """Whether every launch of both timed a control kernel."""
    return bool(_common(baseline, candidate))


def _common(baseline: RunRecord, candidate: RunRecord) -> list[str]:
    launches = (*baseline.launches, *candidate.launches)
    names = set.intersection(*(set(one.controls) for one in launches))
    return sorted(name for name in names if min(one.controls[name] for one in launches) > 0)


def controls_moved(before: Sequence[float], after: Sequence[float], floor: float) -> bool:
    """Whether a control kernel moved by more than half the floor.

    Args:
        before: seconds a call, one per launch; above 0.
        after: the same of the other record.
        floor: the smallest change that is judged, as a share.
    """
    return abs(math.log(median(after) / median(before))) > math.log1p(floor / 2)


def machine_moved(baseline: RunRecord, candidate: RunRecord, floor: float) -> str:
    """A sentence if a control kernel moved by more than half the floor; empty if none did.

    No statistic on stored records can tell a slower machine from slower code. The controls can,
    since no project changes them.

    Args:
        baseline: one side.
        candidate: the other.
        floor: the smallest change that is judged, as a share.
    """
    for name in _common(baseline, candidate):
        before, after = (
            [one.controls[name] for one in record.launches] for record in (baseline, candidate)
        )
        if controls_moved(before, after, floor):
            return (
                f"machine moved: the {name} control, which no project changes, took "
                f"{median(after) / median(before):.3f} times as long"
            )
    return ""
