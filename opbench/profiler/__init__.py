"""What happened, and when: the recorder, its windows, the finished trace and the trace's file.

Standard library only, and cheap to import: the plugin loads it in every pytest.
A `Profiler` records events between run and stop and hands over one frozen `Trace`; everything else
here is a function of that value, or a door to the process's one recorder.
"""

from __future__ import annotations

from opbench.profiler.aggregate import OperatorTotal, operator_totals
from opbench.profiler.calls import call_args
from opbench.profiler.check import Problem, check
from opbench.profiler.chrome import encode, read, write
from opbench.profiler.clock import ClockAnchor
from opbench.profiler.doors import dump, pause, resume, set_config, set_state, state
from opbench.profiler.events import Trace, TraceEvent, merge
from opbench.profiler.folder import folder_problem
from opbench.profiler.modes import Mode, mode_names, parse_modes
from opbench.profiler.profiler import RECORDER, Profiler
from opbench.profiler.window import IterationWindow

__all__ = [
    "RECORDER",
    "ClockAnchor",
    "IterationWindow",
    "Mode",
    "OperatorTotal",
    "Problem",
    "Profiler",
    "Trace",
    "TraceEvent",
    "call_args",
    "check",
    "dump",
    "encode",
    "folder_problem",
    "merge",
    "mode_names",
    "operator_totals",
    "parse_modes",
    "pause",
    "read",
    "resume",
    "set_config",
    "set_state",
    "state",
    "write",
]
