"""From a graph of symbols to a program: the order, the shapes, and who dies when."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from opbench.errors import DTypeError, ShapeError
from opbench.operators import Shape
from opbench.runtime.program import Program, Step, make_step

if TYPE_CHECKING:
    from opbench.runtime.symbol import Symbol

__all__ = ["arguments", "compile_graph", "topological"]


def topological(root: Symbol) -> list[Symbol]:
    """Every node below ``root`` once, each after its inputs, ``root`` last.

    With a stack of its own: a graph may be deeper than Python's.
    """
    order: list[Symbol] = []
    entered: set[int] = {id(root)}
    stack = [(root, iter(root.inputs))]
    while stack:
        node, inputs = stack[-1]
        for child in inputs:
            if id(child) not in entered:
                entered.add(id(child))
                stack.append((child, iter(child.inputs)))
                break
        else:
            order.append(node)
            stack.pop()
    return order


def arguments(order: Sequence[Symbol]) -> list[Symbol]:
    """The variables of a graph."""
    return [node for node in order if node.operator is None]


def compile_graph(
    root: Symbol, forms: Mapping[str, tuple[Shape, np.dtype]], device: str
) -> Program:
    """The program that computes ``root`` from one array per variable.

    Args:
        root: the node whose values are wanted.
        forms: shape and dtype of each variable; in this order the arrays are slots 0 and up.
        device: whose kernels to use.

    Raises:
        ShapeError: the shapes of a node's inputs do not fit; names the node.
        DTypeError: the dtypes do not fit; names the node.
    """
    slots: dict[int, int] = {}
    numbers = {name: number for number, name in enumerate(forms)}
    known: list[tuple[Shape, np.dtype]] = list(forms.values())
    steps: list[Step] = []
    for node in topological(root):
        if node.operator is None:
            slots[id(node)] = numbers[node.name]
            continue
        inputs = [slots[id(child)] for child in node.inputs]
        operands = [(known[slot][0], known[slot][1].name) for slot in inputs]
        try:
            step = make_step(node.operator, device, inputs, len(known), operands, node.name)
        except (ShapeError, DTypeError) as error:
            raise type(error)(f"node {node.name!r}: {error}") from None
        steps.append(step)
        slots[id(node)] = step.output
        known.append((step.shape, step.dtype))
    result = slots[id(root)]
    return Program(_with_deaths(steps, result), len(known), ((result, *known[result]),))


def _with_deaths(steps: Sequence[Step], result: int) -> tuple[Step, ...]:
    """The same steps, each knowing the slots that nobody reads after it."""
    read_later = {result}
    reversed_steps = []
    for step in reversed(steps):
        dead = tuple(slot for slot in dict.fromkeys(step.inputs) if slot not in read_later)
        read_later.update(step.inputs)
        reversed_steps.append(dataclasses.replace(step, dead=dead))
    return tuple(reversed(reversed_steps))
