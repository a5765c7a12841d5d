"""What else is going on? Facts about the machine, and what disturbs a measurement on it.

Standard library only. NumPy and Numba are asked if the session has already loaded them and are
never loaded here: a plugin that imports this room must cost a stranger's session nothing.

Whoever imports this room has its probes listen to the process's recorder; they hook nothing before
a window opens.
"""

from __future__ import annotations

from opbench.probes.around import AROUND, Around, Hook
from opbench.probes.attach import attach, track_python_memory
from opbench.probes.busy import CpuReading, cpu_busy_elsewhere, cpu_reading
from opbench.probes.compiles import CompileWatch
from opbench.probes.facts import facts
from opbench.probes.interruptions import INTERRUPTIONS
from opbench.probes.source import Source
from opbench.probes.usage import usage

__all__ = [
    "AROUND",
    "INTERRUPTIONS",
    "Around",
    "CompileWatch",
    "CpuReading",
    "Hook",
    "Source",
    "attach",
    "cpu_busy_elsewhere",
    "cpu_reading",
    "facts",
    "track_python_memory",
    "usage",
]

attach()
