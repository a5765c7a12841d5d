"""The statistics of a finished trace as text, in the form that `dumps` has for the open session."""

from __future__ import annotations

from opbench.profiler.aggregate import rows_of, sort_rows
from opbench.profiler.dumps import render
from opbench.profiler.events import Trace
from opbench.profiler.tally import tally_of

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
    return render(sort_rows(rows_of(tally, by), sort_by, ascending=ascending), tally, form)
