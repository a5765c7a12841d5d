"""Symbolic arrays: describe a graph, then bind it to arrays."""

from __future__ import annotations

from opbench.runtime.recording import api
from opbench.runtime.symbol import Symbol, apply

__all__ = ["Symbol", "dot", "var", "variable"]


@api("sym.var")
def var(name: str) -> Symbol:
    """A variable, to which `Symbol.bind` gives an array.

    Raises:
        BindError: the name is empty or no text.
    """
    return Symbol(name)


variable = var


@api("sym.dot")
def dot(lhs: Symbol, rhs: Symbol, name: str | None = None) -> Symbol:
    """The product of two matrices or vectors; shapes are checked when it is bound.

    Args:
        lhs: ``(m, k)`` or ``(k,)``.
        rhs: ``(k, n)`` or ``(k,)``.
        name: of the node; ``dot0``, ``dot1`` and so on if None.

    Raises:
        DTypeError: an operand is no Symbol.
        BindError: the name is empty or no text.
    """
    return apply("dot", (lhs, rhs), name)
