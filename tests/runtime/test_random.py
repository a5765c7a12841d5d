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
    ("low", "high"), [(1, 0), (0, math.inf), (math.nan, 1), (-1.7e308, 1.7e308)]
)
def test_ranges_that_are_none(low, high):
    with pytest.raises(ConfigError, match="finite low <= high"):
        random.uniform(low, high)


def test_other_bad_arguments():
    with pytest.raises(ConfigError, match="seed is 0 or more, not -1"):
        random.uniform(seed=-1)
    with pytest.raises(DTypeError, match="float32 or float64, not int32"):
        random.uniform(dtype="int32")
    with pytest.raises(DTypeError, match="not 'flote'"):
        random.uniform(dtype="flote")
    with pytest.raises(ShapeError):
        random.uniform(shape=(2, -2))
