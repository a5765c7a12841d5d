"""Deep products with a small C: the workers take blocks of K, and their parts are added in order.

A few tiles of C cannot occupy many workers. Each block of KC gives a whole product, kept apart;
adding them first to last gives the same bits as one worker that goes through the blocks.
Assumes what `loops` does.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from opbench.kernels.cache import jit
from opbench.kernels.dot.emit import loose
from opbench.kernels.dot.loops import ceil_div, even, tile
from opbench.kernels.dot.tasks import end_task, new_counter, take
from opbench.kernels.lanes import lane_begin

__all__ = ["gemm_split"]


@jit
def add_up(parts, C):
    """C = the sum of the parts, first to last."""
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            total = parts[0, i, j]
            for s in range(1, parts.shape[0]):
                total += parts[s, i, j]
            C[i, j] = total


@jit(nogil=True, parallel=True)
def gemm_split(A, B, C, space, KC, MC, NC, span, lanes):  # noqa: ARG001 - called like gemm_parallel
    """C = A·B by one worker for each row of `space`; K >= 1 and N <= NC.

    `lanes` is the address of a buffer for a lane record of each block, or 0.
    """
    (M, K), N = A.shape, B.shape[1]
    KC = even(K, KC, 1)
    blocks, workers = ceil_div(K, KC), space.shape[0]
    parts = np.empty((blocks, M, N), C.dtype)
    counter = new_counter()
    for worker in prange(workers):
        t = take(counter)
        while t < blocks:
            k = t * KC
            lane_begin(lanes, t)
            tile(
                A[:, k : k + KC],
                B[k : k + KC, :],
                loose(parts[t]),
                space[worker],
                KC,
                MC,
                span,
            )
            end_task(lanes, t, M, min(KC, K - k), N, A.itemsize)
            t = take(counter)
    add_up(parts, C)
