"""Small products: without threads, blocks or checks in Python; each takes longer than they do.

The checks that the door makes cost 1 µs in Python, and next to nothing here. What is not small, or
not clearly right, is left to the door.
"""

from __future__ import annotations

from opbench.kernels.cache import jit
from opbench.kernels.dot.loops import in_place, macro_kernel
from opbench.kernels.dot.microkernel import ROW_BYTES
from opbench.kernels.dot.packing import pack, panels_in_place

__all__ = ["ASK", "DONE", "LARGE", "SMALL_WORK", "apart", "small"]

SMALL_WORK = 5_500_000  # multiply-adds × bytes of an item, up to which one thread is faster
SMALL_K = 128  # at most KC on any machine
ASK, DONE, LARGE = 0, 1, 2
SMALL_SPAN = 512 << 10


@jit
def bounds(X):
    """The first and the last address of an array that is not empty, and one item more."""
    low = high = X.ctypes.data
    for n in range(2):
        reach = (X.shape[n] - 1) * X.strides[n]
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high + X.itemsize


@jit
def apart(X, Y):
    """Whether two arrays lie one after the other in memory."""
    (x_low, x_high), (y_low, y_high) = bounds(X), bounds(Y)
    return x_high <= y_low or y_high <= x_low


def small(A, B, C, scratch):  # noqa: PLR0911 - one return for each reason
    """Compute C = A·B at once (DONE), if it is small and its operands are as `loops` assumes.

    LARGE: all is well, but the product is not small. ASK: it is empty, or wrong, or takes longer to
    tell, and the door has to look.
    """
    (M, K), (L, N) = A.shape, B.shape
    if L != K or C.shape[0] != M or C.shape[1] != N or M * N == 0 or K == 0:
        return ASK
    if C.strides[1] != C.itemsize or abs(C.strides[0]) < N * C.itemsize:
        return ASK
    if not apart(C, A) or not apart(C, B):
        return ASK
    if max(M, N, K) * A.itemsize > SMALL_WORK or M * N * K * A.itemsize > SMALL_WORK:
        return LARGE
    if K > SMALL_K:
        return LARGE
    if in_place(B, M, SMALL_SPAN):
        macro_kernel(A, panels_in_place(B), C, False)
    elif K * (N * B.itemsize + ROW_BYTES) > scratch.shape[0]:
        return LARGE
    else:
        macro_kernel(A, pack(B, scratch.view(B.dtype)), C, False)
    return DONE
