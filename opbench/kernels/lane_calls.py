"""`lane_begin` and `lane_end`, as numba compiles them into the kernels that call them.

They are no jitted functions but IR in their callers: numba counts references to an array that is
passed to a function, and workers that count references to one array wait for each other.
"""

# ruff: noqa: ARG001 - the compiler, and not the Python function, uses their arguments

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
from llvmlite import binding, ir
from numba import extending
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typing import signature

from opbench.errors import ConfigError

__all__ = [
    "CLOCKS",
    "FIELDS",
    "MAGIC",
    "MAGIC_OFF",
    "RECORD",
    "find_thread_numbers",
    "lane_begin",
    "lane_end",
]

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
# What heads a buffer that is on, so that no other array is taken for one, and one that is off.
MAGIC, MAGIC_OFF = 0x0B_E7_C4_1A_4E_55_00_01, 0x0B_E7_C4_1A_4E_55_00_00

# The clock of time.perf_counter_ns, where compiled code has it too.
CLOCKS = {"linux": "clock_gettime(CLOCK_MONOTONIC)", "darwin": "mach_absolute_time()"}
CLOCK_MONOTONIC, CLOCK_UPTIME_RAW = 1, 8  # of Linux; of macOS, as mach_absolute_time
PER_SECOND = 1_000_000_000

THREAD_NUMBER_SYMBOL = "opbench_thread_number_function"

I32, I64, BYTES = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()
RECORD_TYPE: Any = numba.from_dtype(RECORD)
TAGGED = 4  # numbers that lane_end is given with a tag


def lasting_cell() -> ctypes.c_int64:
    """A number that outlives this module, as compiled code does; an earlier import's if there was.

    numba's own function for the number of a worker is found there, by its address. The symbol that
    numba has for it exists only once threads have started, and code from a cache that looks for it
    before crashes.
    """
    there = binding.address_of_symbol(THREAD_NUMBER_SYMBOL)
    if there:
        return ctypes.c_int64.from_address(there)
    cell = ctypes.c_int64(0)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(cell))
    binding.add_symbol(THREAD_NUMBER_SYMBOL, ctypes.addressof(cell))
    return cell


THREAD_NUMBER = lasting_cell()


def call(b: Any, name: str, result: Any, *arguments: Any) -> Any:
    """Call a function of the system's library by its name, which survives in a cache."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return b.call(cgutils.get_or_insert_function(b.module, kind, name), arguments)


def now(b: Any, system: str) -> Any:
    """Nanoseconds by the clock of `time.perf_counter_ns`; 0 on an unknown system."""
    if system == "linux":
        moment = cgutils.alloca_once(b, ir.ArrayType(I64, 2))
        call(b, "clock_gettime", I32, I32(CLOCK_MONOTONIC), moment)
        seconds, rest = (b.extract_value(b.load(moment), part) for part in (0, 1))
        return b.add(b.mul(seconds, I64(PER_SECOND)), rest)
    if system == "darwin":
        return call(b, "clock_gettime_nsec_np", I64, I32(CLOCK_UPTIME_RAW))
    return I64(0)


def thread(b: Any, system: str) -> Any:
    """The system's number of the calling thread, as `threading.get_native_id`; 0: unknown.

    On Linux it is a system call, of 140 ns and more.
    """
    if system == "darwin":
        cell = cgutils.alloca_once(b, I64)
        call(b, "pthread_threadid_np", I32, I64(0), cell)
        return b.trunc(b.load(cell), I32)
    return call(b, "gettid", I32) if binding.address_of_symbol("gettid") else I32(0)


def handle(b: Any, system: str) -> Any:
    """Something that only this thread has, and that costs a nanosecond; 0: unknown."""
    return call(b, "pthread_self", I64) if system in CLOCKS else I64(0)


def cpu(b: Any) -> Any:
    """The number of the CPU that runs this; -1 where the system does not say."""
    if not binding.address_of_symbol("sched_getcpu"):
        return I32(-1)
    return call(b, "sched_getcpu", I32)


def worker(b: Any) -> Any:
    """Numba's number of this worker; 0 before its threads have started."""
    known = b.module.globals.get(THREAD_NUMBER_SYMBOL)
    address = b.load(known or ir.GlobalVariable(b.module, I64, THREAD_NUMBER_SYMBOL))
    number = cgutils.alloca_once(b, I32)
    b.store(I32(0), number)
    with b.if_then(b.icmp_unsigned("!=", address, I64(0)), likely=True):
        function = b.inttoptr(address, ir.FunctionType(I32, []).as_pointer())
        b.store(b.call(function, []), number)
    return b.load(number)


