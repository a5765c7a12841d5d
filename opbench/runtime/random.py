"""Arrays of random numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opbench.errors import ConfigError, DTypeError
from opbench.operators import uniform as fill
from opbench.runtime.context import Context, resolve
from opbench.runtime.nd import lengths_of
from opbench.runtime.ndarray import NDArray
from opbench.runtime.recording import api
from opbench.runtime.storage import adopt

__all__ = ["uniform"]

_DTYPES = ("float32", "float64")
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
        dtype: float32 or float64.
        seed: 0 or more; the same seed gives the same values, None gives different ones each time.

    Raises:
        ConfigError: ``low`` above ``high``, an infinite range, or a negative seed.
        DTypeError: another dtype.
        ShapeError: a negative or fractional length.
        ContextError: ``ctx`` is no context.
    """
    context = resolve(ctx)
    name = _name(dtype)
    if not (low <= high and math.isfinite(high - low)):
        raise ConfigError(f"uniform needs finite low <= high, not low={low!r}, high={high!r}")
    if seed is not None and seed < 0:
        raise ConfigError(f"a seed is 0 or more, not {seed!r}")
    generator = _generator if seed is None else np.random.default_rng(seed)
    values = fill(generator, lengths_of(shape), name, low, high)
    return NDArray(values.shape, values.dtype, context, adopt(values, context))


def _name(dtype: Any) -> str:
    try:
        name = str(np.dtype(dtype).name)
    except TypeError:
        name = repr(dtype)
    if name not in _DTYPES:
        raise DTypeError(f"uniform makes {' or '.join(_DTYPES)}, not {name}")
    return name
