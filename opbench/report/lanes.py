"""What the workers of parallel operators did, as a plain-text table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from opbench.profiler import LaneTotal
from opbench.report.table import Column, Style, table_lines
from opbench.units import scale_seconds, significant

__all__ = ["lane_lines", "lane_verdicts"]

DASH = "–"
# Wide enough for every column: the style of a file or a pipe.
WIDE = Style(width=160)
# Up to so many workers are listed one by one, more as the least and the most busy.
LISTED = 4

_HEADINGS = (
    "operator",
    "calls",
    "workers",
    "fork",
    "join",
    "busy per worker",
    "unit",
    "max/mean",
    "all running",
    "CPUs",
    "verdict",
)
_WORDS = ("operator",)
# A narrow terminal loses these, from the right.
_DROPPABLE = ("calls", "CPUs", "all running", "busy per worker", "max/mean")


def lane_lines(rows: Iterable[LaneTotal], style: Style = WIDE) -> list[str]:
    """One line per row of `opbench.profiler.lane_totals`, in their order, under a head.

    No lines at all where no workers were recorded. Fork is the time from a call's begin until a
    worker begins, join from the last worker's end until the call's; times are medians over the
    calls, in one unit per line. Lost records are counted underneath.
    """
    found = list(rows)
    told = [row for row in found if row.count]
    lines = []
    if told:
        cells = zip(*map(_cells, told), strict=True)
        columns = [
            Column(heading, texts, name=heading in _WORDS, droppable=heading in _DROPPABLE)
            for heading, texts in zip(_HEADINGS, cells, strict=True)
        ]
        lines = table_lines(columns, style)
    lost = sum(row.lost for row in found)
    if lost:
        lines.append(style(f"{lost} worker records were lost: their buffers were too small"))
    return lines


def _cells(row: LaneTotal) -> Sequence[str]:
    unit = scale_seconds(max(row.busy_ns) * 1e-9)

    def shown(time_ns: float) -> str:
        return significant(time_ns * 1e-9 / unit.size)

    busy = [shown(time_ns) for time_ns in row.busy_ns]
    if len(busy) > LISTED:
        busy = [f"{shown(min(row.busy_ns))}…{shown(max(row.busy_ns))}"]
    return (
        _line(row.name),
        str(row.count),
        str(row.workers) if row.asked is None else f"{row.workers} of {row.asked}",
        shown(row.fork_ns),
        shown(row.join_ns),
        " ".join(busy),
        unit.suffix,
        significant(row.imbalance),
        f"{row.all_running:.0%}",
        _numbers(row.cpus),
        lane_verdicts(row.verdicts, row.count) or DASH,
    )


def _line(text: str) -> str:
    """A stranger's words on one line that every terminal takes."""
    return "".join(c if c.isprintable() else "·" for c in text)


def _numbers(numbers: Sequence[int]) -> str:
    """``0-3 8``: neighbours as a range."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1] = [ranges[-1][0], number]
        else:
            ranges.append([number])
    return " ".join("-".join(map(str, ends)) for ends in ranges) or DASH


def lane_verdicts(verdicts: Mapping[str, int], count: int) -> str:
    """``imbalanced (2 of 3)``: what is clearly wrong, and in how many of the calls; else empty."""
    ordered = sorted(verdicts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(
        _line(word) if times == count else f"{_line(word)} ({times} of {count})"
        for word, times in ordered
    )
