"""The machine's roof as a table: a row for each number of threads."""

from __future__ import annotations

from collections.abc import Sequence

from opbench.records import Roof
from opbench.report.table import Column, Style, table_lines
from opbench.units import format_bytes, format_flops

__all__ = ["roof_lines"]

DASH = "–"
DATE = len("2026-12-01")


def roof_lines(roofs: Sequence[Roof], style: Style) -> list[str]:
    """Peaks, and the bandwidth of the caches and of memory; one string a line."""
    dtypes = sorted({dtype for roof in roofs for dtype in roof.peaks})
    most = max((len(roof.bandwidth) for roof in roofs), default=0)
    peaks = [
        Column(
            dtype,
            [format_flops(roof.peaks[dtype]) if dtype in roof.peaks else DASH for roof in roofs],
        )
        for dtype in dtypes
    ]
    points = [
        # Aligned at the last one, which is memory: some machines have one level of cache less.
        Column(name, [_point(roof, level) for roof in roofs])
        for level, name in zip(range(-most, 0), _names(most), strict=True)
    ]
    columns = [
        Column("threads", [str(roof.threads) for roof in roofs]),
        *peaks,
        *points,
        Column("measured", [roof.measured[:DATE] for roof in roofs], droppable=True),
    ]
    lines = table_lines(columns, style)
    busy = [str(roof.threads) for roof in roofs if not roof.quiet]
    if busy:
        lines.append(
            style(
                f"{', '.join(busy)} threads: measured while other processes used the CPUs, so the "
                "roof may be too low"
            )
        )
    return lines


def _names(levels: int) -> Sequence[str]:
    """What each level is called, the last one being memory."""
    return ("own cache", "last cache", "memory")[-levels:] if levels != 2 else ("cache", "memory")  # noqa: PLR2004 - a machine with one level


def _point(roof: Roof, level: int) -> str:
    """``45.1 GB/s in 403 MB``: the bandwidth, and the working set it was measured in."""
    if len(roof.bandwidth) < -level:
        return DASH
    size, rate = roof.bandwidth[level]
    return f"{format_bytes(rate)}/s in {format_bytes(size)}"
