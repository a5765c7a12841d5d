"""History as text, CSV and Markdown: the right numbers in the right places."""

from __future__ import annotations

import csv
import io
import json
import sys

import pytest

from opbench import report
from opbench.cli import main
from opbench.records import Epoch, Floor, History, Moment, Point, Series, find_steps

WIDE = report.Style(120)


@pytest.fixture(autouse=True)
def without_ruptures(monkeypatch):
    monkeypatch.setitem(sys.modules, "ruptures", None)


def moment(day, dirty=False):
    return Moment(
        f"r{day}", f"2026-11-{day + 1:02}T09:00:00+00:00", f"{day:x}c0ffee{day:04}", dirty
    )


def series(name, values, epoch=0, label="", start=0):
    points = tuple(
        Point(moment(start + day), day, value, (value, value, value * 1.01))
        for day, value in enumerate(values)
    )
    return Series(name, label, None, epoch, points, Floor(0.03))


def found(*series_, facts=({},), controls=None):
    epochs = [
        Epoch(
            number,
            known,
            tuple(p.moment for p in next(s for s in series_ if s.epoch == number).points),
            controls or {},
        )
        for number, known in enumerate(facts)
    ]
    return find_steps(History(tuple(epochs), series_))


def stepped():
    return found(
        series("tests/t.py::slow", [1e-3] * 6 + [1.5e-3] * 6),
        series("tests/t.py::same", [2e-6] * 12, label="dot kernel 4² f32"),
    )


def test_the_text_has_a_row_per_step_and_the_headline_last():
    lines = report.history_text(stepped(), WIDE)
    assert lines[0] == (
        "opbench history   2 benchmarks   12 records, 2026-11-01 to 2026-11-12   1 environment"
    )
    heading, row, why = lines[2:5]
    assert heading.split() == [
        "step",
        "benchmark",
        "before",
        "after",
        "ratio",
        "since",
        "commits",
        "records",
    ]
    assert row.split() == [
        *("▲", "slower?", "slow", "1.00", "ms", "1.50", "ms", "1.500×", "2026-11-07"),
        *("5c0ffee000..6c0ffee000", "6"),
    ]
    assert why.split(maxsplit=1) == ["why", "tentative, seen in 6 records"]
    assert lines[-1] == "1 of 2 stepped: 1 slower"
    assert any(line.startswith("note: ruptures is not installed") for line in lines)


def test_a_history_without_a_step_says_so_and_one_without_records_is_never_green():
    assert report.history_text(found(series("t.py::a", [1.0] * 9)), WIDE)[-1] == "None of 1 stepped"
    few = report.history_text(found(series("t.py::a", [1.0] * 5)), WIDE)[-1]
    assert few.startswith("Nothing can be seen yet: a step needs 6 records")
    assert few.endswith("no benchmark has more than 5")
    nothing = find_steps(History((), ()))
    assert report.history_text(nothing, WIDE)[-1].startswith("Nothing to look at")
    assert report.history_markdown(nothing).startswith("### Nothing to look at")


def test_where_no_more_than_ascii_is_taken_there_is_no_more():
    for told in (True, False):
        style = report.Style(80, unicode=False)
        text = "\n".join(report.history_text(stepped(), style, verbose=told, series=told))
        assert text.isascii()
        assert "^ slower?" in text


def test_of_chosen_benchmarks_the_newest_records_are_listed_with_their_step():
    values = [1e-3] * 20 + [2e-3] * 10
    lines = report.history_text(found(series("t.py::a", values)), WIDE, series=True)
    at = next(index for index, line in enumerate(lines) if line.startswith("date"))
    assert lines[at - 1].split() == ["a", "▁" * 20 + "█" * 10]
    rows = lines[at + 1 : at + 21]
    assert rows[0].split() == ["2026-11-11", "ac0ffee001", "1.00", "ms", "0.0", "%", "3"]
    assert rows[10].split()[-2:] == ["▲", "slower"]
    assert lines[at + 21] == "the newest 20 of 30 records; -v lists all"


def test_only_the_newest_step_of_today_is_listed_and_the_others_are_counted():
    values = [1.0] * 6 + [2.0] * 6 + [4.0] * 6
    old = series("t.py::a", [1.0] * 6 + [3.0] * 6, epoch=0)
    new = series("t.py::a", values, epoch=1, start=12)
    both = found(old, new, facts=({"numpy": "2.3"}, {"numpy": "2.4"}))
    text = report.history_text(both, WIDE)
    assert sum("slower?" in line for line in text) == 1
    assert "and 2 earlier or in another environment; -v lists all" in text
    assert text[-3:-1] == [
        "environment 1: 12 records, 2026-11-01 to 2026-11-12",
        "environment 2: 18 records, 2026-11-13 to 2026-11-30: numpy 2.4 (was 2.3)",
    ]
    assert sum("slower?" in line for line in report.history_text(both, WIDE, verbose=True)) == 3


def machine_event():
    own = [series(f"t.py::b{n}", [1.0 + n] * 6 + [1.2 * (1.0 + n)] * 6) for n in range(3)]
    return found(*own, controls={"memory": (1.0,) * 6 + (1.2,) * 6})


