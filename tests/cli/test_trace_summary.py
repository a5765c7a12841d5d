"""``opbench trace summary`` on a trace with worker lanes."""

from __future__ import annotations

import json

import pytest

from opbench import cli, profiler

US = 1_000


@pytest.fixture
def lanes(tmp_path, monkeypatch):
    """A function that writes ``t.json``, a trace with one product of two workers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def make(*, lost=0, name="dot"):
        now = [0]
        recorder = profiler.Profiler(lambda: now[0], price=float, worker_price=float)
        recorder.run("imperative", "test")
        pieces = [(0, 10, 400), (1, 30, 500), (0, 400, 960)]
        rows = [
            [worker, 100 + worker, worker, worker, start * US, end * US, 0, 1, 8]
            for worker, start, end in pieces
        ]
        now[0] = 1000 * US
        figures = profiler.record_lanes(recorder, rows, name, 0, now[0], 2, lost=lost)
        recorder.complete(name, "imperative", 0, now[0], figures.args())
        profiler.write(recorder.stop("test"), "t.json")

    return make


def test_the_lanes_table_follows_the_statistics(lanes, capsys):
    lanes()
    assert cli.main(["trace", "summary", "t.json"]) == 0
    statistics, _, workers = capsys.readouterr().out.partition("\n\noperator")
    assert "recorded in 1 window" in statistics
    head, line = (" ".join(text.split()) for text in workers.splitlines())
    assert head == (
        "calls workers fork join busy per worker unit max/mean all running CPUs verdict"
    )
    # Of 1000 µs: from 10 to 960, and from 30 to 500.
    assert line == "dot 1 2 of 2 10.0 40.0 950 470 µs 1.34 47% 0-1 imbalanced"


def test_as_json_it_holds_the_same_figures(lanes, capsys):
    lanes(lost=3)
    assert cli.main(["trace", "summary", "--json", "t.json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["Lanes"]
    assert row == {
        "category": "imperative",
        "name": "dot",
        "count": 1,
        "asked": 2,
        "workers": 2,
        "fork_ns": 10 * US,
        "join_ns": 40 * US,
        "busy_ns": [950 * US, 470 * US],
        "imbalance": 1.338,
        "all_running": 0.47,
        "cpus": [0, 1],
        "lost": 3,
        "verdicts": {"imbalanced": 1},
    }


def test_lost_records_are_said(lanes, capsys):
    lanes(lost=3)
    assert cli.main(["trace", "summary", "t.json"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "3 worker records were lost: their buffers were too small"


def test_a_strangers_name_stays_on_its_line(lanes, capsys):
    lanes(name="a\nb\x1b[2J\ud800")
    assert cli.main(["trace", "summary", "t.json"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("a·b·[2J")
    assert cli.main(["trace", "summary", "--json", "t.json"]) == 0
    assert json.loads(capsys.readouterr().out)["Lanes"][0]["verdicts"] == {"imbalanced": 1}


def test_without_lanes_there_is_no_second_table(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    recorder = profiler.Profiler(lambda: 5, price=float)
    recorder.run("imperative", "test")
    recorder.complete("dot", "imperative", 5, 9)
    profiler.write(recorder.stop("test"), "t.json")
    assert cli.main(["trace", "summary", "t.json"]) == 0
    out = capsys.readouterr().out
    assert "max/mean" not in out
    assert not out.endswith("\n\n")
    assert cli.main(["trace", "summary", "--json", "t.json"]) == 0
    assert json.loads(capsys.readouterr().out)["Lanes"] == []
