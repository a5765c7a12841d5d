"""Two stored records: what is decided, what is not, and why."""

from __future__ import annotations

import dataclasses
import itertools
import random

import pytest

from opbench.errors import ConfigError, RecordError
from opbench.records import (
    DEFAULT_FLOOR,
    Environment,
    Floor,
    Floors,
    Rename,
    Verdict,
    compare,
    judge_values,
    mann_whitney_exact,
    superiority,
)
from opbench.records import stored as rule

T = "tests/t.py::"
ENVIRONMENT = Environment(cpu_model="Zen 4", cpu_count=2, numpy="2.4.6", python="3.11")
LAUNCHES = [1.00e-3, 1.01e-3, 0.99e-3, 1.005e-3, 0.995e-3]


def times(factor):
    return [factor * value for value in LAUNCHES]


@pytest.fixture
def compared(saver):
    """Compares values of a baseline with values of a candidate, launch by launch."""

    def make(before, after, launches=(5, 5), changed=None, both=None, **options):
        one = saver.record("before", before, launches[0], **(both or {}))
        other = saver.record(
            "after", after, launches[1], **{"day": 2, **(both or {}), **(changed or {})}
        )
        return compare(one, other, **options)

    return make


def verdicts(found):
    return {one.id.removeprefix(T): one.verdict for one in found.comparisons}


def only(found):
    (one,) = found.comparisons
    return one


def test_each_verdict_from_plain_values(compared):
    wide = [0.9e-3, 1.1e-3, 1.0e-3, 0.92e-3, 1.08e-3]
    found = compared(
        {T + "slow": times(1), T + "fast": times(1), T + "same": times(1), T + "open": wide,
         T + "gone": 1e-3},
        {T + "slow": times(1.2), T + "fast": times(0.8), T + "same": times(1.01), T + "open": wide,
         T + "new": 1e-3},
    )  # fmt: skip
    assert verdicts(found) == {
        "slow": Verdict.REGRESSED,
        "fast": Verdict.IMPROVED,
        "same": Verdict.UNCHANGED,
        "open": Verdict.INCONCLUSIVE,
        "new": Verdict.ADDED,
        "gone": Verdict.REMOVED,
    }
    slow = found.comparisons[0]
    assert slow.ratio == pytest.approx(1.2)
    assert (slow.low, slow.high) == pytest.approx((1.2 * 0.995 / 1.01, 1.2 * 1.01 / 0.995))
    assert (slow.baseline.n, slow.candidate.n) == (5, 5)
    assert slow.baseline.centre == pytest.approx(1e-3)
    assert found.exit_code() == 1


def test_rounds_become_a_launchs_lower_quartile_without_the_first_tenth(compared):
    # 20 rounds: two warm up; of the other 18 a third is disturbed.
    rounds = tuple([9e-3, 9e-3] + [1e-3] * 12 + [5e-3] * 6)
    found = compared({T + "a": rounds}, {T + "a": rounds})
    assert only(found).baseline.centre == pytest.approx(1e-3)


def test_the_three_conditions_hold_together():
    base = [1.00, 1.01, 0.99, 1.005, 0.995]
    # Significant and large, but below the floor.
    assert judge_values(base, [1.04 * v for v in base], 0.05).verdict is not Verdict.REGRESSED
    assert judge_values(base, [1.04 * v for v in base], 0.03).verdict is Verdict.REGRESSED
    # Beyond the floor, but one launch overlaps: p is 0.016.
    overlapping = [1.2, 1.2, 1.2, 1.2, 1.0]
    assert mann_whitney_exact(base, overlapping) > 0.01
    assert judge_values(base, overlapping, 0.05).verdict is Verdict.INCONCLUSIVE
    # Significant and beyond the floor, but too many pairs go the other way.
    many = [1.0 + i / 1000 for i in range(40)]
    shifted = [v * 1.2 for v in many[:30]] + [0.9 + i / 1000 for i in range(10)]
    assert mann_whitney_exact(many, shifted) < 0.01
    assert superiority(many, shifted) < 0.85
    assert judge_values(many, shifted, 0.05).verdict is not Verdict.REGRESSED


