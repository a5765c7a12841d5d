from __future__ import annotations

import pytest

from opbench.launch.journal import Journal
from opbench.launch.schedule import turns
from opbench.launch.stages import Budget, Stages
from opbench.launch.turn import CONFIRM, SCREEN, Turn, Value


class Machine:
    """Measures nothing, keeps the order, and moves a clock by the seconds of each file."""

    def __init__(self, journal, seconds=None, problems=(), lacking=lambda pair, side, name: False):
        self.journal, self.order, self.now = journal, [], 0.0
        self.seconds = seconds or {}
        self.problems, self.lacking = set(problems), lacking

    def clock(self):
        return self.now

    def __call__(self, stage, pair, file, side, ids):
        self.order.append((stage, pair, file, side))
        seconds = self.seconds.get(file, 1.0)
        self.now += seconds
        problem = (
            "crashed" if (file, pair) in self.problems or (file, None) in self.problems else ""
        )
        value = Value(1.0, 1.0, 1.0, 22, bimodal=False)
        given = [name for name in ids if not self.lacking(pair, side, name)]
        values = {} if problem else dict.fromkeys(given, value)
        return Turn(stage, pair, file, side, seconds, values, problem)


@pytest.fixture
def journal(tmp_path):
    return Journal.create(tmp_path, "one", {})


def stages(machine, progress, budget_s=None, seed=5, costs=None):
    budget = Budget(budget_s, machine.clock)
    return Stages(machine, machine.journal, budget, progress, seed, costs or {})


def test_pairs_go_through_all_files_before_the_next_pair(journal, progress):
    machine = Machine(journal)
    assert stages(machine, progress).screen({"a": ["a::t"], "b": ["b::t"]}, pairs=2) == ()
    first, second = turns(2, 5 + SCREEN)
    assert machine.order == [
        (SCREEN, pair, file, side)
        for pair, sides in enumerate((first, second))
        for file in ("a", "b")
        for side in sides
    ]


def test_confirming_has_an_order_of_its_own_and_fresh_pairs(journal, progress):
    machine = Machine(journal)
    session = stages(machine, progress)
    session.screen({"a": ["a::t", "a::u"]}, pairs=8)
    session.confirm({"a": ["a::u"]}, pairs=12)
    assert [turn.stage for turn in journal.turns] == [SCREEN] * 16 + [CONFIRM] * 24
    assert set(journal.turns[-1].values) == {"a::u"}
    drawn = [side for *_, side in machine.order[16:]]
    assert drawn == [side for sides in turns(12, 5 + CONFIRM) for side in sides]


def test_pairs_that_were_for_other_benchmarks_do_not_count(journal, progress):
    """A suspect that is found later has fresh pairs of its own, in the order that goes on."""
    machine = Machine(journal)
    session = stages(machine, progress)
    session.confirm({"a": ["a::t"]}, pairs=12)
    session.confirm({"a": ["a::u"]}, pairs=12)
    session.confirm({"a": ["a::t"]}, pairs=24)
    asked = [next(iter(turn.values)) for turn in journal.turns]
    assert asked == ["a::t"] * 24 + ["a::u"] * 24 + ["a::t"] * 24
    assert [pair for _, pair, _, _ in machine.order[::2]] == list(range(36))
    drawn = [side for *_, side in machine.order]
    assert drawn == [side for sides in turns(36, 5 + CONFIRM) for side in sides]
    machine.order.clear()
    session.confirm({"a": ["a::u"]}, pairs=12)
    assert machine.order == []


@pytest.mark.parametrize(("budget_s", "refused"), [(16.0, {"a"}), (22.0, set())])
def test_what_the_budget_refuses_is_known(journal, progress, budget_s, refused):
    machine = Machine(journal)
    session = stages(machine, progress, budget_s, costs={"a": 2.0})
    session.screen({"a": ["a"]}, pairs=8)
    assert session.refused == refused


