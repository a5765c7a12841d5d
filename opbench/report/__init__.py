"""How is it shown? Values in, lines of text out; nothing is decided here."""

from __future__ import annotations

from opbench.report.comparison import comparison_text
from opbench.report.comparison_data import comparison_csv, comparison_json
from opbench.report.comparison_junit import comparison_junit
from opbench.report.comparison_markdown import comparison_markdown
from opbench.report.history import history_text
from opbench.report.history_data import history_csv, history_wide_csv
from opbench.report.history_markdown import history_markdown
from opbench.report.lanes import lane_lines, lane_verdicts
from opbench.report.operators import operator_table
from opbench.report.roof import roof_lines
from opbench.report.section import BenchmarkRow, section_lines, section_title
from opbench.report.table import Column, Style, middle_cut, table_lines
from opbench.report.traces import difference_lines, differences_json
from opbench.report.tripwire import tripwire_failure, tripwire_headline, tripwire_lines
from opbench.report.wording import headline

__all__ = [
    "BenchmarkRow",
    "Column",
    "Style",
    "comparison_csv",
    "comparison_json",
    "comparison_junit",
    "comparison_markdown",
    "comparison_text",
    "difference_lines",
    "differences_json",
    "headline",
    "history_csv",
    "history_markdown",
    "history_text",
    "history_wide_csv",
    "lane_lines",
    "lane_verdicts",
    "middle_cut",
    "operator_table",
    "roof_lines",
    "section_lines",
    "section_title",
    "table_lines",
    "tripwire_failure",
    "tripwire_headline",
    "tripwire_lines",
]
