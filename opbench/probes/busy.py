"""How much of the machine other processes used meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

from opbench.probes.source import Source

__all__ = ["CpuReading", "cpu_busy_elsewhere", "cpu_reading"]

_TIMES = 8  # user nice system idle iowait irq softirq steal; guest times are within user and nice
_IDLE = slice(3, 5)


@dataclass(frozen=True, slots=True)
class CpuReading:
    """Seconds of CPU time since some fixed moment, summed over all CPUs of the machine."""

    total_s: float
    """All of it, idle or not."""
    busy_s: float
    """What anybody used; time that another virtual machine stole is among it."""
    own_s: float
    """What this process used, and its children that were waited for."""


def cpu_reading(source: Source | None = None) -> CpuReading | None:
    """One reading from /proc/stat, whose step is usually 10 ms; None where there is none.

    In a container the file still speaks of the whole machine.
    """
    source = source or Source()
    rate = source.ticks_per_second()
    if not rate or source.usage is None:
        return None
    line = (source.read_text("/proc/stat") or "").split("\n", 1)[0].split()
    try:
        ticks = [int(word) for word in line[1 : 1 + _TIMES]]
    except ValueError:
        return None
    if not line or line[0] != "cpu" or len(ticks) <= _IDLE.start:
        return None
    own = sum(used.ru_utime + used.ru_stime for used in (source.usage(False), source.usage(True)))
    total = sum(ticks)
    return CpuReading(total / rate, (total - sum(ticks[_IDLE])) / rate, own)


def cpu_busy_elsewhere(before: CpuReading | None, after: CpuReading | None) -> float | None:
    """The share of all CPUs that other processes used between two readings, 0 to 1.

    None if a reading is missing, or if both lie within one step of the kernel's clock.
    """
    if before is None or after is None:
        return None
    elapsed = after.total_s - before.total_s
    if elapsed <= 0:
        return None
    others = (after.busy_s - before.busy_s) - (after.own_s - before.own_s)
    return min(1.0, max(0.0, others / elapsed))
