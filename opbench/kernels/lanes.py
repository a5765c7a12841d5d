"""A clock and a recorder for compiled code: when each worker ran which piece of a parallel kernel.

A kernel calls `lane_begin` before and `lane_end` behind each piece of its work. Each piece has a
record of its own, one cache line, so that recording takes no lock, no atomic instruction and no
interpreter, and no worker waits for another's line. An empty buffer switches the same compiled
kernel to recording nothing.

A buffer is one array: a row that heads it, a row for each worker, a row for each record. A worker
keeps in its row which thread it is, which the system takes longer to say than the rest of a record
does, and counts there what found no place. One buffer belongs to one call at a time.
"""

# ruff: noqa: ARG001 - an intrinsic names its arguments for the caller; the IR takes them in order

from __future__ import annotations

import sys
import time
from functools import cache
from operator import index as whole
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import binding, ir
from numba import carray, extending
from numba.core import cgutils, types
from numba.core import config as numba_config

from opbench.errors import ConfigError
from opbench.kernels.cache import jit

__all__ = [
    "FIELDS",
    "OFF",
    "RECORD",
    "Taken",
    "asked",
    "available",
    "buffer",
    "buffer_at",
    "lane_begin",
    "lane_end",
    "record_ns",
    "taken",
]

Array = np.ndarray[Any, Any]
# Any, since numba's own types count the typing context among the arguments of a call.
intrinsic: Any = extending.intrinsic
config: Any = numba_config  # its settings come from the environment, unseen by type checkers

FIELDS = (
    "worker",
    "os_thread",
    "cpu_before",
    "cpu_after",
    "start",
    "end",
    "tag",
    "items",
    "bytes",
)
# The last field is this module's own. Its number must change with whatever these functions write:
# users' compiled kernels hold copies of them, and lie in numba's caches under the fields' names.
RECORD = np.dtype(
    {
        "names": [*FIELDS, "private_1"],
        "formats": ["i4", "u4", "i4", "i4", "i8", "i8", "i8", "i8", "i8", "i8"],
    }
)
LINE = RECORD.itemsize
MAGIC = 0x0B_E7_C4_1A_4E_55_00_01  # heads a buffer, so that no other array is taken for one
OFF: Array = np.zeros(0, RECORD)

# The clock of time.perf_counter_ns, where compiled code has it too.
CLOCKS = {"linux": "clock_gettime(CLOCK_MONOTONIC)", "darwin": "mach_absolute_time()"}
CLOCK_MONOTONIC, CLOCK_UPTIME_RAW = 1, 8  # of Linux; of macOS, as mach_absolute_time
PER_SECOND = 1_000_000_000

# Where compiled code finds numba's own function for a worker's number. The symbol that numba has
# for it is there once threads have started only, and code from a cache that asks before crashes.
THREAD_NUMBER = np.zeros(1, np.int64)
THREAD_NUMBER_SYMBOL = "opbench_thread_number_function"
binding.add_symbol(THREAD_NUMBER_SYMBOL, THREAD_NUMBER.ctypes.data)

I32, I64 = ir.IntType(32), ir.IntType(64)
BATCHES, RECORDS = 7, 256


def call(b: Any, name: str, result: Any, *arguments: Any) -> Any:
    """Call a function of the system's library by its name, which survives in a cache."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return b.call(cgutils.get_or_insert_function(b.module, kind, name), arguments)


def now(b: Any, system: str) -> Any:
    """IR for nanoseconds by the clock of `time.perf_counter_ns`; 0 on an unknown system."""
    if system == "linux":
        moment = cgutils.alloca_once(b, ir.ArrayType(I64, 2))
        call(b, "clock_gettime", I32, I32(CLOCK_MONOTONIC), moment)
        seconds, rest = (b.extract_value(b.load(moment), part) for part in (0, 1))
        return b.add(b.mul(seconds, I64(PER_SECOND)), rest)
    if system == "darwin":
        return call(b, "clock_gettime_nsec_np", I64, I32(CLOCK_UPTIME_RAW))
    return I64(0)


def thread(b: Any, system: str) -> Any:
    """IR for the system's number of the calling thread, as `threading.get_native_id`; 0: unknown.

    On Linux it is a system call, of 160 ns and more.
    """
    if system == "darwin":
        cell = cgutils.alloca_once_value(b, I64(0))
        call(b, "pthread_threadid_np", I32, I64(0), cell)
        return b.trunc(b.load(cell), I32)
    return call(b, "gettid", I32) if binding.address_of_symbol("gettid") else I32(0)


def handle(b: Any, system: str) -> Any:
    """IR for something that only this thread has, and that costs a nanosecond; 0: unknown."""
    return call(b, "pthread_self", I64) if system in CLOCKS else I64(0)


def cpu(b: Any, _: str) -> Any:
    """IR for the number of the CPU that runs this; -1 where the system does not say."""
    if not binding.address_of_symbol("sched_getcpu"):
        return I32(-1)
    return call(b, "sched_getcpu", I32)


def worker(b: Any, _: str) -> Any:
    """IR for numba's number of this worker; 0 before its threads have started."""
    where = cgutils.add_global_variable(b.module, I64, THREAD_NUMBER_SYMBOL)
    address = b.load(where)
    number = cgutils.alloca_once_value(b, I32(0))
    with b.if_then(b.icmp_unsigned("!=", address, I64(0))):
        function = b.inttoptr(address, ir.FunctionType(I32, []).as_pointer())
        b.store(b.call(function, []), number)
    return b.load(number)


