"""Any value as strict JSON in ASCII: what a user put into `args` must not spoil the file.

The rules are the viewers': Perfetto reads integers into 64 bits and stumbles over NUL, and a value
is there to be looked at, so NaN is shown as a word and a deep structure is cut. The room records
writes for a computation that reads the file back: there NaN is null, and nothing is cut.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["json_text", "plain_text", "text_of"]

ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))
SAFE_INTEGER = 2**63  # Perfetto reads integers into 64 bits
DEPTH = 16
# What the fast way may leave in the text although a viewer stumbles over it: a NUL, half of a
# surrogate pair, digits beyond 64 bits.
SUSPECT = re.compile(r"\\u(?:0000|d)|\d{19}")
SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]")


def json_text(value: Any) -> str:
    """The value as JSON.

    Numbers that are not finite become ``"nan"``, ``"inf"`` and ``"-inf"``, integers beyond 64 bits
    decimal text, NumPy scalars plain numbers, and values that JSON does not know their type's name.
    """
    try:
        text = ENCODER.encode(value)
    except Exception:  # noqa: BLE001 - a stranger's mapping may raise anything
        return ENCODER.encode(_plain(value, DEPTH))
    if SUSPECT.search(text):
        return ENCODER.encode(_plain(value, DEPTH))
    return text


def text_of(name: Any) -> str:
    """A name as text, whatever it is."""
    return name if isinstance(name, str) else str(_plain(name, 0))


def plain_text(text: str) -> str:
    """The text without what breaks a reader: NUL becomes ␀, half a surrogate pair U+FFFD."""
    return SURROGATES.sub(_whole, text).replace("\0", "␀")


def _whole(match: re.Match[str]) -> str:
    # By hand: the codec for UTF-16 is a module that may not load any more when the process ends.
    high, low = match[0][0], match[0][-1]
    if len(match[0]) == 1:
        return "\ufffd"
    return chr(0x10000 + ((ord(high) - 0xD800) << 10) + ord(low) - 0xDC00)


def _plain(value: Any, depth: int) -> Any:
    try:
        return _plain_value(value, depth)
    except Exception:  # noqa: BLE001 - a stranger's value may raise anything
        return f"<{type(value).__qualname__}>"


def _plain_value(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return _plain_scalar(value)
    if depth and isinstance(value, Mapping):
        return {plain_text(text_of(key)): _plain(item, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, depth - 1) for item in value]
    return _plain_other(value)


def _plain_scalar(value: Any) -> Any:
    if isinstance(value, str):
        return plain_text(str(value))
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return _plain_integer(int(value))
    return value


def _plain_integer(value: int) -> int | str:
    if -SAFE_INTEGER <= value < SAFE_INTEGER:
        return value
    try:
        return str(value)
    except ValueError:  # past Python's limit of decimal digits
        return hex(value)


def _plain_other(value: Any) -> Any:
    try:
        item = value.item()  # a NumPy scalar
    except Exception:  # noqa: BLE001 - a stranger's object may raise anything
        item = None
    if isinstance(item, (bool, int, float, str)):
        return _plain_scalar(item)
    return f"<{type(value).__qualname__}>"
