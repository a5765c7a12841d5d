from __future__ import annotations

import math
import re

import pytest

from opbench import records
from opbench.launch import selfcheck
from opbench.launch.journal import Journal
from opbench.launch.selection import Selection
from opbench.launch.selfcheck import self_check
from opbench.launch.turn import SCREEN, Turn, Value
from opbench.launch.verdicts import Verdicts


def checked(tmp_path, values, threads=1, **around):
    """A self-check of one benchmark whose pairs have these values on base and head."""
    journal = Journal.create(tmp_path, "one", {})
    bimodal = around.pop("bimodal", False)
    for pair, both in enumerate(values):
        for side, value in zip(("base", "head"), both, strict=True):
            found = {"t::x": Value(value, value, value, 22, bimodal)}
            given = {name: of[pair] if isinstance(of, list) else of for name, of in around.items()}
            journal.add(Turn(SCREEN, pair, "t", side, 1.0, found, **given))
    selection = Selection({"t": ["t::x"]})
    verdicts = Verdicts(journal, records.Floor(0.03))
    verdicts.selection = selection
    return self_check(journal, selection, verdicts, {"t::x": 0.04}, threads)


EQUAL = [(1.0, 1.0)] * 8


def test_the_spread_is_that_of_the_pairs_and_of_the_launches(tmp_path):
    pairs = [(1.0, math.exp(d)) for d in (-0.04, -0.03, -0.02, -0.01, 0.01, 0.02, 0.03, 0.04)]
    (one,) = checked(tmp_path, pairs).spreads
    assert (one.id, one.pairs, one.detectable) == ("t::x", 8, 0.04)
    # Around a median of 0, the median distance is 0.025.
    assert one.between_pairs == pytest.approx(1.4826 * 0.025)
    # Half of the launches lie at their median, the next ones 0.01 from it.
    assert one.between_launches == pytest.approx(1.4826 * 0.005)


def test_a_quiet_machine_disturbs_nothing(tmp_path):
    quiet = {"steal": 0.0, "busy_elsewhere": 0.02, "load": 0.3, "involuntary_switches": 3}
    assert checked(tmp_path, EQUAL, **quiet).disturbances == ()


@pytest.mark.parametrize(
    ("around", "words"),
    [
        ({"steal": [0.0] * 7 + [0.25]}, "steal: .* 0.0% .*at worst 25.0%"),
        ({"busy_elsewhere": 0.4}, "load: other processes used 40%"),
        ({"involuntary_switches": 80}, "taken off a CPU 80 times a second"),
        (
            {"controls": [{"compute": 1.0 + (n % 2) / 5} for n in range(8)]},
            "speed: the compute control varied by 13.5%",
        ),
        ({"bimodal": True}, "bimodal: t::x ran around two speeds"),
    ],
)
def test_what_disturbs_is_named(tmp_path, around, words):
    (told,) = checked(tmp_path, EQUAL, **around).disturbances
    assert re.search(words, told)


def test_more_threads_than_cpus_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(selfcheck, "_usable", lambda: 2)
    (told,) = checked(tmp_path, EQUAL, threads=4).disturbances
    assert "4 are asked for on 2 CPUs" in told


def test_threads_beside_a_load_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(selfcheck, "_usable", lambda: 2)
    for name in selfcheck.THREAD_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    (told,) = checked(tmp_path, EQUAL, threads=None, load=1.2).disturbances
    assert "up to 2 beside a load of 1.2 on 2 CPUs" in told


def test_a_benchmark_without_a_pair_has_no_spread(tmp_path):
    journal = Journal.create(tmp_path, "one", {})
    selection = Selection({"t": ["t::x"]})
    verdicts = Verdicts(journal, records.Floor(0.03))
    verdicts.selection = selection
    (one,) = self_check(journal, selection, verdicts, {}, 1).spreads
    assert one.pairs == 0
    assert math.isnan(one.between_pairs)