def reading(emit: Any, result: Any) -> Any:
    """An intrinsic without arguments."""

    @intrinsic
    def read(_):
        def codegen(context, b, signature, arguments):
            return emit(b, sys.platform)

        return result(), codegen

    return read


clock_ns = reading(now, types.int64)
thread_id = reading(thread, types.uint32)
thread_handle = reading(handle, types.int64)
cpu_number = reading(cpu, types.int32)
worker_number = reading(worker, types.int32)


@jit
def own_row(lanes):
    """The row of the calling worker."""
    number = worker_number()
    return 1 + number if 0 <= number < lanes[0].items else 1


@jit
def row_of(lanes, index):
    """The row of a record; 0 where the buffer is off or no buffer, -1 where it has no such record.

    Numba counts negative indices from the end, and checks none that are too large.
    """
    if lanes.shape[0] == 0 or lanes[0].private_1 != MAGIC:
        return 0
    row = 1 + lanes[0].items + index
    return row if index >= 0 and row < lanes.shape[0] else -1


@jit
def lane_begin(lanes, index):
    """Note that the calling worker begins the piece with that number.

    Args:
        lanes: what `profiler.lanes(...)` stands for, or another buffer; an empty one records
            nothing.
        index: of the piece, from 0: each once in a call. One that the buffer has no place for, and
            one that comes twice, are counted as lost.
    """
    row = row_of(lanes, index)
    if row <= 0:
        return
    if lanes[row].start != 0:
        lanes[own_row(lanes)].items += 1
    lanes[row].cpu_before = cpu_number()
    lanes[row].start = clock_ns()


@jit
def lane_end(lanes, index, items, nbytes, tag=0):
    """Note that it has ended.

    Args:
        lanes: as `lane_begin` had it; likewise `index`.
        items: how many of whatever the kernel counts it has worked on.
        nbytes: how many bytes it has read and written; 0 where that is not known.
        tag: a number of your own.
    """
    row = row_of(lanes, index)
    if row == 0:
        return
    end = clock_ns()
    own = own_row(lanes)
    if row < 0:
        lanes[own].items += 1
        return
    lanes[row].cpu_after = cpu_number()
    me = thread_handle()
    if lanes[own].private_1 != me:
        lanes[own].os_thread = thread_id()
        lanes[own].private_1 = me
    lanes[row].os_thread = lanes[own].os_thread
    lanes[row].worker = own - 1
    lanes[row].items = items
    lanes[row].bytes = nbytes
    lanes[row].tag = tag
    lanes[row].end = end


@intrinsic
def pointer(_, address):
    """The address as a pointer to records."""

    def codegen(context, b, signature, arguments):
        return b.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(numba.from_dtype(RECORD))(address), codegen


@jit
def buffer_at(address):
    """The buffer at that address, and with 0 an empty one: a number costs less to pass on."""
    if address == 0:
        return carray(pointer(address), 0)
    return carray(pointer(address), carray(pointer(address), 1)[0].bytes)


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
    start_threads()
    workers = config.NUMBA_NUM_THREADS
    rows = 1 + workers + records
    raw = np.zeros((rows + 1) * LINE, np.uint8)
    raw.fill(0)  # zeros alone would leave its pages to be mapped while workers record
    first = -raw.ctypes.data % LINE
    lanes: Array = raw[first : first + rows * LINE].view(RECORD)
    lanes[0]["private_1"], lanes[0]["items"], lanes[0]["bytes"] = MAGIC, workers, rows
    return lanes


def start_threads() -> None:
    """Start numba's threads, and let compiled code know where they are numbered."""
    numba.get_num_threads()
    if THREAD_NUMBER[0] == 0:
        THREAD_NUMBER[0] = binding.address_of_symbol("get_thread_id") or 0


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
        ConfigError: an array that `buffer` did not make.
    """
    if len(lanes) == 0:
        return Taken([], 0)
    if lanes.dtype != RECORD or lanes[0]["private_1"] != MAGIC:
        raise ConfigError("not a buffer for worker records: make it with lanes.buffer(count)")
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
