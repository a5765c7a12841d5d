"""Arrays of random numbers."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from opbench.errors import ConfigError
from opbench.operators import uniform as fill
from opbench.runtime.arrays import impossible, lengths_of
from opbench.runtime.context import Context, resolve
from opbench.runtime.dtypes import real
from opbench.runtime.ndarray import NDArray
from opbench.runtime.recording import api
from opbench.runtime.storage import adopt

__all__ = ["uniform"]

_generator = np.random.default_rng()


@api("random.uniform")
def uniform(
    low: float = 0.0,
    high: float = 1.0,
    shape: int | Sequence[int] = (1,),
    ctx: Context | None = None,
    dtype: Any = "float32",
    seed: int | None = None,
) -> NDArray:
    """A new array, filled evenly from ``[low, high)`` before the call returns.

    Args:
        low: smallest value.
        high: upper end, never reached, unless it equals ``low``.
        shape: of the result.
        ctx: where it lies; ``cpu(0)`` if None.
        dtype: float32, also if None, or float64.
        seed: 0 or more; the same seed gives the same values, None gives different ones each time.

    Raises:
        ConfigError: no numbers, ``low`` above ``high``, a range that is infinite in ``dtype``, or
            a seed that is no whole number of 0 or more.
        DTypeError: another dtype.
        ShapeError: a negative or fractional length, or more of them than an array can have.
        ContextError: ``ctx`` is no context.
    """
    context = resolve(ctx)
    name, lengths = real(dtype).name, lengths_of(shape)
    _require_numbers(low=low, high=high)
    generator = _generator if seed is None else np.random.default_rng(_checked(seed))
    try:
        values = fill(generator, lengths, name, low, high)
    except ConfigError:
        raise
    except (OverflowError, ValueError) as error:
        raise impossible(lengths, error) from None
    return NDArray(values.shape, values.dtype, context, adopt(values, context, "random.uniform"))


def __dir__() -> list[str]:
    return __all__


def _require_numbers(**given: Any) -> None:
    for name, value in given.items():
        if not isinstance(value, Real):
            raise ConfigError(f"uniform takes numbers; {name} is a {type(value).__name__}")


def _checked(seed: Any) -> int:
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if number < 0:
        raise ConfigError(f"a seed is a whole number of 0 or more, not {seed!r}")
    return number
