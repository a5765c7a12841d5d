"""How many lane records a product can need: the decisions of the door, without the product."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from opbench.kernels.dot.door import FAMILIES, deep
from opbench.kernels.dot.family import Family
from opbench.kernels.dot.gemv import cut
from opbench.kernels.dot.loops import ceil_div, even
from opbench.kernels.dot.parallel import PREFERENCES, grid
from opbench.kernels.dot.threads import workers
from opbench.kernels.lanes import available

__all__ = ["dot_records"]

Shape = tuple[int, ...]


def dot_records(shapes: Sequence[Shape], dtype: str) -> int:
    """How many pieces `dot` cuts a product into at most, whatever the operands' strides.

    Args:
        shapes: Of the two operands, which must fit.
        dtype: Their dtype's name.

    Returns:
        What a buffer of `kernels.lanes` for the call must hold; 0 where the calling thread computes
        the product alone, which records nothing, and where workers cannot be recorded.

    Raises:
        ForkError: As `dot`.
    """
    family = FAMILIES.get(np.dtype(dtype))
    (*rows, k), (_, *columns) = shapes
    m, n = math.prod(rows), math.prod(columns)
    # Asked in this order: the number of workers cannot be told without starting them.
    if family is None or alone(family, m, k, n) or available():
        return 0
    have = workers()
    return count(family, m, k, n, have) if have > 1 else 0


def alone(family: Family, m: int, k: int, n: int) -> bool:
    """Whether the calling thread multiplies (m, k) by (k, n), or nobody does."""
    if 1 in (m, n):
        return m * k * n <= family.serial_gemv
    return m * k * n <= family.serial_gemm


@functools.lru_cache(maxsize=1024)
def count(family: Family, m: int, k: int, n: int, have: int) -> int:
    """The pieces of a product that so many workers share."""
    if 1 in (m, n):
        rows, size = max(m, n), family.dtype.itemsize
        return max(tasks(rows, k, (k * size, size)), tasks(rows, k, (size, rows * size)))
    if deep(family, m * n, k, have):
        return int(ceil_div(k, even(k, family.blocks.kc, 1)))
    return max(tiles(family, m, k, n, have), tiles(family, n, k, m, have))


def tasks(m: int, k: int, strides: tuple[int, int]) -> int:
    """Pieces that `gemv_parallel` cuts a matrix into."""
    rows, columns = cut.py_func(as_strided(np.empty(1, np.uint8), (m, k), strides))
    return int(-(-m // rows) * -(-k // columns))


def tiles(family: Family, m: int, k: int, n: int, have: int) -> int:
    """Tiles of C that `gemm_parallel` cuts a product into at most."""
    size, nc = family.dtype.itemsize, family.blocks.nc
    cuts = [grid(m, n, k, nc, size, have, preferred) for preferred in PREFERENCES]
    return max(-(-m // int(rows)) * -(-n // int(columns)) for rows, columns in cuts)
