"""What stands in `sym`: variables, and applying operators to symbols."""

from __future__ import annotations

from collections.abc import Callable

from opbench.operators import Operator, get
from opbench.runtime.recording import api
from opbench.runtime.symbol import Symbol, apply

__all__ = ["applied", "dot", "var", "variable"]


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
    return apply(get("dot"), (lhs, rhs), name)


def applied(made: Operator) -> Callable[..., Symbol]:
    """What `dot` is to its operator, for one of a user's."""

    @api(f"sym.{made.name}")
    def node(*operands: Symbol, name: str | None = None) -> Symbol:
        return apply(made, operands, name)

    node.__name__ = node.__qualname__ = made.name
    node.__doc__ = f"The operator {made.name} on Symbols; errors as those of `dot`."
    return node
