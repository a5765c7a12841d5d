"""GitHub Markdown whose contents come from strangers: cells, plain text and code spans."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["code", "heading", "plain", "row"]

_ACTIVE = re.compile(r"([\\`*_{}\[\]<>|~&])")
# A mention or an issue's number, which no backslash stops; a space of no width does.
_LINKED = re.compile(r"(?<!\w)([@#])(?=\w)")


def heading(words: Sequence[str], right: Sequence[int] = ()) -> list[str]:
    """The two lines that begin a table.

    Args:
        words: what its columns are called.
        right: the columns whose contents stand at the right.
    """
    rules = ["---:" if index in right else "---" for index in range(len(words))]
    return [row(*words), row(*rules)]


def row(*texts: str) -> str:
    """One line of a table; its cells are Markdown already."""
    return f"| {' | '.join(texts)} |"


def plain(text: str) -> str:
    """Plain text: nothing in a benchmark's name or a reason is markup, a mention or a new cell."""
    return _LINKED.sub("\\1\u200b", _ACTIVE.sub(r"\\\1", " ".join(text.split())))


def code(text: str) -> str:
    """A code span; inside a table a bar ends the cell even there, unless it is escaped."""
    flat = " ".join(text.split()).replace("|", "\\|")
    longest = max(map(len, re.findall("`+", flat)), default=0)
    fence, pad = "`" * (longest + 1), " " if "`" in flat else ""
    return f"{fence}{pad}{flat}{pad}{fence}"
