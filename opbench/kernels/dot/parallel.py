"""Products C = A·B by several workers, which take tiles of C as they come.

Assumes what `loops` does.
"""

from __future__ import annotations

from numba import prange

from opbench.kernels.cache import jit
from opbench.kernels.dot.loops import ceil_div, even, tile
from opbench.kernels.dot.microkernel import MR, ROW_BYTES, TILE
from opbench.kernels.dot.tasks import end_task, new_counter, take
from opbench.kernels.lanes import lane_begin

__all__ = ["gemm_parallel", "grid"]

VECTOR = TILE.vector
TILES_EACH = 4  # for each worker, so that one that is held up can take fewer
TILE_WORK = 192**3  # multiply-adds below which a tile is not cut further


@jit
def grid(M, N, K, NC, size, workers):
    """Rows and columns of a tile of C: enough tiles for the workers, as square as that allows."""
    many = workers * min(max(M * N * K // (TILE_WORK * workers), 1), TILES_EACH)
    best, rows, columns = M + N + 1, M, N
    for g in range(1, many + 1):
        m, n = ceil_div(M, g), ceil_div(N, many // g)
        if many % g == 0 and m + n < best:
            best, rows, columns = m + n, m, n
    unit = ROW_BYTES if columns * size >= 4 * ROW_BYTES else VECTOR
    return even(rows, NC, MR), even(columns, NC, unit // size)


@jit(nogil=True, parallel=True)
def gemm_parallel(A, B, C, space, KC, MC, NC, span, lanes):
    """C = A·B by one worker for each row of `space`; one that is held up takes fewer tiles.

    `lanes` is the address of a buffer for a lane record of each tile, or 0.
    """
    (M, N), workers = C.shape, space.shape[0]
    rows, columns = grid(M, N, A.shape[1], NC, A.itemsize, workers)
    across = ceil_div(N, columns)
    tiles = ceil_div(M, rows) * across
    counter = new_counter()
    for worker in prange(workers):
        t = take(counter)
        while t < tiles:
            i, j = t // across * rows, t % across * columns
            Ai, Bj, Cij = (
                A[i : i + rows, :],
                B[:, j : j + columns],
                C[i : i + rows, j : j + columns],
            )
            lane_begin(lanes, t)
            tile(Ai, Bj, Cij, space[worker], KC, MC, span)
            end_task(lanes, t, Cij.shape[0], A.shape[1], Cij.shape[1], A.itemsize)
            t = take(counter)