def test_the_smallest_detectable_change_is_one_that_would_have_been_found():
    draw = random.Random(4)  # noqa: S311 - noise, no secret
    for sizes in ((5, 5), (6, 9), (10, 10)):
        base = [draw.lognormvariate(0, 0.03) for _ in range(sizes[0])]
        head = [draw.lognormvariate(0, 0.03) for _ in range(sizes[1])]
        found = judge_values(base, head, 0.001)
        # The sides centred on each other, then slowed by a little more or less than that.
        for extra, verdict in ((1e-6, True), (-1e-6, False)):
            factor = (1 + found.detectable + extra) / found.ratio
            again = judge_values(base, [value * factor for value in head], 0.001)
            assert (again.verdict is Verdict.REGRESSED) is verdict, (sizes, extra)


@pytest.mark.parametrize(("size", "other"), [(5, 5), (5, 9), (10, 10)])
def test_the_wins_that_a_verdict_needs_are_those_of_the_rank_test(size, other):
    needed = rule._wins_needed(size, other)
    reached = set()
    for chosen in itertools.islice(itertools.combinations(range(size + other), size), 60_000):
        head = [value for value in range(size + other) if value not in chosen]
        wins = round(superiority(chosen, head) * size * other)
        if mann_whitney_exact(chosen, head) < 0.01 and wins >= 0.85 * size * other:
            reached.add(wins)
    assert needed == min(reached)


@pytest.mark.parametrize("launches", [(4, 5), (5, 2), (3, 3)])
def test_fewer_than_five_launches_give_no_verdict(compared, launches):
    found = compared({T + "a": 1e-3}, {T + "a": 2e-3}, launches)
    one = only(found)
    assert one.verdict is Verdict.INCONCLUSIVE
    assert one.ratio == pytest.approx(2)
    assert "launches: a verdict needs at least 5 of each" in one.warnings[0]
    assert found.exit_code() == 3


@pytest.mark.parametrize(("factor", "tripped"), [(1.14, False), (1.16, True), (0.5, False)])
def test_a_single_launch_trips_a_wire_and_is_no_evidence(compared, factor, tripped):
    rounds = (3e-3, 1e-3, 2e-3, 1.5e-3, 1.2e-3)
    slower = tuple(factor * value for value in rounds)
    one = only(compared({T + "a": rounds}, {T + "a": slower}, (5, 1)))
    assert one.verdict is Verdict.INCONCLUSIVE
    assert one.tripped is tripped
    assert one.least_ratio == pytest.approx(factor)
    assert one.warnings[0].startswith("single launch, not evidence")


def test_a_tripwire_takes_the_typical_fastest_round_of_several_launches(compared):
    before = [(1e-3,) * 5, (2e-3,) * 5, (2e-3,) * 5]
    one = only(compared({T + "a": before}, {T + "a": 2e-3}, (3, 1)))
    assert (one.least_ratio, one.tripped) == (pytest.approx(1.0), False)


# What makes records incomparable


def test_another_environment_compares_nothing_and_says_what_differs(compared):
    other = dataclasses.replace(ENVIRONMENT, cpu_model="Zen 5", numpy="2.5.0")
    found = compared({T + "a": 1e-3}, {T + "a": 2e-3}, changed={"environment": other})
    assert verdicts(found) == {"a": Verdict.INCOMPARABLE}
    assert found.reason == "another environment: cpu_model is Zen 5, and was Zen 4, and 1 more"
    assert ("numpy", "2.4.6", "2.5.0") in found.differences
    assert found.exit_code() == 3
    assert only(found).baseline.centre == pytest.approx(1e-3)


