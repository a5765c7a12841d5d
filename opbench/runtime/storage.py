"""Memory that the runtime owns: who holds it, how many bytes live, and when it can be reused.

The books are kept by weak references to the arrays that lie directly on the memory. Every view
keeps its array alive, so an array that died has no reader left.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from typing import Any, TypeAlias, cast

import numpy as np

from opbench.runtime.context import Context
from opbench.runtime.recording import MEMORY, RECORDER

__all__ = ["LEDGER", "Array", "Ledger", "Pool", "adopt", "empty"]

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

# One cache line, and the widest vector register.
ALIGNMENT = 64

# Free blocks that a pool keeps per size. Two let a loop hold the last result while the next is
# computed; more would keep a burst's memory for ever.
KEPT = 2


class Ledger:
    """Bytes alive per context; each change is told to the profiler in mode memory.

    Frees come out of weak references, that is at any moment, even inside this class and on this
    very thread. So a change is queued first, and whoever holds the lock books it: nobody waits.
    """

    def __init__(self) -> None:
        self._changes: deque[tuple[Context, int]] = deque()
        self._lock = threading.Lock()
        self._live: dict[Context, int] = {}

    def change(self, context: Context, nbytes: int) -> None:
        """Book an allocation, or with a negative ``nbytes`` a free."""
        changes = self._changes
        changes.append((context, nbytes))
        # Looks again after the release, for a change that came while the lock was still held.
        while changes and self._lock.acquire(False):
            try:
                while changes:
                    where, change = changes.popleft()
                    live = self._live[where] = self._live.get(where, 0) + change
                    if RECORDER.mask & MEMORY:
                        _record(str(where), change, live)
            finally:
                self._lock.release()

    def detach(self) -> None:
        """In a forked child: another thread may have held the lock at the fork."""
        self._lock = threading.Lock()


def _record(context: str, nbytes: int, live: int) -> None:
    RECORDER.counter(f"memory {context}", {"live bytes": live})
    RECORDER.instant(
        "alloc" if nbytes >= 0 else "free",
        "memory",
        {"bytes": nbytes, "context": context, "iteration": RECORDER.iteration},
    )


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

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], context: Context) -> Array:
        """An array on a block of this pool, which comes back when its last view has died."""
        count = 1
        for length in shape:
            count *= length
        block = self.take(count * dtype.itemsize)
        # Through a memoryview: numpy hangs every view of a view on the first array whose base is
        # no array. That is this one, so it outlives all of them; else they would hang on the block.
        buffer = memoryview(block)  # type: ignore[arg-type] # not in NumPy's stubs before Python 3.12
        array: Array = np.frombuffer(buffer, dtype)
        _track(array, context, self, block)
        return array.reshape(shape)


class _Lease(weakref.ref[Array]):
    """A weak reference that knows what it must give back."""

    __slots__ = ("block", "context", "nbytes", "pool")

    context: Context
    nbytes: int
    pool: weakref.ref[Pool] | None
    block: Array | None


LEDGER = Ledger()

# By identity: a weak reference hashes like its array, and arrays have no hash.
_LEASES: dict[int, _Lease] = {}


def _ended(reference: weakref.ref[Array]) -> None:
    lease = cast("_Lease", reference)
    _LEASES.pop(id(lease), None)
    pool = lease.pool() if lease.pool is not None else None
    if pool is not None and lease.block is not None:
        pool.give(lease.block)
    LEDGER.change(lease.context, -lease.nbytes)


def _track(array: Array, context: Context, pool: Pool | None, block: Array | None) -> None:
    lease = _Lease(array, _ended)
    lease.context = context
    lease.nbytes = array.nbytes
    lease.pool = weakref.ref(pool) if pool is not None else None
    lease.block = block
    _LEASES[id(lease)] = lease
    LEDGER.change(context, lease.nbytes)


def adopt(array: Array, context: Context) -> Array:
    """Take an array, which owns its memory and which nobody else writes to, into the books."""
    _track(array, context, None, None)
    return array


def empty(shape: tuple[int, ...], dtype: np.dtype[Any], context: Context) -> Array:
    """A new array in C order with arbitrary content, in the books."""
    return adopt(np.empty(shape, dtype), context)


os.register_at_fork(after_in_child=LEDGER.detach)
