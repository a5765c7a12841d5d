"""CSV for a spreadsheet that runs whatever looks like a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["inert", "sheet"]

# What a spreadsheet would run as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def sheet(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A heading and the rows, numbers with all digits; None is an empty cell."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return stream.getvalue()


def inert(text: str) -> str:
    """Text from a stranger's file, which no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
