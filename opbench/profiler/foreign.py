"""A stranger's values: which number the viewers read in them, and how a message shows them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["hexadecimal", "identifier", "nanoseconds", "not_finite", "number", "shown"]

SHOWN = 60
EXACT_INTEGER = 2**53
# Perfetto fails on a time that is other text, such as " 5", "+5" or "1_0".
NUMERAL = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)


def shown(value: Any) -> str:
    """A value from a stranger's file in a message: short, and never a deep structure."""
    if isinstance(value, str):
        return repr(value if len(value) <= SHOWN else value[:SHOWN] + "…")
    if value is None or isinstance(value, (bool, float)):
        return repr(value)
    if isinstance(value, int) and abs(value) < 2**128:
        return str(value)
    return f"<{type(value).__name__}>"


def number(value: Any) -> int | float | None:
    """The number that viewers read, also from text; None for anything else, NaN and infinities."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        if not NUMERAL.fullmatch(value):
            return None
        value = float(value)
    if isinstance(value, int):
        return value
    return value if isinstance(value, float) and math.isfinite(value) else None


def nanoseconds(microseconds: float) -> int:
    """Whole nanoseconds, rounded as Perfetto rounds them."""
    if isinstance(microseconds, int):
        return microseconds * 1000
    if abs(microseconds) >= EXACT_INTEGER:  # whole anyway, and the product could overflow
        return int(microseconds) * 1000
    return math.floor(microseconds * 1000 + 0.5)


def not_finite(value: Any) -> bool:
    """Whether there is a NaN or an infinity at any depth; depth is the file's: no recursion."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, float) and not math.isfinite(item):
            return True
        if isinstance(item, Mapping):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return False


def hexadecimal(text: str) -> bool:
    """Whether the text is what a viewer takes for a number in base 16."""
    try:
        int(text, 16)
    except ValueError:
        return False
    return True


def identifier(value: Any) -> bool:
    """Whether Perfetto takes it for an id: any text, or an integer of 64 bits."""
    if isinstance(value, str):
        return True
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
