"""What else is going on? Facts about the machine, and what disturbs a measurement on it.

Standard library only. NumPy and Numba are asked if the session has already loaded them and are
never loaded here: a plugin that imports this room must cost a stranger's session nothing.
"""

from __future__ import annotations

from opbench.probes.busy import CpuReading, cpu_busy_elsewhere, cpu_reading
from opbench.probes.compiles import CompileWatch
from opbench.probes.facts import facts
from opbench.probes.source import Source
from opbench.probes.usage import usage

__all__ = [
    "CompileWatch",
    "CpuReading",
    "Source",
    "cpu_busy_elsewhere",
    "cpu_reading",
    "facts",
    "usage",
]
