"""How loaded the machine is, and what this process has used so far."""

from __future__ import annotations

from opbench.probes.source import Source

__all__ = ["usage"]


def usage(source: Source | None = None) -> dict[str, float | int | None]:
    """One reading; the caller takes two and looks at what grew.

    Returns:
        load_1min, load_5min, load_15min: runnable tasks on the whole machine, averaged.
        user_s, system_s: CPU time of this process, seconds, all threads.
        voluntary_switches, involuntary_switches: since the process started. The second kind is
        the kernel taking the CPU away, which a neighbour causes.
        minor_faults, major_faults: pages mapped without, and with, reading a disk.
        None stands for what the platform does not tell.
    """
    source = source or Source()
    load = source.load() or (None, None, None)
    used = source.usage(False) if source.usage else None
    return {
        "load_1min": load[0],
        "load_5min": load[1],
        "load_15min": load[2],
        "user_s": getattr(used, "ru_utime", None),
        "system_s": getattr(used, "ru_stime", None),
        "voluntary_switches": getattr(used, "ru_nvcsw", None),
        "involuntary_switches": getattr(used, "ru_nivcsw", None),
        "minor_faults": getattr(used, "ru_minflt", None),
        "major_faults": getattr(used, "ru_majflt", None),
    }
