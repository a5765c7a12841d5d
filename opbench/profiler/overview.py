"""The statistics of a finished trace as text, in the form that `dumps` has for the open session."""

from __future__ import annotations

from typing import Any

from opbench.profiler.events import Trace
from opbench.profiler.plain import plain_text
from opbench.profiler.rendering import render
from opbench.profiler.rows import rows_of, sort_rows
from opbench.profiler.tally import tally_of
from opbench.profiler.workers import LaneTotal, lane_totals

__all__ = ["summary"]


def summary(
    trace: Trace,
    *,
    by: str = "operator",
    sort_by: str = "total",
    ascending: bool = False,
    form: str = "table",
) -> str:
    """Times by category, counters, and what the recording itself cost.

    As JSON it also holds what the workers of parallel operators did: under ``Lanes`` the rows of
    `lane_totals`, each with the names and units of its fields. As a table that is a matter of the
    room that knows how wide the terminal is.

    Args:
        trace: a finished one, from the recorder or from `load`.
        by: one row per ``operator``, per operator and ``shape``, or per operator and ``thread``.
        sort_by: see `dumps`.
        ascending: the smallest first.
        form: ``table`` or ``json``.

    Raises:
        ConfigError: an unknown word.
    """
    tally = tally_of(trace)
    rows = sort_rows(rows_of(tally, by), sort_by, ascending=ascending)
    return render(rows, tally, form, {"Lanes": list(map(_plain, lane_totals(trace)))})


def _plain(row: LaneTotal) -> dict[str, Any]:
    verdicts = {plain_text(word): calls for word, calls in row.verdicts.items()}
    category, name = plain_text(row.category), plain_text(row.name)
    return {**row._asdict(), "category": category, "name": name, "verdicts": verdicts}
