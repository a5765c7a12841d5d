"""Small products: without threads, blocks or checks in Python; each takes longer than they do.

The checks that the door makes cost 1 µs in Python, and next to nothing here. What is not small, or
not clearly right, is left to the door, which comes to the same bits.

Assumed of the operands: one dtype out of float32, float64, int32, int64, and an output that can be
written. Everything else is looked at here.
"""

from __future__ import annotations

import numpy as np
from numba import carray
from numpy.lib.stride_tricks import as_strided

from opbench.kernels.cache import jit
from opbench.kernels.dot.emit import frozen, loose, pointer_to
from opbench.kernels.dot.gemv import gemv
from opbench.kernels.dot.loops import in_place, macro_kernel
from opbench.kernels.dot.microkernel import ROW_BYTES
from opbench.kernels.dot.packing import pack, panels_in_place

__all__ = [
    "ALONE_WORK",
    "ASK",
    "DONE",
    "LARGE",
    "SMALL_SCRATCH",
    "SMALL_VECTOR",
    "SMALL_WORK",
    "apart",
    "small",
    "small_alone",
    "small_inner",
    "small_left",
    "small_right",
]

SMALL_WORK = 3_500_000  # multiply-adds × bytes of an item, up to which one thread is faster
ALONE_WORK = 16_000_000  # the same where there is only one, and the door costs under a hundredth
SMALL_VECTOR = 512 << 10  # bytes of a matrix that a vector is multiplied with: the same
SMALL_K = 128  # at most KC on any machine
ASK, DONE, LARGE = 0, 1, 2
SMALL_SPAN = 512 << 10
SMALL_SCRATCH = 256 << 10  # bytes


@jit
def bounds(X):
    """The first and the last address of an array that is not empty, and one item more."""
    low = high = X.ctypes.data
    for n in range(X.ndim):
        reach = (X.shape[n] - 1) * X.strides[n]
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high + X.itemsize


@jit
def apart(X, Y):
    """Whether two arrays lie one after the other in memory."""
    (x_low, x_high), (y_low, y_high) = bounds(X), bounds(Y)
    return x_high <= y_low or y_high <= x_low


@jit
def small_gemm(A, B, C, scratch, work):  # noqa: PLR0911 - one return for each reason
    """Compute C = A·B at once (DONE), if it is small and its operands are as `loops` assumes.

    LARGE: all is well, but the product is not small. ASK: it is empty, or wrong, or takes longer to
    tell, and the door has to look. `scratch` is the address of SMALL_SCRATCH bytes.
    """
    (M, K), (L, N) = A.shape, B.shape
    if L != K or C.shape[0] != M or C.shape[1] != N or K == 0:
        return ASK
    if M <= 1 or N <= 1:  # nothing, or what is computed as a product with a vector
        return ASK
    if C.strides[1] != C.itemsize or abs(C.strides[0]) < N * C.itemsize:
        return ASK
    if not apart(C, A) or not apart(C, B):
        return ASK
    if max(M, N, K) * A.itemsize > work or M * N * K * A.itemsize > work:
        return LARGE
    if K > SMALL_K:
        return LARGE
    if in_place(B, M, SMALL_SPAN):
        macro_kernel(A, panels_in_place(B), C, False)
    elif K * (N * B.itemsize + ROW_BYTES) > SMALL_SCRATCH:
        return LARGE
    else:
        memory = carray(pointer_to(scratch), SMALL_SCRATCH, np.uint8)
        macro_kernel(A, pack(B, memory.view(B.dtype)), C, False)
    return DONE


def small(A, B, C, scratch):
    """As `small_gemm`, where a larger product has threads."""
    return small_gemm(A, B, C, scratch, SMALL_WORK)


def small_alone(A, B, C, scratch):
    """As `small_gemm`, where there is one thread for everything."""
    return small_gemm(A, B, C, scratch, ALONE_WORK)


@jit
def small_gemv(A, x, y):
    """Compute y = A·x at once (DONE), LARGE or ASK as `small_gemm`; y has unit stride."""
    M, K = A.shape
    if x.shape[0] != K or y.shape[0] != M or M * K == 0:
        return ASK
    if not apart(y, A) or not apart(y, x):
        return ASK
    if M * K * A.itemsize > SMALL_VECTOR:
        return LARGE
    gemv(A, x, y)
    return DONE


def small_right(A, x, y, _):
    """As `small_gemm`, for y = A·x."""
    return small_gemv(A, x, y) if y.strides[0] == y.itemsize else ASK


def small_left(x, B, y, _):
    """As `small_gemm`, for y = x·B."""
    return small_gemv(B.T, x, y) if y.strides[0] == y.itemsize else ASK


def small_inner(x, y, c, _):
    """As `small_gemm`, for the product of two vectors; `c` has no dimension."""
    row = frozen(as_strided(x, (1, x.shape[0]), (0, x.strides[0])))
    return small_gemv(row, y, loose(as_strided(c, (1,), (c.itemsize,))))
