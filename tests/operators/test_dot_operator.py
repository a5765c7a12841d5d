"""The operator dot: shapes, dtypes, cost and label."""

from __future__ import annotations

import numpy as np
import pytest

from opbench import kernels
from opbench.errors import AccuracyError, DTypeError, ShapeError
from opbench.operators import Cost, get

DOT = get("dot")


@pytest.mark.parametrize(
    ("shapes", "result", "flop", "elements"),
    [
        (((3, 4), (4, 5)), (3, 5), 120, 12 + 20 + 15),
        (((3, 4), (4,)), (3,), 24, 12 + 4 + 3),
        (((4,), (4, 5)), (5,), 40, 4 + 20 + 5),
        (((4,), (4,)), (), 8, 4 + 4 + 1),
        (((0, 4), (4, 5)), (0, 5), 0, 20),
        (((3, 0), (0, 5)), (3, 5), 0, 15),
    ],
)
def test_shape_and_cost(shapes, result, flop, elements):
    assert DOT.infer_shape(shapes) == result
    assert DOT.cost(shapes, "float32") == Cost(flop, 4 * elements)
    assert DOT.cost(shapes, "float64") == Cost(flop, 8 * elements)


@pytest.mark.parametrize(
    "shapes",
    [((3, 4), (4, 5)), ((3, 4), (4,)), ((4,), (4, 5)), ((4,), (4,)), ((1, 1), (1, 1))],
)
def test_shape_rule_is_numpys(shapes):
    a, b = (np.ones(shape) for shape in shapes)

    assert DOT.infer_shape(shapes) == np.dot(a, b).shape


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (((3, 4), (5, 6)), "last dimension of the first operand, 4,.* of the second, 5"),
        (((3,), (4,)), "3.*4"),
        (((2, 3, 4), (4, 5)), r"first operand has shape \(2, 3, 4\)"),
        (((3, 4), ()), r"second operand has shape \(\)"),
        (((3, 4),), "two operands, not 1"),
    ],
)
def test_shapes_that_do_not_fit(shapes, words):
    with pytest.raises(ShapeError, match=words):
        DOT.infer_shape(shapes)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtype_of_the_result_is_that_of_the_operands(dtype):
    assert DOT.infer_dtype((dtype, dtype)) == dtype


@pytest.mark.parametrize(
    ("dtypes", "words"),
    [
        (("float32", "float64"), "one dtype, not float32 and float64.*astype"),
        (("complex128", "complex128"), "float32 or float64, not complex128.*astype"),
        (("float64", "int64"), "not int64"),
    ],
)
def test_dtypes_that_do_not_fit(dtypes, words):
    with pytest.raises(DTypeError, match=words):
        DOT.infer_dtype(dtypes)


@pytest.mark.parametrize(
    ("shapes", "label"),
    [
        (((64, 64), (64, 64)), "64²"),
        (((64, 64), (64, 65)), "64×64×65"),
        (((65, 64), (64,)), "65×64 · vector"),
        (((64,), (64, 64)), "vector · 64×64"),
        (((7,), (7,)), "vector 7"),
    ],
)
def test_label(shapes, label):
    assert DOT.label(shapes) == label


def test_the_kernel_is_the_kernels_rooms_own_function():
    assert DOT.kernels["cpu"] is kernels.dot


def test_the_reference_takes_out_as_the_kernel_does():
    a, b, c = np.ones((2, 3)), np.ones((3, 2)), np.zeros((2, 2))

    assert DOT.reference(a, b, out=c) is c
    assert c.tolist() == [[3.0, 3.0], [3.0, 3.0]]


def big_product(n=1300):
    generator = np.random.default_rng(5)
    a, b = (generator.uniform(-1, 1, (n, n)).astype(np.float32) for _ in range(2))
    return a, b, np.dot(a, b)


def test_check_takes_numpys_result_and_refuses_one_wrong_element():
    a, b = (np.random.default_rng(1).uniform(-1, 1, (30, 30)) for _ in range(2))
    right = np.dot(a, b)
    wrong = right.copy()
    wrong[17, 4] += 1e-10

    DOT.check((a, b), right)
    with pytest.raises(AccuracyError, match=r"dot on 30² float64: 1 of 900 .*at \(17, 4\)"):
        DOT.check((a, b), wrong)


def test_check_notices_a_lost_summand_in_float32():
    a, b = (np.random.default_rng(1).uniform(0.5, 1, (8, 200)).astype("f") for _ in range(2))
    b = b.T

    with pytest.raises(AccuracyError):
        DOT.check((a, b), np.dot(a[:, 1:], b[1:]))


@pytest.mark.parametrize("corner", [(0, 0), (-1, -1), (0, -1), (-1, 0)])
def test_a_big_result_is_sampled_with_all_its_edges(corner):
    a, b, c = big_product()
    DOT.check((a, b), c)
    c[corner] += 1

    with pytest.raises(AccuracyError, match="sampled rows"):
        DOT.check((a, b), c)


@pytest.mark.parametrize("at", [(slice(600, 700), 5), (5, slice(600, 700))])
def test_a_wrong_stretch_of_one_row_or_column_of_a_big_result_is_noticed(at):
    a, b, c = big_product()
    c[at] = 0

    with pytest.raises(AccuracyError):
        DOT.check((a, b), c)


@pytest.mark.parametrize(
    ("result", "words"),
    [(np.zeros((2, 2), "f"), "float32"), (np.zeros((2, 3)), r"\(2, 3\) where .*\(2, 2\)")],
)
def test_check_refuses_another_form(result, words):
    with pytest.raises(AccuracyError, match=words):
        DOT.check((np.zeros((2, 4)), np.zeros((4, 2))), result)


def test_check_wants_nan_and_infinity_where_numpy_has_them():
    a = np.array([[np.nan, 1.0], [np.inf, 1.0], [1.0, 1.0]])
    b = np.eye(2)
    right = np.array([[np.nan, np.nan], [np.inf, np.nan], [1.0, 1.0]])

    DOT.check((a, b), right)
    for at in ((0, 0), (1, 0), (2, 1)):
        wrong = right.copy()
        wrong[at] = 0.0 if np.isnan(right[at]) or np.isinf(right[at]) else np.nan
        with pytest.raises(AccuracyError, match="1 of 6"):
            DOT.check((a, b), wrong)


def test_products_of_zeros_and_subnormals_have_a_bound_above_zero():
    tiny = np.full((2, 2), 1e-23, np.float32)

    DOT.check((tiny, tiny), np.zeros((2, 2), np.float32))
