"""What dot accepts: the checks behind its fast path, and the sentences when they fail."""

from __future__ import annotations

from typing import Any

import numpy as np

from opbench.errors import AliasError, DTypeError, ReadOnlyError, ShapeError

__all__ = ["DTYPES", "accepted", "check_out", "result_shape"]

MOST = 2  # dimensions
DTYPES = tuple(np.dtype(name) for name in ("float32", "float64", "int32", "int64"))
shares_memory: Any = np.shares_memory  # whose types allow two values of max_work only
NAMES = ", ".join(dtype.name for dtype in DTYPES)
ADVICE = {
    "c": "multiply real and imaginary parts apart, or use numpy.dot",
    "O": "convert it with .astype('float64'), or use numpy.dot",
    "f": "convert it with .astype('float32')",
    "b": "convert it with .astype('int32')",
    "i": "convert it with .astype('int32')",
    "u": "convert it with .astype('int64')",
}


def accepted(a: Any, b: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Both operands as plain arrays of one native, supported dtype; swapped bytes are copied.

    Raises:
        DTypeError: An operand is no array, is masked, has an unsupported dtype, or both differ.
    """
    first, second = plain("a", a), plain("b", b)
    if first.dtype != second.dtype:
        raise DTypeError(
            f"dot of {first.dtype} and {second.dtype}: both operands need one dtype; "
            "convert one of them with .astype(...)"
        )
    return first, second


def plain(name: str, operand: Any) -> np.ndarray[Any, Any]:
    """One operand as a plain array of a native, supported dtype."""
    if not isinstance(operand, np.ndarray):
        raise DTypeError(
            f"dot takes NumPy arrays, and {name} is of type {type(operand).__name__}; "
            "convert it with numpy.asarray"
        )
    if isinstance(operand, np.ma.MaskedArray):
        raise DTypeError(f"{name} is a masked array, whose mask dot would lose; call .filled first")
    native = operand.dtype.newbyteorder("=")
    if native not in DTYPES:
        advice = ADVICE.get(native.kind, "convert it with .astype(...)")
        raise DTypeError(f"dot computes in {NAMES}, and {name} is {operand.dtype}; {advice}")
    array = np.asarray(operand)
    return array if array.dtype == native else array.astype(native)


def result_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of dot(a, b).

    Raises:
        ShapeError: An operand has neither one nor two dimensions, or the inner dimensions differ.
    """
    if 0 < len(a) <= MOST and 0 < len(b) <= MOST and a[-1] == b[0]:
        return a[:-1] + b[1:]
    for name, shape in (("a", a), ("b", b)):
        if not 0 < len(shape) <= MOST:
            raise ShapeError(
                f"dot takes vectors and matrices, and {name} has {len(shape)} dimensions "
                f"(shape {shape}); reshape it to one or two"
            )
    raise ShapeError(
        f"dot of shapes {a} and {b}: the last dimension of a ({a[-1]}) must equal "
        f"the first of b ({b[0]}); is one of them to be transposed?"
    )


def check_out(
    out: Any, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], shape: tuple[int, ...]
) -> None:
    """Refuse an output that dot cannot write its result into.

    Raises:
        DTypeError: `out` is no array, or not of the operands' dtype.
        ShapeError: `out` does not have the result's shape.
        ReadOnlyError: `out` cannot be written.
        AliasError: `out` shares memory with an operand, or its own elements with each other.
    """
    if not isinstance(out, np.ndarray):
        raise DTypeError(f"out must be a NumPy array, and is of type {type(out).__name__}")
    if out.dtype != a.dtype:
        raise DTypeError(
            f"out is {out.dtype} and the result {a.dtype}; pass out=numpy.empty({shape}, "
            f"{a.dtype.name!r}), or nothing"
        )
    if out.shape != shape:
        raise ShapeError(f"out has shape {out.shape} and the result {shape}")
    if not out.flags.writeable:
        raise ReadOnlyError("out is read-only; pass an array that can be written")
    for name, operand in (("a", a), ("b", b)):
        if np.may_share_memory(out, operand) and overlap(out, operand):
            raise AliasError(
                f"out shares memory with {name}, which would be overwritten while it is read; "
                "pass another array, or nothing"
            )
    if not out.flags.forc and not scattered(out):
        raise AliasError(
            f"out's elements share memory with each other (shape {out.shape}, strides "
            f"{out.strides} bytes); pass an array in which each has its own place"
        )


def overlap(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    """Whether any byte belongs to both; True too where finding out would take long."""
    try:
        return bool(shares_memory(x, y, max_work=10_000))
    except np.exceptions.TooHardError:
        return True


def scattered(x: np.ndarray[Any, Any]) -> bool:
    """Whether each element is known to have bytes of its own: strides that nest."""
    reach = x.itemsize
    for stride, length in sorted(zip(map(abs, x.strides), x.shape, strict=True)):
        if length > 1:
            if stride < reach:
                return False
            reach = stride * (length - 1) + reach
    return True
