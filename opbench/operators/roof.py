"""What bounds every operator on this machine: work that does nothing but the bounding thing.

The rates themselves are taken by the runtime (`opbench.runtime.roof`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from opbench.kernels import roof

__all__ = ["DTYPES", "Work", "bandwidth_work", "peak_work", "target", "working_sets"]

DTYPES = ("float32", "float64")
STEPS = 100_000  # multiply-adds a chain in one repeat, about 1 ms
# STREAM asks for arrays of four times the last cache, and the triad has three of them.
BEYOND_CACHES, AT_LEAST, AT_MOST = 12, 3, 1 << 30

Piece: TypeAlias = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Work:
    """One way to spend time: a piece for each thread, each taking a number of repeats.

    A piece returns the work done, FLOP or bytes; pieces run at the same time, each on a thread of
    its own, and hold no lock meanwhile.
    """

    name: str
    pieces: tuple[Piece, ...]


def peak_work(dtype: str, threads: int) -> Work:
    """Chains of multiply-adds in registers: FLOP.

    Raises:
        DTypeError: a dtype whose peak is not measured; with the first repeat.
    """

    def chains(repeats: int) -> int:
        return roof.multiply_adds(dtype, STEPS * repeats)

    return Work(f"{dtype} multiply-adds", (chains,) * threads)


def bandwidth_work(working_set: int, threads: int) -> tuple[Work, ...]:
    """Three sweeps over so many bytes, an equal part for each thread: bytes as STREAM counts them.

    A triad, a triad that writes past the caches, and a plain read. Which one is fastest depends on
    where the bytes lie: what has to be written past the caches is slower in them, and in memory
    faster, since a line that is written need not be read first.

    The memory is written once by the thread that will sweep it when a piece is first called.
    """
    parts = [_Part(working_set // threads) for _ in range(threads)]
    return (
        Work("triad", tuple(functools.partial(part.triad, past_caches=False) for part in parts)),
        Work("triad past the caches", tuple(part.triad for part in parts)),
        Work("read", tuple(part.read for part in parts)),
    )


class _Part:
    """One thread's part of a working set: three arrays that lie one behind the other."""

    def __init__(self, nbytes: int) -> None:
        self._nbytes = nbytes

    @functools.cached_property
    def _arrays(self) -> tuple[np.ndarray[Any, Any], ...]:
        third = roof.buffer(self._nbytes // 3).size
        whole = roof.buffer(3 * third * 8)
        whole[:] = 1.0
        return whole, *(whole[n * third : (n + 1) * third] for n in range(3))

    def triad(self, repeats: int, *, past_caches: bool = True) -> int:
        _, a, b, c = self._arrays
        # Values neither grow nor vanish: a is never read.
        return roof.triad(a, b, c, repeats, past_caches=past_caches)

    def read(self, repeats: int) -> int:
        return roof.read(self._arrays[0], repeats)


def working_sets(threads: int) -> tuple[int, ...]:
    """Bytes that fit the cores' own caches, the last one, and neither; ascending.

    Three quarters of a cache, since something else is always in it. Where the last cache is the
    cores' own, there are two sizes and not three.
    """
    own, last = roof.caches()
    inside = sorted({own * threads * 3 // 4, max(own * threads, last) * 3 // 4})
    last = max(own * threads, last)
    return (*inside, max(AT_LEAST * last, min(BEYOND_CACHES * last, AT_MOST)))


def target() -> dict[str, Any]:
    """What the measuring kernels are compiled for, in plain values."""
    return roof.target()
