"""Kernels of a project of one's own, as operators of opbench."""

from __future__ import annotations

import numba
import numpy as np

import opbench


@opbench.operator(
    flops=lambda x, y: 2 * x.size,
    reference=lambda x, y: 3 * x + y,
)
@numba.njit(parallel=True, cache=True)
def triad(x, y, out):
    """3·x + y, element by element, into ``out``."""
    for i in numba.prange(x.size):
        out[i] = 3 * x[i] + y[i]


@opbench.operator(
    name="row_norms",
    flops=lambda a: 2 * a.size + a.shape[0],
    bytes=lambda a: a.nbytes + a.shape[0] * a.itemsize,
    shape=lambda a: a.shape[:1],
    reference=lambda a: np.linalg.norm(a, axis=1),
)
def row_norms(a):
    """The length of each row."""
    return np.sqrt(np.einsum("ij,ij->i", a, a))