def test_the_reserve_is_free_once_nothing_is_left_to_confirm(journal, progress):
    machine = Machine(journal)
    session = stages(machine, progress, 16.0, costs={"a": 2.0})
    assert session.screen({"a": ["a"]}, pairs=8) == ("a",)
    session.keeps_reserve = False
    assert session.screen({"a": ["a"]}, pairs=8) == ()
    assert (len(journal.pairs(SCREEN, "a")), machine.now) == (8, 16.0)


def test_the_sides_of_a_pair_are_adjacent(journal, progress):
    machine = Machine(journal)
    stages(machine, progress).screen({name: [name] for name in "abc"}, pairs=4)
    order = machine.order
    assert all(
        one[:3] == two[:3] and {one[3], two[3]} == {"base", "head"}
        for one, two in zip(order[::2], order[1::2], strict=True)
    )


def test_a_budget_leaves_out_whole_files_and_names_them(journal, progress):
    # 8 pairs of a are 16 s; of b 160 s; a quarter of the budget is kept for confirming.
    machine = Machine(journal, {"a": 1.0, "b": 10.0, "c": 1.0})
    session = stages(machine, progress, 60.0, costs={"a": 2.0, "b": 20.0, "c": 2.0})
    assert session.screen({"a": ["a"], "b": ["b"], "c": ["c"]}, pairs=8) == ("b",)
    assert {file for _, _, file, _ in machine.order} == {"a", "c"}
    assert [len(journal.pairs(SCREEN, name)) for name in "abc"] == [8, 0, 8]


def test_the_first_pair_tells_what_a_file_really_costs(journal, progress):
    # Estimated at 0.1 s a pair, it takes 20 s: one pair is lost, and not the whole budget.
    machine = Machine(journal, {"a": 10.0})
    session = stages(machine, progress, 100.0, costs={"a": 0.1, "b": 2.0})
    assert session.screen({"a": ["a"], "b": ["b"]}, pairs=8) == ("a",)
    assert [len(journal.pairs(SCREEN, name)) for name in "ab"] == [1, 8]


def test_no_pair_is_begun_that_would_overdraw(journal, progress):
    # After the first pair the machine becomes three times as slow.
    machine = Machine(journal, {"a": 3.0})
    session = stages(machine, progress, 100.0, costs={"a": 6.0})
    tell = progress.step
    progress.step = lambda *step: (
        machine.seconds.update(a=3.0 if step[0] < 2 else 9.0),
        tell(*step),
    )
    session.screen({"a": ["a"]}, pairs=8)
    # 6 s, and five pairs of 18 s: the sixth would end after 114 s.
    assert machine.now == 96.0


def test_a_wrong_estimate_gets_its_chance_at_the_end(journal, progress):
    # The warm-up of b compiled for 50 s; measured it takes no longer than a.
    machine = Machine(journal)
    session = stages(machine, progress, 60.0, costs={"a": 2.0, "b": 50.0})
    assert session.screen({"a": ["a"], "b": ["b"]}, pairs=8) == ("b",)
    machine = Machine(journal)
    session = stages(machine, progress, 60.0, costs={"a": 2.0, "b": 3.0})
    assert session.screen({"a": ["a"], "b": ["b"]}, pairs=8) == ()


def test_a_failed_pair_is_repeated_as_a_pair(journal, progress):
    machine = Machine(journal, problems=[("a", 1)])
    stages(machine, progress).screen({"a": ["a"]}, pairs=3)
    assert [pair for _, pair, _, _ in machine.order] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_file_that_fails_twice_in_a_row_is_given_up_and_others_go_on(journal, progress):
    machine = Machine(journal, problems=[("a", None)])
    stages(machine, progress).screen({"a": ["a"], "b": ["b"]}, pairs=8)
    files = [file for _, _, file, _ in machine.order]
    assert (files.count("a"), files.count("b")) == (4, 16)


