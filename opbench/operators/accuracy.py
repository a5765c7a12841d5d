"""How far a result may lie from its reference before it counts as wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from opbench.errors import AccuracyError

__all__ = ["BLAS_REST_SECONDS", "require_form", "require_within"]

# OpenBLAS workers, which a reference has woken, spin for about 0.1 s after a call and slow what
# runs next: whoever measures after a check waits this long.
BLAS_REST_SECONDS = 0.2


def require_form(
    what: str, result: np.ndarray[Any, Any], shape: tuple[int, ...], dtype: str
) -> None:
    """Require ``result`` to have ``shape`` and ``dtype``.

    Raises:
        AccuracyError: it has not; names ``what`` was computed.
    """
    if result.shape != shape or result.dtype.name != dtype:
        raise AccuracyError(
            f"{what} gave {result.dtype.name} {result.shape} where {dtype} {shape} is right"
        )


def require_within(
    what: str,
    result: np.ndarray[Any, Any],
    expected: np.ndarray[Any, Any],
    bound: np.ndarray[Any, Any],
) -> None:
    """Require ``|result - expected| <= bound`` in each element; NaN must meet NaN.

    Args:
        what: names the computation in the error.
        result: as computed.
        expected: the reference, of the same shape, in at least the same precision.
        bound: of the same shape.

    Raises:
        AccuracyError: says how many elements fail, and shows the worst.
    """
    __tracebackhide__ = True  # what pytest shows of it is the caller's line and the sentence
    with np.errstate(invalid="ignore", over="ignore"):
        good = (np.abs(result - expected) <= bound) & np.isfinite(bound)
        # Equal infinities have no difference, and NaN equals nothing; what overflows, overflows
        # in the result's precision.
        good |= result == expected.astype(result.dtype)
        good |= np.isnan(result) & np.isnan(expected)
        if good.all():
            return
        excess = np.where(good, 0.0, np.abs(result - expected) / np.maximum(bound, np.spacing(0.0)))
    wrong = int(good.size - np.count_nonzero(good))
    worst = np.unravel_index(int(np.argmax(np.nan_to_num(excess, nan=np.inf))), excess.shape)
    raise AccuracyError(
        f"{what}: {wrong} of {good.size} elements checked lie outside the error bound;"
        f" the worst, at {tuple(int(i) for i in worst)}, is {result[worst]!s}"
        f" where {expected[worst]!s} ± {bound[worst]:.2g} is right"
    )
