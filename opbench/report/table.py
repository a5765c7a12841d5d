"""Text columns that fit a terminal: names are cut in the middle, numbers never.

Widths are counted in terminal cells, where an East Asian wide character takes two.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Column", "Style", "cells", "full_width", "least_width", "middle_cut", "table_lines"]

GAP = "   "
NARROWEST = 12
_ASCII = str.maketrans(
    {
        "×": "x",
        "²": "^2",
        "·": "|",
        "–": "-",
        "…": "~",
        "µ": "u",
        "→": "->",
        "▲": "^",
        "▼": "v",
        "◇": "~",
        "┊": ":",
        "├": "|",
        "┤": "|",
        "─": "-",
    }
)


@dataclass(frozen=True, slots=True)
class Style:
    """Where text goes: how wide it is in cells, whether it takes more than ASCII, and colour."""

    width: int = 80
    unicode: bool = True
    colour: bool = False

    def __call__(self, text: str) -> str:
        """``text`` in the characters that the place takes."""
        if self.unicode:
            return text
        return text.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, its texts, whether it is a name (left, may be cut) or a number."""

    heading: str
    texts: Sequence[str]
    name: bool = False
    droppable: bool = False

    @property
    def width(self) -> int:
        """Cells that the widest text takes."""
        return max(map(cells, (self.heading, *self.texts)))


def cells(text: str) -> int:
    """Cells that ``text`` takes on a terminal."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def _head(text: str, width: int) -> str:
    taken = 0
    for index, character in enumerate(text):
        taken += cells(character)
        if taken > width:
            return text[:index]
    return text


def middle_cut(text: str, width: int) -> str:
    """``text`` in at most ``width`` cells, what is too much cut out of its middle."""
    if cells(text) <= width:
        return text
    if width < 1:
        return ""
    tail = (width - 1) // 2
    front = _head(text, width - 1 - tail)
    back = _head(text[::-1], tail)[::-1]
    return f"{front}…{back}"


def _pad(text: str, width: int, *, left: bool) -> str:
    space = " " * (width - cells(text))
    return text + space if left else space + text


def full_width(columns: Sequence[Column]) -> int:
    """Cells that the table takes with nothing cut and nothing dropped."""
    return sum(column.width for column in columns) + len(GAP) * (len(columns) - 1)


def least_width(columns: Sequence[Column]) -> int:
    """Cells that the table takes with its names cut as far as they may be."""
    widths = (min(column.width, NARROWEST) if column.name else column.width for column in columns)
    return sum(widths) + len(GAP) * (len(columns) - 1)


def table_lines(columns: Sequence[Column], style: Style) -> list[str]:
    """The heading and one line a row, none wider than the style's width where names can be cut.

    Columns that may go are dropped from the right until the others fit with every name cut to at
    least 12 cells. Numbers stay whole, so on a very narrow terminal lines are too long.
    """
    shown = [
        Column(style(c.heading), [style(t) for t in c.texts], c.name, c.droppable) for c in columns
    ]
    while least_width(shown) > style.width and any(c.droppable for c in shown):
        last = max(index for index, c in enumerate(shown) if c.droppable)
        del shown[last]
    widths = _fitted(shown, style.width)
    rows = zip(*([c.heading, *c.texts] for c in shown), strict=True)
    return [
        GAP.join(
            _pad(style(middle_cut(text, width)), width, left=column.name)
            for text, width, column in zip(row, widths, shown, strict=True)
        ).rstrip()
        for row in rows
    ]


def _fitted(columns: Sequence[Column], room: int) -> list[int]:
    """Width of each column: the widest name gives way first, down to NARROWEST."""
    widths = [column.width for column in columns]
    names = [index for index, column in enumerate(columns) if column.name]
    excess = full_width(columns) - room
    while excess > 0:
        widest = max(names, key=lambda index: widths[index], default=None)
        if widest is None or widths[widest] <= NARROWEST:
            break
        widths[widest] -= 1
        excess -= 1
    return widths
