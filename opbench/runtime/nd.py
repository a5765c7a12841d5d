"""Imperative arrays: make them, and apply operators that return at once.

A name that stands here hides a user's operator of that name: each is public, or begins with an
underscore, and there is no ``annotations`` from ``__future__``.
"""

from opbench.runtime.arrays import applied as _applied
from opbench.runtime.arrays import array, dot, empty, ones, waitall, zeros
from opbench.runtime.finder import finder as _finder
from opbench.runtime.ndarray import NDArray

__all__ = ["NDArray", "array", "dot", "empty", "ones", "waitall", "zeros"]

__getattr__, __dir__ = _finder(__name__, __all__, _applied)
