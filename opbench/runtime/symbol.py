"""Symbols: what is to be computed, said before there are any arrays."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from opbench.errors import BindError, DTypeError
from opbench.operators import Operator
from opbench.runtime.context import Context
from opbench.runtime.executor import Executor, bind
from opbench.runtime.graph import arguments, topological
from opbench.runtime.recording import api

__all__ = ["Symbol", "apply"]


# Compared by identity: two variables of one name are two variables.
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Symbol:
    """A node of a graph: a variable, or an operator applied to other symbols. It never changes.

    Attributes:
        name: what `bind` and errors call it.
        operator: None for a variable.
        inputs: the symbols that it reads.

    Raises:
        BindError: the name is empty or no text.
    """

    name: str
    operator: Operator | None = None
    inputs: tuple[Symbol, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise BindError(f"a symbol's name is a text that is not empty, not {self.name!r}")

    def __repr__(self) -> str:
        if self.operator is None:
            return f"<Symbol {self.name}>"
        inputs = ", ".join(node.name for node in self.inputs)
        return f"<Symbol {self.name} = {self.operator.name}({inputs})>"

    def list_arguments(self) -> list[str]:
        """The names of the variables below, in the order in which the graph meets them."""
        return [node.name for node in arguments(topological(self))]

    @api("Symbol.bind")
    def bind(self, ctx: Context | None, args: Mapping[str, Any]) -> Executor:
        """Give each variable its array, and check that everything fits.

        Args:
            ctx: where to compute; ``cpu(0)`` if None.
            args: name to array, or to a list of one array. An NDArray is used as it is, its values
                never change. A NumPy array is copied now: what is written to it later has no
                effect.

        Raises:
            BindError: a variable without an array, an array without a variable, two variables of
                one name, or a value that is no array.
            ShapeError: the shapes do not fit; names the node.
            DTypeError: the dtypes do not fit; names the node.
            ContextError: an array lies elsewhere.
        """
        return bind(self, ctx, args)


_numbers: dict[str, Iterator[int]] = {}


def apply(operator: Operator, inputs: tuple[Symbol, ...], name: str | None) -> Symbol:
    """The node that applies ``operator``; named after it and numbered.

    Raises:
        DTypeError: an input is no symbol.
        BindError: the name is empty or no text.
    """
    for position, node in enumerate(inputs, start=1):
        if not isinstance(node, Symbol):
            raise DTypeError(
                f"sym.{operator.name} takes Symbols; operand {position} is a {type(node).__name__}:"
                " put a sym.var there, and give the array to bind"
            )
    if name is None:
        number = next(_numbers.setdefault(operator.name, itertools.count()))
        name = f"{operator.name}{number}"
    return Symbol(name, operator, inputs)
