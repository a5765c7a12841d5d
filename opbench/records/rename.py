"""Benchmarks that got another name between two records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opbench.errors import ConfigError
from opbench.records.environment import brief

__all__ = ["Rename", "load_rename"]

STAR = "*"


@dataclass(frozen=True, slots=True)
class Rename:
    """Pairs of an old and a new name; one star in each stands for the same text.

    ``("tests/old.py::*", "tests/new.py::*")`` follows a file that was moved.
    """

    pairs: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for old, new in self.pairs:
            stars = {old.count(STAR), new.count(STAR)}
            if not old or not new or len(stars) > 1 or stars > {0, 1} or max(stars) > 1:
                msg = (
                    f"rename of {old!r} to {new!r} is none: give two names, or two patterns with "
                    "one * each"
                )
                raise ConfigError(msg)

    def new_name(self, name: str) -> str:
        """What a benchmark of the baseline is called in the candidate."""
        for old, new in self.pairs:
            if name == old:
                return new
            front, star, back = old.partition(STAR)
            long_enough = len(name) >= len(front) + len(back)
            if star and long_enough and name.startswith(front) and name.endswith(back):
                middle = name[len(front) : len(name) - len(back)]
                return new.replace(STAR, middle)
        return name

    def applied(self, names: Iterable[str]) -> dict[str, str]:
        """New name by old name, for every benchmark of the baseline.

        Raises:
            ConfigError: two of them would have one name.
        """
        found = {name: self.new_name(name) for name in names}
        taken: dict[str, str] = {}
        for old, new in found.items():
            if new in taken:
                msg = (
                    f"rename gives {taken[new]!r} and {old!r} one name, {new!r}; each needs its own"
                )
                raise ConfigError(msg)
            taken[new] = old
        return found

    def unused(self, names: Sequence[str]) -> list[str]:
        """Old names of the map that are no benchmark of the baseline."""
        return [
            old
            for old, new in self.pairs
            if not any(Rename(((old, new),)).new_name(name) != name for name in names)
        ]


def load_rename(path: Path | str) -> Rename:
    """A rename map from a file: a JSON object of old names with their new ones.

    Raises:
        ConfigError: it cannot be read, or is something else.
    """
    path = Path(path)
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        msg = (
            f"rename map {path}: cannot be read: {reason}; write a JSON object of old and new names"
        )
        raise ConfigError(msg) from error
    if not isinstance(found, Mapping) or not all(isinstance(new, str) for new in found.values()):
        msg = f"rename map {path}: holds {brief(found)}; write a JSON object of old and new names"
        raise ConfigError(msg)
    return Rename(tuple(found.items()))
