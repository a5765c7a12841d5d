"""Cases: their names, their inputs, and the list that the suite runs."""

from __future__ import annotations

import numpy as np
import pytest

from opbench.errors import AccuracyError, ConfigError, DTypeError
from opbench.operators import Case, cases, get, uniform


@pytest.mark.parametrize(
    ("shapes", "dtype", "name", "label"),
    [
        (((4096, 4096), (4096, 4096)), "float32", "4096-f32", "4096² f32"),
        (((1000, 37), (37, 511)), "float64", "1000x37x511-f64", "1000×37×511 f64"),
        (((20, 30), (30,)), "float32", "20x30-vector-f32", "20×30 · vector f32"),
        (((30,), (30, 20)), "float32", "vector-30x20-f32", "vector · 30×20 f32"),
        (((30,), (30,)), "float64", "vector-30-f64", "vector 30 f64"),
    ],
)
def test_id_and_label(shapes, dtype, name, label):
    case = Case("dot", shapes, dtype)

    assert case.id == name
    assert case.id.isascii()
    assert case.label == label


def test_inputs_are_uniform_in_the_range_and_the_same_each_time():
    case = Case("dot", ((300, 200), (200, 100)), "float32", low=2.0, high=3.0)
    a, b = case.inputs()
    again, _ = case.inputs()

    assert (a.shape, b.shape) == case.shapes
    assert a.dtype == b.dtype == np.float32
    assert a.flags.c_contiguous
    assert a.min() >= 2.0
    assert a.max() < 3.0
    assert abs(float(a.mean()) - 2.5) < 0.01
    assert np.array_equal(a, again)
    assert not np.shares_memory(a, again)
    assert not np.array_equal(a.ravel()[:100], b.ravel()[:100])


def test_another_seed_gives_other_inputs():
    (a, _), (b, _) = (Case("dot", ((9,), (9,)), "float64", seed=seed).inputs() for seed in (0, 1))

    assert not np.array_equal(a, b)


def test_the_upper_end_is_not_reached_by_rounding():
    class Ones:
        def random(self, shape, dtype):
            return np.full(shape, np.nextafter(dtype(1), dtype(0)))

    # 16777216 + almost 1 rounds to 16777217's neighbours; the largest float32 below it is meant.
    values = uniform(Ones(), (3,), "float32", 2.0**24, 2.0**24 + 2)

    assert (values < np.float32(2**24 + 2)).all()


def test_check_uses_the_operators_reference():
    case = Case("dot", ((4, 5), (5, 6)), "float64")
    inputs = case.inputs()

    case.check(inputs, np.dot(*inputs))
    with pytest.raises(AccuracyError):
        case.check(inputs, np.dot(*inputs) + 1e-9)


def test_check_takes_a_scalar_for_a_product_of_vectors():
    case = Case("dot", ((5,), (5,)), "float64")
    inputs = case.inputs()

    case.check(inputs, np.dot(*inputs))


def test_check_takes_what_numpy_makes_arrays_of():
    class Foreign:
        def __init__(self, array):
            self.array = array

        def __array__(self, dtype=None, copy=None):
            return self.array

    case = Case("dot", ((4, 5), (5, 6)), "float64")
    inputs = case.inputs()

    case.check([Foreign(operand) for operand in inputs], Foreign(np.dot(*inputs)))


def test_inputs_of_another_dtype():
    with pytest.raises(DTypeError, match="uniform makes float32 or float64, not int32"):
        Case("dot", ((2,), (2,)), "int32").inputs()


def test_inputs_of_a_range_that_the_dtype_has_not():
    with pytest.raises(ConfigError, match="finite range in float32"):
        Case("dot", ((2,), (2,)), "float32", low=-3e38, high=3e38).inputs()


def test_the_suites_cases():
    suite = cases("dot")
    shapes = {case.shapes for case in suite}

    assert len({case.id for case in suite}) == len(suite)
    assert 12 <= len(suite) <= 16
    for n in (4096, 1024, 256, 64):
        for dtype in ("float32", "float64"):
            assert Case("dot", ((n, n), (n, n)), dtype) in suite
    for odd in (((1000, 37), (37, 511)), ((17, 4096), (4096, 33)), ((1, 1), (1, 1))):
        assert odd in shapes
    assert {len(get("dot").infer_shape(shape)) for shape in shapes} == {0, 1, 2}
    assert [case.id for case in suite if case.long] == ["4096-f32", "4096-f64"]


def test_cases_of_an_unknown_operator():
    with pytest.raises(ConfigError, match="'dott'; did you mean 'dot'"):
        cases("dott")
