"""Programs: what the worker runs. One operator, or the operators of a bound graph in order."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opbench.operators import Operator, Shape
from opbench.probes import AROUND, INTERRUPTIONS
from opbench.runtime.context import Context
from opbench.runtime.engine import ENGINE, Failure
from opbench.runtime.ndarray import NDArray
from opbench.runtime.recording import IMPERATIVE, RECORDER, SYMBOLIC
from opbench.runtime.storage import Array, Pool, empty, tag
from opbench.runtime.workers import READY, recorded

__all__ = ["Program", "Step", "imperative", "launch", "make_step"]

_CATEGORIES = {IMPERATIVE: "imperative", SYMBOLIC: "symbolic"}


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One operator of a program; arrays are numbered slots.

    Attributes:
        operator: its name.
        kernel: called as ``kernel(*inputs, out=out)``.
        inputs: slots that are read.
        output: slot that is written.
        shape: of the output.
        dtype: of the output.
        operands: the inputs as text, for an error.
        args: what its event carries, the iteration apart.
        node: the name of the graph's node, for its event and an error; empty outside of a graph.
        dead: slots that no later step reads and that are no result.
        verify: checks a user's operator against its reference, the first time; else None.
        lanes: tells the most records that the workers of a call write; None if there are none.
    """

    operator: str
    kernel: Callable[..., Any]
    inputs: tuple[int, ...]
    output: int
    shape: Shape
    dtype: np.dtype[Any]
    operands: tuple[str, ...]
    args: dict[str, Any]
    node: str = ""
    dead: tuple[int, ...] = ()
    verify: Callable[[Sequence[Any], Any], None] | None = None
    lanes: Callable[[], int] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Steps in an order that respects who reads whom.

    Attributes:
        steps: in that order.
        size: number of slots; the first ones are the program's inputs.
        results: slot, shape and dtype of each result.
    """

    steps: tuple[Step, ...]
    size: int
    results: tuple[tuple[int, Shape, np.dtype[Any]], ...]


def make_step(
    operator: Operator,
    device: str,
    inputs: Sequence[int],
    output: int,
    forms: Sequence[tuple[Shape, str]],
    node: str = "",
) -> Step:
    """The step that applies ``operator`` to inputs of the given shapes and dtype names.

    Raises:
        ShapeError: the shapes do not fit.
        DTypeError: the dtypes do not fit.
    """
    shapes = [shape for shape, _ in forms]
    dtype = operator.infer_dtype([name for _, name in forms])
    shape = operator.infer_shape(shapes)
    cost = operator.cost(shapes, dtype)
    count = functools.partial(operator.lanes, shapes, dtype) if operator.lanes else None
    READY.count = count or READY.count
    return Step(
        operator=operator.name,
        kernel=operator.kernels[device],
        inputs=tuple(inputs),
        output=output,
        shape=shape,
        dtype=np.dtype(dtype),
        operands=tuple(f"{name} {shape}" for shape, name in forms),
        args={
            "operator": operator.name,
            "inputs": [list(shape) for shape in shapes],
            "outputs": [list(shape)],
            "dtype": dtype,
            "flop": cost.flop,
            "bytes": cost.bytes,
            **({"node": node} if node else {}),
        },
        node=node,
        verify=operator.verify,
        lanes=count,
    )


class _Run:
    """One execution of a program, from its submission until the worker has run it.

    ``bit`` is the mode that records it, or 0 if that mode was off at the submission.
    """

    __slots__ = ("arrays", "bit", "context", "iteration", "outputs", "pool", "program", "scope")

    def __init__(
        self,
        program: Program,
        arrays: Sequence[NDArray],
        context: Context,
        pool: Pool | None,
        bit: int,
    ) -> None:
        self.program = program
        self.arrays = arrays
        self.context = context
        self.pool = pool
        self.bit = RECORDER.mask & bit
        self.iteration = RECORDER.iteration
        self.scope = tag()
        self.outputs = [NDArray(shape, dtype, context) for _, shape, dtype in program.results]

    def __call__(self) -> Failure | None:
        slots: list[Array | None] = [None] * self.program.size
        for number, array in enumerate(self.arrays):
            values = array.produced()
            if isinstance(values, Failure):
                return values
            slots[number] = values
        step = None
        try:
            for step in self.program.steps:
                self._apply(step, slots)
        except BaseException as cause:  # whatever a kernel raises belongs to its waiter
            if step is None:
                raise
            return Failure(step.operator, step.operands, cause, step.node)
        for output, (slot, _, _) in zip(self.outputs, self.program.results, strict=True):
            result = slots[slot]
            if result is not None:
                output.fill(result)
        return None

    def _apply(self, step: Step, slots: list[Array | None]) -> None:
        inputs = [slots[number] for number in step.inputs]
        make = empty if self.pool is None else self.pool.empty
        name = self.scope + step.node
        out = make(step.shape, step.dtype, self.context, step.operator, name)
        if self.bit:
            self._record(step, inputs, out)
        else:
            step.kernel(*inputs, out=out)
        if step.verify is not None:
            step.verify(inputs, out)
        slots[step.output] = out
        for number in step.dead:
            slots[number] = None

    def _record(self, step: Step, inputs: list[Array | None], out: Array) -> None:
        call = recorded(step.kernel, step.lanes)
        entered = AROUND.enter(step.operator) if AROUND.hooks else []
        noticed: dict[str, Any] = {}
        before = INTERRUPTIONS.so_far
        start = RECORDER.clock()
        try:
            call.kernel(*inputs, out=out)
        finally:
            end = RECORDER.clock()
            interrupted = INTERRUPTIONS.since(before)
            if entered:
                noticed = AROUND.leave(entered)
        workers = call.figures(step.operator, start, end)
        args = {**step.args, "iteration": self.iteration, **interrupted, **noticed, **workers}
        RECORDER.complete(step.operator, _CATEGORIES[self.bit], start, end, args)


def launch(
    program: Program,
    arrays: Sequence[NDArray],
    context: Context,
    bit: int,
    pool: Pool | None = None,
) -> list[NDArray]:
    """Submit ``program`` with its input ``arrays``; returns its pending results at once.

    Args:
        program: what to run.
        arrays: one per input slot.
        context: where the results lie.
        bit: the mode that records its operators, if it is on now.
        pool: where the memory of results comes from; fresh memory if None.

    Raises:
        ForkError: in a forked child.
    """
    run = _Run(program, arrays, context, pool, bit)
    task = ENGINE.submit(run)
    for output in run.outputs:
        output.pend(task)
    return run.outputs


@functools.lru_cache(maxsize=1024)
def imperative(
    operator: Operator, device: str, forms: tuple[tuple[Shape, np.dtype[Any]], ...]
) -> Program:
    """The program of one operator on its own; remembered, since a benchmark repeats its shapes.

    Keyed by dtypes and not by their names, which NumPy computes anew at each look.

    Raises:
        ShapeError: the shapes do not fit.
        DTypeError: the dtypes do not fit.
    """
    count = len(forms)
    named = [(shape, dtype.name) for shape, dtype in forms]
    step = make_step(operator, device, range(count), count, named)
    return Program((step,), count + 1, ((count, step.shape, step.dtype),))
