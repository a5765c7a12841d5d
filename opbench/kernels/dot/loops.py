"""Products C = A·B: the BLIS loops jc, pc, ic, jr, ir around the micro-kernel, and the threads.

Assumed of the operands (the door, `opbench.kernels.dot`, sees to it):
- A is (M, K), B is (K, N), C is (M, N), of one dtype out of float32, float64, int32, int64;
- any strides, also negative and zero, and any alignment, for A and B; C too, but unit stride along
  its rows is fast, and C's elements do not overlap each other, nor A, nor B;
- M, N >= 1; K may be 0;
- `space` is (workers, bytes) of scratch, at least `space_bytes` a row, each row 64-byte aligned.

Every element of C is summed in the same order whatever the tiles and threads: blocks of KC one
after the other, and k upwards inside a block.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from opbench.kernels.cache import jit
from opbench.kernels.dot.machine import Blocks
from opbench.kernels.dot.microkernel import (
    MR,
    ROW_BYTES,
    micro_kernel,
    pack_a_panel,
    pack_b_panel,
    prefetch_row,
    take,
)

__all__ = ["gemm", "gemm_parallel", "space_bytes"]

SLACK = 128


def space_bytes(blocks: Blocks, itemsize: int) -> int:
    """Bytes that one worker needs: a block of A, a row panel of B and one micro-tile of C."""
    nr = ROW_BYTES // itemsize
    a = blocks.kc * (blocks.mc + MR)
    b = blocks.kc * (blocks.nc + nr)
    return -(-((a + b + MR * nr) * itemsize + 4 * SLACK) // 4096) * 4096


@jit
def ceil_div(a, b):
    """Divide and round up."""
    return (a + b - 1) // b


@jit
def even(length, most, unit):
    """The size of equal pieces of `length`, each at most about `most`, in whole units."""
    return ceil_div(ceil_div(length, ceil_div(length, most)), unit) * unit


@jit
def pack_ragged(X, x, P, p):
    """The last panel, which X does not fill: padded with zeros."""
    rows = min(P.shape[2], X.shape[0] - x)
    for k in range(P.shape[1]):
        for r in range(rows):
            P[p, k, r] = X[x + r, k]
        for r in range(rows, P.shape[2]):
            P[p, k, r] = 0


@jit
def pack_a(A, P):
    """P[p, k, r] = A[p·MR + r, k]."""
    whole = A.shape[0] // MR
    for p in range(whole):
        pack_a_panel(A, p * MR, P, p)
    if whole < P.shape[0]:
        pack_ragged(A, whole * MR, P, whole)


@jit
def pack_b(Bt, P):
    """P[q, k, c] = Bt[q·NR + c, k], where Bt is B transposed."""
    NR = P.shape[2]
    whole = Bt.shape[0] // NR
    for q in range(whole):
        pack_b_panel(Bt, q * NR, P, q)
    if whole < P.shape[0]:
        pack_ragged(Bt, whole * NR, P, whole)


@jit
def store_ragged(edge, C, i, j, add):
    """The part of a micro-tile that lies inside C."""
    for r in range(min(edge.shape[0], C.shape[0] - i)):
        for c in range(min(edge.shape[1], C.shape[1] - j)):
            C[i + r, j + c] = edge[r, c] + (C[i + r, j + c] if add else 0)


@jit
def macro_kernel(Ap, Bp, C, add, edge):
    """The loops jr and ir: C = Ap·Bp, or += where `add`, one micro-tile at a time."""
    M, N, NR = C.shape[0], C.shape[1], Bp.shape[2]
    direct = C.strides[1] == C.itemsize
    panels, kc = Ap.shape[0], Ap.shape[1]
    for q in range(Bp.shape[0]):
        ahead = min(q + 1, Bp.shape[0] - 1)
        for p in range(panels):
            for k in range(kc * p // panels, kc * (p + 1) // panels):
                prefetch_row(Bp, ahead, k)  # the next panel of B comes a share at a time
            i, j = p * MR, q * NR
            if direct and i + MR <= M and j + NR <= N:
                micro_kernel(Ap, p, Bp, q, C, i, j, add)
            else:
                micro_kernel(Ap, p, Bp, q, edge, 0, 0, False)
                store_ragged(edge, C, i, j, add)


@jit
def tile(A, B, C, space, KC, MC):
    """One worker's C = A·B, at most NC wide: the loops pc and ic."""
    (M, K), N, size = A.shape, B.shape[1], A.itemsize
    NR = ROW_BYTES // size
    if K == 0:
        C[:, :] = 0
        return
    scratch = space.view(A.dtype)
    edge = scratch[: MR * NR].reshape((MR, NR))
    kc_most, mc_most = even(K, KC, 1), even(M, MC, MR)
    b_start = MR * NR
    a_start = b_start + ceil_div(N, NR) * NR * kc_most
    for pc in range(0, K, kc_most):
        kc = min(kc_most, K - pc)
        panels = ceil_div(N, NR)
        Bp = scratch[b_start : b_start + panels * kc * NR].reshape((panels, kc, NR))
        pack_b(B[pc : pc + kc].T, Bp)
        for ic in range(0, M, mc_most):
            mc = min(mc_most, M - ic)
            panels = ceil_div(mc, MR)
            Ap = scratch[a_start : a_start + panels * kc * MR].reshape((panels, kc, MR))
            pack_a(A[ic : ic + mc, pc : pc + kc], Ap)
            macro_kernel(Ap, Bp, C[ic : ic + mc], pc > 0, edge)


@jit
def grid(M, N, NC, workers):
    """Rows and columns of a tile of C: several tiles for each worker, as square as that allows."""
    best, rows, columns = M + N + 1, M, N
    for g in range(1, workers + 1):
        m, n = ceil_div(M, g), ceil_div(N, workers // g)
        if workers % g == 0 and m + n < best:
            best, rows, columns = m + n, m, n
    return even(rows, NC, MR), even(columns, NC, 16)


@jit(nogil=True)
def gemm(A, B, C, space, KC, MC, NC):
    """C = A·B on the calling thread: the loop jc."""
    columns = even(C.shape[1], NC, 16)
    for jc in range(0, C.shape[1], columns):
        tile(A[:, :], B[:, jc : jc + columns], C[:, jc : jc + columns], space[0], KC, MC)


@jit(nogil=True, parallel=True)
def gemm_parallel(A, B, C, space, KC, MC, NC):
    """C = A·B by one worker for each row of `space`; one that is held up takes fewer tiles."""
    M, N, workers = C.shape[0], C.shape[1], space.shape[0]
    rows, columns = grid(M, N, NC, workers)
    across = ceil_div(N, columns)
    tiles = ceil_div(M, rows) * across
    counter = np.zeros(1, np.int64)
    for worker in prange(workers):
        t = take(counter)
        while t < tiles:
            i, j = t // across * rows, t % across * columns
            tile(
                A[i : i + rows, :],
                B[:, j : j + columns],
                C[i : i + rows, j : j + columns],
                space[worker],
                KC,
                MC,
            )
            t = take(counter)
