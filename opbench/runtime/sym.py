"""Symbolic arrays: describe a graph, then bind it to arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from opbench.errors import nearest
from opbench.operators import Operator, get, names
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
    return apply(get("dot"), (lhs, rhs), name)


def __getattr__(name: str) -> Any:
    """A function for each operator that a user has made, under its name."""
    if name.startswith("_") or name not in names():
        hint = "" if name.startswith("_") else nearest(name, __dir__())
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    return _function(get(name))


def __dir__() -> list[str]:
    return sorted({*__all__, *names()})


@functools.lru_cache(maxsize=256)
def _function(made: Operator) -> Callable[..., Symbol]:
    """What `dot` is to its operator, for one of a user's."""

    @api(f"sym.{made.name}")
    def node(*operands: Symbol, name: str | None = None) -> Symbol:
        return apply(made, operands, name)

    node.__name__ = node.__qualname__ = made.name
    node.__doc__ = f"The operator {made.name} on Symbols; errors as those of `dot`."
    return node
