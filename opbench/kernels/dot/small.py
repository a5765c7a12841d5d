"""Small products: without threads, blocks or checks in Python; each takes longer than they do.

The checks that the door makes cost 1 µs in Python, and next to nothing here. What is not small, or
not clearly right, is left to the door, which comes to the same bits.

Assumed: the left operand, if it is an array, has the kernel's dtype, one out of float32, float64,
int32, int64; and the interpreter lock is held, as all calls share one scratch. Everything else is
looked at here.
"""

from __future__ import annotations

import numpy as np
from numba import carray
from numpy.lib.stride_tricks import as_strided

from opbench.kernels.cache import jit
from opbench.kernels.dot.emit import frozen, loose, pointer_to
from opbench.kernels.dot.gemv import gemv
from opbench.kernels.dot.handles import array_of, descr_of, fact, is_plain, writeable
from opbench.kernels.dot.loops import in_place, macro_kernel
from opbench.kernels.dot.microkernel import ROW_BYTES
from opbench.kernels.dot.packing import pack, panels_in_place

__all__ = [
    "ASK",
    "DONE",
    "LARGE",
    "SMALL_SCRATCH",
    "SMALL_VECTOR",
    "SMALL_WORK",
    "apart",
    "limits",
    "small_both",
    "small_inner",
    "small_left",
    "small_right",
]

# Up to which one thread is faster, and where there is only one, up to which the door would cost
# about a hundredth: multiply-adds × bytes of an item, and bytes of what a vector is multiplied
# with. The interpreter lock is held as long.
SMALL_WORK, ALONE_WORK = 3_500_000, 16_000_000
SMALL_VECTOR, ALONE_VECTOR = 512 << 10, 2 << 20
SMALL_K = 128  # at most KC on any machine
ASK, DONE, LARGE = 0, 1, 2
SMALL_SPAN = 512 << 10
SMALL_SCRATCH = 256 << 10  # bytes
# Integers side by side, in whose place `facts` stands: the address of the type of arrays, that of
# SMALL_SCRATCH bytes, and the two limits.
NDARRAY, SCRATCH, WORK, VECTOR = 0, 1, 2, 3


def limits(*, alone):
    """WORK and VECTOR; `alone` where no product has threads."""
    return (ALONE_WORK, ALONE_VECTOR) if alone else (SMALL_WORK, SMALL_VECTOR)


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
def small_gemv(A, x, y, facts):
    """Compute y = A·x at once (DONE), LARGE or ASK as `small_gemm`."""
    M, K = A.shape
    if x.shape[0] != K or y.shape[0] != M or M * K == 0 or y.strides[0] != y.itemsize:
        return ASK
    if not apart(y, A) or not apart(y, x):
        return ASK
    if M * K * A.itemsize > fact(facts, VECTOR):
        return LARGE
    gemv(A, x, y)
    return DONE


@jit
def small_gemm(A, B, C, facts):  # noqa: PLR0911 - one return for each reason
    """Compute C = A·B at once (DONE), if it is small and its operands are as `loops` assumes.

    LARGE: all is well, but the product is not small. ASK: it is empty, or wrong, or takes longer to
    tell, and the door has to look.
    """
    (M, K), (L, N) = A.shape, B.shape
    if L != K or C.shape[0] != M or C.shape[1] != N or K == 0:
        return ASK
    if N == 1:  # in the door's order, which decides on the bits of 1 × 1
        return small_gemv(A, B[:, 0], C[:, 0], facts)
    if M == 1:
        return small_gemv(B.T, A[0], C[0], facts)
    if M == 0 or N == 0 or C.strides[1] != C.itemsize or abs(C.strides[0]) < N * C.itemsize:
        return ASK
    if not apart(C, A) or not apart(C, B):
        return ASK
    work = fact(facts, WORK)
    if max(M, N, K) * A.itemsize > work or M * N * K * A.itemsize > work:
        return LARGE
    if K > SMALL_K:
        return LARGE
    if in_place(B, M, SMALL_SPAN):
        macro_kernel(A, panels_in_place(B), C, False)
    elif K * (N * B.itemsize + ROW_BYTES) > SMALL_SCRATCH:
        return LARGE
    else:
        memory = carray(pointer_to(fact(facts, SCRATCH)), SMALL_SCRATCH, np.uint8)
        macro_kernel(A, pack(B, memory.view(B.dtype)), C, False)
    return DONE


@jit
def sound(a, b, c, facts):
    """Whether three handles are of plain arrays of one dtype, and the third can be written."""
    ndarray = fact(facts, NDARRAY)
    if not is_plain(a, ndarray) or not is_plain(b, ndarray) or not is_plain(c, ndarray):
        return False
    return descr_of(a) == descr_of(b) == descr_of(c) and writeable(c)


def small_both(a, b, c, facts):
    """Compute c = a·b at once, if all three are plain matrices: DONE, LARGE or ASK.

    Args:
        a: A `handles.Handle`, as all operands here; the caller vouches for its dtype.
        b: The right operand.
        c: Where the result goes.
        facts: The address of NDARRAY to VECTOR.
    """
    return (
        small_gemm(array_of(a), array_of(b), array_of(c), facts) if sound(a, b, c, facts) else ASK
    )


def small_right(a, x, y, facts):
    """As `small_both`, for y = a·x."""
    if not sound(a, x, y, facts):
        return ASK
    return small_gemv(array_of(a), array_of(x), array_of(y), facts)


def small_left(x, b, y, facts):
    """As `small_both`, for y = x·b."""
    if not sound(x, b, y, facts):
        return ASK
    return small_gemv(array_of(b).T, array_of(x), array_of(y), facts)


def small_inner(x, y, c, facts):
    """As `small_both`, for the product of two vectors; `c` has no dimension."""
    if not sound(x, y, c, facts):
        return ASK
    X, C = array_of(x), array_of(c)
    row = frozen(as_strided(X, (1, X.shape[0]), (0, X.strides[0])))
    return small_gemv(row, array_of(y), loose(as_strided(C, (1,), (C.itemsize,))), facts)
