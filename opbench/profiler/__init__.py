"""What happened, and when: the recorder, its windows, the finished trace and the trace's file.

Standard library only, and cheap to import: the plugin loads it in every pytest.
A `Profiler` records events between run and stop and hands over one frozen `Trace`; everything else
here is a function of that value, or a door to the process's one recorder.
"""

from __future__ import annotations

import os

from opbench.profiler.aggregate import AggregateStat, OperatorTotal, aggregate, operator_totals
from opbench.profiler.autostart import autostart, autostart_suspended
from opbench.profiler.calls import call_args
from opbench.profiler.check import Checked, Problem, check, verdict
from opbench.profiler.chrome import encode, read, write
from opbench.profiler.clock import ClockAnchor
from opbench.profiler.cost import WORKERS, Cost, Overhead, overhead
from opbench.profiler.deprecated import dump_profile, profiler_set_config, profiler_set_state
from opbench.profiler.difference import Difference, differences
from opbench.profiler.doors import (
    dump,
    dumps,
    pause,
    resume,
    set_config,
    set_state,
    state,
    statistics,
)
from opbench.profiler.entries import api, part, part_begins, traced
from opbench.profiler.events import Lane, Trace, TraceEvent, merge
from opbench.profiler.folder import folder_problem
from opbench.profiler.instruments import Counter, Domain, Frame, Marker, Task
from opbench.profiler.intervals import Event
from opbench.profiler.joining import Part, join
from opbench.profiler.lane_totals import LaneTotal, lane_totals
from opbench.profiler.lanes import LaneFigures, record_lanes
from opbench.profiler.listeners import Listener
from opbench.profiler.load import Loaded, load, load_file
from opbench.profiler.modes import Mode, mode_names, parse_modes
from opbench.profiler.profiler import RECORDER, Profiler
from opbench.profiler.schedule import Action, Schedule, profile, schedule
from opbench.profiler.scopes import current_scope, scope
from opbench.profiler.streamfile import being_written
from opbench.profiler.summary import summary
from opbench.profiler.window import IterationWindow

__all__ = [
    "RECORDER",
    "WORKERS",
    "Action",
    "AggregateStat",
    "Checked",
    "ClockAnchor",
    "Cost",
    "Counter",
    "Difference",
    "Domain",
    "Event",
    "Frame",
    "IterationWindow",
    "Lane",
    "LaneFigures",
    "LaneTotal",
    "Listener",
    "Loaded",
    "Marker",
    "Mode",
    "OperatorTotal",
    "Overhead",
    "Part",
    "Problem",
    "Profiler",
    "Schedule",
    "Task",
    "Trace",
    "TraceEvent",
    "aggregate",
    "api",
    "autostart_suspended",
    "being_written",
    "call_args",
    "check",
    "current_scope",
    "differences",
    "dump",
    "dump_profile",
    "dumps",
    "encode",
    "folder_problem",
    "join",
    "lane_totals",
    "load",
    "load_file",
    "merge",
    "mode_names",
    "operator_totals",
    "overhead",
    "parse_modes",
    "part",
    "part_begins",
    "pause",
    "profile",
    "profiler_set_config",
    "profiler_set_state",
    "read",
    "record_lanes",
    "resume",
    "schedule",
    "scope",
    "set_config",
    "set_state",
    "state",
    "statistics",
    "summary",
    "traced",
    "verdict",
    "write",
]

# Last, so that the window that the environment asks for finds everything in its place.
autostart(os.environ)
