"""How workers share tasks out: a counter that each of them takes the next number from.

Memory for a parallel kernel is made here and not in it: inside, numba's `parallel=True` would turn
a `np.zeros` into a parallel loop of its own, which costs more than a whole small product (2 µs).
"""

from __future__ import annotations

import numpy as np

from opbench.kernels.cache import jit

__all__ = ["new_counter", "zeros"]


@jit
def new_counter():
    """A counter at 0, for `take`."""
    return np.zeros(1, np.int64)


@jit
def zeros(rows, columns, like):
    """A matrix of zeros of the dtype of `like`."""
    return np.zeros((rows, columns), like.dtype)
