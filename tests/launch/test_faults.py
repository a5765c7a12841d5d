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


def test_a_report_of_an_earlier_session_is_not_taken_for_a_session(inside, capsys):
    folder = inside.folder / "results" / "ab" / "x"
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(json.dumps({}))
    code, _, err = told(capsys, "ab", "--resume")
    assert code == 2
    assert "no unfinished session" in err
