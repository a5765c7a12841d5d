"""The price of one record, found by making some."""

from __future__ import annotations

import time
from functools import cache

from opbench.profiler.buffer import Bounds, Buffer
from opbench.profiler.emit import Emitter

__all__ = ["empty_span_ns", "worker_event_ns"]

BATCHES = 7
SPANS = 64
WORKER_COUNT, PIECES = 2, 16  # of a call that is recorded to time its events


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


@cache
def worker_event_ns() -> float:
    """The cost of one event of those that workers' records become after a call, ns.

    It is some times that of an empty slice: the records are put in order and on lanes, and the
    call's figures reckoned. Found like that one, in a third of a millisecond, once.
    """
    from opbench.profiler.lanes import record_lanes  # only where there are workers

    recorder = Emitter(time.perf_counter_ns)
    rows = [
        (number % WORKER_COUNT, 0, 0, 0, 10 * number + 1, 10 * number + 9, number, 1, 8)
        for number in range(PIECES)
    ]
    fastest = float("inf")
    for _ in range(BATCHES):
        buffer = Buffer(Bounds())
        recorder.open_for_timing(buffer)
        begin = time.perf_counter_ns()
        record_lanes(recorder, rows, "empty", 0, 10 * PIECES, WORKER_COUNT)
        fastest = min(fastest, (time.perf_counter_ns() - begin) / len(buffer.events))
    return fastest
