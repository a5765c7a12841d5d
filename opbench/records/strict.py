"""Strict JSON of whatever a test put into ``extra_info`` or its parameters.

The rules are those of a file that a program reads back: NaN is null, integers have all their
digits, and nothing is cut. The profiler's traces follow other rules, since they are for viewers,
which read integers into 64 bits and are to show what a value was.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["strict_json"]


def strict_json(document: object) -> str:
    """The document as ASCII text that every JSON reader takes.

    NaN and the infinities become null, as JSON has no word for them. A NumPy scalar becomes its
    number. Half of a surrogate pair becomes U+FFFD. Of two keys that JSON spells alike, such as 1
    and "1", the second is written as ``1 (2)``. Anything else that JSON cannot hold becomes the
    text ``UNSERIALIZABLE[repr]``, as pytest-benchmark writes it; so does an integer of more digits
    than Python reads, in base 16. Nothing is cut.

    Raises:
        RecursionError: the document holds itself, or is nested about a thousand levels deep.
    """
    return json.dumps(plain(document), ensure_ascii=True, allow_nan=False, indent=1) + "\n"


def plain(value: object) -> Any:
    """The value with nothing in it but JSON's own types."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str | int | float):
        return _number_or_text(value)
    if isinstance(value, Mapping):
        return _object(value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return _scalar(value)


def _number_or_text(value: str | float) -> str | int | float | None:
    """The base type's value: an enum's own spelling, or np.float64's, is no JSON."""
    if isinstance(value, str):
        return str.__str__(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, int):
        return _readable(int(value))
    return float(value) if math.isfinite(value) else None


def _readable(value: int) -> int | str:
    try:
        str(value)
    except ValueError:  # past the limit of digits, which is also the limit of who reads the file
        return f"UNSERIALIZABLE[{value:#x}]"
    return value


def _object(value: Mapping[Any, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for key, item in value.items():
        name = spelled = _key(key)
        number = 1
        while name in told:
            number += 1
            name = f"{spelled} ({number})"
        told[name] = plain(item)
    return told


def _scalar(value: object) -> Any:
    """A NumPy scalar's number, found by duck: NumPy itself must not be loaded here."""
    try:
        if getattr(value, "shape", None) == () and callable(getattr(value, "item", None)):
            inner = value.item()  # type: ignore[attr-defined]
            # A long double gives itself back, and a complex number has no JSON either.
            if isinstance(inner, bool | int | float | str):
                return plain(inner)
        text = repr(value)
    except Exception as error:  # noqa: BLE001 - a stranger's object; it must not cost the run
        return f"UNSERIALIZABLE[{type(value).__name__}, which raised {type(error).__name__}]"
    return f"UNSERIALIZABLE[{text}]"


def _key(key: object) -> str:
    """An object's key as JSON spells it, so that ``{1: ...}`` and ``{True: ...}`` survive."""
    inner = plain(key)
    return inner if isinstance(inner, str) else json.dumps(inner)
