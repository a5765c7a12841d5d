"""What the machine can do at most: chains of multiply-adds, and sweeps over memory.

Each kernel works on the calling thread without the interpreter's lock; the caller decides on how
many threads it runs, and takes the time.

Assumed of the operands (the functions of the door see to dtypes, `buffer` to the rest):
- `cells` is a C-ordered array of at least one vector (64 bytes) of float32 or float64;
- `a`, `b` and `c` are as `buffer` makes them: float64, on vector boundaries, whole `BLOCK`s long.
"""

# ruff: noqa: ARG001 - an intrinsic names its arguments for the caller; the IR takes them in order

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import binding
from numba import types
from numba.core import cgutils, config

from opbench.errors import DTypeError
from opbench.kernels.cache import entry_point, jit
from opbench.kernels.dot.emit import I32, I64, Emit, intrinsic
from opbench.kernels.dot.machine import cache_bytes, host_tile

__all__ = ["buffer", "caches", "multiply_adds", "read", "target", "triad"]

TILE = host_tile()
# As many sums as the micro-kernel keeps: 12 of 16 registers, 24 of 32. A multiply-add takes four
# cycles, of which two (x86) to four (big Arm cores) can start in each, so 8 to 16 would do.
CHAINS = TILE.rows * TILE.vectors
UNROLL = 4  # vectors of each array in one step of a sweep
BLOCK = UNROLL * TILE.vector // 8  # float64 in one step
PAGE = 4096
L2_FALLBACK = 512 << 10
DTYPES = ("float32", "float64")

Array = np.ndarray[Any, Any]


def features() -> set[str]:
    """The target's features, as LLVM names them; Numba's own settings count."""
    chosen = config.CPU_FEATURES
    return set((binding.get_host_cpu_features().flatten() if chosen is None else chosen).split(","))


FUSED = bool(features() & {"+fma", "+avx512f", "+neon"})


@intrinsic
def chains(_, cells, steps):
    """cells[0] = the sum of CHAINS vectors of sums, each of `steps` multiply-adds; steps >= 1.

    With fused multiply-adds it is s += x·y, the form of the micro-kernel. Without, x·y would be
    taken out of the loop, so there it is s = s·x + y: a multiplication and an addition each.
    """

    def codegen(context, b, signature, arguments):
        type_cells, _ = signature.args
        e = Emit(context, b, type_cells.dtype, TILE.vector)
        x, y = (e.splat(e.pointer(type_cells, arguments[0], n)) for n in (0, 1))
        entry, loop, done = (
            b.block,
            b.append_basic_block("chains"),
            b.append_basic_block("chains.done"),
        )
        b.branch(loop)
        b.position_at_end(loop)
        k, sums = b.phi(I64), [b.phi(e.vector(e.width)) for _ in range(CHAINS)]
        next_k = b.add(k, e.index(1))
        steps = [e.multiply_add(x, y, s) if FUSED else e.multiply_add(s, x, y) for s in sums]
        starts = [e.index(0), *[e.zero()] * CHAINS]
        for phi, start, step in zip([k, *sums], starts, [next_k, *steps], strict=True):
            phi.add_incoming(start, entry)
            phi.add_incoming(step, loop)
        b.cbranch(b.icmp_signed("<", next_k, arguments[1]), loop, done)
        b.position_at_end(done)
        e.store(functools.reduce(e.add, steps), e.pointer(type_cells, arguments[0], 0))
        return context.get_dummy_value()

    return types.void(cells, types.int64), codegen


def write(e, value, pointer, *, past_caches):
    """Store a vector; past the caches, where the target can: its cache line is not read first."""
    store = e.b.store(value, e.b.bitcast(pointer, value.type.as_pointer()), align=TILE.vector)
    if past_caches:
        store.set_metadata("nontemporal", e.b.module.add_metadata([I32(1)]))


def triad_steps(*, past_caches):
    """An intrinsic for the triad, with one of two ways to write."""

    @intrinsic
    def steps(_, a, b, c, factor):
        """The triad: a = b + factor[0]·c."""

        def codegen(context, builder, signature, arguments):
            e = Emit(context, builder, types.float64, TILE.vector)
            to, left, right, scale = (
                e.pointer(kind, value, 0)
                for kind, value in zip(signature.args, arguments, strict=True)
            )
            scale = e.splat(scale)
            (length,) = e.shape(signature.args[0], arguments[0])
            with cgutils.for_range_slice(builder, e.index(0), length, e.index(BLOCK)) as (i, _):
                for u in range(UNROLL):
                    at = builder.add(i, e.index(u * e.width))
                    x, y = (e.load(e.at(p, at), e.width) for p in (left, right))
                    total = e.multiply_add(scale, y, x)
                    write(e, total, e.at(to, at), past_caches=past_caches)
            builder.fence("seq_cst")  # what went past the caches has arrived
            return context.get_dummy_value()

        return types.void(a, b, c, factor), codegen

    return steps


