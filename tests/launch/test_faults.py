"""What goes wrong around a session, as it is typed: a clear word, an exit code, nothing lost."""

from __future__ import annotations

import json

import pytest

from opbench.cli import main
from opbench.launch.journal import locked


@pytest.fixture
def inside(project, monkeypatch):
    """A project with one commit, and its folder as the one that commands run in."""
    project.commit(a="1")
    monkeypatch.chdir(project.folder)
    return project


def told(capsys, *words):
    code = main([*words])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


@pytest.mark.parametrize("command", [["ab", "--base", "HEAD"], ["self-check"]])
def test_without_git_nothing_can_be_compared(tmp_path, monkeypatch, capsys, command):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    code, out, err = told(capsys, *command)
    assert (code, out) == (2, "")
    assert "is in no git working tree" in err
    assert "opbench run" in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["ab", "--base", "HEAD"], ["self-check"], ["run"]])
def test_results_that_cannot_be_written_are_told_before_anything_runs(inside, capsys, command):
    (inside.folder / "results").write_text("a file, and no folder")
    code, out, err = told(capsys, *command)
    assert (code, out) == (2, "")
    assert "results" in err
    assert "cannot" in err
    assert (inside.folder / "results").read_text() == "a file, and no folder"


@pytest.mark.parametrize("command", [["ab", "--base", "HEAD"], ["self-check"]])
def test_a_second_session_ends_at_once_and_leaves_the_first_alone(inside, capsys, command):
    with locked(inside.folder / "results" / "ab"):
        code, out, err = told(capsys, *command)
    assert (code, out) == (2, "")
    assert "another session measures here" in err
    assert not list((inside.folder / "results" / "ab").glob("*/plan.json"))


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", '{"stage": 1}', "\x00\x01", '{"values": 3}'])
def test_a_damaged_line_of_a_session_costs_that_launch_alone(tmp_path, text):
    from opbench.launch.journal import Journal
    from opbench.launch.turn import SCREEN, Turn

    journal = Journal.create(tmp_path, "one", {})
    journal.add(Turn(SCREEN, 0, "a", "base"))
    with (journal.folder / "turns.jsonl").open("a") as out:
        out.write(text + "\n")
    journal.add(Turn(SCREEN, 0, "a", "head"))
    assert [one.side for one in Journal.unfinished(tmp_path).turns] == ["base", "head"]


@pytest.mark.parametrize("text", ["", "{", '{"stage": 1}', "\x00\x01"])
def test_a_launch_that_a_damaged_line_lost_is_measured_again(tmp_path, progress, text):
    """Both launches of its pair are, so that they lie seconds apart; no other pair is touched."""
    from opbench.launch.journal import Journal
    from opbench.launch.schedule import turns
    from opbench.launch.stages import Budget, Stages
    from opbench.launch.turn import SCREEN, Turn, Value

    def measured(pair, side, seconds):
        return Turn(SCREEN, pair, "a", side, 1.0, {"a::t": Value(*[seconds] * 3, 22, False)})

    order = turns(8, 5 + SCREEN)
    journal = Journal.create(tmp_path, "one", {})
    for pair, sides in enumerate(order):
        for side in sides:
            journal.add(measured(pair, side, 1.0 + pair))
    path = journal.folder / "turns.jsonl"
    lines = path.read_text().splitlines()
    lines[2 * 3 + 1] = text
    path.write_text("\n".join(lines) + "\n")

    again = []

    def measure(stage, pair, file, side, ids):
        again.append((pair, side))
        return measured(pair, side, 99.0)

    found = Journal.unfinished(tmp_path)
    stages = Stages(measure, found, Budget(None), progress, 5, {})
    assert stages.screen({"a": ["a::t"]}, pairs=8) == ()
    assert again == [(3, side) for side in order[3]]
    values = [
        {turn.values["a::t"].quartile for turn in sides.values()}
        for sides in found.pairs(SCREEN, "a").values()
    ]
    assert values == [{1.0}, {2.0}, {3.0}, {99.0}, {5.0}, {6.0}, {7.0}, {8.0}]


def test_a_report_of_an_earlier_session_is_not_taken_for_a_session(inside, capsys):
    folder = inside.folder / "results" / "ab" / "x"
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(json.dumps({}))
    code, _, err = told(capsys, "ab", "--resume")
    assert code == 2
    assert "no unfinished session" in err
