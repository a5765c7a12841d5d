"""The floor: the smallest change that matters."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from opbench.errors import ConfigError
from opbench.units import parse_seconds

__all__ = ["DEFAULT_ABSOLUTE", "Floor", "Floors", "parse_floor"]

DEFAULT_ABSOLUTE = 20e-9
"""Seconds per call: below it a percentage says more about the clock than about the code."""


@dataclass(frozen=True, slots=True)
class Floor:
    """A change counts if it reaches both: the share of the baseline, and the absolute time.

    ``extra_info["opbench"]["floor"]`` of a saved benchmark holds it as ``as_dict`` gives it.
    """

    relative: float
    """Share of the baseline: 0.05 is 5 %."""
    absolute: float = DEFAULT_ABSOLUTE
    """Seconds per call."""

    def __post_init__(self) -> None:
        for name, value, most in (
            ("relative", self.relative, 1.0),
            ("absolute", self.absolute, math.inf),
        ):
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not 0 <= value < most:
                msg = f"a {name} floor of {value!r} is none; give a " + (
                    "share from 0 to below 1" if name == "relative" else "time from 0 on"
                )
                raise ConfigError(msg)

    def share(self, seconds: float) -> float:
        """The floor as a share of that time."""
        return max(self.relative, self.absolute / seconds) if seconds > 0 else math.inf

    def __str__(self) -> str:
        text = f"{100 * self.relative:g} %"
        if self.absolute in {0.0, DEFAULT_ABSOLUTE}:
            return text
        return f"{text} and {self.absolute * 1e9:g} ns"

    def as_dict(self) -> dict[str, float]:
        """Plain values for JSON."""
        return {"relative": self.relative, "absolute": self.absolute}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], default: float) -> Floor:
        """What ``as_dict`` gave; a key may lack.

        Raises:
            ConfigError: a value is no floor.
        """
        return cls(stored.get("relative", default), stored.get("absolute", DEFAULT_ABSOLUTE))


@dataclass(frozen=True, slots=True)
class Floors:
    """Which floor holds for which benchmark.

    The first of these that says something: a pattern given for this comparison, what the candidate
    was saved with (its marker or ini key), what the baseline was saved with, the default.
    """

    default: Floor
    patterns: tuple[tuple[str, Floor], ...] = field(default=())
    """Shell patterns over benchmark ids and groups; the last one that fits holds."""

    def floor_of(
        self,
        benchmark: str,
        group: str | None,
        *stored: Mapping[str, Any] | None,
    ) -> Floor:
        """The floor of one benchmark.

        Args:
            benchmark: its id.
            group: pytest-benchmark's, or None.
            stored: what the records say, the one that decides first.
        """
        for pattern, floor in reversed(self.patterns):
            if fnmatchcase(benchmark, pattern) or (group is not None and pattern == group):
                return floor
        for found in stored:
            if found is not None:
                return Floor.from_dict(found, self.default.relative)
        return self.default


def parse_floor(text: str, source: str = "", default: float | None = None) -> Floor:
    """A floor from ``5%``, ``0.5 %``, ``0.05``, ``100ns``, or both as in ``2% + 1us``.

    Args:
        text: what was given.
        source: where, for the error.
        default: the share where only a time is given; 0 if None.

    Raises:
        ConfigError: it is none; names the source.
    """
    origin = f" ({source})" if source else ""
    msg = (
        f"floor {text!r}{origin} is none; write a share such as 2.5%, a time such as 100ns, or "
        "2% + 100ns"
    )
    found: dict[str, float] = {}
    try:
        for part in re.split("[+,]", text):
            key, value = _part(part.strip())
            if key in found:
                raise ConfigError(msg)
            found[key] = value
        return Floor(found.get("relative", default or 0.0), found.get("absolute", DEFAULT_ABSOLUTE))
    except ValueError as error:  # a ConfigError is one
        raise ConfigError(msg) from error


def _part(text: str) -> tuple[str, float]:
    """``5%`` and ``0.05`` are shares, anything else is a duration."""
    if text.endswith("%"):
        return "relative", float(text[:-1]) / 100
    try:
        return "relative", float(text)
    except ValueError:
        return "absolute", parse_seconds(text)
