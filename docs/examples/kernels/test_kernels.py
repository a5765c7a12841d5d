"""`pytest --benchmark-only` times them, checks them against NumPy first, and traces each."""

from __future__ import annotations

import kernels
import numpy as np

from opbench import cpu, nd, sym

X = np.linspace(-1, 1, 100_000, dtype=np.float32)
A = np.linspace(-1, 1, 60_000).reshape(300, 200)


def test_triad(profiler):
    profiler(kernels.triad, X, X, np.empty_like(X))


def test_triad_from_nd(profiler):
    x = nd.array(X)
    profiler(nd.triad, x, x)


def test_row_norms(profiler):
    profiler(kernels.row_norms, A)


def test_row_norms_in_a_graph(profiler):
    graph = sym.row_norms(sym.var("a"), name="norms")
    executor = graph.bind(cpu(), {"a": A})
    profiler(executor.forward)
