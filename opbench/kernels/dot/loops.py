"""Products C = A·B: the BLIS loops jc, pc, ic, jr, ir around the micro-kernel.

Assumed of the operands (the door, `opbench.kernels.dot`, sees to it):
- A is (M, K), B is (K, N), C is (M, N), of one dtype out of float32, float64, int32, int64;
- A and B have any strides, also negative and zero, and any alignment;
- C's rows are contiguous, any distance apart, and overlap neither each other, nor A, nor B;
- M, N >= 1; K may be 0;
- `space` is (workers, bytes) of scratch, at least `space_bytes` a row.

Every element of C is summed in the same order whatever the tiles and threads: blocks of KC one
after the other, and k upwards inside a block.
"""

from __future__ import annotations

from opbench.kernels.cache import jit
from opbench.kernels.dot.machine import Blocks
from opbench.kernels.dot.microkernel import LINE, MR, ROW_BYTES, TILE, micro_kernel
from opbench.kernels.dot.packing import lay_rows, pack, panels_in_place

__all__ = ["ceil_div", "distant", "even", "gemm", "in_place", "macro_kernel", "space_bytes", "tile"]

FREE_MASKS, VECTOR = TILE.free_masks, TILE.vector
WORTH_PACKING = 8 * MR  # rows of C below which B is used too seldom to be packed
WORTH_SPREADING = 2 * MR  # the same, where B's rows throw each other out of the caches
CROWDED = 4096  # bytes: lines this far apart share one set of L1
FAR = 2048  # bytes: a few steps further is another page
WORTH_LAYING = 64  # columns of C below which A is used too seldom to be laid out


def space_bytes(blocks: Blocks, itemsize: int) -> int:
    """Scratch that one worker needs: a packed block of B, KC × NC, and one of A, MC × KC."""
    return blocks.kc * ((blocks.nc + blocks.mc) * itemsize + 2 * ROW_BYTES + LINE)


@jit
def ceil_div(a, b):
    """Divide and round up."""
    return (a + b - 1) // b


@jit
def even(length, most, unit):
    """The size of equal pieces of `length`, each at most about `most`, in whole units."""
    return ceil_div(ceil_div(length, ceil_div(length, most)), unit) * unit


@jit
def macro_kernel(A, B, C, add):
    """The loops jr and ir: C = A·B, or += where `add`, by micro-tiles; B in micro-panels."""
    (M, N), NR = C.shape, B.shape[2]
    for q in range(ceil_div(N, NR)):
        j = q * NR
        for i in range(0, M, MR):
            micro_kernel(A, B, q, C, i, j, min(MR, M - i), min(NR, N - j), add)


@jit
def in_place(B, M, span):
    """Whether the micro-kernel reads B where it lies."""
    contiguous = B.strides[1] == B.itemsize
    whole = FREE_MASKS or B.shape[1] * B.itemsize % VECTOR == 0
    near = B.shape[0] * abs(B.strides[0]) <= span
    enough = WORTH_PACKING if B.strides[0] % CROWDED else WORTH_SPREADING
    return contiguous and whole and (near or enough >= M)


@jit
def distant(A, N):
    """Whether A's columns, each contiguous, are too far apart to be read where they lie.

    No hardware fetches the next ones early, and some distances share a set of the caches.
    """
    return A.strides[0] == A.itemsize and abs(A.strides[1]) >= FAR and N >= WORTH_LAYING


@jit
def tile(A, B, C, scratch, KC, MC, span):
    """One worker's C = A·B, at most NC wide: the loops pc and ic."""
    M, K = A.shape
    if K == 0:
        for i in range(M):
            for j in range(C.shape[1]):
                C[i, j] = 0
        return
    KC = even(K, KC, 1)
    laid = KC * (MC * A.itemsize + ROW_BYTES + LINE)
    for pc in range(0, K, KC):
        Bp = B[pc : pc + KC]
        panels = panels_in_place(Bp) if in_place(Bp, M, span) else pack(Bp, scratch.view(B.dtype))
        for ic in range(0, M, MC):
            Ap = A[ic : ic + MC, pc : pc + KC]
            if distant(Ap, C.shape[1]):
                Ap = lay_rows(Ap.T, scratch[scratch.shape[0] - laid :].view(A.dtype)).T
            macro_kernel(Ap, panels, C[ic : ic + MC], pc > 0)


@jit(nogil=True)
def gemm(A, B, C, space, KC, MC, NC, span):
    """C = A·B on the calling thread: the loop jc."""
    N, NR = C.shape[1], ROW_BYTES // A.itemsize
    columns = even(N, NC, NR)
    for jc in range(0, N, columns):
        end = jc + columns
        tile(A[:, :], B[:, jc:end], C[:, jc:end], space[0], KC, MC, span)
