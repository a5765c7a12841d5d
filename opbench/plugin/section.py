"""What pytest prints of opbench: the header, early words, and the section at the end."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from opbench import profiler
from opbench.plugin import roof
from opbench.plugin import settings as _settings
from opbench.plugin.session import Session
from opbench.version import __version__

if TYPE_CHECKING:
    from opbench.report import BenchmarkRow, Style

__all__ = ["Rows", "header", "say", "style_of", "write"]

SHORT_DTYPES = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64"}
VIEWERS = "open a trace: https://ui.perfetto.dev or chrome://tracing"


class Rows:
    """Collects the rows that reports carry, from this process or from xdist's workers."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a report's row."""
        row = getattr(report, "opbench", None)
        if row is not None:
            self._session.rows.append(row)


def header(session: Session) -> str:
    """``opbench: 0.1.0 (mode ..., iterations 1 to 3 of 4 recorded, traces in ...)``."""
    chosen = _settings.resolve(session.default_levels)
    where = f"traces in {session.shown(session.traces)}" if session.tracing(chosen) else "no traces"
    return (
        f"opbench: {__version__} (mode {profiler.mode_names(chosen.modes)}, iterations "
        f"{chosen.begin} to {chosen.end - 1} of {chosen.iterations} recorded, {where})"
    )


def say(config: pytest.Config, text: str) -> None:
    """Print a line now, where there is a terminal (an xdist worker has none)."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None:
        reporter.ensure_newline()
        reporter.write_line(text, yellow=True)


def write(reporter: pytest.TerminalReporter, session: Session) -> None:
    """Print the section, if any test used the fixture or a run should have been saved."""
    rows = [row for row in _shown(session) if row.trace or row.median is not None or row.notes]
    if not rows and not session.autosave and not session.save_problem:
        return
    from opbench import report  # a pytest without benchmarks shall not pay for it

    style = style_of(reporter)
    reporter.ensure_newline()
    reporter.section(style(report.section_title(rows)), sep="-")
    for line in report.section_lines(rows, style) if rows else ():
        reporter.write_line(line)
    for line in _closing(session, rows):
        reporter.write_line(style(line))


def style_of(reporter: pytest.TerminalReporter) -> Style:
    """How wide the terminal is, and whether it takes more than ASCII."""
    from opbench import report

    stream = getattr(reporter, "_tw", None)
    encoding = getattr(getattr(stream, "_file", None), "encoding", None) or "utf-8"
    # pytest's own writer knows COLUMNS and the terminal; elsewhere the width is 80 cells.
    width = shutil.get_terminal_size((80, 24)).columns
    return report.Style(width=width, unicode=encoding.lower().replace("-", "") == "utf8")


def _closing(session: Session, rows: Sequence[BenchmarkRow]) -> list[str]:
    saved = getattr(session.storage, "saved", None)
    problem = session.save_problem or getattr(session.storage, "problem", "")
    lines = [f"not saved: {problem}"] if problem else []
    if disturbance := session.disturbance():
        lines.append(f"disturbed: {disturbance}")
    if lacking := roof.problem(session.config):
        lines.append(f"of peak: {lacking}")
    words = []
    if saved is not None:
        words.append(f"saved as {saved:04} in {session.shown(session.runs)}")
    if any(row.trace for row in rows):
        words.append(VIEWERS)
    return lines + ([" · ".join(words)] if words else [])


def _shown(session: Session) -> list[BenchmarkRow]:
    """The rows as the report takes them; tests that would look alike keep their own names."""
    labels = Counter(_label(row) for row in session.rows)
    return [
        _row(row, session, label if labels[label := _label(row)] == 1 else str(row["name"]))
        for row in session.rows
    ]


def _row(row: Mapping[str, Any], session: Session, label: str) -> BenchmarkRow:
    from opbench import report

    summary = row["summary"]
    notes = list(row["notes"])
    if summary.get("profiled"):
        notes.append("profiled: timed inside an open window, so left out of comparisons")
    if row.get("failed") and row["median"] is not None and session.keeps_runs:
        notes.append("did not pass, so its times are not saved")
    return report.BenchmarkRow(
        label=label,
        median=row["median"],
        flop=summary.get("flop"),
        of_peak=summary.get("roof", {}).get("share"),
        bound=summary.get("roof", {}).get("bound"),
        ratio=summary.get("reference", {}).get("ratio"),
        overhead=_overhead(row, session.rows),
        trace=summary.get("trace"),
        first_call=summary.get("first_call"),
        compiled=summary.get("compiled", 0),
        notes=notes,
    )


def _label(row: Mapping[str, Any]) -> str:
    """``dot kernel 4096² f32`` where one operator is all there is, else the test's name."""
    summary = row["summary"]
    if "form" not in summary or "size" not in summary:
        return str(row["name"])
    dtype = SHORT_DTYPES.get(summary["dtype"], summary["dtype"])
    return f"{summary['operator']} {summary['form']} {summary['size']} {dtype}"


def _overhead(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Seconds over the kernel form on the same operands, if that was timed in this session."""
    summary = row["summary"]
    if summary.get("form") in (None, "kernel") or row["median"] is None:
        return None
    same = ("operator", "shapes", "dtype")
    for other in rows:
        kernel = other["summary"]
        if (
            kernel.get("form") == "kernel"
            and other["median"] is not None
            and all(kernel.get(key) == summary.get(key) for key in same)
        ):
            return float(row["median"] - other["median"])
    return None
