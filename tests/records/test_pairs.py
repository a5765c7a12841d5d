"""The verdict of ``ab``: what each stage decides, with values whose answer is plain."""

from __future__ import annotations

import math

import pytest

from opbench.errors import ConfigError
from opbench.records import Floor, Verdict, confirm, judge_pairs, screen

STEADY = [1.0] * 20
FLOOR = 0.03


def judged(ratios, stage1=8, floor=FLOOR, base=1.0):
    """The verdict on pairs with these ratios."""
    return judge_pairs("t", [base] * len(ratios), [base * r for r in ratios], floor, stage1)


def test_equal_pairs_are_unchanged_with_an_interval_of_one_point():
    found = judged([1.0] * 8)
    assert found.verdict is Verdict.UNCHANGED
    assert (found.ratio, found.low, found.high) == (1.0, 1.0, 1.0)
    assert found.detectable == FLOOR
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(1.1, Verdict.REGRESSED), (1 / 1.1, Verdict.IMPROVED)]
)
def test_a_change_that_fresh_pairs_repeat_is_confirmed(ratio, verdict):
    found = judged([ratio] * 20)
    assert found.verdict is verdict
    assert found.ratio == pytest.approx(ratio)
    assert found.baseline.n == found.candidate.n == 20
    # Of 12 fresh pairs, and not of all 20.
    assert found.confidence == 1 - 158 / 4096


def test_a_suspect_without_fresh_pairs_is_open():
    found = judged([1.1] * 8)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.ratio == pytest.approx(1.1)
    assert found.warnings == ("suspected, and not confirmed: 0 fresh pairs cannot show it",)


def test_five_fresh_pairs_confirm_nothing_and_six_do():
    assert judged([1.1] * 13).verdict is Verdict.INCONCLUSIVE
    assert judged([1.1] * 14).verdict is Verdict.REGRESSED


def test_the_pairs_of_the_first_stage_have_no_say_in_the_confirmation():
    found = judged([1.5] * 8 + [1.0] * 12)
    assert found.verdict is Verdict.UNCHANGED
    assert found.ratio == 1.0
    assert "not confirmed by fresh pairs" in found.warnings[0]


def test_a_change_in_the_other_direction_confirms_nothing():
    found = judged([1.1] * 8 + [0.9] * 12)
    assert found.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(("disturbed", "confirmed"), [(2, True), (3, False)])
def test_two_of_twelve_pairs_may_be_disturbed_and_three_may_not(disturbed, confirmed):
    fresh = [1.1] * (12 - disturbed) + [0.5] * disturbed
    found = confirm([1.0] * 12, fresh, FLOOR)
    assert found.changed is confirmed


def test_a_change_below_the_floor_is_none_however_sure():
    assert judged([1.02] * 20).verdict is Verdict.UNCHANGED
    assert not screen(STEADY[:8], [1.029] * 8, FLOOR)
    assert screen(STEADY[:8], [1.031] * 8, FLOOR)
    assert screen([1.031] * 8, STEADY[:8], FLOOR)


def test_scattered_pairs_are_open_and_say_what_could_have_been_seen():
    found = judged([0.9, 1.1, 0.95, 1.05, 0.9, 1.1, 1.0, 1.0])
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.low < 0.97
    assert found.high > 1.03
    # As far as the lower end lies below the estimate.
    assert found.detectable == pytest.approx(found.ratio / found.low - 1)


def test_screening_needs_six_pairs():
    assert not screen([1.0] * 5, [2.0] * 5, FLOOR)
    assert screen([1.0] * 6, [2.0] * 6, FLOOR)
    found = judged([2.0] * 5, stage1=5)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.ratio == pytest.approx(2.0)
    assert (found.low, found.detectable) == (None, None)
    assert found.warnings == ("5 pairs only; at least 6 are needed",)


def test_no_pair_at_all_is_open_and_not_judged():
    found = judge_pairs("t", [], [], FLOOR, 0)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert not found.judged
    assert found.baseline is None


def test_a_launch_without_time_has_no_ratio():
    found = judge_pairs("t", [1.0] * 8, [1.0] * 7 + [0.0], FLOOR, 8)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.ratio is None
    assert "took no time by its clock" in found.warnings[0]


def test_sides_of_different_length_are_refused():
    with pytest.raises(ValueError, match="t: 2 values of base and 1 of head"):
        judge_pairs("t", [1.0, 1.0], [1.0], FLOOR, 1)


def test_the_absolute_floor_holds_for_fast_calls():
    fast = [100e-9]
    # 10 ns of 100 ns are 10 %, and below 20 ns.
    assert not screen(fast * 8, [110e-9] * 8, FLOOR)
    assert screen(fast * 8, [110e-9] * 8, Floor(FLOOR, 0.0))
    assert screen(fast * 8, [121e-9] * 8, FLOOR)
    found = judged([1.1] * 8, base=100e-9)
    assert found.verdict is Verdict.UNCHANGED
    assert found.floor == pytest.approx(0.2)


def test_a_floor_that_is_none_is_refused():
    with pytest.raises(ConfigError, match=r"relative floor of 1.5 is none"):
        judged([1.0] * 8, floor=1.5)


def test_a_step_of_the_machine_in_mid_session_leaves_every_verdict():
    """Turns put one pair across a step of 4 %, whatever launch it comes at."""
    blocks = "ABBABAABABBABAAB"
    for at in range(len(blocks)):
        speed = [1.04 if index >= at else 1.0 for index in range(len(blocks))]
        base = [s for side, s in zip(blocks, speed, strict=True) if side == "A"]
        head = [s for side, s in zip(blocks, speed, strict=True) if side == "B"]
        found = judge_pairs("t", base, head, FLOOR, 8)
        assert found.ratio == 1.0, at
        assert found.verdict is Verdict.UNCHANGED, at


def test_the_interval_is_of_logs_so_that_swapped_sides_give_the_inverse():
    ratios = [1.0, 1.02, 0.97, 1.05, 0.99, 1.01, 1.0, 0.96]
    there, back = judged(ratios), judged([1 / r for r in ratios])
    assert math.isclose(there.low, 1 / back.high)
    assert math.isclose(there.ratio, 1 / back.ratio)
