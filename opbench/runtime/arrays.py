"""What stands in `nd`: making arrays, and applying operators, which returns at once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opbench.errors import DTypeError, ShapeError
from opbench.operators import Operator, get
from opbench.runtime.context import Context, resolve, same
from opbench.runtime.dtypes import DEFAULT, real, require_real
from opbench.runtime.engine import ENGINE
from opbench.runtime.ndarray import NDArray, owning
from opbench.runtime.program import imperative, launch
from opbench.runtime.recording import IMPERATIVE, api, part, part_begins
from opbench.runtime.storage import empty as allocate

__all__ = [
    "applied",
    "array",
    "copied",
    "dot",
    "empty",
    "impossible",
    "lengths_of",
    "ones",
    "waitall",
    "zeros",
]

# Kinds of NumPy dtypes that tell that a list or a thing of Python's holds something else.
_NO_NUMBERS = "OSUVMm"

# Dimensions of an impossible shape that an error still shows.
_SHOWN = 8

# What nd.array turns into an operand.
_CONVERTIBLE = (np.ndarray, np.generic, list, tuple, int, float)


@api("nd.array")
def array(source: Any, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """A new array with the values of ``source``, copied before the call returns.

    Args:
        source: an NDArray (waited for), a NumPy array, or nested lists of numbers.
        ctx: where it lies; ``cpu(0)`` if None.
        dtype: of the result; if None that of ``source``, and float32 for lists and plain numbers,
            as in MXNet.

    Raises:
        DTypeError: no array of real numbers of at most 64 bits.
        ContextError: ``ctx`` is no context.
    """
    return copied(source, resolve(ctx), dtype)


def copied(source: Any, context: Context, dtype: Any = None) -> NDArray:
    """What `array` returns, without recording a call."""
    typed = hasattr(source, "dtype")
    try:
        plain = np.asarray(source)
    except ValueError as error:
        raise DTypeError(f"no array can be made of this {type(source).__name__}: {error}") from None
    if not typed and plain.dtype.kind in _NO_NUMBERS:
        raise DTypeError(
            f"no array of numbers can be made of a {type(source).__name__},"
            f" which NumPy reads as {plain.dtype.name}"
        )
    require_real(plain.dtype)
    if dtype is not None:
        wanted = real(dtype)
    else:
        wanted = plain.dtype.newbyteorder("=") if typed else DEFAULT
    return owning(plain, context, wanted, "nd.array")


@api("nd.empty")
def empty(
    shape: int | Sequence[int], ctx: Context | None = None, dtype: Any = "float32"
) -> NDArray:
    """A new array of ``shape`` with arbitrary values.

    Raises:
        ShapeError: a negative or fractional length, or more of them than an array can have.
        DTypeError: not a dtype of real numbers.
        ContextError: ``ctx`` is no context.
    """
    return filled(shape, ctx, dtype, None, "nd.empty")


@api("nd.zeros")
def zeros(
    shape: int | Sequence[int], ctx: Context | None = None, dtype: Any = "float32"
) -> NDArray:
    """A new array of ``shape`` full of zeros; raises as `empty`."""
    return filled(shape, ctx, dtype, 0, "nd.zeros")


@api("nd.ones")
def ones(shape: int | Sequence[int], ctx: Context | None = None, dtype: Any = "float32") -> NDArray:
    """A new array of ``shape`` full of ones; raises as `empty`."""
    return filled(shape, ctx, dtype, 1, "nd.ones")


def filled(
    shape: int | Sequence[int], ctx: Context | None, dtype: Any, value: float | None, maker: str
) -> NDArray:
    """A new array full of ``value``; of whatever was there if None. ``maker`` is whom to name."""
    context = resolve(ctx)
    lengths, kind = lengths_of(shape), real(dtype)
    try:
        values = allocate(lengths, kind, context, maker)
    except (OverflowError, ValueError) as error:
        raise impossible(lengths, error) from None
    if value is not None:
        values.fill(value)
    return NDArray(lengths, kind, context, values)


@api("nd.dot")
def dot(lhs: NDArray, rhs: NDArray) -> NDArray:
    """The product of two matrices or vectors, pending.

    Args:
        lhs: ``(m, k)`` or ``(k,)``, float32 or float64.
        rhs: ``(k, n)`` or ``(k,)``, of the same dtype and context.

    Returns:
        ``(m, n)``, without the dimension that a vector lacks.

    Raises:
        DTypeError: an operand is no NDArray, or its dtype does not fit.
        ShapeError: the shapes do not fit.
        ContextError: the operands lie on different devices.
        ForkError: in a forked child.
    """
    return _apply(get("dot"), (lhs, rhs))


@api("nd.waitall")
def waitall() -> None:
    """Return when everything submitted so far is done.

    Raises:
        OperatorError: an operator failed, and no wait has said so yet; the first of them.
    """
    ENGINE.wait_all()
    failure = ENGINE.take_failure()
    if failure is not None:
        raise failure.error() from failure.cause


def lengths_of(shape: int | Sequence[int]) -> tuple[int, ...]:
    """``shape`` as a tuple; one number means one dimension.

    Raises:
        ShapeError: a negative or fractional length.
    """
    lengths = (shape,) if isinstance(shape, (int, np.integer)) else shape
    try:
        result = tuple(map(operator.index, lengths))
    except TypeError:
        raise ShapeError(f"a shape is a tuple of whole numbers, not {shape!r}") from None
    if min(result, default=0) < 0:
        raise ShapeError(f"a shape has no negative length: {result}")
    return result


def impossible(lengths: tuple[int, ...], error: Exception) -> ShapeError:
    """What to raise where NumPy refused ``lengths`` with ``error``."""
    shown = str(lengths) if len(lengths) <= _SHOWN else f"of {len(lengths)} dimensions"
    return ShapeError(f"no array can have the shape {shown}: {error}")


def applied(made: Operator) -> Callable[..., NDArray]:
    """What `dot` is to its operator, for one of a user's; per operator, as it may be replaced."""

    @api(f"nd.{made.name}")
    def apply(*operands: NDArray) -> NDArray:
        return _apply(made, operands)

    apply.__name__ = apply.__qualname__ = made.name
    apply.__doc__ = f"The operator {made.name} on NDArrays, pending; errors as those of `dot`."
    return apply


def _apply(made: Operator, operands: tuple[Any, ...]) -> NDArray:
    call = f"nd.{made.name}"
    since = part_begins()
    for position, operand in enumerate(operands, start=1):
        if not isinstance(operand, NDArray):
            hint = ", which nd.array turns into one" if isinstance(operand, _CONVERTIBLE) else ""
            raise DTypeError(
                f"{call} takes NDArrays; operand {position} is a {type(operand).__name__}{hint}"
            )
    if not operands:
        raise ShapeError(f"{call} takes operands, and was given none")
    context = same(call, [operand.context for operand in operands])
    forms = tuple((operand.shape, operand.dtype) for operand in operands)
    program = imperative(made, context.device_type, forms)
    since = part(call, "check", since)
    (result,) = launch(program, operands, context, IMPERATIVE)
    part(call, "dispatch", since)
    return result