def test_a_fact_that_may_differ_is_told_and_compared(compared):
    other = dataclasses.replace(ENVIRONMENT, numpy="2.5.0")
    found = compared(
        {T + "a": times(1)}, {T + "a": times(2)}, changed={"environment": other},
        although=["numpy"],
    )  # fmt: skip
    assert verdicts(found) == {"a": Verdict.REGRESSED}
    assert "allowed to differ: numpy was 2.4.6, is 2.5.0" in found.context


def test_an_unknown_fact_to_allow_is_refused(compared):
    with pytest.raises(ConfigError, match=r"'nunpy' is no fact.*did you mean 'numpy'"):
        compared({T + "a": 1e-3}, {T + "a": 1e-3}, although=["nunpy"])


@pytest.mark.parametrize(
    "fact", ["kernel", "container", "virtual_machine", "governor", "turbo", "caches"]
)
def test_what_the_launcher_knows_of_the_machine_counts_as_well(compared, fact):
    before, after = ({"L2": "1M"}, {"L2": "2M"}) if fact == "caches" else ("one", "other")
    found = compared(
        {T + "a": 1e-3}, {T + "a": 1e-3},
        both={"machine": {fact: before}}, changed={"machine": {fact: after}},
    )  # fmt: skip
    assert verdicts(found) == {"a": Verdict.INCOMPARABLE}
    assert found.differences[0][0] == fact


def test_a_fact_that_one_side_does_not_know_is_told_and_compared(compared):
    other = dataclasses.replace(ENVIRONMENT, numba="0.68.1")
    found = compared({T + "a": times(1)}, {T + "a": times(1)}, changed={"environment": other})
    assert verdicts(found) == {"a": Verdict.UNCHANGED}
    assert "only one side knows numba" in found.context


def test_threads_that_only_one_side_sets_forbid_a_comparison(compared):
    other = dataclasses.replace(ENVIRONMENT, thread_settings=(("OMP_NUM_THREADS", "1"),))
    found = compared({T + "a": 1e-3}, {T + "a": 1e-3}, changed={"environment": other})
    assert found.differences == (("thread_settings", "–", "OMP_NUM_THREADS=1"),)
    assert found.exit_code() == 3


@pytest.mark.parametrize(("memory", "moved"), [(1.02, False), (1.03, True), (1 / 1.03, True)])
def test_controls_that_move_by_half_the_floor_forbid_a_verdict(compared, memory, moved):
    changed = {"controls": {"compute": 1e-3, "memory": 2e-3 * memory}}
    found = compared({T + "a": times(1)}, {T + "a": times(1.2)}, changed=changed)
    if moved:
        assert verdicts(found) == {"a": Verdict.INCOMPARABLE}
        assert found.reason.startswith("machine moved: the memory control")
        assert found.exit_code() == 3
    else:
        assert verdicts(found) == {"a": Verdict.REGRESSED}


def test_without_controls_a_verdict_carries_that_nothing_vouches_for_the_machine(compared):
    found = compared({T + "a": times(1)}, {T + "a": times(1.2)}, both={"controls": None})
    assert verdicts(found) == {"a": Verdict.REGRESSED}
    assert any(line.startswith("no control kernels in both records") for line in found.context)


@pytest.mark.parametrize("controls", [None, {"compute": 1e-3, "memory": 2e-3}])
def test_without_controls_what_most_benchmarks_share_is_doubted(compared, controls):
    names = [f"{T}{letter}" for letter in "abcdefg"]
    before = {name: times(1) for name in names}
    after = {name: times(1.1) for name in names[:5]} | {name: times(1) for name in names[5:]}
    found = compared(before, after, both={"controls": controls})
    changed = found.count(Verdict.REGRESSED)
    assert changed == (5 if controls else 0)
    if not controls:
        assert "5 of 7 benchmarks are slower together" in found.comparisons[0].warnings[0]
        assert found.exit_code(strict=False) == 0


