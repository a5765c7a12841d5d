"""The operators of a trace as a plain-text table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opbench.profiler import OperatorTotal
from opbench.report.table import Column, Style, table_lines
from opbench.units import scale_seconds, significant

__all__ = ["operator_table"]

# What a row shows where its operator declares no cost: never a zero, which would be a claim.
DASH = "–"

# Wide enough for every column: the style of a file or a pipe.
WIDE = Style(width=120)

_HEADINGS = (
    "operator",
    "mode",
    "calls",
    "total",
    "mean",
    "median",
    "min",
    "max",
    "unit",
    "GFLOP/s",
    "GB/s",
)
_WORDS = ("operator", "mode", "unit")
# A narrow terminal loses these, from the right.
_DROPPABLE = ("mean", "min", "max", "GB/s")


def operator_table(rows: Iterable[OperatorTotal], style: Style = WIDE) -> str:
    """One line per row of `opbench.profiler.operator_totals`, in their order, under a head.

    Times share one unit per line, chosen by the median. The rates are over the total time: all
    floating-point operations, and all bytes that had to move, by the operators' declared costs.
    """
    lines = [_cells(row) for row in rows]
    if not lines:
        return "no operator was recorded"
    columns = [
        Column(heading, texts, name=heading in _WORDS, droppable=heading in _DROPPABLE)
        for heading, texts in zip(_HEADINGS, zip(*lines, strict=True), strict=True)
    ]
    return "\n".join(table_lines(columns, style))


def _cells(row: OperatorTotal) -> Sequence[str]:
    unit = scale_seconds(row.median_ns * 1e-9)
    times = (row.total_ns, row.mean_ns, row.median_ns, row.min_ns, row.max_ns)
    return (
        row.name,
        row.category,
        str(row.count),
        *(significant(time * 1e-9 / unit.size, digits=4) for time in times),
        unit.suffix,
        _rate(row.flop, row.total_ns),
        _rate(row.bytes, row.total_ns),
    )


def _rate(amount: int | None, total_ns: int) -> str:
    # Per nanosecond is the same number as giga per second.
    return DASH if amount is None or total_ns == 0 else significant(amount / total_ns)
