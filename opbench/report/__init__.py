"""How is it shown? Values in, lines of text out; nothing is decided here."""

from __future__ import annotations

from opbench.report.operators import operator_table
from opbench.report.section import BenchmarkRow, section_lines, section_title
from opbench.report.table import Column, Style, middle_cut, table_lines

__all__ = [
    "BenchmarkRow",
    "Column",
    "Style",
    "middle_cut",
    "operator_table",
    "section_lines",
    "section_title",
    "table_lines",
]
