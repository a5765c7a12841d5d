"""How workers share tasks out: a counter that each of them takes the next number from.

Memory for a parallel kernel is made here and not in it: inside, numba's `parallel=True` would turn
a `np.zeros` into a parallel loop of its own, which costs more than a whole small product (2 µs).
"""

from __future__ import annotations

import numpy as np
from numba.core import types

from opbench.kernels.cache import jit
from opbench.kernels.dot.emit import Emit, intrinsic
from opbench.kernels.lanes import lane_end

__all__ = ["end_task", "new_counter", "take", "zeros"]


@jit
def new_counter():
    """A counter at 0, for `take`."""
    return np.zeros(1, np.int64)


@jit
def zeros(rows, columns, like):
    """A matrix of zeros of the dtype of `like`."""
    return np.zeros((rows, columns), like.dtype)


@jit
def end_task(lanes, t, M, K, N, size):
    """Record the end of a task that multiplied M × K by K × N: multiply-adds, bytes used."""
    lane_end(lanes, t, M * K * N, (M * K + K * N + M * N) * size)


@intrinsic
def take(_, counter):
    """counter[0]++, atomically: the value before."""

    def codegen(context, b, signature, arguments):
        e = Emit(context, b, types.int64, 8)
        cell = e.pointer(signature.args[0], arguments[0], 0)
        return b.atomic_rmw("add", cell, e.index(1), "monotonic")

    return types.int64(counter), codegen
