"""What the room offers beside the recorder and files; loaded at the first use of any of it."""

from __future__ import annotations

from opbench.profiler.autostart import autostart_suspended
from opbench.profiler.calls import call_args
from opbench.profiler.chrome import encode, read, write
from opbench.profiler.courses import Action, Schedule, profile, schedule
from opbench.profiler.deprecated import dump_profile, profiler_set_config, profiler_set_state
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
from opbench.profiler.folder import folder_problem
from opbench.profiler.instruments import Counter, Domain, Frame, Marker, Task
from opbench.profiler.intervals import Event
from opbench.profiler.lanes import LaneFigures, record_lanes
from opbench.profiler.rows import AggregateStat, OperatorTotal, aggregate, operator_totals
from opbench.profiler.scopes import current_scope, scope
from opbench.profiler.stream import Stream
from opbench.profiler.streamfile import being_written
from opbench.profiler.window import IterationWindow
from opbench.profiler.workers import LaneTotal, lane_totals

__all__ = [
    "Action",
    "AggregateStat",
    "Counter",
    "Domain",
    "Event",
    "Frame",
    "IterationWindow",
    "LaneFigures",
    "LaneTotal",
    "Marker",
    "OperatorTotal",
    "Schedule",
    "Stream",
    "Task",
    "aggregate",
    "api",
    "autostart_suspended",
    "being_written",
    "call_args",
    "current_scope",
    "dump",
    "dump_profile",
    "dumps",
    "encode",
    "folder_problem",
    "lane_totals",
    "operator_totals",
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
    "traced",
    "write",
]
