"""The compiled kernels of one dtype, loaded or compiled on first use, and their scratch memory."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba import types

from opbench.kernels.cache import entry_point
from opbench.kernels.dot import gemv, loops, machine

__all__ = ["Family"]

L1_FALLBACK, L2_FALLBACK = 32 << 10, 512 << 10
SPACE_ALIGNMENT = 4096
SERIAL_GEMM, SERIAL_GEMV = 80**3, 256**2


def operand(element: Any, dimensions: int, *, readonly: bool) -> Any:
    """The one array type that stands for every layout, so that no operand compiles anything new."""
    return types.Array(element, dimensions, "A", readonly=readonly, aligned=False)


class Family:
    """Entry points by name. Each takes plain arrays of this dtype, of any strides and alignment.

    Attributes:
        blocks: KC, MC and NC.
        serial_gemm: Multiply-adds below which one thread is faster.
        serial_gemv: The same for a matrix and a vector.
    """

    def __init__(self, dtype: np.dtype[Any], blocks: machine.Blocks | None = None) -> None:
        self.dtype = dtype
        self.blocks = blocks or machine.blocks_for(
            dtype.itemsize,
            machine.host_tile(),
            machine.cache_bytes(1, L1_FALLBACK),
            machine.cache_bytes(2, L2_FALLBACK),
        )
        self.serial_gemm, self.serial_gemv = SERIAL_GEMM, SERIAL_GEMV
        element = getattr(types, dtype.name)
        matrix, vector = (operand(element, n, readonly=True) for n in (2, 1))
        matrix_out, vector_out = (operand(element, n, readonly=False) for n in (2, 1))
        space, integer = types.Array(types.uint8, 2, "C"), types.int64
        self.gemm_types = (matrix, matrix, matrix_out, space, integer, integer, integer)
        self.gemv_types = (matrix, vector, vector_out)
        self.spaces: dict[int, list[np.ndarray[Any, Any]]] = {}

    @functools.cached_property
    def gemm(self) -> Callable[..., None]:
        """Serial: (A, B, C, space, KC, MC, NC)."""
        return entry_point(loops.gemm, *self.gemm_types)

    @functools.cached_property
    def gemm_parallel(self) -> Callable[..., None]:
        """Parallel, a worker for each row of space: (A, B, C, space, KC, MC, NC)."""
        return entry_point(loops.gemm_parallel, *self.gemm_types)

    @functools.cached_property
    def gemv(self) -> Callable[..., None]:
        """Serial: (A, x, y)."""
        return entry_point(gemv.gemv, *self.gemv_types)

    @functools.cached_property
    def gemv_parallel(self) -> Callable[..., None]:
        """Parallel: (A, x, y, workers)."""
        return entry_point(gemv.gemv_parallel, *self.gemv_types, types.int64)

    @contextlib.contextmanager
    def space(self, workers: int) -> Iterator[np.ndarray[Any, Any]]:
        """Scratch for so many workers; kept for the next call, as fresh pages cost a fault each."""
        idle = self.spaces.setdefault(workers, [])
        try:
            space = idle.pop()
        except IndexError:
            space = self.new_space(workers)
        yield space
        idle.append(space)

    def new_space(self, workers: int) -> np.ndarray[Any, Any]:
        """Aligned scratch: (workers, bytes)."""
        row = loops.space_bytes(self.blocks, self.dtype.itemsize)
        raw = np.empty(workers * row + SPACE_ALIGNMENT, np.uint8)
        start = -raw.ctypes.data % SPACE_ALIGNMENT
        return raw[start : start + workers * row].reshape(workers, row)
