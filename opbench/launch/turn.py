"""One counted launch of one test file on one side, as it is kept and judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["CONFIRM", "SCREEN", "Turn", "Value", "floors_of", "measuring_s", "values_of"]

SCREEN, CONFIRM = 1, 2
MOST_SLOW = 0.6
"""Share of the rounds that may be slow while the lower quartile lies safely below them."""
STEAL = 0.01
"""Share of the CPU time from which on the hypervisor accounts for slow rounds."""


@dataclass(frozen=True, slots=True)
class Value:
    """What one launch says of one benchmark; seconds per call."""

    quartile: float
    """The lower one of its rounds: the launch's value."""
    median: float
    least: float
    rounds: int
    bimodal: bool
    """Whether its rounds lie around two values."""
    slow: int = 0
    """Of a bimodal launch: how many rounds lie around the upper one."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One launch within a pair."""

    stage: int
    """SCREEN or CONFIRM."""
    pair: int
    """Number of the attempt, from 0; both sides of a pair share it."""
    file: str
    side: str
    seconds: float = 0.0
    values: Mapping[str, Value] = field(default_factory=dict)
    """By test id."""
    problem: str = ""
    """Why nothing of it counts; empty if it does."""
    controls: Mapping[str, float] = field(default_factory=dict)
    """Seconds a call of the control kernels, just before the launch."""
    busy_elsewhere: float | None = None
    steal: float | None = None
    load: float | None = None
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None

    def own_modes(self, benchmark: str) -> bool:
        """Whether a benchmark ran at two speeds of its own in this launch.

        A round from which the kernel took the CPU away is slower by a time slice, and on a shared
        machine many are. That is the neighbour's mode: the lower quartile does not see it, as long
        as it lies well inside the fast mode, and the kernel has counted each such round. Modes that
        it has not counted, or that reach down to the quartile, are taken to be the benchmark's.
        """
        value = self.values[benchmark]
        if not value.bimodal:
            return False
        if value.slow > MOST_SLOW * value.rounds:
            return True
        slow = sum(other.slow for other in self.values.values() if other.bimodal)
        preempted = self.involuntary_switches is not None and self.involuntary_switches >= slow
        return not (preempted or (self.steal or 0.0) >= STEAL)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Turn:
        """What ``as_dict`` gave.

        Raises:
            TypeError, KeyError, ValueError, AttributeError: it is something else.
        """
        values = {name: Value(**value) for name, value in document["values"].items()}
        return cls(**{**document, "values": values})


def values_of(
    document: Mapping[str, Any],
    value: Callable[[Sequence[float]], float],
    bimodal: Callable[[Sequence[float]], bool],
) -> dict[str, Value]:
    """The values of a launch's document, each benchmark once.

    A benchmark whose rounds are no durations, or that ran inside a profiler's window, gives none.

    Args:
        document: pytest-benchmark's.
        value: makes one number of the rounds.
        bimodal: says whether rounds lie around two values.
    """
    found: dict[str, Value] = {}
    for entry in document["benchmarks"]:
        name, rounds = entry.get("fullname"), _rounds(entry)
        if isinstance(name, str) and rounds:
            two = bool(bimodal(rounds))
            found[name] = Value(
                quartile=float(value(rounds)),
                median=sorted(rounds)[len(rounds) // 2],
                least=min(rounds),
                rounds=len(rounds),
                bimodal=two,
                slow=_above_the_gap(rounds) if two else 0,
            )
    return found


def _above_the_gap(rounds: Sequence[float]) -> int:
    """How many of the rounds lie above the widest gap; a few stray ones at an end make none."""
    ordered = sorted(rounds)
    stray = max(1, len(ordered) // 10)
    gaps = range(stray, len(ordered) - stray + 1)
    return len(ordered) - max(gaps, key=lambda index: ordered[index] / ordered[index - 1])


def floors_of(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The floors that benchmarks were given by their markers or ini, as opbench's plugin notes."""
    found: dict[str, Mapping[str, Any]] = {}
    for entry in document["benchmarks"]:
        floor = _block(entry).get("floor")
        if isinstance(floor, Mapping) and isinstance(entry.get("fullname"), str):
            found[entry["fullname"]] = floor
    return found


def measuring_s(document: Mapping[str, Any]) -> float:
    """Seconds that all timed rounds of a launch took together."""
    total = 0.0
    for entry in document["benchmarks"]:
        iterations = entry["stats"].get("iterations") if _rounds(entry) else None
        if isinstance(iterations, int):
            total += iterations * sum(_rounds(entry))
    return total


def _block(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """What opbench's plugin has noted of a benchmark; empty without it."""
    extra = entry.get("extra_info")
    block = extra.get("opbench") if isinstance(extra, Mapping) else None
    return block if isinstance(block, Mapping) else {}


def _rounds(entry: Mapping[str, Any]) -> list[float]:
    stats = entry.get("stats")
    data = stats.get("data") if isinstance(stats, Mapping) else None
    if _block(entry).get("profiled") or not isinstance(data, list):
        return []
    return [float(value) for value in data] if all(map(_is_duration, data)) else []


def _is_duration(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 < value < float("inf")  # type: ignore[operator] # it is a number here