def test_what_both_records_lack_is_told_once(compared):
    found = compared(
        {T + "a": times(1)}, {T + "a": times(1)},
        both={"commit": None}, changed={"dirty": None, "machine": {}},
    )  # fmt: skip
    assert found.context[1:] == ("both sides: no commit: the run cannot be tied to a revision",)


def test_a_record_is_not_compared_with_itself(saver):
    record = saver.record("same", {T + "a": 1e-3})
    with pytest.raises(RecordError, match=r"share 5 launches .*compared with itself"):
        compare(record, record)


# Benchmarks that need more care


def test_a_bimodal_benchmark_is_open_whatever_its_ratio(compared):
    rounds = tuple([1e-3, 1.001e-3] * 6 + [1.5e-3, 1.501e-3] * 4)
    one = only(compared({T + "a": rounds}, {T + "a": times(2)}))
    assert one.verdict is Verdict.INCONCLUSIVE
    assert one.warnings[0].startswith("bimodal: in 5 of 5 launches of the baseline")


def test_all_values_equal_are_unchanged_and_the_clock_does_not_matter(compared):
    one = only(compared({T + "a": 1e-3}, {T + "a": 1e-3}))
    assert one.verdict is Verdict.UNCHANGED
    assert (one.ratio, one.low, one.high) == (1.0, 1.0, 1.0)


def test_ten_steps_of_a_coarse_clock_are_the_floor(compared):
    # Rounds of 1 or 2 ticks of 100 us; a change of half a tick is no change.
    ticks = tuple([1e-3, 1.1e-3] * 10)
    slower = tuple([1.5e-3, 1.6e-3] * 10)
    one = only(compared({T + "a": ticks}, {T + "a": slower}))
    assert one.floor == pytest.approx(1.0, rel=0.1)
    assert one.verdict is Verdict.INCONCLUSIVE
    assert any(warning.startswith("coarse clock") for warning in one.warnings)


def test_a_time_of_zero_has_no_ratio(compared):
    one = only(compared({T + "a": 0.0}, {T + "a": 1e-3}))
    assert one.verdict is Verdict.INCONCLUSIVE
    assert one.ratio is None
    assert "took no time by its clock" in one.warnings[0]


def test_spread_and_trend_are_told_where_nothing_is_decided(compared):
    wide = [0.8e-3, 1.2e-3, 1.0e-3, 0.85e-3, 1.15e-3]
    one = only(compared({T + "a": wide}, {T + "a": wide}))
    assert one.warnings[0].startswith("unstable: launches of the baseline spread by ")
    falling = tuple(1e-3 * (1 + 0.05 * (20 - i)) for i in range(20))
    one = only(compared({T + "a": falling}, {T + "a": times(1.4)}))
    assert any(warning.startswith("not steady: 5 of 5") for warning in one.warnings)


def test_a_kernel_whose_source_is_the_same_has_not_changed(compared):
    extra = {T + "a": {"form": "kernel", "operator": "dot"}}
    both = {"extra": extra, "sources": {"dot": "aa"}}
    one = only(compared({T + "a": times(1)}, {T + "a": times(1.2)}, both=both))
    assert one.verdict is Verdict.INCONCLUSIVE
    assert one.warnings[0] == "the source of dot is the same on both sides, so this is noise"
    changed = {"sources": {"dot": "bb"}}
    one = only(compared({T + "a": times(1)}, {T + "a": times(1.2)}, both=both, changed=changed))
    assert one.verdict is Verdict.REGRESSED


def test_the_same_source_says_nothing_of_what_also_runs_other_code(compared):
    extra = {T + "a": {"form": "imperative", "operator": "dot"}}
    both = {"extra": extra, "sources": {"dot": "aa"}}
    one = only(compared({T + "a": times(1)}, {T + "a": times(1.2)}, both=both))
    assert one.verdict is Verdict.REGRESSED


