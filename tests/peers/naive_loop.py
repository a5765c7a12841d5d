"""The loop that everybody writes first, in the order that vectorises; for dot_vs_blas.py."""

from __future__ import annotations

import functools

from numba import njit, prange


@njit(parallel=True, fastmath=True)
def multiply(A, B, C):
    """C = A·B, a row of C at a time."""
    for i in prange(A.shape[0]):
        C[i, :] = 0
        for k in range(A.shape[1]):
            for j in range(B.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


def product(a, b, c):
    """A call that computes c = a·b, the vectors seen as matrices of one row or column."""
    left = a.reshape(1, -1) if a.ndim == 1 else a
    right = b.reshape(-1, 1) if b.ndim == 1 else b
    return functools.partial(multiply, left, right, c.reshape(left.shape[0], right.shape[1]))
