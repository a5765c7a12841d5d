"""The door: which kernel computes a product, on how many threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core.errors import NumbaError

from opbench.kernels.dot.family import Family
from opbench.kernels.dot.operands import DTYPES, MOST, accepted, check_out, result_shape
from opbench.kernels.dot.small import DONE, LARGE
from opbench.kernels.dot.threads import turn, workers

__all__ = ["compute", "dot"]

ndarray = np.ndarray

FAMILIES = {dtype: Family(dtype) for dtype in DTYPES}
# Kernels and scratch for small products. They hold the interpreter lock, so one scratch is enough.
SMALL: dict[np.dtype[Any], Any] = {}
SCRATCH = np.empty(256 << 10, np.uint8)
SPLIT_ELEMENTS = 64 * 64  # of C for each worker, up to which a deep product is split along K

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
    if type(a) is ndarray and type(b) is ndarray:
        dtype = a.dtype
        small = SMALL.get(dtype)
        if small is not None and b.dtype is dtype and a.ndim == MOST == b.ndim:
            c = np.empty((a.shape[0], b.shape[1]), dtype) if out is None else out
            try:
                if type(c) is ndarray and c.dtype is dtype:  # numba 0.61 overlooks swapped bytes
                    outcome = small(a, b, c, SCRATCH)
                    if outcome == DONE:
                        return c
                    if outcome == LARGE and min(c.shape) > 1:
                        run_gemm(FAMILIES[dtype], a, b, c)
                        return c
            except (TypeError, NumbaError):
                pass  # something is amiss, and what follows says what
    return checked_dot(a, b, out)


def checked_dot(a: Array, b: Array, out: Array | None) -> Array:
    """`dot`, with the checks and for the products that `Family.small` does not take."""
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
    if b.ndim == 1:
        if a.ndim == 1:
            a, out = a[np.newaxis], out[np.newaxis]
        run_gemv(family, a, b, out)
    elif a.ndim == 1:
        run_gemv(family, b.T, a, out)
    elif out.shape[1] == 1:
        run_gemv(family, a, b[:, 0], out[:, 0])
    elif out.shape[0] == 1:
        run_gemv(family, b.T, a[0], out[0])
    elif out.strides[1] == out.itemsize:
        run_gemm(family, a, b, out)
    elif out.strides[0] == out.itemsize:
        run_gemm(family, b.T, a.T, out.T)
    else:
        rows = np.empty(out.shape, out.dtype)
        run_gemm(family, a, b, rows)
        out[...] = rows


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
    count = 1 if a.size * b.shape[1] <= family.serial_gemm else workers()
    space = family.borrow_space(count)
    if count == 1:
        family.gemm(a, b, c, space, *family.sizes)
        SMALL[family.dtype] = family.small
    else:
        deep = a.shape[1] >= count * family.blocks.kc and c.size <= count * SPLIT_ELEMENTS
        kernel = family.gemm_split if deep else family.gemm_parallel
        with turn():
            kernel(a, b, c, space, *family.sizes)
    family.spaces[count].append(space)
