"""A clock and a recorder for compiled code: when each worker ran which piece of a parallel kernel.

A kernel calls `lane_begin` before and `lane_end` behind each piece of its work. Each piece has a
record of its own, one cache line, so that recording takes no lock, no atomic instruction and no
interpreter, and no worker waits for another's line. With a buffer that is empty or switched off,
the same compiled kernel records nothing.

A buffer is one array: a row that heads it, a row for each worker, a row for each record. A worker
keeps in its row which thread it is, which the system takes longer to say than the rest of a record
does, and counts there what found no place. One buffer belongs to one call at a time.
"""

from __future__ import annotations

import sys
import time
from functools import cache
from operator import index as whole
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core import config as numba_config

from opbench.errors import ConfigError
from opbench.kernels.cache import jit
from opbench.kernels.lane_calls import (
    CLOCKS,
    FIELDS,
    MAGIC,
    MAGIC_OFF,
    RECORD,
    find_thread_numbers,
    lane_begin,
    lane_end,
)

__all__ = [
    "FIELDS",
    "OFF",
    "RECORD",
    "Taken",
    "address",
    "asked",
    "available",
    "buffer",
    "lane_begin",
    "lane_end",
    "record_ns",
    "switch_off",
    "switch_on",
    "taken",
]

Array = np.ndarray[Any, Any]
config: Any = numba_config  # its settings come from the environment, unseen by type checkers

LINE = RECORD.itemsize
OFF: Array = np.zeros(0, RECORD)

BATCHES, RECORDS = 7, 256


def available() -> str:
    """Why workers cannot be recorded here; empty if they can."""
    if config.DISABLE_JIT:
        return "NUMBA_DISABLE_JIT is set, and recording workers needs the compiler"
    clock = time.get_clock_info("perf_counter").implementation
    if clock != CLOCKS.get(sys.platform):
        return (
            "worker lanes need the clock of time.perf_counter_ns in compiled code, which opbench "
            f"has on Linux and macOS; this is {sys.platform}, and the clock {clock}"
        )
    return ""


def buffer(count: int) -> Array:
    """A buffer for so many records, its pages touched; `OFF` for none.

    Args:
        count: of records.

    Returns:
        An array of `RECORD`, on cache lines. Pass it on whole: it has more rows than records.

    Raises:
        ConfigError: no whole number, a negative one, or a system whose clock is another one.
    """
    try:
        records = -1 if isinstance(count, bool) else whole(count)
    except TypeError:
        records = -1
    if records < 0:
        raise ConfigError(f"a buffer for {count!r} records: give a whole number of 0 or more")
    if records == 0:
        return OFF
    if problem := available():
        raise ConfigError(problem)
    numba.get_num_threads()  # starts numba's threads
    find_thread_numbers()
    workers = config.NUMBA_NUM_THREADS
    rows = 1 + workers + records
    raw = np.zeros((rows + 1) * LINE, np.uint8)
    raw.fill(0)  # zeros alone would leave its pages to be mapped while workers record
    first = -raw.ctypes.data % LINE
    lanes: Array = raw[first : first + rows * LINE].view(RECORD)
    lanes[0]["private_1"], lanes[0]["items"], lanes[0]["bytes"] = MAGIC, workers, rows
    return lanes


def address(lanes: Array | None) -> int:
    """Where a buffer lies, a number that costs less to pass than an array; 0 for none and for OFF.

    Raises:
        ConfigError: an array that `buffer` did not make, or a part of one.
    """
    if lanes is None or (isinstance(lanes, np.ndarray) and lanes.size == 0):
        return 0
    check(lanes)
    return int(lanes.ctypes.data)


def check(lanes: Array) -> None:
    """Refuse what is no whole buffer.

    Raises:
        ConfigError: what it is, and how to get one.
    """
    known = isinstance(lanes, np.ndarray) and lanes.dtype == RECORD and lanes.ndim == 1
    if known and len(lanes) and lanes.flags.c_contiguous:
        head = lanes[0]
        if head["private_1"] in (MAGIC, MAGIC_OFF) and head["bytes"] == len(lanes):
            return
    described = "another array of records" if known else f"a {type(lanes).__name__}"
    raise ConfigError(
        f"no buffer for worker records, but {described}: "
        "make one with kernels.lanes.buffer(count), and pass it on whole"
    )


def switch_on(lanes: Array) -> None:
    """Have a buffer record the next call, and forget what it holds. Not while a kernel runs.

    Raises:
        ConfigError: an array that `buffer` did not make, or a part of one.
    """
    if address(lanes):
        head = lanes[0].copy()
        lanes.view(np.uint8).fill(0)
        head["private_1"] = MAGIC
        lanes[0] = head


def switch_off(lanes: Array) -> None:
    """Have it record nothing, and keep what it holds; otherwise as `switch_on`."""
    if address(lanes):
        lanes[0]["private_1"] = MAGIC_OFF


def asked() -> int:
    """How many workers a parallel kernel asks for now."""
    return int(numba.get_num_threads())


class Taken(NamedTuple):
    """What a call has recorded.

    Attributes:
        rows: the complete records, by index: the nine numbers of `FIELDS` each.
        lost: records that found no place or were overwritten, and pieces that began or ended only.
    """

    rows: list[tuple[int, ...]]
    lost: int


def taken(lanes: Array) -> Taken:
    """The records in a buffer, as plain numbers.

    Raises:
        ConfigError: an array that `buffer` did not make, or a part of one.
    """
    if address(lanes) == 0:
        return Taken([], 0)
    first = 1 + int(lanes[0]["items"])
    records = lanes[first:]
    began, ended = records["start"] != 0, records["end"] != 0
    complete = began & (records["end"] >= records["start"])
    lost = int(lanes["items"][1:first].sum()) + int(((began | ended) & ~complete).sum())
    return Taken(records[complete][list(FIELDS)].tolist(), lost)


@jit
def record_many(lanes, count):
    """Record nothing, so many times."""
    for _ in range(count):
        lane_begin(lanes, 0)
        lane_end(lanes, 0, 0, 0)
        lanes[lanes.shape[0] - 1].start = 0


@cache
def record_ns() -> float | None:
    """The cost of an empty record in this process, ns: the fastest of some batches.

    None where workers cannot be recorded. The first call in a process compiles or loads it.
    """
    if available():
        return None
    lanes = buffer(1)
    record_many(lanes, 1)
    fastest = float("inf")
    for _ in range(BATCHES):
        begin = time.perf_counter_ns()
        record_many(lanes, RECORDS)
        fastest = min(fastest, (time.perf_counter_ns() - begin) / RECORDS)
    return fastest
