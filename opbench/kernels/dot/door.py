"""The door: which kernel computes a product, on how many threads."""

from __future__ import annotations

from typing import Any

import numpy as np

from opbench.kernels.dot.family import Family
from opbench.kernels.dot.operands import DTYPES, accepted, check_out, result_shape
from opbench.kernels.dot.threads import turn, workers

__all__ = ["compute", "dot"]

FAMILIES = {dtype: Family(dtype) for dtype in DTYPES}

Array = np.ndarray[Any, Any]


def dot(a: Array, b: Array, out: Array | None = None) -> Array:
    """The product of two vectors or matrices, as `numpy.dot` computes it.

    Args:
        a: (m, k) or (k,), of any strides and alignment.
        b: (k, n) or (k,), of the same dtype: float32, float64, int32 or int64 (integers wrap).
        out: Where the result goes: of exactly its shape and dtype, of any strides, sharing no
            memory with `a` and `b`.

    Returns:
        `out`, or a new array in C order: (m, n), (m,), (n,) or, of two vectors, ().

    Raises:
        DTypeError: An operand is no array, or of a dtype that is not supported, or they differ.
        ShapeError: The shapes do not fit.
        AliasError: `out` shares memory with an operand or with itself.
        ReadOnlyError: `out` cannot be written.
        ForkError: A product large enough for threads, in a forked child that has none.
    """
    if type(a) is not np.ndarray or type(b) is not np.ndarray:
        a, b = accepted(a, b)
    family = FAMILIES.get(a.dtype)
    if family is None or b.dtype != a.dtype:
        a, b = accepted(a, b)
        family = FAMILIES[a.dtype]
    shape = result_shape(a.shape, b.shape)
    if out is None:
        out = np.empty(shape, a.dtype)
    else:
        check_out(out, a, b, shape)
    if out.size:
        compute(family, a, b, out)
    return out


def compute(family: Family, a: Array, b: Array, out: Array) -> None:
    """Pick the kernel by dimensions, lengths and, for gemm, the output's order."""
    if a.ndim == 1:
        a, out = a[np.newaxis], out[np.newaxis]
    if b.ndim == 1:
        b, out = b[:, np.newaxis], out[..., np.newaxis]
    m, n = out.shape
    if n == 1:
        run_gemv(family, a, b[:, 0], out[:, 0])
    elif m == 1:
        run_gemv(family, b.T, a[0], out[0])
    elif out.strides[0] == out.itemsize:
        run_gemm(family, b.T, a.T, out.T)
    else:
        run_gemm(family, a, b, out)


def run_gemv(family: Family, a: Array, x: Array, y: Array) -> None:
    """Compute y = a·x, on as many threads as pay."""
    count = 1 if a.size < family.serial_gemv else workers()
    if count == 1:
        family.gemv(a, x, y)
        return
    with turn():
        family.gemv_parallel(a, x, y, count)


def run_gemm(family: Family, a: Array, b: Array, c: Array) -> None:
    """Compute c = a·b, on as many threads as pay."""
    blocks = family.blocks
    count = 1 if a.size * b.shape[1] < family.serial_gemm else workers()
    with family.space(count) as space:
        if count == 1:
            family.gemm(a, b, c, space, blocks.kc, blocks.mc, blocks.nc)
            return
        with turn():
            family.gemm_parallel(a, b, c, space, blocks.kc, blocks.mc, blocks.nc)