class Rows:
    """IR for a buffer: where it lies, as a pointer to bytes, and how many rows it has."""

    def __init__(self, b: Any, start: Any, count: Any) -> None:
        self.b, self.start, self.count = b, start, count

    def field(self, row: Any, name: str) -> Any:
        """A pointer to a field of a row."""
        dtype, offset = RECORD.fields[name][:2]  # type: ignore[index] # it has fields
        at = self.b.add(self.b.mul(row, I64(RECORD.itemsize)), I64(offset))
        kind = ir.IntType(8 * dtype.itemsize).as_pointer()
        return self.b.bitcast(self.b.gep(self.start, [at]), kind)

    def get(self, row: Any, name: str) -> Any:
        """Its value."""
        return self.b.load(self.field(row, name))

    def set(self, row: Any, **values: Any) -> None:
        """Store values of the widths that the fields have."""
        for name, value in values.items():
            self.b.store(value, self.field(row, name))

    @contextmanager
    def if_buffer(self) -> Iterator[None]:
        """Go on where this is a buffer that is on, and no other array."""
        b = self.b
        with b.if_then(b.icmp_signed("!=", self.count, I64(0)), likely=False):
            magic = b.icmp_signed("==", self.get(I64(0), "private_1"), I64(MAGIC))
            with b.if_then(magic, likely=True):
                yield

    def row(self, index: Any) -> tuple[Any, Any]:
        """The row of a record, and whether there is one."""
        b = self.b
        row = b.add(b.add(index, I64(1)), self.get(I64(0), "items"))
        within = b.icmp_signed("<", row, self.count)
        return row, b.and_(b.icmp_signed(">=", index, I64(0)), within)

    def own(self) -> Any:
        """The row of the calling worker; the first one's for a number that numba never gives."""
        b = self.b
        number = b.sext(worker(b), I64)
        known = b.icmp_unsigned("<", number, self.get(I64(0), "items"))
        return b.add(b.select(known, number, I64(0)), I64(1))

    def lose(self, own: Any) -> None:
        """Count a record as lost."""
        self.set(own, items=self.b.add(self.get(own, "items"), I64(1)))


def emit_begin(rows: Rows, index: Any) -> None:
    """IR for `lane_begin`. The clock is read last."""
    b = rows.b
    with rows.if_buffer():
        row, there = rows.row(index)
        with b.if_then(there, likely=True):
            used = b.icmp_signed("!=", rows.get(row, "start"), I64(0))
            with b.if_then(used, likely=False):
                rows.lose(rows.own())
            rows.set(row, cpu_before=cpu(b))
            rows.set(row, start=now(b, sys.platform))


def emit_end(rows: Rows, index: Any, items: Any, nbytes: Any, tag: Any) -> None:
    """IR for `lane_end`. The clock is read first."""
    b = rows.b
    with rows.if_buffer():
        end = now(b, sys.platform)
        own = rows.own()
        row, there = rows.row(index)
        with b.if_else(there, likely=True) as (found, missing):
            with found:
                me = handle(b, sys.platform)
                changed = b.icmp_signed("!=", rows.get(own, "private_1"), me)
                with b.if_then(changed, likely=False):
                    rows.set(own, private_1=me, os_thread=thread(b, sys.platform))
                rows.set(row, worker=b.trunc(b.sub(own, I64(1)), I32), cpu_after=cpu(b))
                rows.set(row, os_thread=rows.get(own, "os_thread"), tag=tag)
                rows.set(row, items=items, bytes=nbytes, end=end)
            with missing:
                rows.lose(own)


