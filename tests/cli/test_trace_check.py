"""``opbench trace check`` on continuous dumps that nobody finished."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from opbench import cli, profiler

ROOT = Path(__file__).parents[2]

PROGRAM = """
import time
from opbench import profiler
RECORDER = profiler.RECORDER
profiler.set_config(filename="t.json", continuous_dump=True, dump_period=1e6)
profiler.set_state("run")
begin = RECORDER.clock()
RECORDER.mark_open("outer", "iteration", begin)
RECORDER.complete("op", "api", begin, RECORDER.clock())
profiler.dump(finished=False)
print("going", flush=True)
time.sleep(60)
"""


@pytest.fixture
def killed(tmp_path, monkeypatch, capsys):
    """The file of a process that was killed while it wrote nothing."""
    del capsys  # asked for here, so that the test reads what is printed here
    monkeypatch.chdir(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    ) as child:
        try:
            assert child.stdout.read(5) == b"going"
            assert cli.main(["trace", "check", "t.json"]) == 0  # while it is being written too
        finally:
            child.send_signal(signal.SIGKILL)
    return tmp_path / "t.json"


def test_a_killed_ones_file_is_fine_and_said_to_be_unfinished(killed, capsys):
    assert capsys.readouterr().out.splitlines() == [
        "t.json: fine",
        "  a continuous dump that a running process is writing",
    ]
    opened = [event["name"] for event in json.loads(killed.read_text()) if event["ph"] == "B"]
    assert opened == ["window of set_state", "outer"]
    assert cli.main(["trace", "check", "t.json"]) == 0
    fine, hint = capsys.readouterr().out.splitlines()
    assert fine == "t.json: fine"
    assert hint.startswith("  a continuous dump that was never finished: ")
    assert hint.endswith("opbench trace repair t.json does it")
    assert cli.main(["trace", "repair", "t.json"]) == 0
    capsys.readouterr()
    assert cli.main(["trace", "check", "t.json"]) == 0
    assert capsys.readouterr().out == "t.json: fine\n"


def test_of_a_torn_one_the_tear_is_the_only_problem(killed, capsys):
    text = killed.read_text()
    killed.write_text(text[: text.rindex('"outer"') + 3])
    capsys.readouterr()
    assert cli.main(["trace", "check", "t.json"]) == 1
    problem, hint = capsys.readouterr().out.splitlines()
    assert problem.endswith("[torn]")
    assert "opbench trace repair" in hint


def test_what_is_wrong_with_its_events_is_a_problem_as_elsewhere(killed, capsys):
    events = json.loads(killed.read_text())
    killed.write_text(json.dumps([*events, {"ph": "X", "name": "op", "pid": 1, "tid": 1, "ts": 1}]))
    capsys.readouterr()
    assert cli.main(["trace", "check", "t.json"]) == 1
    assert [line[-5:] for line in capsys.readouterr().out.splitlines()[:-1]] == ["[dur]"]


@pytest.mark.parametrize("as_text", [True, False], ids=["file", "document"])
def test_only_a_list_that_begins_as_ours_does_needs_no_unit(killed, as_text):
    events = json.loads(killed.read_text())

    def rules(document):
        if as_text:
            killed.write_text(json.dumps(document))
        found = profiler.verdict(killed if as_text else document)
        return [problem.rule for problem in found.problems], found.growing

    assert rules(events) == ([], True)
    assert rules(events[1:]) == (["unit"], False)
    assert rules([{**events[0], "cat": "theirs"}, *events[1:]]) == (["unit"], False)
    assert rules({"traceEvents": events}) == (["unit"], False)