def test_a_machine_event_is_one_line_and_no_step():
    lines = report.history_text(machine_event(), report.Style(200))
    (line,) = (one for one in lines if "machine event" in one and one.startswith("×"))
    assert line == (
        "× machine event   2026-11-07   5c0ffee000..6c0ffee000   3 of 3 benchmarks stepped "
        "together: 3 slower, typically 1.200×; the memory control took 1.200 times as long"
    )
    assert lines[-1] == "None of 3 stepped, 1 machine event"
    assert "machine event: 2026-11-07" in report.history_markdown(machine_event())


def test_csv_has_a_row_per_record_with_the_step_in_its_first():
    rows = list(csv.DictReader(io.StringIO(report.history_csv(stepped()))))
    assert len(rows) == 24
    assert [row["step"] for row in rows[:12]] == [""] * 6 + ["slower?"] + [""] * 5
    step = rows[6]
    assert (float(step["before_s"]), float(step["after_s"])) == (
        pytest.approx(1e-3),
        pytest.approx(1.5e-3),
    )
    assert (step["id"], step["commit"], step["commits_from"]) == (
        "tests/t.py::slow",
        "6c0ffee0006",
        "5c0ffee0005",
    )
    assert (step["launches"], step["environment"], step["dirty"]) == ("3", "1", "false")
    assert {
        row["step"] for row in csv.DictReader(io.StringIO(report.history_csv(machine_event())))
    } == {
        "",
        "machine?",
    }


def test_a_name_that_a_spreadsheet_would_run_is_inert():
    text = report.history_csv(found(series("=1+1", [1.0])))
    assert next(csv.DictReader(io.StringIO(text)))["id"] == "'=1+1"


def test_the_wide_csv_has_a_column_per_benchmark_of_todays_environment():
    old = series("a", [9.0] * 3)
    new, other = series("a", [1.0, 2.0], epoch=1, start=3), series("b", [3.0], epoch=1, start=3)
    text = report.history_wide_csv(found(old, new, other, facts=({}, {})))
    assert text.splitlines() == [
        "time,commit,a,b",
        "2026-11-04T09:00:00+00:00,3c0ffee0003,1.0,3.0",
        "2026-11-05T09:00:00+00:00,4c0ffee0004,2.0,",
    ]


def test_markdown_is_a_table_that_no_name_can_break():
    text = report.history_markdown(found(series("t.py::a[x|`y`]", [1.0] * 6 + [1.5] * 6)))
    assert text.splitlines()[:2] == [
        "### 1 of 1 stepped: 1 slower",
        "opbench history · 1 benchmarks · 12 records · 1 environments",
    ]
    (row,) = (line for line in text.splitlines() if "▲" in line)
    assert r"`` t.py::a[x\|`y`] ``" in row or r"`` a[x\|`y`] ``" in row
    assert row.replace(r"\|", "").count("|") == 9


def test_control_characters_of_a_strangers_file_reach_no_terminal():
    lines = report.history_text(found(series("t.py::a\x1b[31m", [1.0] * 6)), WIDE, series=True)
    assert "\x1b" not in "".join(lines)


# the command


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pytest.ini").touch()
    return tmp_path


def saved(project, count=1):
    runs = project / "results" / "runs" / "machine"
    runs.mkdir(parents=True)
    for number in range(1, count + 1):
        entry = {"fullname": "t.py::a", "stats": {"data": [1e-3 * number] * 5}}
        block = {"schema_version": 1, "record_id": f"r{number}", "launch_id": f"r{number}"}
        document = {
            "benchmarks": [entry],
            "datetime": f"2026-12-{number:02}T00:00:00+00:00",
            "opbench": {**block, "environment": {"python": "3.11"}},
        }
        (runs / f"{number:04}_x.json").write_text(json.dumps(document))
    return runs


def test_no_record_is_exit_3_with_what_to_do(project, capsys):
    assert main(["history"]) == 3
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == (
        f"opbench history: no saved run in {project}/results/runs; make one with opbench run\n"
    )


def test_no_such_benchmark_is_exit_3(project, capsys):
    saved(project)
    assert main(["history", "nope"]) == 3
    assert "none of 1 records" in capsys.readouterr().err


def test_the_records_of_a_benchmark_are_shown_and_written(project, capsys):
    saved(project, 3)
    assert main(["history", "t.py::a", "--last", "2", "--csv", "h.csv"]) == 0
    out = capsys.readouterr().out
    assert "2 records, 2026-12-02 to 2026-12-03" in out
    assert [
        row["value_s"] for row in csv.DictReader((project / "h.csv").read_text().splitlines())
    ] == [
        "0.002",
        "0.003",
    ]


def test_a_run_that_cannot_be_read_is_exit_2_and_the_others_are_shown(project, capsys):
    runs = saved(project)
    (runs / "0009_x.json").write_bytes(b"\x00")
    assert main(["history"]) == 2
    told = capsys.readouterr()
    assert "1 benchmark " in told.out
    assert "left out" in told.err
    assert "0009_x.json" in told.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--csv", "/proc/none/h.csv"], "--csv /proc/none/h.csv cannot be written"),
        (["--floor", "7"], "floor '7' (--floor) is none"),
        (["--last", "0"], "--last is 0"),
        (["--last", "x"], "invalid int value"),
    ],
)
def test_a_mistake_is_exit_2_and_one_sentence(project, capsys, words, told):
    saved(project)
    assert main(["history", *words]) == 2
    assert told in capsys.readouterr().err
