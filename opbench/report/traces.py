"""What differs between two traces, as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from opbench.profiler import AggregateStat, Difference
from opbench.report.table import Column, Style, table_lines
from opbench.units import format_seconds

__all__ = ["difference_lines", "differences_json"]

DASH = "–"
NANOSECOND = 1e-9


def difference_lines(rows: Sequence[Difference], style: Style) -> list[str]:
    """One line a row, in the order given, and a sentence where there is no row."""
    if not rows:
        return ["no time in either trace"]
    names = [
        f"{row.category} · {row.name}" + (f" · {row.shape}" if row.shape else "") for row in rows
    ]
    columns = [
        Column("name", names, name=True),
        Column("calls", [_pair(_count(row.before), _count(row.after)) for row in rows]),
        Column("total A", [_total(row.before) for row in rows], droppable=True),
        Column("total B", [_total(row.after) for row in rows], droppable=True),
        Column("grew by", [_signed(row.growth_ns) for row in rows]),
        Column("median A", [_median(row.before) for row in rows]),
        Column("median B", [_median(row.after) for row in rows]),
        Column("B / A", [DASH if row.ratio is None else f"{row.ratio:.3f}" for row in rows]),
        Column("", [row.verdict for row in rows]),
    ]
    return table_lines(columns, style)


def differences_json(rows: Sequence[Difference]) -> str:
    """The same with all digits; times in nanoseconds."""
    return json.dumps([_plain(row) for row in rows], allow_nan=False, indent=1)


def _plain(row: Difference) -> dict[str, Any]:
    return {
        "category": row.category,
        "name": row.name,
        "shape": row.shape,
        "before": row.before and row.before._asdict(),
        "after": row.after and row.after._asdict(),
        "growth_ns": row.growth_ns,
        "ratio": row.ratio,
        "verdict": row.verdict,
    }


def _count(row: AggregateStat | None) -> str:
    return str(row.count) if row else DASH


def _pair(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _total(row: AggregateStat | None) -> str:
    return format_seconds((row.total or 0) * NANOSECOND) if row else DASH


def _median(row: AggregateStat | None) -> str:
    return format_seconds(row.median * NANOSECOND) if row else DASH


def _signed(growth_ns: int) -> str:
    sign = "+" if growth_ns > 0 else "-" if growth_ns < 0 else ""
    return f"{sign}{format_seconds(abs(growth_ns) * NANOSECOND)}"
