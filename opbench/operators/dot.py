"""The operator dot: matrix·matrix, matrix·vector, vector·matrix and vector·vector products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opbench import kernels
from opbench.errors import DTypeError, ShapeError
from opbench.operators.accuracy import require_form, require_within
from opbench.operators.case import Case
from opbench.operators.operator import Cost, Operator, Shape

__all__ = ["CASES", "OPERATOR"]

DTYPES = ("float32", "float64")

# Up to here all of a result is checked; beyond, SAMPLED rows and SAMPLED columns of it.
FULL_CHECK_FLOP = 2**31
SAMPLED = 32


def _dimensions(shapes: Sequence[Shape]) -> tuple[int, int, int]:
    """M, K and N of ``(m, k)·(k, n)``, with 1 where an operand is a vector.

    Raises:
        ShapeError: not two operands of one or two dimensions, or K differs between them.
    """
    if len(shapes) != 2:  # noqa: PLR2004 - a product has two operands
        raise ShapeError(f"dot takes two operands, not {len(shapes)}")
    a, b = shapes
    for position, shape in (("first", a), ("second", b)):
        if len(shape) not in (1, 2):
            raise ShapeError(
                f"dot takes matrices and vectors; its {position} operand has shape {shape}"
            )
    if a[-1] != b[0]:
        raise ShapeError(
            f"dot cannot multiply {a} by {b}: the last dimension of the first operand, {a[-1]},"
            f" must equal the first dimension of the second, {b[0]}"
        )
    return (a[0] if len(a) > 1 else 1), b[0], (b[1] if len(b) > 1 else 1)


def infer_shape(shapes: Sequence[Shape]) -> Shape:
    """``(m, k)·(k, n) -> (m, n)``; the dimension that a vector lacks is missing in the result.

    Raises:
        ShapeError: the shapes do not fit; says which numbers clash.
    """
    _dimensions(shapes)
    a, b = shapes
    return (*a[:-1], *b[1:])


def infer_dtype(dtypes: Sequence[str]) -> str:
    """Both operands have the same dtype, float32 or float64, and so has the result.

    Raises:
        DTypeError: they differ, or are of another kind; says how to convert.
    """
    for dtype in dtypes:
        if dtype not in DTYPES:
            raise DTypeError(
                f"dot takes {' or '.join(DTYPES)}, not {dtype}; convert the operand with astype"
            )
    if len(set(dtypes)) > 1:
        raise DTypeError(
            f"dot takes operands of one dtype, not {' and '.join(dtypes)};"
            " convert one of them with astype"
        )
    return dtypes[0]


def cost(shapes: Sequence[Shape], dtype: str) -> Cost:
    """2·M·K·N operations; A and B read once, C written once."""
    m, k, n = _dimensions(shapes)
    return Cost(flop=2 * m * k * n, bytes=(m * k + k * n + m * n) * np.dtype(dtype).itemsize)


def label(shapes: Sequence[Shape]) -> str:
    """``n²`` for two square matrices, ``M×K×N`` for others; a vector operand is called so."""
    m, k, n = _dimensions(shapes)
    a, b = shapes
    if len(a) == 1 and len(b) == 1:
        return f"vector {k}"
    if len(b) == 1:
        return f"{m}×{k} · vector"
    if len(a) == 1:
        return f"vector · {k}×{n}"
    return f"{n}²" if m == k == n else f"{m}×{k}×{n}"


def _sample(count: int, generator: np.random.Generator) -> np.ndarray[Any, Any]:
    """Indices below ``count``: both ends, where tiles are ragged, and one from each stretch."""
    if count <= SAMPLED:
        return np.arange(count)
    edges = np.linspace(0, count, SAMPLED - 1).astype(np.int64)
    inside = generator.integers(edges[:-1], edges[1:])
    return np.unique(np.concatenate((inside, (0, count - 1))))


def _compare(
    what: str, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], c: np.ndarray[Any, Any]
) -> None:
    """Require C to lie within K·eps·|A||B| of A·B computed in float64.

    The bound is Higham's (Accuracy and Stability of Numerical Algorithms, 3.5) for any order of
    summation, K·u·|A||B| with u = eps/2, once for C and once for the reference, whose precision
    is no better than C's if C is float64. K smallest numbers are added for underflow.
    """
    k = a.shape[1]
    a64, b64 = a.astype(np.float64), b.astype(np.float64)
    limits = np.finfo(c.dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        expected = a64 @ b64
        bound = k * float(limits.eps) * (np.abs(a64) @ np.abs(b64))
    require_within(what, c, expected, bound + k * float(limits.smallest_subnormal))


def check(inputs: Sequence[np.ndarray[Any, Any]], result: np.ndarray[Any, Any]) -> None:
    """Compare ``result`` with the product of ``inputs``, all of it or sampled rows and columns.

    Raises:
        AccuracyError: another shape or dtype, or an element outside the bound.
    """
    shapes = [operand.shape for operand in inputs]
    dtype = inputs[0].dtype.name
    m, k, n = _dimensions(shapes)
    what = f"dot on {label(shapes)} {dtype}"
    require_form(what, result, infer_shape(shapes), dtype)
    a, b, c = inputs[0].reshape(m, k), inputs[1].reshape(k, n), result.reshape(m, n)
    if 2 * m * k * n <= FULL_CHECK_FLOP:
        _compare(what, a, b, c)
        return
    generator = np.random.default_rng(0)
    rows, columns = _sample(m, generator), _sample(n, generator)
    _compare(f"{what}, sampled rows", a[rows], b, c[rows])
    _compare(f"{what}, sampled columns", a, b[:, columns], c[:, columns])


OPERATOR = Operator(
    name="dot",
    infer_shape=infer_shape,
    infer_dtype=infer_dtype,
    cost=cost,
    reference=np.dot,
    kernels={"cpu": kernels.dot},
    label=label,
    check=check,
    lanes=kernels.dot_records,
)


def _cases() -> tuple[Case, ...]:
    squares = [
        Case("dot", ((n, n), (n, n)), dtype) for n in (4096, 1024, 256, 64) for dtype in DTYPES
    ]
    return (
        *squares,
        Case("dot", ((1000, 37), (37, 511)), "float64"),
        Case("dot", ((17, 4096), (4096, 33)), "float32"),
        Case("dot", ((1, 1), (1, 1)), "float64"),
        Case("dot", ((2048, 2048), (2048,)), "float32"),
        Case("dot", ((2048,), (2048, 511)), "float64"),
        Case("dot", ((1_000_000,), (1_000_000,)), "float64"),
    )


# Fourteen cases times three forms is what two cores finish in under four minutes.
CASES = _cases()
