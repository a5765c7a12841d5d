"""The price of one record, found by making some."""

from __future__ import annotations

import time
from functools import cache

from opbench.profiler.buffer import Bounds, Buffer
from opbench.profiler.emit import Emitter

__all__ = ["empty_span_ns"]

BATCHES = 7
SPANS = 64


@cache
def empty_span_ns() -> float:
    """The cost of an empty slice in this process, ns: two readings of the clock and one event.

    The fastest of some batches, so that a moment in which the machine was busy does not count.
    It takes about a third of a millisecond, and is done once.
    """
    recorder = Emitter(time.perf_counter_ns)
    fastest = float("inf")
    for _ in range(BATCHES):
        recorder.open_for_timing(Buffer(Bounds()))
        begin = time.perf_counter_ns()
        for _ in range(SPANS):
            start = recorder.clock()
            recorder.complete("empty", "api", start, recorder.clock(), {"iteration": None})
        fastest = min(fastest, (time.perf_counter_ns() - begin) / SPANS)
    return fastest