def test_of_many_benchmarks_with_ten_launches_chance_is_doubted():
    # By Benjamini and Hochberg 0.009 is the 2nd of 100 at best: a rate of 0.45.
    found = [("sure", 1e-5, 10), ("lucky", 0.009, 10), *((f"b{i}", 0.5, 10) for i in range(98))]
    one = _comparisons(found)
    assert one["sure"].verdict is Verdict.REGRESSED
    assert one["lucky"].verdict is Verdict.INCONCLUSIVE
    assert one["lucky"].warnings[0].startswith("may be chance among so many benchmarks")


def test_where_no_p_can_pass_false_discoveries_are_left_to_the_floor():
    found = [(f"b{i}", 2 / 252, 5) for i in range(200)]
    assert all(one.verdict is Verdict.REGRESSED for one in _comparisons(found).values())
    # With 10 launches the smallest p is 1.08e-5: too large for one change among 5,000.
    many = [("sure", 1.0825e-5, 10), *((f"b{i}", 0.5, 10) for i in range(4999))]
    assert _comparisons(many)["sure"].verdict is Verdict.REGRESSED


def _comparisons(found):
    from opbench.records import Comparison, Summary
    from opbench.records.compare import _without_false_discoveries

    judged = {
        name: (
            Comparison(
                name, *[Summary(1.0, 1.0, 1.0, 0.9, launches)] * 2, 1.2, 1.1, 1.3,
                Verdict.REGRESSED,
            ),
            p,
        )
        for name, p, launches in found
    }  # fmt: skip
    return {one.id: one for one in _without_false_discoveries(judged)}


# Floors, names, selection


def test_floors_in_their_order(compared):
    extra = {T + "stored": {"floor": {"relative": 0.3}}, T + "given": {"floor": {"relative": 0.3}}}
    groups = {T + "grouped": "slow ones"}
    names = ("plain", "stored", "given", "grouped")
    found = compared(
        {T + name: times(1) for name in names},
        {T + name: times(1.2) for name in names},
        both={"extra": extra, "groups": groups},
        floors=Floors(
            DEFAULT_FLOOR, ((f"{T}given", Floor(0.1)), ("slow ones", Floor(0.25))),
        ),
    )  # fmt: skip
    assert {one.id.removeprefix(T): one.floor for one in found.comparisons} == {
        "plain": 0.05,
        "stored": 0.3,
        "given": 0.1,
        "grouped": 0.25,
    }
    assert verdicts(found) == {
        "plain": Verdict.REGRESSED,
        "stored": Verdict.UNCHANGED,
        "given": Verdict.REGRESSED,
        "grouped": Verdict.UNCHANGED,
    }


def test_an_absolute_floor_of_a_test(compared):
    extra = {T + "a": {"floor": {"relative": 0.01, "absolute": 250e-6}}}
    one = only(compared({T + "a": times(1)}, {T + "a": times(1.2)}, both={"extra": extra}))
    assert one.verdict is Verdict.UNCHANGED
    assert one.floor == pytest.approx(0.25)


def test_renamed_benchmarks_are_compared(compared):
    before = {"old.py::a": times(1), "old.py::b": times(1), "lone": times(1)}
    after = {"new.py::a": times(1.2), "new.py::b": times(1), "alone": times(1)}
    rename = Rename((("old.py::*", "new.py::*"), ("lone", "alone"), ("never", "was")))
    found = compared(before, after, rename=rename)
    assert {one.id: one.verdict for one in found.comparisons} == {
        "new.py::a": Verdict.REGRESSED,
        "new.py::b": Verdict.UNCHANGED,
        "alone": Verdict.UNCHANGED,
    }
    assert "rename: the baseline has no 'never'" in found.context


def test_what_is_gone_and_new_at_once_is_told_of_renaming(compared):
    found = compared({"old": 1e-3}, {"new": 1e-3})
    assert any("--rename OLD NEW" in line for line in found.context)
    assert found.exit_code() == 3


