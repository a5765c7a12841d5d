"""The verdict of ``ab``: what each stage decides, with values whose answer is plain."""

from __future__ import annotations

import itertools
import math

import pytest

from opbench.errors import ConfigError
from opbench.records import (
    CONFIRM_LOOKS,
    Floor,
    Verdict,
    confirm,
    judge_pairs,
    pairs,
    pairs_to_confirm,
    pairs_to_screen,
    screen,
    sign_interval,
)

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


def test_seven_fresh_pairs_confirm_nothing_and_eight_that_agree_do():
    assert judged([1.1] * 15).verdict is Verdict.INCONCLUSIVE
    found = judged([1.1] * 16)
    assert found.verdict is Verdict.REGRESSED
    assert found.confidence == 1 - 2 / 256
    # Before the first look all must agree.
    assert judged([1.1] * 18 + [0.99]).verdict is Verdict.INCONCLUSIVE


def test_the_pairs_of_the_first_stage_have_no_say_in_the_confirmation():
    found = judged([1.5] * 8 + [1.0] * 12)
    assert found.verdict is Verdict.UNCHANGED
    assert found.ratio == 1.0
    assert found.warnings == ("suspected by screening, and not confirmed by 12 fresh pairs",)


def test_a_change_in_the_other_direction_confirms_nothing():
    found = judged([1.1] * 8 + [0.9] * 12)
    assert found.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(("disturbed", "confirmed"), [(2, True), (3, False)])
def test_two_of_twelve_pairs_may_be_disturbed_and_three_may_not(disturbed, confirmed):
    fresh = [1.1] * (12 - disturbed) + [0.5] * disturbed
    found = confirm([1.0] * 12, fresh, FLOOR)
    assert found.changed is confirmed


# looks


def spread_out(size, differing):
    """So many pairs 10 % slower, and among the first two thirds of them some faster."""
    early = [math.ceil(1.5 * index * differing / size) for index in range(size + 1)]
    reached = [min(differing, count) for count in early]
    return [0.9 if more > less else 1.1 for less, more in itertools.pairwise(reached)]


@pytest.mark.parametrize(
    ("size", "differing"), [(12, 2), (24, 4), (36, 9), (48, 13), (72, 23), (96, 33)]
)
def test_each_look_confirms_with_so_many_pairs_that_differ_and_not_with_one_more(size, differing):
    for many, confirmed in ((differing, True), (differing + 1, False)):
        # So spread they leave every earlier look without an answer.
        fresh = spread_out(size, many)
        found = confirm([1.0] * size, fresh, FLOOR)
        assert (found.changed, found.pairs) == (confirmed, size)
        wanted = pairs_to_confirm([1.0] * size, fresh, FLOOR)
        assert (wanted == size) is (confirmed or size == 96)


def allowed_to_differ(size):
    """Up to how many of so many fresh pairs may differ; -1 where none are enough."""
    interval = sign_interval([-1.0] * size, pairs._confidence(size))
    if interval is None:
        return -1
    return max(
        differing
        for differing in range(size // 2)
        if sign_interval([-1.0] * differing + [1.0] * (size - differing), interval.confidence).low
        > 0
    )


@pytest.mark.parametrize("cut", range(6, 13))
def test_fair_coins_pass_all_looks_of_the_confirmation_in_less_than_a_twentieth(cut):
    """The promise, summed over all sequences, also where the budget ends before the first look."""
    odds, passed, before = {0: 1.0}, 0.0, 0
    for look in sorted({cut, *CONFIRM_LOOKS}):
        allowed, more = allowed_to_differ(look), look - before
        grown = {}
        for heads, share in odds.items():
            for fresh in range(more + 1):
                one = share * math.comb(more, fresh) / 2**more
                grown[heads + fresh] = grown.get(heads + fresh, 0.0) + one
        passed += sum(
            share for heads, share in grown.items() if min(heads, look - heads) <= allowed
        )
        odds = {h: share for h, share in grown.items() if min(h, look - h) > allowed}
        before = look
    assert 0.04 < passed < 0.05


def test_a_benchmark_is_screened_until_there_is_an_answer():
    steady, loud = [1.0] * 8, [0.9, 1.1] * 4
    base = [1.0] * 24
    assert pairs_to_screen([], [], FLOOR) == 8
    assert pairs_to_screen(base[:5], base[:5], FLOOR) == 8
    # Unchanged, and suspected: both are answers.
    assert pairs_to_screen(base[:8], steady, FLOOR) == 8
    assert pairs_to_screen(base[:8], [1.1] * 8, FLOOR) == 8
    # Too loud to see twice the floor.
    assert pairs_to_screen(base[:8], loud, FLOOR) == 16
    assert pairs_to_screen(base[:16], loud * 2, FLOOR) == 24
    assert pairs_to_screen(base, loud * 3, FLOOR) == 24
    # As loud, and the estimate is beyond the floor: that alone is worth more than 24 pairs.
    slower = [0.9, 1.1, 0.9, 1.1, 1.05, 0.95, 1.05, 1.05]
    assert pairs_to_screen(base, slower * 3, FLOOR) == 36
    assert pairs_to_screen([1.0] * 72, slower * 9, FLOOR) == 72


def test_an_estimate_beyond_the_floor_is_screened_on_where_its_interval_is_short():
    # 3.5 % slower in most pairs; two modes bring the interval to just below equality.
    pairs = [0.999, 0.999, 0.999, 1.035, 1.035, 1.035, 1.035, 1.035]
    estimate = judged(pairs)
    assert estimate.detectable < 2 * FLOOR
    assert estimate.verdict is Verdict.INCONCLUSIVE
    assert pairs_to_screen([1.0] * 8, pairs, FLOOR) == 16
    # The same spread around equality is left alone: nothing there asks for a second look.
    around = [0.966, 0.966, 0.966, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert judged(around).verdict is Verdict.INCONCLUSIVE
    assert pairs_to_screen([1.0] * 8, around, FLOOR) == 8


def test_the_first_answer_stands_whatever_pairs_were_taken_for_others():
    found = confirm([1.0] * 24, [1.1] * 12 + [0.5] * 12, FLOOR)
    assert (found.changed, found.pairs) == (True, 12)
    same = confirm([1.0] * 24, [1.0] * 12 + [1.5] * 12, FLOOR)
    assert (same.within_floor, same.pairs) == (True, 12)


def test_a_suspect_whose_fresh_pairs_fall_below_the_floor_gets_no_more():
    lost = [0.9, 0.9, 0.9, 1.02, 1.02, 1.02, 1.02, 1.02, 1.02, 1.1, 1.1, 1.1]
    assert judged([1.1] * 8 + lost).verdict is Verdict.INCONCLUSIVE
    assert pairs_to_confirm([1.0] * 12, lost, FLOOR) == 12
    seen = [0.9, 0.9, 0.9, *[1.04] * 6, 1.1, 1.1, 1.1]
    assert pairs_to_confirm([1.0] * 12, seen, FLOOR) == 24
    assert pairs_to_confirm([1.0] * 9, lost[:9], FLOOR) == 12
    assert pairs_to_confirm([1.0] * 9, [1.1] * 9, FLOOR) == 9


def test_between_two_looks_the_last_one_stands():
    fresh = spread_out(12, 3) + [1.1] * 8
    found = confirm([1.0] * 20, fresh, FLOOR)
    assert (found.changed, found.pairs) == (False, 12)
    assert pairs_to_confirm([1.0] * 20, fresh, FLOOR) == 24


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
