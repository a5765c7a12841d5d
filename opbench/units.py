"""Numbers with units: seconds, bytes, FLOP/s; parsed at the door, scaled only for display.

Inside opbench every quantity is in its base unit (seconds, bytes, FLOP/s).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from opbench.errors import ConfigError

__all__ = [
    "Scale",
    "format_bytes",
    "format_flops",
    "format_seconds",
    "parse_bytes",
    "parse_flops",
    "parse_seconds",
    "scale_seconds",
    "significant",
]


class Scale(NamedTuple):
    """A display unit: ``value / size`` is the number that goes before ``suffix``."""

    suffix: str
    size: float


SECONDS: Sequence[Scale] = (
    Scale("ns", 1e-9),
    Scale("µs", 1e-6),
    Scale("ms", 1e-3),
    Scale("s", 1.0),
)
BYTES: Sequence[Scale] = (
    Scale("B", 1.0),
    Scale("kB", 1e3),
    Scale("MB", 1e6),
    Scale("GB", 1e9),
    Scale("TB", 1e12),
)
FLOPS: Sequence[Scale] = (
    Scale("FLOP/s", 1.0),
    Scale("kFLOP/s", 1e3),
    Scale("MFLOP/s", 1e6),
    Scale("GFLOP/s", 1e9),
    Scale("TFLOP/s", 1e12),
)

_SECONDS_WORDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES_WORDS = {
    "b": 1.0,
    "kb": 1e3,
    "mb": 1e6,
    "gb": 1e9,
    "tb": 1e12,
    "kib": 2.0**10,
    "mib": 2.0**20,
    "gib": 2.0**30,
    "tib": 2.0**40,
}
_FLOPS_WORDS = {scale.suffix.lower(): scale.size for scale in FLOPS}
_QUANTITY = re.compile(
    r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([a-zµ/]*)\s*", re.IGNORECASE
)


def significant(value: float, digits: int = 3) -> str:
    """``value`` with at least ``digits`` significant digits, never in exponent form.

    Digits before the decimal point are always kept: 1234.5 is shown as 1234 (or 1235), not 1230.
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    # Rounding may carry into a new decade (9.996 -> 10.0), so the exponent is taken after it.
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    return f"{value:.{max(0, digits - 1 - exponent)}f}"


def _pick(value: float, scales: Sequence[Scale]) -> Scale:
    """The largest scale in which ``value`` still shows as at least 1."""
    if value == 0 or not math.isfinite(value):
        return scales[0] if scales is not SECONDS else SECONDS[-1]
    for scale in reversed(scales):
        if float(significant(abs(value) / scale.size)) >= 1:
            return scale
    return scales[0]


def _format(value: float, scales: Sequence[Scale], digits: int) -> str:
    scale = _pick(value, scales)
    return f"{significant(value / scale.size, digits)} {scale.suffix}"


def scale_seconds(value: float) -> Scale:
    """The unit in which ``value`` seconds is best shown; use it for every number of a row."""
    return _pick(value, SECONDS)


def format_seconds(value: float, digits: int = 3) -> str:
    """Seconds as text: 0.00123 is ``1.23 ms``."""
    return _format(value, SECONDS, digits)


def format_bytes(value: float, digits: int = 3) -> str:
    """Bytes as text in powers of 1000: 201326592 is ``201 MB``."""
    return f"{value:.0f} B" if abs(value) < 1e3 else _format(value, BYTES, digits)  # noqa: PLR2004 - the first prefix


def format_flops(value: float, digits: int = 4) -> str:
    """FLOP/s as text: 1.852e11 is ``185.2 GFLOP/s``."""
    return _format(value, FLOPS, digits)


def _parse(text: str, words: dict[str, float], bare: float, what: str, source: str) -> float:
    match = _QUANTITY.fullmatch(text)
    size = None
    if match is not None:
        word = match[2].lower()
        size = words.get(word) if word else bare
    if match is None or size is None:
        origin = f" ({source})" if source else ""
        raise ConfigError(
            f"{text!r}{origin} is no {what}; write a number and one of {', '.join(words)}"
        )
    return float(match[1]) * size


def parse_seconds(text: str, source: str = "") -> float:
    """Seconds from text such as ``10m``, ``2 ms`` or ``0.5`` (a bare number is seconds).

    Raises:
        ConfigError: no number, or an unknown unit; names ``source``.
    """
    return _parse(text, _SECONDS_WORDS, 1.0, "duration", source)


def parse_bytes(text: str, source: str = "") -> float:
    """Bytes from text such as ``8MB`` (powers of 1000) or ``32 KiB`` (powers of 1024).

    Raises:
        ConfigError: no number, or an unknown unit; names ``source``.
    """
    return _parse(text, _BYTES_WORDS, 1.0, "size in bytes", source)


def parse_flops(text: str, source: str = "") -> float:
    """FLOP/s from text such as ``185 GFLOP/s``.

    Raises:
        ConfigError: no number, or an unknown unit; names ``source``.
    """
    return _parse(text, _FLOPS_WORDS, 1.0, "rate in FLOP/s", source)
