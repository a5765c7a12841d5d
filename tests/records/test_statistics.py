"""The statistics against scipy, against brute force, and against the binomial table."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from opbench.records import (
    benjamini_hochberg,
    bootstrap_median_interval,
    bootstrap_ratio_interval,
    lower_quartile,
    mann_whitney_exact,
    median,
    median_log_ratio,
    sign_interval,
    spread,
    superiority,
)

stats = pytest.importorskip("scipy.stats")

SIZES = [1, 2, 5, 6, 8, 9, 12, 25, 40]


def sample(size, seed=0, tail=2):
    """Heavy-tailed values above 0."""
    return np.exp(0.02 * np.random.default_rng(seed + size).standard_t(tail, size)).tolist()


@pytest.mark.parametrize("size", SIZES)
def test_the_lower_quartile_is_numpys(size):
    assert lower_quartile(sample(size)) == pytest.approx(np.quantile(sample(size), 0.25), rel=1e-14)


@pytest.mark.parametrize("size", SIZES)
def test_the_spread_is_the_normal_scaled_deviation_of_logs(size):
    logs = np.log(sample(size))
    assert spread(sample(size)) == pytest.approx(
        stats.median_abs_deviation(logs, scale="normal"), rel=1e-4
    )


def test_equal_values_have_their_own_quantile_without_rounding():
    assert lower_quartile([0.1, 0.1, 0.1, 0.1]) == 0.1


def test_no_value_has_no_quantile():
    with pytest.raises(ValueError, match="no value has no quantile"):
        median([])


def test_the_median_log_ratio_is_of_pairs_and_not_of_medians():
    assert median_log_ratio([1.0, 2.0, 4.0], [2.0, 2.0, 2.0]) == 0.0
    assert median_log_ratio([1.0, 1.0, 1.0], [1.0, 2.0, 4.0]) == pytest.approx(math.log(2))


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("size", [6, 8, 9, 12, 20, 41, 100])
def test_the_sign_interval_is_scipys_quantile_interval(size, confidence):
    values = sample(size)
    ours = sign_interval(values, confidence)
    if ours is None:
        assert 1 - 2 * 0.5**size < confidence
        return
    # scipy inverts the one-sided tests one after the other; together they are the same interval.
    test = stats.quantile_test(values, q=median(values), p=0.5)
    low, high = test.confidence_interval(confidence)
    assert (ours.low, ours.high) == (low, high)


@pytest.mark.parametrize(
    ("size", "confidence", "outside", "actual"),
    # Tails of Binomial(n, 1/2): 2/64, 2/256, 2*(1+8)/256, 2*(1+12+66)/4096, 2*(1+12)/4096.
    [
        (6, 0.95, 0, 1 - 2 / 64),
        (8, 0.99, 0, 1 - 2 / 256),
        (8, 0.9, 1, 1 - 18 / 256),
        (12, 0.95, 2, 1 - 158 / 4096),
        (12, 0.99, 1, 1 - 26 / 4096),
    ],
)
def test_the_sign_interval_skips_the_binomial_tail_and_says_what_it_covers(
    size, confidence, outside, actual
):
    values = random.Random(1).sample(range(size), size)  # noqa: S311 - noise, no secret
    assert sign_interval(values, confidence) == (outside, size - 1 - outside, actual)


@pytest.mark.parametrize(("size", "confidence"), [(0, 0.9), (5, 0.95), (7, 0.99), (10, 0.999)])
def test_too_few_values_have_no_sign_interval(size, confidence):
    assert sign_interval(list(range(size)), confidence) is None


def brute_medians(values):
    """Every resample of a small sample."""
    return [np.median(drawn) for drawn in itertools.product(values, repeat=len(values))]


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
def test_the_bootstrap_of_a_median_is_that_of_all_resamples(size, confidence):
    values = sample(size, seed=3)
    everything = np.sort(brute_medians(values))
    # The first value that more than the tail lies at or below, counted from either end.
    cut = math.floor((1 - confidence) / 2 * len(everything) * (1 + 1e-12))
    low, high, stated = bootstrap_median_interval(values, confidence)
    assert (low, high) == pytest.approx((everything[cut], everything[-1 - cut]), rel=1e-14)
    assert stated == confidence


@pytest.mark.parametrize("size", [5, 8, 12, 25, 40])
def test_the_bootstrap_of_a_median_is_scipys_with_many_resamples(size):
    values = sample(size, seed=9)
    theirs = stats.bootstrap(
        (np.array(values),), np.median, method="percentile", n_resamples=50_000, rng=1
    )
    ours = bootstrap_median_interval(values, 0.95)
    # A percentile of a discrete distribution can hit the neighbour of the value meant.
    near = 1e-12 + 0.1 * (max(values) - min(values)) / size
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=near)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=near)


@pytest.mark.parametrize("sizes", [(3, 4), (4, 4), (5, 3)])
def test_the_bootstrap_of_a_ratio_is_that_of_all_pairs_of_resamples(sizes):
    base, head = sample(sizes[0], seed=1), sample(sizes[1], seed=2)
    ratios = np.sort(np.divide.outer(brute_medians(head), brute_medians(base)).ravel())
    cut = math.floor(0.05 * len(ratios) * (1 + 1e-12))
    low, high, _ = bootstrap_ratio_interval(base, head, 0.9)
    assert (low, high) == pytest.approx((ratios[cut], ratios[-1 - cut]), rel=1e-13)


@pytest.mark.parametrize("sizes", [(5, 5), (10, 10), (10, 21)])
def test_the_bootstrap_of_a_ratio_is_scipys_with_many_resamples(sizes):
    base, head = sample(sizes[0], seed=1), sample(sizes[1], seed=2)
    theirs = stats.bootstrap(
        (np.array(base), np.array(head)),
        lambda b, h, axis: np.median(h, axis=axis) / np.median(b, axis=axis),
        method="percentile",
        n_resamples=50_000,
        rng=1,
    ).confidence_interval
    ours = bootstrap_ratio_interval(base, head, 0.95)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=3e-3)


def test_swapping_the_sides_inverts_the_interval():
    base, head = sample(5, seed=1), sample(10, seed=2)
    there, back = (bootstrap_ratio_interval(*sides, 0.95) for sides in ((base, head), (head, base)))
    assert (there.low, there.high) == pytest.approx((1 / back.high, 1 / back.low), rel=1e-12)


@pytest.mark.parametrize("sizes", [(1, 1), (3, 5), (5, 5), (8, 6), (10, 10), (30, 25)])
@pytest.mark.parametrize("shift", [1.0, 1.01, 1.05])
def test_mann_whitney_is_scipys_exact_one(sizes, shift):
    base = sample(sizes[0], seed=4)
    head = [shift * value for value in sample(sizes[1], seed=5)]
    theirs = stats.mannwhitneyu(base, head, method="exact")
    assert mann_whitney_exact(base, head) == pytest.approx(theirs.pvalue, rel=1e-12)
    won = 1 - theirs.statistic / (sizes[0] * sizes[1])
    assert superiority(base, head) == pytest.approx(won, rel=1e-12)


@pytest.mark.parametrize(
    ("base", "head"),
    [
        ([1, 1, 2, 3], [1, 2, 2, 4, 4]),
        ([1, 1, 1], [1, 1, 1, 1]),
        ([1, 1, 1, 1], [2, 2, 2, 2]),
        ([5, 5, 6, 7, 9], [1, 5, 5, 5]),
    ],
)
def test_with_ties_it_is_the_permutation_test_of_mean_ranks(base, head):
    ranks = stats.rankdata([*base, *head])
    sums = [sum(chosen) for chosen in itertools.combinations(ranks, len(base))]
    observed = sum(ranks[: len(base)])
    below = np.mean([found <= observed + 1e-9 for found in sums])
    above = np.mean([found >= observed - 1e-9 for found in sums])
    assert mann_whitney_exact(base, head) == pytest.approx(min(1, 2 * min(below, above)), rel=1e-12)


def test_five_against_five_can_just_reach_the_limit_and_four_cannot():
    assert mann_whitney_exact([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]) == pytest.approx(2 / 252)
    assert mann_whitney_exact([1, 2, 3, 4], [5, 6, 7, 8]) == pytest.approx(2 / 70)


@pytest.mark.parametrize("tied", [False, True])
def test_very_large_samples_get_scipys_normal_approximation(tied):
    draw = np.random.default_rng(8)
    base, head = draw.normal(0, 1, 150), draw.normal(0.2, 1, 120)
    if tied:
        base, head = np.round(base, 1), np.round(head, 1)
    theirs = stats.mannwhitneyu(base, head, method="asymptotic").pvalue
    assert mann_whitney_exact(base.tolist(), head.tolist()) == pytest.approx(theirs, rel=1e-9)


def test_superiority_counts_a_tie_half():
    assert superiority([1, 2], [2, 3]) == (1 + 1 + 0.5 + 1) / 4


@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_false_discoveries_are_scipys(size):
    values = np.random.default_rng(size).random(size) ** 3
    assert benjamini_hochberg(values.tolist()) == pytest.approx(
        stats.false_discovery_control(values), rel=1e-12
    )


def test_false_discoveries_of_nothing_are_none():
    assert benjamini_hochberg([]) == []