def test_failures_now_and_then_do_not_go_on_for_ever(journal, progress):
    machine = Machine(journal, problems=[("a", 0), ("a", 2), ("a", 4)])
    stages(machine, progress).screen({"a": ["a"]}, pairs=4)
    assert len(machine.order) == 2 * (4 + 2)


def test_a_file_with_all_its_pairs_needs_no_room(journal, progress):
    """A session that goes on may have overdrawn its budget by warming up; a is measured."""
    stages(Machine(journal), progress).screen({"a": ["a::t"]}, pairs=8)
    machine = Machine(journal)
    session = stages(machine, progress, budget_s=1.0)
    machine.now = 2.0
    assert session.screen({"a": ["a::t"], "b": ["b::t"]}, pairs=8) == ("b",)
    assert (machine.order, session.refused) == ([], {"b"})


def test_a_pair_without_a_value_of_each_benchmark_is_replaced(journal, progress):
    machine = Machine(journal, lacking=lambda *turn: turn == (3, "head", "a::u"))
    stages(machine, progress).screen({"a": ["a::t", "a::u"], "b": ["b::t"]}, pairs=8)
    assert [len(journal.pairs(SCREEN, name)) for name in "ab"] == [9, 8]


def test_a_benchmark_that_never_gives_a_value_costs_two_pairs_and_not_its_file(journal, progress):
    machine = Machine(journal, lacking=lambda pair, side, name: name == "a::u")
    stages(machine, progress).screen({"a": ["a::t", "a::u"]}, pairs=8)
    assert len(journal.pairs(SCREEN, "a")) == 8 + 2
    again = Machine(journal)
    stages(again, progress).screen({"a": ["a::t", "a::u"]}, pairs=8)
    assert again.order == []


def test_one_of_two_suspects_that_lacks_a_value_gets_a_pair_of_its_own(journal, progress):
    stages(Machine(journal), progress).confirm({"a": ["a::t", "a::u"]}, pairs=11)
    machine = Machine(journal, lacking=lambda pair, side, name: name == "a::u")
    # The twelfth pair, and the two that may be spared, give no value of u.
    stages(machine, progress).confirm({"a": ["a::t", "a::u"]}, pairs=12)
    again = Machine(journal)
    stages(again, progress).confirm({"a": ["a::u"]}, pairs=12)
    assert [(pair, side) for _, pair, _, side in again.order] == [
        (14, side) for side in turns(15, 5 + CONFIRM)[14]
    ]


class Ends(Exception):  # noqa: N818 - what a Ctrl-C is
    pass


@pytest.mark.parametrize("after", range(1, 12))
def test_a_session_goes_on_where_it_ended(tmp_path, progress, after):
    # Ended after any launch, the journal ends up with each pair once, both launches adjacent.
    whole = Machine(Journal.create(tmp_path, "whole", {}))
    stages(whole, progress).screen({"a": ["a"], "b": ["b"]}, pairs=3)
    first = Machine(Journal.create(tmp_path, "cut", {}))

    def cut(*turn):
        if len(first.order) == after:
            raise Ends
        return first(*turn)

    with pytest.raises(Ends):
        Stages(cut, first.journal, Budget(None, first.clock), progress, 5, {}).screen(
            {"a": ["a"], "b": ["b"]}, pairs=3
        )
    again = Machine(Journal.unfinished(tmp_path, "cut"))
    stages(again, progress).screen({"a": ["a"], "b": ["b"]}, pairs=3)
    assert again.order == whole.order[after // 2 * 2 :]
    for name in "ab":
        assert len(again.journal.pairs(SCREEN, name)) == 3


def test_progress_counts_launches_and_tells_what_is_left(journal, progress):
    machine = Machine(journal, {"a": 3.0})
    stages(machine, progress, costs={"a": 8.0}).screen({"a": ["a"]}, pairs=2)
    assert [step[:3] for step in progress.steps] == [
        (0, 4, 16.0),
        (1, 4, 16.0),
        (2, 4, 6.0),
        (3, 4, 6.0),
    ]
    assert progress.steps[0][3].startswith("screening a ")
