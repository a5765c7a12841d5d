"""The compiled kernels of one dtype, loaded or compiled on first use, and their scratch memory."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from opbench.kernels.cache import entry_point, jit
from opbench.kernels.dot import gemv, loops, machine, parallel, small, splitk
from opbench.kernels.dot.handles import Handle, known_layout
from opbench.kernels.dot.threads import ALONE

__all__ = ["Family"]

L2_FALLBACK = 512 << 10
PAGE = 4096
# By the operands' dimensions.
SMALL_KERNELS = {
    (1, 1): small.small_inner,
    (1, 2): small.small_left,
    (2, 1): small.small_right,
    (2, 2): small.small_both,
}


def operand(element: Any, dimensions: int, *, readonly: bool = True) -> Any:
    """The one array type that stands for every layout, so that no operand compiles anything new."""
    return types.Array(element, dimensions, "A", readonly=readonly, aligned=False)


def not_loaded(*_: object) -> int:
    """Stand in for a small kernel until it is loaded: the door has to look."""
    return small.ASK


class Family:
    """Entry points by name. Each takes plain arrays of this dtype, of any strides and alignment.

    Attributes:
        blocks: The sizes of the BLIS loops.
        sizes: The same as a tuple, in the order of the kernels' arguments.
        spaces: Idle scratch by number of workers.
        serial_gemm: Multiply-adds up to which one thread is faster.
        serial_gemv: Elements of a matrix up to which one thread multiplies it with a vector faster.
        small: Kernels for small products by the operands' dimensions, each loaded once it would
            have been of use: (A, B, C, address of facts) -> what was done.
    """

    def __init__(self, dtype: np.dtype[Any], blocks: machine.Blocks | None = None) -> None:
        self.dtype = dtype
        self.blocks = blocks or machine.blocks_for(
            dtype.itemsize, machine.host_tile(), machine.cache_bytes(2, L2_FALLBACK)
        )
        sizes = self.blocks
        self.sizes = (sizes.kc, sizes.mc, sizes.nc, sizes.span)
        work, vector = small.limits(alone=ALONE)
        self.serial_gemm: int = work // dtype.itemsize
        self.serial_gemv: int = vector // dtype.itemsize
        self.small: list[list[Callable[..., int]]] = [[not_loaded] * 3 for _ in range(3)]
        element, integer = getattr(types, dtype.name), types.int64
        matrix, vector = operand(element, 2), operand(element, 1)
        self.product_types = (matrix, matrix, operand(element, 2, readonly=False))
        self.gemm_types = (
            *self.product_types,
            types.Array(types.uint8, 2, "C"),
            *[integer] * 4,
        )
        self.gemv_types = (matrix, vector, operand(element, 1, readonly=False))
        self.spaces: defaultdict[int, list[np.ndarray[Any, Any]]] = defaultdict(list)

    @functools.cached_property
    def gemm(self) -> Callable[..., None]:
        """Serial: (A, B, C, space, KC, MC, NC, span)."""
        return entry_point(loops.gemm, *self.gemm_types)

    @functools.cached_property
    def gemm_parallel(self) -> Callable[..., None]:
        """Parallel, a worker for each row of space: (A, B, C, space, KC, MC, NC, span, lanes)."""
        return entry_point(parallel.gemm_parallel, *self.gemm_types, types.int64)

    @functools.cached_property
    def gemm_split(self) -> Callable[..., None]:
        """Parallel over K, as `gemm_parallel`."""
        return entry_point(splitk.gemm_split, *self.gemm_types, types.int64)

    @functools.cached_property
    def gemv(self) -> Callable[..., None]:
        """Serial: (A, x, y)."""
        return entry_point(gemv.gemv, *self.gemv_types)

    @functools.cached_property
    def gemv_parallel(self) -> Callable[..., None]:
        """Parallel: (A, x, y, workers, lanes)."""
        return entry_point(gemv.gemv_parallel, *self.gemv_types, *[types.int64] * 2)

    def load_small(self, dimensions: int, others: int) -> None:
        """Have `small` hold the kernel for operands of so many dimensions, where it can be used."""
        if self.small[dimensions][others] is not_loaded and known_layout():
            element = getattr(types, self.dtype.name)
            out = operand(element, dimensions + others - 2, readonly=False)
            arrays = operand(element, dimensions), operand(element, others), out
            kinds = [Handle(array) for array in arrays]
            kernel = entry_point(jit(SMALL_KERNELS[dimensions, others]), *kinds, types.int64)
            self.small[dimensions][others] = kernel

    def borrow_space(self, workers: int) -> np.ndarray[Any, Any]:
        """Scratch for so many workers; whoever borrows it appends it to `spaces[workers]` again.

        It is kept because fresh pages cost a fault each.
        """
        try:
            return self.spaces[workers].pop()
        except IndexError:
            return self.new_space(workers)

    def new_space(self, workers: int) -> np.ndarray[Any, Any]:
        """Scratch, (workers, bytes), each row on pages of its own."""
        row = -(-loops.space_bytes(self.blocks, self.dtype.itemsize) // PAGE) * PAGE
        raw = np.empty(workers * row + PAGE, np.uint8)
        start = -raw.ctypes.data % PAGE
        return raw[start : start + workers * row].reshape(workers, row)
