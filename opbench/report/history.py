"""History as text for a terminal: the steps, and of few benchmarks their records as well."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from opbench.records import Epoch, Findings, Point, Series, Step
from opbench.report import history_wording as wording
from opbench.report.table import Column, Style, table_lines
from opbench.units import scale_seconds, significant

__all__ = ["history_text"]

MOST_STEPS = 20
MOST_POINTS = 20
BARS, PLAIN_BARS = "▁▂▃▄▅▆▇█", "_.-=*#"
MOST_BARS = 60
FACTS_SHOWN = 4


def history_text(
    found: Findings, style: Style, *, verbose: bool = False, series: bool = False
) -> list[str]:
    """Lines for a terminal.

    Args:
        found: what was found.
        style: how wide the place is, and what it takes.
        verbose: every step, of every environment, and every record.
        series: show the records of each benchmark as well.
    """
    history = found.history
    shown = wording.shown_names(history.series)
    lines = [*_head(found), ""]
    if series:
        for one in history.series:
            lines += [*_records(one, found, shown, style, verbose=verbose), ""]
    steps = wording.by_date(found.steps) if verbose or series else wording.newest(found)
    kept = steps if verbose else steps[:MOST_STEPS]
    if kept:
        lines += _steps(kept, shown, found, style)
    hidden = len(found.steps) - len(kept)
    lines += [f"and {hidden} earlier or in another environment; -v lists all"] if hidden else []
    lines += [""] if kept else []
    for event in found.events:
        told = f"{wording.day(event.after)}   {wording.commits(event.before, event.after)}   "
        sign = wording.SIGNS["machine"][not style.unicode]
        lines += _wrapped(f"{sign} machine event   {told}{wording.event_words(event)}", style)
    lines += [line for note in wording.notes(found) for line in _wrapped(f"note: {note}", style)]
    if len(history.epochs) > 1:
        lines += _environments(history.epochs, style)
    lines.append(wording.headline(found))
    return [style(line) for line in lines]


def _head(found: Findings) -> list[str]:
    history = found.history
    dates = sorted(m.date for epoch in history.epochs for m in epoch.moments if m.date)
    span = f"{dates[0][: wording.DAY]} to {dates[-1][: wording.DAY]}" if dates else "no date"
    count = len(history.epochs)
    parts = [
        "opbench history",
        _counted(len(history.benchmarks), "benchmark"),
        f"{_counted(history.records, 'record')}, {span}",
        _counted(count, "environment"),
    ]
    return ["   ".join(parts)]


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' if count != 1 else ''}"


def _wrapped(text: str, style: Style) -> list[str]:
    return textwrap.wrap(text, max(style.width, 40), subsequent_indent="  ")


def _steps(
    steps: Sequence[Step], shown: dict[str, str], found: Findings, style: Style
) -> list[str]:
    words = [wording.word(step) for step in steps]
    signs = [wording.SIGNS[word][not style.unicode] for word in words]
    both = [wording.times(step) for step in steps]
    moments = [step.series.points[step.index].moment for step in steps]
    columns = [
        Column(
            "step",
            [
                f"{sign} {word}{'?' if step.tentative else ''}"
                for sign, word, step in zip(signs, words, steps, strict=True)
            ],
            name=True,
        ),
        Column("benchmark", [shown[step.series.id] for step in steps], name=True),
        Column("before", [before for before, _ in both]),
        Column("after", [after for _, after in both]),
        Column("ratio", [f"{step.ratio:.3f}×" for step in steps]),
        Column("since", [wording.day(moment) for moment in moments]),
        Column("commits", [wording.step_commits(step) for step in steps], name=True),
        Column("records", [str(step.lasted) for step in steps], droppable=True),
    ]
    if len(found.history.epochs) > 1:
        numbers = [str(step.series.epoch + 1) for step in steps]
        columns.append(Column("environment", numbers, droppable=True))
    heading, *rows = table_lines(columns, style)
    lines = [heading]
    for row, step in zip(rows, steps, strict=True):
        lines.append(row)
        told = wording.note_of(step)
        lines += textwrap.wrap(
            told, max(style.width, 40), initial_indent="  why      ", subsequent_indent=" " * 11
        )
    return lines


def _records(
    series: Series, found: Findings, shown: dict[str, str], style: Style, *, verbose: bool
) -> list[str]:
    """One series: a line of bars, and its newest records."""
    epoch = found.history.epochs[series.epoch]
    where = f"   environment {epoch.number + 1}" if len(found.history.epochs) > 1 else ""
    points = series.points if verbose else series.points[-MOST_POINTS:]
    unit = scale_seconds(points[-1].value)
    starts = {(s.series.epoch, s.index): s for s in found.steps if s.series.id == series.id}
    events = {
        (s.series.epoch, s.index) for e in found.events for s in e.steps if s.series.id == series.id
    }
    first = len(series.points) - len(points)
    marks = []
    for index in range(first, len(series.points)):
        key = (series.epoch, index)
        step = starts.get(key)
        word = wording.word(step) if step else "machine" if key in events else ""
        marks.append(f"{wording.SIGNS[word][not style.unicode]} {word}" if word else "")
    columns = [
        Column("date", [wording.day(point.moment) for point in points], name=True),
        Column("commit", [wording.printable(point.moment.name) for point in points], name=True),
        Column("value", [f"{significant(p.value / unit.size)} {unit.suffix}" for p in points]),
        Column("spread", [_spread(point) for point in points], droppable=True),
        Column("launches", [str(point.launches) for point in points], droppable=True),
        Column("step", marks, name=True),
    ]
    hidden = f"the newest {len(points)} of {len(series.points)} records; -v lists all"
    return [
        f"{shown[series.id]}{where}   {_bars(series.points, style)}",
        *table_lines(columns, style),
        *([hidden] if first else []),
    ]


def _spread(point: Point) -> str:
    return f"{100 * point.spread:.1f} %" if point.launches > 1 else "–"


def _bars(points: Sequence[Point], style: Style) -> str:
    """The series as one line of bars, from its least to its largest value."""
    bars = BARS if style.unicode else PLAIN_BARS
    values = [point.value for point in points[-MOST_BARS:]]
    low, high = min(values), max(values)
    if low == high:
        return bars[0] * len(values)
    step = (high - low) / (len(bars) - 1)
    return "".join(bars[round((value - low) / step)] for value in values)


def _environments(epochs: Sequence[Epoch], style: Style) -> list[str]:
    """Each environment, and in what it differs from the one before it."""
    lines = []
    for before, epoch in zip([None, *epochs], epochs, strict=False):
        first, last = wording.day(epoch.moments[0]), wording.day(epoch.moments[-1])
        told = f"environment {epoch.number + 1}: {_counted(len(epoch.moments), 'record')}"
        told += f", {first} to {last}" if first != last else f", {first}"
        if before is not None:
            changed = [
                f"{name} {wording.printable(value)} (was {wording.printable(before.facts[name])})"
                for name, value in epoch.facts.items()
                if before.facts.get(name, value) != value
            ]
            more = f" and {len(changed) - FACTS_SHOWN} more" if len(changed) > FACTS_SHOWN else ""
            told += f": {', '.join(changed[:FACTS_SHOWN])}{more}" if changed else ""
        lines += _wrapped(told, style)
    return lines
