"""A case: an operator, the shapes and dtype of its inputs, and the seed that fills them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opbench.errors import ConfigError, DTypeError
from opbench.operators.operator import Cost, Operator, Shape
from opbench.operators.registry import get

__all__ = ["Case", "uniform"]

# A case of more arithmetic than this takes about a second per call on two cores: it is ``long``.
LONG_FLOP = 10**11

_SHORT = {"float32": "f32", "float64": "f64"}
_SLUG = str.maketrans({"×": "x", "·": "-", " ": "-", "²": None})


def uniform(
    generator: np.random.Generator, shape: Shape, dtype: str, low: float, high: float
) -> np.ndarray[Any, Any]:
    """An array of ``shape`` filled evenly from ``[low, high)``.

    Args:
        generator: where the numbers come from; it advances.
        shape: of the result, which is in C order.
        dtype: ``float32`` or ``float64``.
        low: smallest value.
        high: upper end, never reached, not even by rounding.

    Raises:
        DTypeError: another dtype.
        ConfigError: ``low`` above ``high``, or one of them or their difference is infinite in
            ``dtype``.
    """
    if dtype not in _SHORT:
        raise DTypeError(f"uniform makes {' or '.join(_SHORT)}, not {dtype}")
    kind: Any = np.dtype(dtype).type
    if not (low <= high and _finite(kind, low, high)):
        raise ConfigError(
            f"uniform needs finite low <= high, and a finite range in {dtype},"
            f" not low={low!r}, high={high!r}"
        )
    values: np.ndarray[Any, Any] = np.asarray(generator.random(shape, dtype=kind))
    values *= kind(high - low)
    values += kind(low)
    if high > low:
        np.minimum(values, np.nextafter(kind(high), kind(low)), out=values)
    return values


def _finite(kind: Any, low: float, high: float) -> bool:
    try:
        with np.errstate(over="ignore"):
            return bool(np.isfinite([kind(low), kind(high), kind(high - low)]).all())
    except OverflowError:  # a whole number that no float holds
        return False


@dataclass(frozen=True, slots=True)
class Case:
    """One line of a benchmark: what is computed, on which inputs.

    Attributes:
        operator: name of the operator.
        shapes: of the inputs.
        dtype: of all inputs, ``float32`` or ``float64``.
        seed: the same seed gives the same inputs, on every machine.
        low: smallest value of the inputs.
        high: upper end of their values, not reached.
    """

    operator: str
    shapes: tuple[Shape, ...]
    dtype: str
    seed: int = 0
    low: float = -1.0
    high: float = 1.0

    @property
    def _operator(self) -> Operator:
        return get(self.operator)

    @property
    def label(self) -> str:
        """For tables: ``4096² f32``, ``1000×37×511 f64``."""
        return f"{self._operator.label(self.shapes)} {_SHORT.get(self.dtype, self.dtype)}"

    @property
    def id(self) -> str:
        """For test ids, ASCII: ``4096-f32``, ``1000x37x511-f64``."""
        return self.label.replace(" · ", "-").translate(_SLUG)

    @property
    def cost(self) -> Cost:
        """Of one call."""
        return self._operator.cost(self.shapes, self.dtype)

    @property
    def long(self) -> bool:
        """Whether one call takes about a second or more, so that short runs leave it out."""
        return self.cost.flop >= LONG_FLOP

    def inputs(self) -> tuple[np.ndarray[Any, Any], ...]:
        """Fresh input arrays in C order, uniform in ``[low, high)``, the same at every call.

        Raises:
            DTypeError: the case's dtype is neither float32 nor float64.
            ConfigError: its range is none.
        """
        generator = np.random.default_rng(self.seed)
        return tuple(
            uniform(generator, shape, self.dtype, self.low, self.high) for shape in self.shapes
        )

    def check(self, inputs: Sequence[Any], result: Any) -> None:
        """Compare ``result`` with the operator's reference on ``inputs``.

        Args:
            inputs: NumPy arrays, or what NumPy makes arrays of.
            result: the same.

        Raises:
            AccuracyError: it has another shape or dtype, or lies outside the error bound.
        """
        self._operator.check([np.asarray(operand) for operand in inputs], np.asarray(result))