def rows_of(context: Any, b: Any, kind: Any, value: Any) -> Rows:
    """The buffer that a lane function was given: an array, or the address of one, 0 for none."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, b, value)
        start = b.bitcast(array.data, BYTES)
        return Rows(b, start, cgutils.unpack_tuple(b, array.shape)[0])
    given = b.icmp_signed("!=", value, I64(0))
    count = cgutils.alloca_once(b, I64)
    b.store(I64(0), count)
    rows = Rows(b, b.inttoptr(value, BYTES), None)
    with b.if_then(given, likely=False):
        b.store(rows.get(I64(0), "bytes"), count)
    return Rows(b, rows.start, b.load(count))


def lane_begin(lanes: Any, index: int) -> None:
    """Note that the calling worker begins a piece of its work. For compiled code.

    Args:
        lanes: the kernel's argument for which `profiler.lanes(...)` was passed, or a buffer of
            `opbench.kernels.lanes`; one that is empty or switched off records nothing.
        index: of the piece, from 0: each once in a call. One that the buffer has no place for, and
            one that comes twice, are counted as lost.
    """
    refuse_python(lanes)


def lane_end(lanes: Any, index: int, items: int, nbytes: int, tag: int | None = None) -> None:
    """Note that the calling worker has ended it. For compiled code.

    Args:
        lanes: as `lane_begin` had it.
        index: likewise.
        items: how many of whatever the kernel counts were worked on.
        nbytes: how many bytes were read and written; 0 where that is not known.
        tag: a number of your own; the index if None.
    """
    refuse_python(lanes)


def refuse_python(lanes: Any) -> None:
    """An interpreted kernel (NUMBA_DISABLE_JIT, say) can only record nothing.

    Raises:
        ConfigError: a buffer that is on.
    """
    if len(lanes):
        raise ConfigError(
            "lane_begin and lane_end record in compiled code only; compile the kernel with "
            "numba.njit, or pass it an empty buffer: opbench.kernels.lanes.OFF"
        )


def check_arguments(what: str, lanes: Any, numbers: dict[str, Any]) -> None:
    """Refuse types that cannot be recorded, while the kernel compiles."""
    address = isinstance(lanes, types.Integer)
    buffers = isinstance(lanes, types.Array) and lanes.dtype == RECORD_TYPE and lanes.ndim == 1
    if not address and (not buffers or lanes.layout != "C" or not lanes.mutable):
        raise TypingError(
            f"{what}: lanes is of the type {lanes}; pass the kernel profiler.lanes(count), or a "
            "buffer of opbench.kernels.lanes"
        )
    for name, kind in numbers.items():
        if not isinstance(kind, types.Integer):
            raise TypingError(f"{what}: {name} must be a whole number, and is of the type {kind}")


@extending.type_callable(lane_begin)
def type_lane_begin(_):
    def typer(lanes, index):
        check_arguments("lane_begin", lanes, {"index": index})
        return signature(types.none, lanes, types.int64)

    return typer


@extending.type_callable(lane_end)
def type_lane_end(_):
    def typer(lanes, index, items, nbytes, tag=None):
        numbers = {"index": index, "items": items, "nbytes": nbytes}
        numbers |= {} if tag is None else {"tag": tag}
        check_arguments("lane_end", lanes, numbers)
        return signature(types.none, lanes, *[types.int64] * len(numbers))

    return typer


@extending.lower_builtin(lane_begin, types.Any, types.int64)
def lower_lane_begin(context, b, signature, arguments):
    emit_begin(rows_of(context, b, signature.args[0], arguments[0]), *arguments[1:])
    return context.get_dummy_value()


@extending.lower_builtin(lane_end, types.Any, types.int64, types.int64, types.int64)
@extending.lower_builtin(lane_end, types.Any, types.int64, types.int64, types.int64, types.int64)
def lower_lane_end(context, b, signature, arguments):
    lanes, *numbers = arguments
    tag = [] if len(numbers) == TAGGED else numbers[:1]
    emit_end(rows_of(context, b, signature.args[0], lanes), *numbers, *tag)
    return context.get_dummy_value()


def find_thread_numbers() -> None:
    """Let compiled code know where numba numbers its workers; call it once threads have started."""
    THREAD_NUMBER.value = binding.address_of_symbol("get_thread_id") or 0