def test_a_selection_judges_what_it_takes_and_nothing_else(compared):
    groups = {T + "a": "g"}
    found = compared(
        {T + "a": times(1), T + "b": times(1), T + "gone": 1e-3},
        {T + "a": times(1), T + "b": times(2)},
        both={"groups": groups},
        selection=lambda name, label, group: group == "g",
    )
    assert verdicts(found) == {"a": Verdict.UNCHANGED}
    assert found.exit_code() == 0
    found = compared({T + "a": 1e-3}, {T + "a": 1e-3}, selection=lambda *_: False)
    assert (found.comparisons, found.reason) == ((), "no benchmark matches")
    assert found.exit_code() == 3


def test_values_that_a_file_lost_are_incomparable_and_not_gone(compared):
    bad = (1e-3, -1.0)
    found = compared({T + "a": 1e-3, T + "b": times(1)}, {T + "a": bad, T + "b": times(1)})
    assert verdicts(found) == {"b": Verdict.UNCHANGED, "a": Verdict.INCOMPARABLE}
    lost = found.comparisons[1]
    assert lost.warnings == ("candidate: round 1 is -1.0, no duration",)
    assert found.exit_code() == 0
    assert found.exit_code(strict=True) == 3


def test_why_comes_from_the_stored_totals(compared):
    def extra(pack, kernel):
        rows = [
            {"category": "imperative", "name": "pack", "total": 3 * pack},
            {"category": "imperative", "name": "kernel", "total": 3 * kernel},
        ]
        return {T + "a": {"begin": 1, "end": 4, "operators": rows, "form": "imperative"}}

    found = compared(
        {T + "a": times(1)}, {T + "a": times(1.5)},
        both={"extra": extra(2e-4, 7e-4)}, changed={"extra": extra(6e-4, 7.1e-4)},
    )  # fmt: skip
    first, *rest = only(found).attributions
    assert (first.side, first.name) == ("operator", "pack")
    assert first.change == pytest.approx(4e-4)
    # The rest: 0.5 ms, of which the parts explain 0.41 ms.
    assert [part.name for part in rest] == ["outside the operators"]
    assert rest[0].change == pytest.approx(0.09e-3)


@pytest.mark.parametrize(
    ("found", "strict", "code"),
    [
        ([Verdict.UNCHANGED], False, 0),
        ([Verdict.UNCHANGED, Verdict.INCONCLUSIVE], False, 0),
        ([Verdict.UNCHANGED, Verdict.INCONCLUSIVE], True, 3),
        ([Verdict.UNCHANGED, Verdict.REMOVED], False, 0),
        ([Verdict.UNCHANGED, Verdict.REMOVED], True, 3),
        ([Verdict.UNCHANGED, Verdict.ADDED], True, 0),
        ([Verdict.UNCHANGED, Verdict.INCOMPARABLE], True, 3),
        ([Verdict.IMPROVED], True, 0),
        ([Verdict.REGRESSED, Verdict.INCONCLUSIVE], True, 1),
        ([Verdict.INCONCLUSIVE], False, 0),
        ([Verdict.INCOMPARABLE, Verdict.ADDED, Verdict.REMOVED], False, 3),
        ([], False, 3),
    ],
)
def test_exit_codes(found, strict, code):
    from opbench.records import Comparison, ComparisonSet

    ones = tuple(
        Comparison(str(i), None, None, None, None, None, verdict, detectable=0.05)
        for i, verdict in enumerate(found)
    )
    assert ComparisonSet("t", (), ones).exit_code(strict=strict) == code


def test_open_without_a_detectable_change_is_nothing_judged():
    from opbench.records import Comparison, ComparisonSet

    one = Comparison("a", None, None, None, None, None, Verdict.INCONCLUSIVE)
    assert ComparisonSet("t", (), (one,)).exit_code() == 3
