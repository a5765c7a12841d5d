"""Arrays of random numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from opbench.errors import ConfigError, DTypeError, ShapeError
from opbench.runtime import cpu, random


def test_defaults():
    a = random.uniform()

    assert (a.shape, a.dtype, a.ctx) == ((1,), np.float32, cpu())
    assert 0 <= a.asnumpy()[0] < 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fills_the_range_evenly(dtype):
    values = random.uniform(-1.0, 3.0, (200, 500), cpu(), dtype, seed=3).asnumpy()

    assert values.dtype == dtype
    assert values.min() >= -1
    assert values.max() < 3
    quarters = np.histogram(values, bins=4, range=(-1, 3))[0]
    assert np.abs(quarters / values.size - 0.25).max() < 0.01


def test_a_seed_repeats_and_none_does_not():
    def draw(seed):
        return random.uniform(shape=20, seed=seed).asnumpy().tolist()

    assert draw(5) == draw(5)
    assert draw(5) != draw(6)
    assert draw(None) != draw(None)


def test_an_empty_range_has_one_value():
    assert random.uniform(2, 2, 3).asnumpy().tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [
        (1, 0, "float32"),
        (0, math.inf, "float64"),
        (math.nan, 1, "float32"),
        (-1.7e308, 1.7e308, "float64"),
        (-3e38, 3e38, "float32"),
        (0, 1e39, "float32"),
        (1e39, 1e39, "float32"),
        (0, 10**400, "float64"),
        (np.float64(-1.7e308), np.float64(1.7e308), "float64"),
    ],
)
def test_ranges_that_are_none(low, high, dtype):
    with pytest.raises(ConfigError, match="finite low <= high"):
        random.uniform(low, high, dtype=dtype)


def test_the_widest_ranges_of_float32_stay_in_it():
    values = random.uniform(-1.7e38, 1.7e38, 1000, seed=1).asnumpy()

    assert np.isfinite(values).all()
    assert values.min() < -1.6e38
    assert values.max() > 1.6e38


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"low": "a"}, "low is a str"),
        ({"high": None}, "high is a NoneType"),
        ({"low": np.zeros(3)}, "low is a ndarray"),
        ({"seed": -1}, "seed is a whole number of 0 or more, not -1"),
        ({"seed": 1.5}, "not 1.5"),
        ({"seed": "x"}, "not 'x'"),
    ],
)
def test_what_is_no_number(arguments, words):
    with pytest.raises(ConfigError, match=words):
        random.uniform(**arguments)


def test_a_seed_of_numpys():
    assert random.uniform(seed=np.int64(3)).asnumpy() == random.uniform(seed=3).asnumpy()


def test_other_bad_arguments():
    with pytest.raises(DTypeError, match="float32 or float64, not int32"):
        random.uniform(dtype="int32")
    with pytest.raises(DTypeError, match="'flote' is no dtype"):
        random.uniform(dtype="flote")
    for shape in ((2, -2), (1,) * 70, (10**30,)):
        with pytest.raises(ShapeError):
            random.uniform(shape=shape)


def test_no_dtype_is_float32():
    assert random.uniform(dtype=None).dtype == np.float32
