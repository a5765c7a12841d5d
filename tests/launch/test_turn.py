from __future__ import annotations

import pytest

from opbench import records
from opbench.launch.turn import SCREEN, Turn, floors_of, values_of


def document(rounds, **extra):
    entry = {"fullname": "t::x", "stats": {"data": rounds}, "extra_info": extra}
    return {"benchmarks": [entry]}


def value(rounds, **extra):
    found = values_of(document(rounds, **extra), records.launch_value, records.bimodal)
    return found.get("t::x")


def modes(slow, rounds=25, ratio=3.3):
    return [(ratio if n < slow else 1.0) * (1 + n / 10_000) for n in range(rounds)]


def turn(one, **around):
    return Turn(SCREEN, 0, "t", "base", values={"t::x": one}, **around)


def test_a_value_is_the_lower_quartile_of_the_steady_rounds():
    rounds = [9.0, 9.0, *(1.0 + n / 100 for n in range(23))]
    found = value(rounds)
    assert found.quartile == records.launch_value(rounds) == pytest.approx(1.055)
    assert (found.least, found.median, found.rounds) == (1.0, 1.12, 25)
    assert not found.bimodal


@pytest.mark.parametrize(
    "rounds",
    [[], None, "x", [1.0, -1.0], [1.0, float("nan")], [float("inf")], [0.0], [True], ["1"]],
)
def test_what_is_no_duration_gives_no_value(rounds):
    assert value(rounds) is None


def test_what_ran_inside_a_profiler_window_gives_no_value():
    assert value([1.0] * 25, opbench={"profiled": True}) is None
    assert value([1.0] * 25, opbench={"profiled": False}) is not None


def test_equal_rounds_are_one_mode():
    found = value([1.0] * 25)
    assert (found.quartile, found.bimodal, found.slow) == (1.0, False, 0)


def test_slow_rounds_are_counted_above_the_gap():
    found = value(modes(slow=10))
    assert (found.bimodal, found.slow) == (True, 10)
    # A single stray round, far above both, is no mode.
    assert value([*modes(slow=10, rounds=24), 1e3]).slow == 11


@pytest.mark.parametrize(
    ("slow", "switches", "steal", "own"),
    [
        (10, 0, 0.0, True),
        (10, None, None, True),
        (10, 9, 0.0, True),
        (10, 10, 0.0, False),  # each slow round was preempted
        (10, 0, 0.02, False),  # by the hypervisor
        (16, 500, 0.2, True),  # the quartile may lie in either mode
        (0, 0, 0.0, False),
    ],
)
def test_two_speeds_are_the_benchmarks_own_unless_the_kernel_counted_them(
    slow, switches, steal, own
):
    one = turn(value(modes(slow)), involuntary_switches=switches, steal=steal)
    assert one.own_modes("t::x") is own


def test_switches_are_shared_by_all_benchmarks_of_a_launch():
    one = value(modes(10))
    both = Turn(SCREEN, 0, "t", "base", values={"a": one, "b": one}, involuntary_switches=15)
    assert both.own_modes("a")
    assert turn(one, involuntary_switches=15).own_modes("t::x") is False


def test_a_turn_survives_its_way_through_json():
    one = turn(value(modes(10)), controls={"compute": 1.0}, load=0.5, problem="x")
    assert Turn.from_dict(one.as_dict()) == one


def test_floors_are_those_that_the_plugin_notes():
    assert floors_of(document([1.0], opbench={"floor": {"relative": 0.1}})) == {
        "t::x": {"relative": 0.1}
    }
    assert floors_of(document([1.0], opbench={"floor": 3})) == {}
    assert floors_of(document([1.0])) == {}
