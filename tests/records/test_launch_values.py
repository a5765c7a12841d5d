"""From rounds to a launch's value, and what rounds tell of the clock and the machine."""

from __future__ import annotations

import random

import numpy as np
import pytest

from opbench.records import bimodal, explain_launches, launch_value, summary_of
from opbench.records.samples import Part, parts_of
from opbench.records.summary import steady, tick


def around(*centres, count=25, spread=0.01, seed=1, tail=0.0):
    """Rounds around each centre in turn, some of them in a heavy tail."""
    draw = random.Random(seed)  # noqa: S311 - noise, no secret
    return [
        centres[i % len(centres)]
        * draw.lognormvariate(0, spread)
        * (1 + (draw.paretovariate(1.2) - 1 if draw.random() < tail else 0))
        for i in range(count)
    ]


def test_the_first_tenth_warms_up_and_does_not_count():
    assert launch_value([5.0, 5.0, *[1.0] * 18]) == 1.0
    assert launch_value([5.0]) == 5.0
    assert launch_value([9.0, 1.0, 2.0, 3.0, 4.0]) == 2.0


def test_a_summary_of_five_launches_spans_them_and_says_how_sure_that_is():
    found = summary_of([3.0, 1.0, 2.0, 5.0, 4.0])
    assert (found.centre, found.low, found.high, found.n) == (3.0, 1.0, 5.0, 5)
    assert found.confidence == 1 - 2 / 2**5
    assert summary_of([1.0]).confidence == 0.0
    nine = summary_of([float(i) for i in range(9)])
    assert (nine.low, nine.high) == (1.0, 7.0)
    assert nine.confidence == pytest.approx(1 - 2 * 10 / 512)


@pytest.mark.parametrize("seed", range(20))
def test_one_mode_with_a_heavy_tail_is_not_two(seed):
    assert not bimodal(around(1.0, seed=seed, tail=0.2))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("distance", [1.15, 1.5, 1000.0])
def test_two_modes_are_found_whatever_their_distance(seed, distance):
    assert bimodal(around(1.0, 1.0, distance, seed=seed))


def test_modes_that_are_close_few_or_unknown_are_none():
    assert not bimodal(around(1.0, 1.04))
    assert not bimodal([*around(1.0, count=23), 2.0, 2.0])
    assert not bimodal([1.0, 2.0] * 4)
    assert not bimodal([0.0, 1.0] * 20)
    assert not bimodal([1.0] * 20)
    # Rounds all the way between them: a slope, and no two modes.
    between = [1.12, 1.24, 1.37]
    assert not bimodal([*around(1.0, count=12), *between, *around(1.5, count=10)])
    assert bimodal([*around(1.0, count=12), *between[:1], *around(1.5, count=10)])


def test_a_coarse_clock_has_no_modes():
    assert not bimodal([100e-9, 200e-9] * 12)
    assert not bimodal([1e-3, 1.1e-3] * 12)


def test_the_share_of_launches_with_two_modes_in_one_mode_data_is_small():
    draw = np.random.default_rng(1)
    rounds = np.exp(0.02 * draw.standard_t(3, (2000, 22)))
    assert np.mean([bimodal(row) for row in rounds.tolist()]) < 0.01


def test_the_step_of_a_clock_shows_in_ties():
    assert tick([1e-6 + 1e-8 * (i % 3) for i in range(20)]) == pytest.approx(1e-8)
    assert tick(around(1.0)) == 0.0
    assert tick([1.0] * 20) == 0.0
    # 0.1 + 0.2 and 0.3 are one reading of the clock.
    assert tick([0.3, 0.1 + 0.2, 0.4, 0.4, 0.3, 0.3, 0.4, 0.3, 0.4]) == pytest.approx(0.1)


def test_a_launch_that_still_gets_faster_is_not_steady():
    assert steady(around(1.0))
    assert not steady([2.0 - 0.05 * i for i in range(20)])
    assert steady([3.0] * 3 + [1.0] * 17)
    assert steady([2.0, 1.0])


def test_parts_are_per_recorded_iteration():
    extra = {
        "begin": 1,
        "end": 4,
        "operators": [
            {"category": "imperative", "name": "dot", "total": 3e-3},
            {"category": "api", "name": "invoke", "total": 6e-3},
            {"category": "memory", "name": "alloc", "total": "much"},
            "no row",
        ],
        "lanes": {"imbalance": 1.25},
    }
    assert parts_of(extra) == (
        Part("operator", "dot", 1e-3),
        Part("api", "invoke", 2e-3),
        Part("imbalance", "imbalance", 1.25),
    )
    assert parts_of({"operators": 3, "lanes": []}) == ()


def document(seconds, dot, imbalance=None, form="symbolic"):
    extra = {
        "form": form,
        "operator": "dot",
        "begin": 0,
        "end": 1,
        "operators": [{"category": form, "name": "dot", "total": dot}] if dot else [],
    }
    if imbalance:
        extra["lanes"] = {"imbalance": imbalance}
    stats = {"data": [seconds] * 10}
    return {"benchmarks": [{"fullname": "a", "stats": stats, "extra_info": {"opbench": extra}}]}


def test_one_profiled_launch_of_each_side_explains_a_change():
    base, head = document(1.0, 0.6, 1.1), document(1.5, 1.07, 1.4)
    found = explain_launches({"base": base, "head": head}, ["a", "b"])
    assert list(found) == ["a"]
    dot, imbalance = found["a"]
    assert (dot.side, dot.name) == ("operator", "dot")
    assert dot.change == pytest.approx(0.47)
    # The rest grew by 0.03 of 0.5, which explains nothing.
    assert (imbalance.name, imbalance.before, imbalance.after, imbalance.unit) == (
        "imbalance", 1.1, 1.4, "",
    )  # fmt: skip


def test_time_outside_the_operators_is_a_part_of_its_own():
    found = explain_launches({"base": document(1.0, 0.6), "head": document(1.5, 0.6)}, ["a"])
    ((rest),) = found["a"]
    assert (rest.side, rest.name) == ("rest", "outside the operators")
    assert rest.change == pytest.approx(0.5)


def test_what_went_the_other_way_explains_nothing():
    found = explain_launches({"base": document(1.0, 0.5), "head": document(1.5, 0.4)}, ["a"])
    assert [part.side for part in found["a"]] == ["rest"]


def test_a_kernel_called_directly_is_all_there_is():
    sides = {"base": document(1.0, 0, form="kernel"), "head": document(1.2, 0, form="kernel")}
    ((only),) = explain_launches(sides, ["a"])["a"]
    assert (only.side, only.name) == ("operator", "dot")
    assert only.change == pytest.approx(0.2)


@pytest.mark.parametrize("broken", [None, {}, {"benchmarks": 3}, {"benchmarks": [3]}])
def test_a_launch_that_gave_nothing_explains_nothing(broken):
    assert explain_launches({"base": broken, "head": document(1.0, 0.5)}, ["a"]) == {}
