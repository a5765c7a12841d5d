"""What disturbs a launch: time stolen by the hypervisor, load, CPUs taken away."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

try:
    import resource
except ImportError:  # Windows has none
    resource = None  # type: ignore[assignment]

__all__ = ["Noise", "NoiseReading", "noise_between", "noise_reading"]

# user nice system idle iowait irq softirq steal
_TIMES, _STEAL = 8, 7


@dataclass(frozen=True, slots=True)
class Noise:
    """Between two readings; None stands for what the platform does not tell."""

    steal: float | None = None
    """Share of all CPU time, 0 to 1, that another virtual machine had of ours."""
    load_before: float | None = None
    """Runnable tasks of the whole machine, averaged over a minute."""
    load_after: float | None = None
    voluntary_switches: int | None = None
    """Of the launch's processes that were waited for: they waited for something themselves."""
    involuntary_switches: int | None = None
    """They were taken off a CPU for somebody else."""


class NoiseReading(NamedTuple):
    """One moment's counts."""

    stolen: int | None
    total: int | None
    load: float | None
    voluntary: int | None
    involuntary: int | None


def noise_reading(stat: Path | str = "/proc/stat") -> NoiseReading:
    """The counts of now; those of switches are of all children that were waited for."""
    stolen, total = _ticks(Path(stat))
    try:
        load: float | None = os.getloadavg()[0]
    except (AttributeError, OSError):
        load = None
    used = resource.getrusage(resource.RUSAGE_CHILDREN) if resource else None
    return NoiseReading(
        stolen, total, load, getattr(used, "ru_nvcsw", None), getattr(used, "ru_nivcsw", None)
    )


def noise_between(before: NoiseReading, after: NoiseReading) -> Noise:
    """What went on between two readings."""
    elapsed, stolen = _grown(before.total, after.total), _grown(before.stolen, after.stolen)
    return Noise(
        steal=stolen / elapsed if elapsed and stolen is not None else None,
        load_before=before.load,
        load_after=after.load,
        voluntary_switches=_grown(before.voluntary, after.voluntary),
        involuntary_switches=_grown(before.involuntary, after.involuntary),
    )


def _grown(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(0, after - before)


def _ticks(stat: Path) -> tuple[int | None, int | None]:
    """Stolen and all ticks since the machine started."""
    try:
        words = stat.read_text("ascii", "replace").split("\n", 1)[0].split()
        ticks = [int(word) for word in words[1 : 1 + _TIMES]]
    except (OSError, ValueError):
        return None, None
    if len(ticks) < _TIMES:
        return None, None
    return ticks[_STEAL], sum(ticks)
