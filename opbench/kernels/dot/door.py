"""The door: which kernel computes a product, on how many threads."""

from __future__ import annotations

from typing import Any

import numpy as np

from opbench.kernels.dot.family import Family
from opbench.kernels.dot.operands import DTYPES, MOST, accepted, check_out, result_shape
from opbench.kernels.dot.small import ASK, DONE, LARGE, SMALL_SCRATCH, limits
from opbench.kernels.dot.threads import ALONE, turn, workers
from opbench.kernels.lanes import address

__all__ = ["compute", "deep", "dot"]

empty = np.empty

FAMILIES = {dtype: Family(dtype) for dtype in DTYPES}
# By dtype, the kernels for small products. They hold the interpreter lock: one scratch is enough.
SMALL = {dtype: family.small for dtype, family in FAMILIES.items()}
SCRATCH = np.empty(SMALL_SCRATCH, np.uint8)
FACTS = np.array([id(np.ndarray), SCRATCH.ctypes.data, *limits(alone=ALONE)], np.int64)
FACTS_AT = FACTS.ctypes.data  # a number costs less to pass than an array
SPLIT_ELEMENTS = 64 * 64  # of C for each worker, up to which a deep product is split along K

Array = np.ndarray[Any, Any]


def dot(a: Array, b: Array, out: Array | None = None, lanes: Array | None = None) -> Array:
    """The product of two vectors or matrices, as `numpy.dot` computes it.

    Args:
        a: (m, k) or (k,), of any strides and alignment.
        b: (k, n) or (k,), of the same dtype: float32, float64, int32 or int64 (integers wrap).
        out: Where the result goes: of exactly its shape and dtype, of any strides, sharing no
            memory with `a` and `b`.
        lanes: A buffer of `kernels.lanes` for what each worker does; pass it by name. A product
            that is computed on the calling thread alone records nothing.

    Returns:
        `out`, or a new array in C order: (m, n), (m,), (n,) or, of two vectors, ().

    Raises:
        DTypeError: An operand is no array, or of a dtype that is not supported, or they differ.
        ShapeError: The shapes do not fit.
        AliasError: `out` shares memory with an operand or with itself.
        ReadOnlyError: `out` cannot be written.
        ConfigError: `lanes` is another array, or a part of a buffer.
        ForkError: A product large enough for threads, in a forked child that has none.
    """
    try:
        # Whether they are plain arrays at all, and fit, is for the kernels to see.
        dtype = a.dtype
        small = SMALL[dtype][a.ndim][b.ndim]
        if out is not None:
            c = out
        elif a.ndim == b.ndim == MOST:
            c = empty((len(a), b.shape[1]), dtype)
        else:
            c = empty(a.shape[:-1] + b.shape[1:], dtype)
        outcome = small(a, b, c, FACTS_AT)
    except Exception:  # noqa: BLE001 - of an operand that is anything; what follows says what is wrong
        outcome = ASK
    if outcome == DONE:
        return c
    if outcome == LARGE:
        compute(FAMILIES[dtype], a, b, c, address(lanes))
        return c
    c = a  # lets go of what was allocated, or there would be two results for a while
    return checked_dot(a, b, out, address(lanes))


def checked_dot(a: Array, b: Array, out: Array | None, lanes: int) -> Array:
    """`dot`, with the checks and for the products that `Family.small` does not take.

    `lanes` is the address of a buffer, or 0.
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
        compute(family, a, b, out, lanes)
    return out


def compute(family: Family, a: Array, b: Array, out: Array, lanes: int = 0) -> None:
    """Pick the kernel by dimensions, lengths and, for gemm, the output's order."""
    vector = b.ndim == 1 or a.ndim == 1
    if (vector or 1 in out.shape) and max(a.size, b.size) <= family.serial_gemv:
        family.load_small(a.ndim, b.ndim)
    if vector:
        if b.ndim == a.ndim:
            a, out = a[np.newaxis], out[np.newaxis]
        x, y = (b.T, a) if a.ndim == 1 else (a, b)
        run_gemv(family, x, y, out, lanes)
    elif out.shape[1] == 1:
        run_gemv(family, a, b[:, 0], out[:, 0], lanes)
    elif out.shape[0] == 1:
        run_gemv(family, b.T, a[0], out[0], lanes)
    elif out.strides[1] == out.itemsize:
        run_gemm(family, a, b, out, lanes)
    elif out.strides[0] == out.itemsize:
        run_gemm(family, b.T, a.T, out.T, lanes)
    else:
        rows = np.empty(out.shape, out.dtype)
        run_gemm(family, a, b, rows, lanes)
        out[...] = rows


def run_gemv(family: Family, a: Array, x: Array, y: Array, lanes: int) -> None:
    """Compute y = a·x, on as many threads as pay."""
    count = 1 if a.size <= family.serial_gemv else workers()
    if count == 1:
        family.gemv(a, x, y)
        return
    with turn():
        family.gemv_parallel(a, x, y, count, lanes)


def deep(family: Family, elements: int, k: int, count: int) -> bool:
    """Whether a product with so many elements of C and a sum of k is split along K."""
    return k >= count * family.blocks.kc and elements <= count * SPLIT_ELEMENTS


def run_gemm(family: Family, a: Array, b: Array, c: Array, lanes: int) -> None:
    """Compute c = a·b, on as many threads as pay."""
    count = 1 if a.size * b.shape[1] <= family.serial_gemm else workers()
    space = family.borrow_space(count)
    if count == 1:
        family.gemm(a, b, c, space, *family.sizes)
        family.load_small(2, 2)
    else:
        split = deep(family, c.size, a.shape[1], count)
        kernel = family.gemm_split if split else family.gemm_parallel
        with turn():
            kernel(a, b, c, space, *family.sizes, lanes)
    family.spaces[count].append(space)
