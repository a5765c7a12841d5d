"""Memory that the runtime owns: who holds it, and when it can be reused.

Each array is entered in the ledger through a weak reference to the one that lies directly on the
memory. Every view keeps its array alive, so an array that died has no reader left.
"""

from __future__ import annotations

import weakref
from typing import Any, TypeAlias, cast

import numpy as np

from opbench.profiler import current_scope
from opbench.runtime.context import Context
from opbench.runtime.ledger import LEDGER, NEVER
from opbench.runtime.recording import MEMORY, RECORDER

__all__ = ["Array", "Pool", "adopt", "empty", "tag"]

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

# One cache line, and the widest vector register.
ALIGNMENT = 64

# Free blocks that a pool keeps per size. Two let a loop hold the last result while the next is
# computed; more would keep a burst's memory for ever.
KEPT = 2

# What the profiler calls it when no scope is open.
NO_SCOPE = "<unk>:"


class Pool:
    """Blocks of memory whose arrays have died, for the next arrays of the same size.

    Fresh memory costs a page fault per 4 KiB at its first use, which a repeated forward pass
    would pay, and be timed with, every time.
    """

    __slots__ = ("__weakref__", "_free")

    def __init__(self) -> None:
        self._free: dict[int, list[Array]] = {}

    def take(self, nbytes: int) -> Array:
        """A block of ``nbytes`` bytes, aligned to a cache line, with arbitrary content."""
        try:
            return self._free[nbytes].pop()
        except (KeyError, IndexError):
            raw = np.empty(nbytes + ALIGNMENT, dtype=np.uint8)
            start = -raw.__array_interface__["data"][0] % ALIGNMENT
            return raw[start : start + nbytes]

    def give(self, block: Array) -> None:
        """Take a block back; beyond ``KEPT`` of one size it is freed."""
        kept = self._free.setdefault(block.nbytes, [])
        if len(kept) < KEPT:
            kept.append(block)

    def empty(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        context: Context,
        operator: str = "",
        name: str = "",
    ) -> Array:
        """An array on a block of this pool, which comes back when its last view has died."""
        count = 1
        for length in shape:
            count *= length
        block = self.take(count * dtype.itemsize)
        # Through a memoryview: numpy hangs every view of a view on the first array whose base is
        # no array. That is this one, so it outlives all of them; else they would hang on the block.
        buffer = memoryview(block)  # type: ignore[arg-type] # not in NumPy's stubs before Python 3.12
        array: Array = np.frombuffer(buffer, dtype)
        _track(array, context, operator, name, pool=self, block=block)
        return array.reshape(shape)


class _Lease(weakref.ref[Array]):
    """A weak reference that knows what it must give back, and what the books say of its array."""

    __slots__ = ("block", "context", "name", "nbytes", "number", "operator", "pool", "window")

    pool: weakref.ref[Pool] | None
    block: Array | None
    context: Context
    nbytes: int
    operator: str
    name: str
    number: int
    window: int


# By identity: a weak reference hashes like its array, and arrays have no hash.
_LEASES: dict[int, _Lease] = {}


def _ended(reference: weakref.ref[Array]) -> None:
    lease = cast("_Lease", reference)
    _LEASES.pop(id(lease), None)
    pool = lease.pool() if lease.pool is not None else None
    if pool is not None and lease.block is not None:
        pool.give(lease.block)
    LEDGER.free(lease)


def _track(
    array: Array,
    context: Context,
    operator: str,
    name: str,
    pool: Pool | None = None,
    block: Array | None = None,
) -> None:
    lease = _Lease(array, _ended)
    lease.context = context
    lease.nbytes = array.nbytes
    lease.operator = operator
    lease.name = name or tag() if RECORDER.mask & MEMORY else name
    lease.window = NEVER
    lease.pool = weakref.ref(pool) if pool is not None else None
    lease.block = block
    _LEASES[id(lease)] = lease
    LEDGER.alloc(lease)


def tag() -> str:
    """The open scopes of the calling thread, ``outer:inner:``; empty outside of mode memory."""
    if not RECORDER.mask & MEMORY:
        return ""
    scope = current_scope()
    return "" if scope == NO_SCOPE else scope


def adopt(array: Array, context: Context, operator: str = "", name: str = "") -> Array:
    """Take an array, which owns its memory and which nobody else writes to, into the books.

    Args:
        array: the array.
        context: where it lies.
        operator: the operator that it is a result of, or the function that made it.
        name: of the graph's node; that of the open scopes if empty.
    """
    _track(array, context, operator, name)
    return array


def empty(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    context: Context,
    operator: str = "",
    name: str = "",
) -> Array:
    """A new array in C order with arbitrary content, in the books; arguments as of `adopt`."""
    return adopt(np.empty(shape, dtype), context, operator, name)
