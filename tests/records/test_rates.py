"""How often the verdicts are wrong, on data with known truth; the rules were fixed before.

The trials are those of ``tests/peers/verdict_rates.py``, which prints the whole table.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest

from opbench import records

sys.path.insert(0, str(Path(__file__).parents[1] / "peers"))
import verdict_rates as rates

TRIALS, POWER_TRIALS = 10_000, 1000
# None of them was used to choose a rule.
SEED = 2026
MODELS = list(rates.MODELS)


def said(count):
    """What a failure shows: counts and bound, as the table prints them."""
    return f"{count.slower} of {count.trials}, 95 % bound {count.bound:.3%}"


@pytest.mark.parametrize("model", MODELS)
def test_ab_calls_unchanged_code_slower_in_at_most_one_of_five_hundred(model):
    count = rates.ab_count(model, TRIALS, SEED)
    print(model, said(count))
    assert count.trials >= 10_000
    assert count.bound <= 0.002, said(count)
    assert count.faster <= 20


@pytest.mark.parametrize("model", MODELS)
def test_compare_of_five_launches_calls_unchanged_code_slower_in_at_most_one_of_a_hundred(model):
    count = rates.compare_count(model, TRIALS, SEED)
    print(model, said(count))
    assert count.trials >= 10_000
    assert count.bound <= 0.01, said(count)
    assert count.faster <= 100
    # Controls may withhold verdicts only where the machine does move.
    withheld = count.incomparable / count.trials
    assert (withheld > 0.3) if model == "drifting machine" else (withheld < 0.001)


@pytest.mark.parametrize("model", MODELS)
def test_a_budget_that_ends_before_the_first_look_gives_no_more_false_alarms(model):
    """A look more: eight fresh pairs, then the session goes on with a larger budget."""
    count = rates.ab_count(model, TRIALS, SEED + 2, cut=rates.CUT)
    print(model, said(count))
    assert count.bound <= 0.002, said(count)
    assert count.faster <= 20


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("slowdown", "found"), [(1.05, 0.70), (1.10, 0.90)])
def test_ab_finds_slowdowns(model, slowdown, found):
    count = rates.ab_count(model, POWER_TRIALS, SEED + 1, slowdown)
    print(model, f"{count.rate:.1%} found, {count.mean_pairs:.1f} pairs each")
    assert count.rate >= found, f"{count.rate:.1%}"
    assert count.faster == 0


def whole_verdict(base, head, slowdown):
    """What ``ab`` says in the end, "unchanged" included, which is final at any look."""
    base, head = base.tolist(), (head * slowdown).tolist()
    first = rates.grown(records.pairs_to_screen, base, head)
    suspect = records.screen(base[:first], head[:first], rates.AB_FLOOR)
    fresh = base[first:], head[first:]
    more = rates.grown(records.pairs_to_confirm, *fresh) if suspect else 0
    return rates.judged_after(base, head, first, more)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("slowdown", "most"), [(1.03, 0.10), (1.04, 0.02), (1.05, 0.005)])
def test_a_slowdown_beyond_the_floor_is_seldom_called_unchanged(model, slowdown, most):
    draw = np.random.default_rng(SEED + 3)
    values, _ = rates.MODELS[model](draw, (POWER_TRIALS, rates.LONG))
    both = zip(*rates.taken_in_turns(draw, values), strict=True)
    verdicts = [whole_verdict(base, head, slowdown) for base, head in both]
    rate = verdicts.count(records.Verdict.UNCHANGED) / POWER_TRIALS
    print(model, f"{slowdown - 1:.0%} slower, called unchanged: {rate:.1%}")
    assert rate <= most, f"{rate:.1%}"
    # What is no slowdown is mostly called that, or the rule would pass by saying nothing.
    if slowdown == 1.03:
        both = zip(*rates.taken_in_turns(draw, values[:200]), strict=True)
        equal = [whole_verdict(base, head, 1.0) for base, head in both]
        print(model, "equal, called unchanged:", equal.count(records.Verdict.UNCHANGED), "of 200")
        assert equal.count(records.Verdict.UNCHANGED) > 20


@pytest.mark.parametrize("model", MODELS)
def test_unchanged_code_seldom_takes_more_than_its_first_pairs(model):
    """Looking again is for what has no answer: what it costs stays below half as many pairs."""
    assert 8 <= rates.ab_count(model, POWER_TRIALS, SEED).mean_pairs < 12


def test_a_drift_of_the_machine_moves_no_estimate_of_ab():
    """The same launches with and without a step of 4 %: the median ratio stays."""
    draw = np.random.default_rng(SEED)
    values = rates.noise(draw, (1000, 40), 0.007)
    at = draw.integers(1, 40, (1000, 1))
    stepped = values * np.where(np.arange(40) >= at, 1.04, 1.0)
    moved = []
    for launches in (values, stepped):
        base, head = rates.taken_in_turns(np.random.default_rng(1), launches)
        moved.append([records.median_log_ratio(b, h) for b, h in zip(base, head, strict=True)])
    change = np.abs(np.subtract(*moved))
    assert np.median(change) < 0.001
    assert np.quantile(change, 0.99) < 0.01


def test_without_turns_and_controls_the_same_drift_would_alarm():
    """The models are no straw men: what both rules guard against does happen in them."""
    draw, alarms = np.random.default_rng(SEED), 0
    values, _ = rates.drifting(draw, (1000, 10))
    for row in values:
        verdict = records.judge_values(row[:5].tolist(), row[5:].tolist(), 0.01).verdict
        alarms += verdict in {records.Verdict.REGRESSED, records.Verdict.IMPROVED}
    assert alarms > 100


def test_the_models_use_the_value_of_a_launch_that_the_package_uses():
    draw = random.Random(3)  # noqa: S311 - noise, no secret
    rounds = [draw.lognormvariate(0, 0.1) for _ in range(25)]
    ours = rates.lower_quartiles(np.array([rounds]))[0]
    assert ours == pytest.approx(records.launch_value(rounds), rel=1e-14)


def test_turns_take_each_launch_once_and_pair_neighbours():
    base, head = rates.taken_in_turns(np.random.default_rng(0), np.arange(80.0).reshape(2, 40))
    assert sorted([*base[0], *head[0]]) == list(range(40))
    assert set(np.abs(base - head).ravel()) == {1.0}


def test_sessions_one_after_the_other_share_no_launch(monkeypatch):
    taken = []

    def judged(base, head, slowdown=1.0, cut=None):
        taken.append([*base[:11], *head[:11]])
        return records.Verdict.UNCHANGED, 11

    monkeypatch.setattr(rates, "judged_pairs", judged)
    monkeypatch.setattr(rates, "recorded", lambda: (["x"], [np.arange(1.0, 101.0)]))
    assert rates.ab_on_real(stride=None).trials == 3
    flat = [value for session in taken for value in session]
    # Of 24 launches, whole blocks, 22 are used; what is left after three is too little.
    assert len(flat) == len(set(flat)) == 66


@pytest.mark.parametrize(("count", "trials"), [(0, 1500), (0, 10_000), (3, 1455), (12, 900)])
def test_the_bound_is_scipys(count, trials):
    stats = pytest.importorskip("scipy.stats")
    theirs = stats.binomtest(count, trials, alternative="less").proportion_ci(0.95, "exact").high
    assert rates.upper_bound(count, trials) == pytest.approx(theirs, rel=1e-9)


def test_real_launches_are_there_and_are_what_they_say():
    names, values = rates.recorded()
    assert names == ["matmul", "softmax", "sort", "transpose", "numba"]
    assert values.shape[1] >= 200
    assert rates.RECORDED.stat().st_size < 300_000
    assert 10e-6 < values.min() < values.max() < 10e-3


def test_on_real_launches_ab_has_no_false_alarm_and_finds_what_is_slower():
    count, apart = rates.ab_on_real(), rates.ab_on_real(stride=None)
    print(f"overlapping windows: {said(count)}; one after the other: {said(apart)}")
    assert count.trials > 700
    assert apart.trials > 70
    assert (count.slower, apart.slower) == (0, 0)
    assert rates.ab_on_real(1.05).rate > 0.85
    assert rates.ab_on_real(1.10).rate > 0.95


def test_on_real_launches_compare_seldom_alarms():
    count = rates.compare_on_real()
    print(said(count))
    assert count.trials > 1000
    # Launches that follow each other, without controls: a machine that moves is in it.
    assert count.rate <= 0.01
    assert rates.compare_on_real(1.20).rate > 0.7
