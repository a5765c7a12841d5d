"""What a journal is judged to hold, and what it still wants."""

from __future__ import annotations

import pytest

from opbench.launch.journal import Journal
from opbench.launch.selection import Selection
from opbench.launch.turn import CONFIRM, SCREEN, Turn, Value
from opbench.launch.verdicts import Verdicts
from opbench.records import Floor, Verdict


@pytest.fixture
def journal(tmp_path):
    return Journal.create(tmp_path, "one", {})


def judged(journal, *names):
    verdicts = Verdicts(journal, Floor(0.03))
    verdicts.selection = Selection({"t": list(names)})
    return verdicts


def add(journal, stage, numbers, ratios, *, bimodal=False):
    """Pairs of launches: of each benchmark head takes so many times as long as base."""
    for pair in numbers:
        for side in ("base", "head"):
            values = {}
            for name, ratio in ratios.items():
                seconds = (ratio if side == "head" else 1.0) * (1 + pair % 3 / 1000)
                # Most of its rounds are slow, and no switch was counted: the modes are its own.
                values[name] = Value(seconds, seconds, seconds, 22, bimodal, 20 if bimodal else 0)
            journal.add(Turn(stage, pair, "t", side, 1.0, values))


def test_a_suspect_with_eleven_of_twelve_values_wants_the_last_one(journal):
    add(journal, SCREEN, range(8), {"x": 1.2, "y": 1.2})
    for pair in range(11):
        add(journal, CONFIRM, [pair], {"x": 1.2, "y": 1.2 if pair % 3 else 0.9})
    add(journal, CONFIRM, [11], {"x": 1.2})
    verdicts = judged(journal, "x", "y")
    assert verdicts.to_confirm() == [(12, {"t": ["y"]})]
    verdicts.refused = {"t"}
    assert verdicts.unfinished() == ("y",)


def test_a_benchmark_that_lost_one_of_its_first_values_wants_it(journal):
    add(journal, SCREEN, range(7), {"x": 1.0, "y": 1.0})
    add(journal, SCREEN, [7], {"x": 1.0})
    assert judged(journal, "x", "y").to_screen() == [(8, {"t": ["y"]})]


def test_only_benchmarks_of_the_same_pairs_are_measured_together(journal):
    """Of x and y no pair holds both, so none would ever be good for the two together."""
    add(journal, SCREEN, range(8), dict.fromkeys("vwxyz", 1.2))
    add(journal, CONFIRM, range(6), {"x": 1.0, "z": 1.0})
    add(journal, CONFIRM, range(6, 12), {"y": 1.0})
    assert judged(journal, *"vwxyz").to_confirm() == [
        (12, {"t": ["v", "w"]}),
        (12, {"t": ["x", "z"]}),
        (12, {"t": ["y"]}),
    ]


@pytest.mark.parametrize(("fresh", "wanted"), [(0, True), (7, True), (11, True), (12, False)])
def test_a_bimodal_suspect_gets_all_of_its_first_fresh_pairs(journal, fresh, wanted):
    add(journal, SCREEN, range(8), {"x": 1.2}, bimodal=True)
    # Pairs 0 to 11 agree on less than half: the look at twelve has no answer.
    for pair in range(fresh):
        add(journal, CONFIRM, [pair], {"x": 1.3 if pair % 3 else 0.9}, bimodal=True)
    verdicts = judged(journal, "x")
    assert verdicts.to_confirm() == ([(12, {"t": ["x"]})] if wanted else [])
    verdicts.refused = {"t"}
    assert verdicts.unfinished() == (("x",) if wanted else ())
    (found,) = verdicts.comparisons()
    assert found.verdict is Verdict.INCONCLUSIVE
    assert any("give more with --budget" in told for told in found.warnings) == wanted


@pytest.mark.parametrize(
    ("pairs", "verdict"),
    [(1, Verdict.INCOMPARABLE), (5, Verdict.INCOMPARABLE), (6, Verdict.UNCHANGED)],
)
def test_what_had_no_room_is_judged_by_what_there_is_of_it(journal, pairs, verdict):
    add(journal, SCREEN, range(pairs), {"x": 1.0})
    verdicts = judged(journal, "x")
    verdicts.left_out = ("t",)
    (found,) = verdicts.comparisons()
    assert found.verdict is verdict
    assert any("give more with --budget" in told for told in found.warnings)
    assert verdicts.unfinished() == ("x",)


def test_pairs_are_counted_by_stage(journal):
    add(journal, SCREEN, range(8), {"x": 1.2, "y": 1.0})
    add(journal, CONFIRM, range(12), {"x": 1.2})
    assert judged(journal, "x", "y", "z").pairs() == ([8, 8], [12])
