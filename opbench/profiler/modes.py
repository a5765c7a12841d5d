"""The four modes: what a window records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import IntFlag
from operator import index

from opbench.errors import ConfigError, nearest

__all__ = ["Mode", "mode_names", "parse_modes"]


class Mode(IntFlag):
    """What is recorded, as bits that combine; the values are MXNet's.

    Emit points never test a member of this class (about 1 µs); they test the recorder's plain
    integer mask.
    """

    SYMBOLIC = 1
    IMPERATIVE = 2
    API = 4
    MEMORY = 8
    ALL = 15


SINGLE = {
    "symbolic": Mode.SYMBOLIC,
    "imperative": Mode.IMPERATIVE,
    "api": Mode.API,
    "memory": Mode.MEMORY,
}
WORDS = {**SINGLE, "mem": Mode.MEMORY, "all": Mode.ALL, "none": Mode(0)}
DIGITS = 9  # what is longer is no bit sum, and may be too long for an integer
SEPARATORS = re.compile(r"[\s,+|]+")


def parse_modes(value: str | int | Iterable[str | int], source: str = "") -> Mode:
    """The modes that a user's value asks for.

    Args:
        value: names joined by ``+``, ``,``, ``|`` or blanks (``"symbolic+mem"``), a bit sum
            (``13`` or ``"13"``), a `Mode`, or an iterable of these.
        source: where the value came from, for the error: an option, a marker, a key.

    Raises:
        ConfigError: an unknown name, a bit sum outside 0 to 15, or nothing at all.
    """
    place = f" in {source}" if source else ""
    bits = _integer(value)
    if isinstance(value, str):
        words = [word for word in SEPARATORS.split(value.strip().lower()) if word]
        if not words:
            raise ConfigError(f"no mode{place}: {value!r}{nearest('', WORDS)}")
        parts = [_word(word, place) for word in words]
    elif bits is not None:
        parts = [_bits(bits, place)]
    elif isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray, Mapping)):
        parts = [parse_modes(part, source) for part in value]
        if not parts:
            raise ConfigError(f"no mode{place}: the list is empty{nearest('', WORDS)}")
    else:
        raise ConfigError(
            f"modes{place} must be names, a bit sum or a list of these, not {value!r}"
            f"{nearest('', WORDS)}"
        )
    modes = Mode(0)
    for part in parts:
        modes |= part
    return modes


def mode_names(mode: int) -> str:
    """The modes in words, in bit order: ``"symbolic + memory"``; ``"none"`` for no bit."""
    return " + ".join(name for name, bit in SINGLE.items() if mode & bit) or "none"


def _integer(value: object) -> int | None:
    """A bit sum of any integer type, NumPy's too; True is none."""
    if isinstance(value, (bool, str)) or not hasattr(value, "__index__"):
        return None
    try:
        return index(value)
    except TypeError:  # an array has the method, and more than one value
        return None


def _word(word: str, place: str) -> Mode:
    if word.isdecimal():
        return _bits(int(word) if len(word) <= DIGITS else 2**64, place)
    if word not in WORDS:
        raise ConfigError(f"unknown mode {word!r}{place}{nearest(word, WORDS)}")
    return WORDS[word]


def _bits(bits: int, place: str) -> Mode:
    if not 0 <= bits <= Mode.ALL:
        raise ConfigError(
            f"mode bits{place} must lie between 0 and 15 (symbolic 1, imperative 2, api 4, "
            f"memory 8), not {int(bits) if abs(bits) < 2**64 else 'a number that long'}"
        )
    return Mode(bits)
