"""What the runtime tells the profiler, and the mode bits that ask for it.

The bits are plain integers: testing one is the whole cost of an emit point that is off.
"""

from __future__ import annotations

from opbench.profiler import RECORDER, Mode, api, part, part_begins

__all__ = [
    "API",
    "IMPERATIVE",
    "MEMORY",
    "RECORDER",
    "SYMBOLIC",
    "api",
    "part",
    "part_begins",
]

SYMBOLIC = int(Mode.SYMBOLIC)
IMPERATIVE = int(Mode.IMPERATIVE)
API = int(Mode.API)
MEMORY = int(Mode.MEMORY)
