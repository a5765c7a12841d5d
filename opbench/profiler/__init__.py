"""What happened, and when: the recorder, its windows, the finished trace and the trace's file.

Standard library only, and cheap to import: the plugin loads it in every pytest. At once comes the
recorder; what a program uses beside it, and what is there for files, loads on first use.
A `Profiler` records events between run and stop and hands over one frozen `Trace`; everything else
here is a function of that value, or a door to the process's one recorder.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from opbench.profiler.bounds import window_bounds
from opbench.profiler.clock import ClockAnchor
from opbench.profiler.cost import WORKERS, Cost, Overhead, overhead
from opbench.profiler.events import Lane, Trace, TraceEvent, merge
from opbench.profiler.listeners import Listener
from opbench.profiler.modes import Mode, mode_names, parse_modes
from opbench.profiler.profiler import RECORDER, Profiler

if TYPE_CHECKING:
    from opbench.profiler.programs import (
        Action,
        AggregateStat,
        Counter,
        Domain,
        Event,
        Frame,
        IterationWindow,
        LaneFigures,
        LaneTotal,
        Marker,
        OperatorTotal,
        Schedule,
        Stream,
        Task,
        aggregate,
        api,
        autostart_suspended,
        being_written,
        call_args,
        current_scope,
        dump,
        dump_profile,
        dumps,
        encode,
        folder_problem,
        lane_totals,
        operator_totals,
        part,
        part_begins,
        pause,
        profile,
        profiler_set_config,
        profiler_set_state,
        read,
        record_lanes,
        resume,
        schedule,
        scope,
        set_config,
        set_state,
        state,
        statistics,
        traced,
        write,
    )
    from opbench.profiler.reading import (
        Checked,
        Difference,
        Loaded,
        Part,
        Problem,
        check,
        differences,
        join,
        load,
        load_file,
        summary,
        verdict,
    )

# No module of the room has a name that stands here: loading it would put it in the name's place.
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
    "Stream",
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
    "window_bounds",
    "write",
]

_OF_FILES = frozenset(
    (
        "Checked",
        "Difference",
        "Loaded",
        "Part",
        "Problem",
        "check",
        "differences",
        "join",
        "load",
        "load_file",
        "summary",
        "verdict",
    )
)
# Those that autostart looks at.
_SWITCHES = ("OPBENCH_PROFILER_AUTOSTART", "OPBENCH_PROFILER_WINDOW")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _OF_FILES:
        from opbench.profiler import reading

        found = vars(reading)
    else:
        from opbench.profiler import programs

        found = vars(programs)
    # Kept, so that the second use of any of them is a plain attribute.
    globals().update((known, found[known]) for known in found["__all__"])
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if any(switch in os.environ for switch in _SWITCHES):
    # Last, so that the window that the environment asks for finds everything in its place.
    from opbench.profiler.autostart import autostart

    autostart(os.environ)
