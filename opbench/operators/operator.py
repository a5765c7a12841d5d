"""The value that describes one operator, and what one call of it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

__all__ = ["Cost", "Operator", "Shape"]

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call must do at least: its arithmetic, and its traffic with memory.

    Attributes:
        flop: floating-point operations; a multiply-add counts as two.
        bytes: every input read once and the output written once.
    """

    flop: int
    bytes: int


# Compared by identity: a kernel mapping has no hash, and one name means one operator anyway.
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Operator:
    """A named, shaped meaning; the kernels that compute it are interchangeable.

    Attributes:
        name: the word that users, traces and tables use.
        infer_shape: input shapes to output shape; raises ShapeError if they do not fit.
        infer_dtype: names of the inputs' dtypes to that of the output; raises DTypeError.
        cost: input shapes and dtype name to the cost of one call.
        reference: the obviously right version in NumPy, called as ``reference(*arrays, out=None)``;
            like NumPy it may return a scalar where the result has no dimensions.
        kernels: device name to the function called as ``kernel(*arrays, out=None)``.
        label: input shapes to a short text for tables, such as ``4096²``.
        check: inputs and a result; raises AccuracyError if the result is further from the
            reference than the operator's error bound.
        function: what users call, where that is not a kernel itself; else None.
        verify: called by the runtime with the inputs and the result of each call, to check the
            first one of each form; None for an operator whose own tests do that.
        lanes: input shapes and dtype name to the most records that the workers of one call write,
            0 where it has none; its kernels then take a buffer for them as ``lanes``. None for an
            operator whose kernels take no such thing.
    """

    name: str
    infer_shape: Callable[[Sequence[Shape]], Shape]
    infer_dtype: Callable[[Sequence[str]], str]
    cost: Callable[[Sequence[Shape], str], Cost]
    reference: Callable[..., Any]
    kernels: Mapping[str, Callable[..., Any]]
    label: Callable[[Sequence[Shape]], str]
    check: Callable[[Sequence[np.ndarray[Any, Any]], np.ndarray[Any, Any]], None]
    function: Callable[..., Any] | None = None
    verify: Callable[[Sequence[Any], Any], None] | None = None
    lanes: Callable[[Sequence[Shape], str], int] | None = None
