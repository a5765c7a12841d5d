"""What the room offers for traces in files; loaded at the first use of any of it."""

from __future__ import annotations

from opbench.profiler.checking import Checked, Problem, check, verdict
from opbench.profiler.difference import Difference, differences
from opbench.profiler.joining import Part, join
from opbench.profiler.loading import Loaded, load, load_file
from opbench.profiler.overview import summary

__all__ = [
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
]
