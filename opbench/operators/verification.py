"""A user's operator against its reference, once for each form of operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opbench.operators.accuracy import require_form, require_within

__all__ = ["Verification", "verified"]

# Of a result's rounding error: what a sum of some hundred terms, or a function of a library, may
# differ by without being wrong.
ROUNDINGS = 100

_checks = 0


def verified() -> int:
    """How many checks have run in this process: who times something rests after one."""
    return _checks


class Verification:
    """Compares results with a reference; of operands of a form that was right before, none.

    Args:
        name: the operator's.
        reference: called with the operands, floating ones in float64.
        tolerance: relative to the largest element of the reference; None for one by dtype.
    """

    def __init__(
        self, name: str, reference: Callable[..., Any], tolerance: float | None = None
    ) -> None:
        self._name = name
        self._reference = reference
        self._tolerance = tolerance
        self._right: set[tuple[Any, ...]] = set()

    def __call__(self, inputs: Sequence[Any], result: Any) -> None:
        """Check, unless operands of these shapes and dtypes were right before.

        Raises:
            AccuracyError: as `check`.
        """
        __tracebackhide__ = True  # what pytest shows of it is the test's line and the sentence
        form = tuple((operand.shape, operand.dtype) for operand in inputs)
        if form not in self._right:
            self.check(inputs, np.asarray(result))
            self._right.add(form)

    def check(self, inputs: Sequence[Any], result: np.ndarray[Any, Any]) -> None:
        """Compare ``result`` with the reference on ``inputs``.

        Raises:
            AccuracyError: another shape, or an element further off than the tolerance.
        """
        __tracebackhide__ = True
        global _checks  # noqa: PLW0603 - a count of the process
        _checks += 1
        shapes = " · ".join(str(operand.shape) for operand in inputs)
        what = f"{self._name} on {shapes} {result.dtype.name}"
        expected = np.asarray(self._reference(*map(_wide, inputs)))
        require_form(what, result, expected.shape, result.dtype.name)
        if result.dtype.kind == "b":  # truths cannot be subtracted
            result, expected = result.astype(np.int8), expected.astype(np.int8)
        require_within(what, result, expected, self._bound(result, expected))

    def _bound(
        self, result: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]
    ) -> np.ndarray[Any, Any]:
        tolerance = self._tolerance
        if tolerance is None:
            inexact = result.dtype.kind in "fc"
            tolerance = ROUNDINGS * float(np.finfo(result.dtype).eps) if inexact else 0.0
        magnitudes = np.abs(expected[np.isfinite(expected)])
        largest = float(magnitudes.max()) if magnitudes.size else 0.0
        return np.full(expected.shape, tolerance * largest)


def _wide(operand: Any) -> Any:
    """A floating operand in float64; any other as it is."""
    array = np.asarray(operand)
    return array.astype(np.float64) if array.dtype.kind == "f" else array
