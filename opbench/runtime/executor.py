"""Executors: a graph bound to its arrays, ready to run again and again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opbench.errors import BindError, ContextError, StateError, nearest
from opbench.runtime.arrays import copied
from opbench.runtime.context import Context, resolve
from opbench.runtime.graph import arguments, compile_graph, topological
from opbench.runtime.ndarray import NDArray
from opbench.runtime.program import Program, launch
from opbench.runtime.recording import SYMBOLIC, api, part, part_begins
from opbench.runtime.storage import Pool

if TYPE_CHECKING:
    from opbench.runtime.symbol import Symbol

__all__ = ["Executor", "bind"]


class Executor:
    """A program with its input arrays; made by `Symbol.bind`.

    Each forward pass has output arrays of its own, so one pass may be read after the next was
    started. The memory of outputs and intermediate results comes from the executor, and is used
    again once neither an NDArray nor a NumPy view of it is left: a loop that reads each result
    before the next one works on the same two blocks throughout.
    """

    def __init__(self, program: Program, arrays: Sequence[NDArray], context: Context) -> None:
        self._program = program
        self._arrays = tuple(arrays)
        self._context = context
        self._pool = Pool()
        self._outputs: list[NDArray] | None = None

    @api("Executor.forward")
    def forward(self) -> list[NDArray]:
        """Submit one pass; returns the pending outputs at once.

        Raises:
            ForkError: in a forked child.
        """
        self._outputs = launch(
            self._program, self._arrays, self._context, SYMBOLIC, pool=self._pool
        )
        return list(self._outputs)

    @property
    def outputs(self) -> list[NDArray]:
        """The outputs of the last forward pass.

        Raises:
            StateError: there was none yet.
        """
        if self._outputs is None:
            raise StateError("an executor has no outputs before its first forward()")
        return list(self._outputs)


def bind(root: Symbol, ctx: Context | None, args: Mapping[str, Any]) -> Executor:
    """What `Symbol.bind` does; it documents arguments and errors."""
    context = resolve(ctx)
    since = part_begins()
    names = [node.name for node in arguments(topological(root))]
    _check_names(names, args)
    arrays = {name: _array(name, args[name], context) for name in names}
    forms = {name: (array.shape, array.dtype) for name, array in arrays.items()}
    since = part("Symbol.bind", "check", since)
    program = compile_graph(root, forms, context.device_type)
    part("Symbol.bind", "plan", since)
    return Executor(program, list(arrays.values()), context)


def _check_names(names: list[str], args: Mapping[str, Any]) -> None:
    if not isinstance(args, Mapping):
        raise BindError(
            f"bind takes a dictionary of name to array, not a {type(args).__name__};"
            f" the arguments are {', '.join(names)}"
        )
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise BindError(
            f"{count} variables are called {name!r}; make one and use it twice,"
            " or give them different names"
        )
    for name in args:
        if name not in names:
            raise BindError(f"the graph has no argument {name!r}{nearest(str(name), names)}")
    missing = [name for name in names if name not in args]
    if missing:
        raise BindError(
            f"no array was given for {', '.join(map(repr, missing))};"
            f" the arguments are {', '.join(names)}"
        )


def _array(name: str, value: Any, context: Context) -> NDArray:
    """The one array that ``value`` is or holds, as an NDArray on ``context``."""
    if isinstance(value, (list, tuple)):
        if len(value) != 1:
            raise BindError(
                f"argument {name!r} is a list of {len(value)};"
                " give an array, or a list of one array"
            )
        value = value[0]
    if isinstance(value, NDArray):
        if value.context != context:
            raise ContextError(
                f"argument {name!r} lies on {value.context}, but the graph is bound on {context}"
            )
        return value
    if isinstance(value, np.ndarray):
        return copied(value, context)
    raise BindError(
        f"argument {name!r} is a {type(value).__name__}; give an NDArray or a NumPy array"
    )
