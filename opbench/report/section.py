"""The section after pytest-benchmark's table: what each benchmark reached, and its trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opbench.report.table import Column, Style, full_width, least_width, table_lines
from opbench.units import format_seconds, significant

__all__ = ["BenchmarkRow", "section_lines", "section_title"]

DASH = "–"
GIGA = 1e9
SMALLEST_SHARE = 0.01  # below which a share is said to be less
MEMORY_MARK = "mem"
PEAK = "of peak"


@dataclass(frozen=True, slots=True)
class BenchmarkRow:
    """One benchmark as the section shows it; None where something is not known.

    Attributes:
        label: what the first column says.
        median: seconds of one call; None for a trace without statistics.
        flop: operations of one call.
        of_peak: the share of the machine's roof: 1 is all that it can do.
        bound: what that roof is: ``compute`` or ``memory``.
        ratio: the reference's median over ours: above 1 we are faster.
        overhead: seconds over the kernel on the same operands, for the other forms.
        trace: path of the trace.
        first_call: seconds of the first, untimed call.
        compiled: numba compilations during it.
        notes: whole sentences' worth of what must be known about the row.
    """

    label: str
    median: float | None = None
    flop: int | None = None
    of_peak: float | None = None
    bound: str | None = None
    ratio: float | None = None
    overhead: float | None = None
    trace: str | None = None
    first_call: float | None = None
    compiled: int = 0
    notes: Sequence[str] = ()

    @property
    def gflops(self) -> str:
        """GFLOP/s, or a dash."""
        if not self.flop or not self.median:
            return DASH
        value = self.flop / self.median / GIGA
        return significant(value, 4 if value >= 1 else 2)

    @property
    def peak_share(self) -> str:
        """Percent of the roof, marked where that is the memory's; or a dash."""
        if self.of_peak is None:
            return DASH
        share = f"{100 * self.of_peak:.0f} %" if self.of_peak >= SMALLEST_SHARE else "<1 %"
        return f"{MEMORY_MARK} {share}" if self.bound == "memory" else share

    @property
    def against_numpy(self) -> str:
        """The ratio to NumPy for a kernel, the overhead over the kernel for the other forms."""
        if self.ratio is not None:
            return f"{self.ratio:.2f}×"
        if self.overhead is not None:
            sign = "+" if self.overhead >= 0 else "-"
            return f"{sign}{format_seconds(abs(self.overhead), 2)}"
        return DASH


def section_title(rows: Sequence[BenchmarkRow]) -> str:
    """``opbench: 4 traced, 8 timed``."""
    traced = sum(row.trace is not None for row in rows)
    timed = sum(row.median is not None for row in rows)
    return f"opbench: {traced} traced, {timed} timed"


def section_lines(rows: Sequence[BenchmarkRow], style: Style) -> list[str]:
    """The table, then where the traces are, the first calls and the notes; one string a line.

    A path is of use whole or not at all: where the terminal is too narrow for paths, the table
    shows file names, and where it is too narrow for those, the folder alone is named below it.
    """
    numbers = [
        Column("benchmark", [row.label for row in rows], name=True),
        Column(
            "median",
            [_median(row) for row in rows],
        ),
        Column("GFLOP/s", [row.gflops for row in rows], droppable=True),
        Column(PEAK, [row.peak_share for row in rows], droppable=True),
        Column("vs NumPy", [row.against_numpy for row in rows], droppable=True),
    ]
    numbers = [column for column in numbers if _says_something(column)]
    if least_width(numbers) > style.width:
        # The first column to go, though not the last in the table.
        numbers = [column for column in numbers if column.heading != PEAK]
    paths = [row.trace or DASH for row in rows]
    files = [path.rpartition("/")[2] for path in paths]
    lines = []
    for texts in (paths, files):
        columns = [*numbers, Column("trace", texts, name=True)]
        if full_width(columns) <= style.width:
            lines = table_lines(columns, style)
            break
    else:
        lines = table_lines(numbers, style)
    folders = sorted({row.trace.rpartition("/")[0] for row in rows if row.trace})
    if folders and not any(folders[0] in line for line in lines):
        lines += [style(f"traces in {', '.join(folders)}")]
    return lines + [style(line) for line in (*_legend(rows), *_first_calls(rows), *_notes(rows))]


def _median(row: BenchmarkRow) -> str:
    if row.median is not None:
        return format_seconds(row.median)
    return "trace only" if row.trace else DASH


def _says_something(column: Column) -> bool:
    return not column.droppable or any(text != DASH for text in column.texts)


def _legend(rows: Sequence[BenchmarkRow]) -> list[str]:
    """What the two kinds of entries mean, in a column that has both."""
    lines = []
    if any(row.bound == "memory" for row in rows):
        lines.append(
            f"{PEAK}: of the multiply-adds; {MEMORY_MARK}: of the bandwidth, the bound there"
        )
    if any(row.overhead is not None for row in rows):
        lines.append(
            "vs NumPy: × is NumPy's time over the kernel's; + or - is the time over the kernel's"
        )
    return lines


def _first_calls(rows: Sequence[BenchmarkRow]) -> list[str]:
    """The longest first call that compiled something; later calls find it compiled."""
    compiled = [row for row in rows if row.compiled and row.first_call is not None]
    if not compiled:
        return []
    longest = max(compiled, key=lambda row: row.first_call or 0)
    more = f", and {len(compiled) - 1} more" if len(compiled) > 1 else ""
    seconds = format_seconds(longest.first_call or 0, 2)
    return [f"first call: {longest.label} {seconds} (compiled){more}; never part of a timing"]


def _notes(rows: Sequence[BenchmarkRow]) -> list[str]:
    """Each note once, after the benchmark or the number of benchmarks that it is about."""
    about: dict[str, list[str]] = {}
    for row in rows:
        for note in row.notes:
            about.setdefault(note, []).append(row.label)
    return [
        f"{labels[0] if len(labels) == 1 else f'{len(labels)} benchmarks'}: {note}"
        for note, labels in about.items()
    ]
