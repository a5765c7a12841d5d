"""The scalar twins of the tuned pieces: same signatures, plain loops, slow and obviously right.

They run under the interpreter; the tests compare each with its twin.
"""

from __future__ import annotations

import numpy as np

__all__ = [
    "add_columns",
    "dot_rows",
    "gemm",
    "gemv",
    "macro_kernel",
    "micro_kernel",
    "pack",
]


def micro_kernel(A, B, q, C, i, j, rows, columns, add):
    """C[i:i+rows, j:j+columns] = A[i:i+rows]·B[q], or += where `add`."""
    for r in range(rows):
        for c in range(columns):
            total = A.dtype.type(0)
            for k in range(A.shape[1]):
                total += A[i + r, k] * B[q, k, c]
            C[i + r, j + c] = C[i + r, j + c] + total if add else total


def pack(B, scratch, NR):
    """B's micro-panels (panels, KC, NR) at the start of scratch, zero beyond B's last column."""
    (K, N), panels = B.shape, -(-B.shape[1] // NR)
    P = scratch[: panels * K * NR].reshape(panels, K, NR)
    for q in range(panels):
        for k in range(K):
            for c in range(NR):
                P[q, k, c] = B[k, q * NR + c] if q * NR + c < N else 0
    return P


def macro_kernel(A, B, C, add):
    """C = A·B, or += where `add`; B in micro-panels, which may reach beyond C."""
    for q in range(B.shape[0]):
        j = q * B.shape[2]
        micro_kernel(A, B, q, C, 0, j, C.shape[0], min(B.shape[2], C.shape[1] - j), add)


def gemm(A, B):
    """A·B: the classical three loops."""
    C = np.zeros((A.shape[0], B.shape[1]), A.dtype)
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[k, j]
    return C


def dot_rows(A, i, x, y, count):
    """Compute y[i:i+count] = A[i:i+count]·x."""
    for r in range(i, i + count):
        total = A.dtype.type(0)
        for k in range(A.shape[1]):
            total += A[r, k] * x[k]
        y[r] = total


def add_columns(A, k, x, y, count):
    """Add A[:, k:k+count]·x[k:k+count] to y."""
    for i in range(A.shape[0]):
        for c in range(k, k + count):
            y[i] += A[i, c] * x[c]


def gemv(A, x, y):
    """Compute y = A·x."""
    dot_rows(A, 0, x, y, A.shape[0])
