"""Products C = A·B by several workers, which take tiles of C as they come.

Assumes what `loops` does.
"""

from __future__ import annotations

from numba import prange

from opbench.kernels.cache import jit
from opbench.kernels.dot.loops import ceil_div, distant, even, tile
from opbench.kernels.dot.microkernel import MR, ROW_BYTES, TILE
from opbench.kernels.dot.tasks import end_task, new_counter, take
from opbench.kernels.lanes import lane_begin

__all__ = ["PREFERENCES", "gemm_parallel", "grid"]

VECTOR = TILE.vector
TILES_EACH = 4  # for each worker, so that one that is held up can take fewer
LAID_EACH = 2  # the same where each tile has to lay its rows of A out
TILE_WORK = 192**3  # multiply-adds below which a tile is not cut further
SCATTERED = 6  # rows that a column of a tile weighs, where each tile copies its columns by elements
PREFERENCES = tuple((each, n) for each in (LAID_EACH, TILES_EACH) for n in (1, SCATTERED))


@jit
def preference(A, B):
    """Tiles for each worker at most, and as much as how many rows of a tile a column weighs."""
    each = LAID_EACH if distant(A, B.shape[1]) else TILES_EACH
    scattered = B.strides[0] != B.itemsize and B.strides[1] != B.itemsize
    return each, SCATTERED if scattered else 1


@jit
def grid(M, N, K, NC, size, workers, preferred):
    """Rows and columns of a tile of C: enough tiles for the workers, else as square as can be.

    `preferred` is what `preference` gives.
    """
    each, weight = preferred
    many = workers * min(max(M * N * K // (TILE_WORK * workers), 1), each)
    best, rows, columns = M + weight * N + 1, M, N
    for g in range(1, many + 1):
        m, n = ceil_div(M, g), ceil_div(N, many // g)
        if many % g == 0 and m + weight * n < best:
            best, rows, columns = m + weight * n, m, n
    unit = ROW_BYTES if columns * size >= 4 * ROW_BYTES else VECTOR
    return even(rows, NC, MR), even(columns, NC, unit // size)


@jit(nogil=True, parallel=True)
def gemm_parallel(A, B, C, space, KC, MC, NC, span, lanes):
    """C = A·B by one worker for each row of `space`; one that is held up takes fewer tiles.

    `lanes` is the address of a buffer for a lane record of each tile, or 0.
    """
    (M, N), workers = C.shape, space.shape[0]
    rows, columns = grid(M, N, A.shape[1], NC, A.itemsize, workers, preference(A, B))
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