near_steps, far_steps = triad_steps(past_caches=False), triad_steps(past_caches=True)


@intrinsic
def read_steps(_, b, cells):
    """cells[0:a vector] = the sum of b's vectors, in UNROLL sums."""

    def codegen(context, builder, signature, arguments):
        e = Emit(context, builder, types.float64, TILE.vector)
        source, target = (
            e.pointer(kind, value, 0) for kind, value in zip(signature.args, arguments, strict=True)
        )
        sums = [cgutils.alloca_once_value(builder, e.zero()) for _ in range(UNROLL)]
        (length,) = e.shape(signature.args[0], arguments[0])
        with cgutils.for_range_slice(builder, e.index(0), length, e.index(BLOCK)) as (i, _):
            for u, cell in enumerate(sums):
                piece = e.load(e.at(source, builder.add(i, e.index(u * e.width))), e.width)
                builder.store(e.add(builder.load(cell), piece), cell)
        e.store(functools.reduce(e.add, map(builder.load, sums)), target)
        return context.get_dummy_value()

    return types.void(b, cells), codegen


@jit(nogil=True)
def chain_loop(cells, steps):
    """`steps` multiply-adds in each lane of each chain."""
    chains(cells, steps)


@jit(nogil=True)
def near_loop(a, b, c, factor, times):
    """The triad, so many times."""
    for _ in range(times):
        near_steps(a, b, c, factor)


@jit(nogil=True)
def far_loop(a, b, c, factor, times):
    """The triad past the caches, so many times."""
    for _ in range(times):
        far_steps(a, b, c, factor)


@jit(nogil=True)
def read_loop(b, cells, times):
    """Read b so many times."""
    for _ in range(times):
        read_steps(b, cells)


@functools.cache
def chain_function(dtype: str) -> Callable[..., None]:
    """`chain_loop` for one dtype, from the cache or compiled now."""
    if dtype not in DTYPES:
        raise DTypeError(
            f"the peak FLOP rate is measured for {' and '.join(DTYPES)}, not for {dtype}"
        )
    return entry_point(chain_loop, types.Array(getattr(types, dtype), 1, "C"), types.int64)


@functools.cache
def sweep_function(loop: Any, arrays: int) -> Callable[..., None]:
    """One of the sweeps, from the cache or compiled now."""
    return entry_point(loop, *[types.Array(types.float64, 1, "C")] * arrays, types.int64)


def multiply_adds(dtype: str, steps: int) -> int:
    """Run chains of multiply-adds in registers.

    Args:
        dtype: float32 or float64.
        steps: multiply-adds in each lane of each chain, at least 1.

    Returns:
        FLOP done; a multiply-add counts as two.

    Raises:
        DTypeError: another dtype.
    """
    function = chain_function(dtype)
    # Neither zeros nor powers of two: a multiplier that has nothing to do draws less power, and
    # the clock of some machines follows the power.
    cells = np.full(TILE.vector, 0.7, dtype)
    cells[1] = 0.3
    function(cells, steps)
    return 2 * CHAINS * TILE.vector // cells.itemsize * steps


def buffer(nbytes: int) -> Array:
    """An array for the sweeps: float64, on a page boundary, of at most so many bytes.

    Its pages belong to the thread that writes them first.
    """
    length = max(1, nbytes // 8 // BLOCK) * BLOCK
    raw = np.empty(length * 8 + PAGE, np.uint8)
    start = -raw.ctypes.data % PAGE
    return raw[start : start + length * 8].view(np.float64)


def triad(a: Array, b: Array, c: Array, times: int, *, past_caches: bool) -> int:
    """Compute a = b + 0.5·c so many times.

    Args:
        a: what is written.
        b: what is read; as `a` and `c` made by `buffer`, of one length.
        c: what is scaled.
        times: at least 0.
        past_caches: write `a` without reading its cache lines first (x86 and Arm).

    Returns:
        Bytes moved as STREAM counts them: b and c read, a written; a line of `a` that the
        processor reads before it writes into it does not count.
    """
    loop = far_loop if past_caches else near_loop
    sweep_function(loop, 4)(a, b, c, np.full(1, 0.5), times)
    return 3 * a.nbytes * times


def read(b: Array, times: int) -> int:
    """Read an array so many times; the bytes read."""
    sweep_function(read_loop, 2)(b, np.empty(TILE.vector), times)
    return b.nbytes * times


def caches() -> tuple[int, int]:
    """Bytes of a core's own cache (L2) and of the last level, as the system tells, or a guess."""
    own = cache_bytes(2, L2_FALLBACK)
    return own, max(own, cache_bytes(3, own))


def target() -> dict[str, Any]:
    """What the kernels are compiled for: a roof holds for this target alone."""
    return {
        "vector_bytes": TILE.vector,
        "fused": FUSED,
        "llvm": ".".join(map(str, binding.llvm_version_info)),
    }
