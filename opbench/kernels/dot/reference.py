"""The scalar twins of the tuned pieces: same signatures, plain loops, slow and obviously right.

They run under the interpreter; the tests compare each with its twin.
"""

from __future__ import annotations

__all__ = [
    "add_columns",
    "dot_rows",
    "gemm",
    "gemv",
    "macro_kernel",
    "micro_kernel",
    "pack_a",
    "pack_b",
]


def micro_kernel(A, p, B, q, C, i, j, add):
    """C[i:i+MR, j:j+NR] = A[p].T @ B[q], or += where `add`."""
    for r in range(A.shape[2]):
        for c in range(B.shape[2]):
            total = A.dtype.type(0)
            for k in range(A.shape[1]):
                total += A[p, k, r] * B[q, k, c]
            C[i + r, j + c] = C[i + r, j + c] + total if add else total


def pack_a(A, P):
    """P[p, k, r] = A[p·MR + r, k], and zero beyond A's last row."""
    panels, kc, height = P.shape
    for p in range(panels):
        for k in range(kc):
            for r in range(height):
                row = p * height + r
                P[p, k, r] = A[row, k] if row < A.shape[0] else 0


def pack_b(Bt, P):
    """P[q, k, c] = Bt[q·NR + c, k], and zero beyond B's last column."""
    pack_a(Bt, P)


def macro_kernel(Ap, Bp, C, add, edge):
    """C = Ap·Bp, or += where `add`; the panels may reach beyond C, and `edge` is scratch."""
    for q in range(Bp.shape[0]):
        for p in range(Ap.shape[0]):
            i, j = p * Ap.shape[2], q * Bp.shape[2]
            micro_kernel(Ap, p, Bp, q, edge, 0, 0, False)
            for r in range(min(edge.shape[0], C.shape[0] - i)):
                for c in range(min(edge.shape[1], C.shape[1] - j)):
                    C[i + r, j + c] = edge[r, c] + (C[i + r, j + c] if add else 0)


def gemm(A, B, C):
    """C = A·B: the classical three loops."""
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            total = A.dtype.type(0)
            for k in range(A.shape[1]):
                total += A[i, k] * B[k, j]
            C[i, j] = total


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
