"""Symbolic arrays: describe a graph, then bind it to arrays.

A name that stands here hides a user's operator of that name: each is public, or begins with an
underscore, and there is no ``annotations`` from ``__future__``.
"""

from opbench.runtime.finder import finder as _finder
from opbench.runtime.nodes import applied as _applied
from opbench.runtime.nodes import dot, var, variable
from opbench.runtime.symbol import Symbol

__all__ = ["Symbol", "dot", "var", "variable"]

__getattr__, __dir__ = _finder(__name__, __all__, _applied)
