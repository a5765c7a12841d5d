"""What every report of history says alike: names, steps, events and the headline."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence

from opbench.records import LEAST_RECORDS, Findings, MachineEvent, Moment, Series, Step
from opbench.units import scale_seconds, significant

__all__ = [
    "DAY",
    "SIGNS",
    "by_date",
    "commits",
    "day",
    "event_words",
    "headline",
    "names_of",
    "newest",
    "note_of",
    "notes",
    "printable",
    "shown_names",
    "step_commits",
    "times",
    "word",
]

DASH = "–"
SIGNS = {"slower": ("▲", "^"), "faster": ("▼", "v"), "machine": ("×", "x")}
DAY = len("2026-12-01")


def printable(text: str) -> str:
    """Control characters as escapes: a name from a stranger's file must not drive a terminal."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def shown_names(series: Sequence[Series]) -> dict[str, str]:
    """What each benchmark is called, by id: its label, where no other one has the same."""
    return names_of({one.id: one.label for one in series})


def names_of(labels: Mapping[str, str]) -> dict[str, str]:
    """A label by id, or where another one has the same the id without what all ids share."""
    counts = Counter(labels.values())
    shared = os.path.commonprefix([name.partition("[")[0] for name in labels])  # noqa: RUF071 - cut below
    marks = [mark for mark in ("/", "::") if mark in shared]
    cut = max((shared.rfind(mark) + len(mark) for mark in marks), default=0)
    return {
        name: printable(label if label and counts[label] == 1 else name[cut:] or name)
        for name, label in labels.items()
    }


def word(step: Step) -> str:
    """``slower`` or ``faster``."""
    return "slower" if step.ratio > 1 else "faster"


def newest(found: Findings) -> list[Step]:
    """By benchmark the newest step in the environment of today, the latest of all first."""
    current = found.history.current()
    last = {step.series.id: step for step in found.steps if current[step.series.id] is step.series}
    return by_date(list(last.values()))


def by_date(steps: Sequence[Step]) -> list[Step]:
    """The latest first; of one record the largest first."""
    return sorted(
        steps,
        key=lambda one: (_date(one), max(one.ratio, 1 / one.ratio)),
        reverse=True,
    )


def _date(step: Step) -> str:
    return step.series.points[step.index].moment.date


def day(moment: Moment) -> str:
    """``2026-12-01``."""
    return moment.date[:DAY] or DASH


def commits(before: Moment, after: Moment) -> str:
    """``4f2c1aa..9e01b7d``: what lies between the last record before and the first after."""
    if before.name == after.name:
        return printable(after.name)
    return printable(f"{before.name}..{after.name}")


def step_commits(step: Step) -> str:
    """The range of a step."""
    points = step.series.points
    return commits(points[step.index - 1].moment, points[step.index].moment)


def times(step: Step) -> tuple[str, str]:
    """Before and after in one unit."""
    unit = scale_seconds(step.before)
    before, after = (significant(value / unit.size) for value in (step.before, step.after))
    return f"{before} {unit.suffix}", f"{after} {unit.suffix}"


def event_words(event: MachineEvent) -> str:
    """``63 of 100 benchmarks stepped together: 60 slower, 3 faster, typically 1.041×``."""
    slower = sum(step.ratio > 1 for step in event.steps)
    parts = [f"{slower} slower"] if slower else []
    parts += [f"{len(event.steps) - slower} faster"] if slower < len(event.steps) else []
    told = (
        f"{len(event.steps)} of {event.of} benchmarks stepped together: {', '.join(parts)}, "
        f"typically {event.ratio:.3f}×"
    )
    return f"{told}; {event.control}" if event.control else f"{told}; no control kernel was timed"


def note_of(step: Step) -> str:
    """What the reader of a step must know; empty if nothing."""
    told = [f"tentative, seen in {step.lasted} records"] if step.tentative else []
    told += [f"the machine moved: {step.control}"] if step.control else []
    return "; ".join(told)


def headline(found: Findings) -> str:
    """The answer in one line; a history without a record never reads as a good one."""
    history = found.history
    total = len(history.benchmarks)
    if not total:
        return "Nothing to look at: no record holds such a benchmark"
    steps = newest(found)
    slower = sum(step.ratio > 1 for step in steps)
    words = [f"{slower} slower"] if slower else []
    words += [f"{len(steps) - slower} faster"] if slower < len(steps) else []
    events = len(found.events)
    event = f"{events} machine event{'s' if events > 1 else ''}" if events else ""
    longest = max(len(one.points) for one in history.series)
    if not found.steps and longest < LEAST_RECORDS + 2:
        return (
            f"Nothing can be seen yet: a step needs {LEAST_RECORDS + 2} records of one "
            f"environment, and no benchmark has more than {longest}"
        )
    if not steps:
        told = f"None of {total} stepped"
        return f"{told}, {event}" if event else told
    return f"{len(steps)} of {total} stepped: " + ", ".join([*words, *([event] if event else [])])


def notes(found: Findings) -> list[str]:
    """What the reader of all of it must know, a sentence each."""
    history, told = found.history, []
    if not found.trusted:
        told.append(
            "ruptures is not installed (pip install 'opbench[history]'), so every step is "
            "tentative: two records in a row outside of what went before"
        )
    if found.thin:
        told.append(
            f"the newest record of {found.thin} of {len(history.benchmarks)} benchmarks has fewer "
            "than 3 launches, so what is new is not looked at; see opbench run"
        )
    if found.waiting:
        names = shown_names(history.series)
        shown = ", ".join(names[name] for name in found.waiting[:3])
        more = f" and {len(found.waiting) - 3} more" if len(found.waiting) > 3 else ""  # noqa: PLR2004 - as shown
        told.append(f"the newest record alone lies outside, so measure again: {shown}{more}")
    if history.left_out:
        count = len(history.left_out)
        told.append(f"{count} benchmarks took no time by their clock in some record, left out")
    return told
