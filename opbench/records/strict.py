"""Strict JSON of whatever a test put into ``extra_info`` or its parameters."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["strict_json"]


def strict_json(document: object) -> str:
    """The document as ASCII text that every JSON reader takes.

    NaN and the infinities become null, as JSON has no word for them. A NumPy scalar becomes its
    number. Anything else that JSON cannot hold becomes the text ``UNSERIALIZABLE[repr]``, as
    pytest-benchmark writes it. Nothing is cut.

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
        return {_key(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return _scalar(value)


def _number_or_text(value: str | float) -> str | int | float | None:
    """The base type's value: an enum's own spelling, or np.float64's, is no JSON."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    return float(value) if math.isfinite(value) else None


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
