"""Any value as strict JSON in ASCII: what a user put into `args` must not spoil the file.

The rules are the viewers': Perfetto reads integers into 64 bits and stumbles over NUL, and a value
is there to be looked at, so NaN is shown as a word and a deep structure is cut. The room records
writes for a computation that reads the file back: there NaN is null, and nothing is cut.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["ArgsText", "json_text", "plain_text", "text_of"]

ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))
# As many texts and values as a trace has different ones, as a rule.
REMEMBERED = 10_000
LARGEST = sys.float_info.max
SMALLEST = -LARGEST
SAFE_INTEGER = 2**63  # Perfetto reads integers into 64 bits
DEPTH = 16
# What the fast way may leave in the text although a viewer stumbles over it: a NUL, half of a
# surrogate pair, digits beyond 64 bits.
SUSPECT = re.compile(r"\\u(?:0000|d)|\d{19}")
SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]")


def json_text(value: Any, depth: int = DEPTH) -> str:
    """The value as JSON.

    Numbers that are not finite become ``"nan"``, ``"inf"`` and ``"-inf"``, integers beyond 64 bits
    decimal text, NumPy scalars plain numbers, and values that JSON does not know their type's name;
    below ``depth`` levels, too, only the type's name is told.
    """
    try:
        text = ENCODER.encode(value)
    except Exception:  # noqa: BLE001 - a stranger's mapping may raise anything
        return ENCODER.encode(_plain(value, depth))
    if SUSPECT.search(text):
        return ENCODER.encode(_plain(value, depth))
    return text


class ArgsText:
    """`json_text` for the arguments of many events: few keys, texts and lists, each made once.

    A list is known again by its identity; it must not be changed between two events.
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._values: dict[int, tuple[Any, str]] = {}  # the value too, so that its id stays its own

    def __call__(self, args: Mapping[str, Any]) -> str:
        """The arguments as JSON."""
        if not args:
            return "{}"
        if type(args) is not dict:
            return json_text(args)
        texts = self._texts
        parts = []
        for key, value in args.items():
            kind = type(value)
            if type(key) is not str:
                return json_text(args)
            if kind is int and -SAFE_INTEGER <= value < SAFE_INTEGER:
                text = repr(value)
            elif value is None:
                text = "null"
            elif kind is float and SMALLEST <= value <= LARGEST:
                text = repr(value)
            elif kind is str:
                text = texts.get(value) or self._text(value)
            else:
                text = self._value(value)
            parts.append(f"{texts.get(key) or self._text(key)}:{text}")
        return f"{{{','.join(parts)}}}"

    def _text(self, text: str) -> str:
        if len(self._texts) >= REMEMBERED:
            self._texts.clear()
        made = self._texts[text] = json_text(text)
        return made

    def _value(self, value: Any) -> str:
        if type(value) is not list:
            return json_text(value, DEPTH - 1)
        known = self._values.get(id(value))
        if known is not None:
            return known[1]
        if len(self._values) >= REMEMBERED:
            self._values.clear()
        made = json_text(value, DEPTH - 1)
        self._values[id(value)] = (value, made)
        return made


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
