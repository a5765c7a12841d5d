"""History for machines: a CSV row for each record of each benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from opbench.records import Findings
from opbench.report.spreadsheet import inert, sheet

__all__ = ["history_csv", "history_wide_csv"]

_COLUMNS = (
    "id",
    "label",
    "group",
    "environment",
    "record",
    "date",
    "commit",
    "dirty",
    "launches",
    "value_s",
    "spread",
    "step",
    "before_s",
    "after_s",
    "commits_from",
)


def history_csv(found: Findings) -> str:
    """A heading and one row per record of each series, with all digits; empty if not known.

    ``step`` is ``slower``, ``faster`` or ``machine`` in the first record of a step, with a
    question mark where it is tentative; ``commits_from`` is the last commit before it.
    """
    return sheet(_COLUMNS, _rows(found))


def _rows(found: Findings) -> Iterator[Sequence[Any]]:
    own = {(s.series.id, s.series.epoch, s.index): s for s in found.steps}
    machine = {
        (s.series.id, s.series.epoch, s.index): s for event in found.events for s in event.steps
    }
    for series in found.history.series:
        for index, point in enumerate(series.points):
            key = (series.id, series.epoch, index)
            step = own.get(key) or machine.get(key)
            word = ""
            if step is not None:
                word = "machine" if key in machine else "slower" if step.ratio > 1 else "faster"
                word += "?" if step.tentative else ""
            moment = point.moment
            yield (
                inert(series.id),
                inert(series.label),
                inert(series.group or ""),
                series.epoch + 1,
                inert(moment.record_id),
                moment.date,
                inert(moment.commit or ""),
                "" if moment.dirty is None else str(moment.dirty).lower(),
                point.launches,
                point.value,
                point.spread if point.launches > 1 else "",
                word,
                step and step.before,
                step and step.after,
                inert(series.points[index - 1].moment.commit or "") if step else "",
            )


def history_wide_csv(found: Findings) -> str:
    """A row per record and a column per benchmark, as tools for whole series want it.

    Of the environment of today alone, since a column must be one series.
    """
    newest = _newest_epoch(found)
    series = [one for one in found.history.series if one.epoch == newest]
    values = [{point.position: point.value for point in one.points} for one in series]
    moments = found.history.epochs[newest].moments if series else ()
    rows = (
        (moment.date, inert(moment.commit or ""), *(one.get(position, "") for one in values))
        for position, moment in enumerate(moments)
        if any(position in one for one in values)
    )
    return sheet(["time", "commit", *(inert(one.id) for one in series)], rows)


def _newest_epoch(found: Findings) -> int:
    """The environment of the newest record."""
    epochs = found.history.epochs
    return max(epochs, key=lambda one: (one.moments[-1].date, one.number)).number if epochs else 0
