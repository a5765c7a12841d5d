"""``opbench compare`` and ``opbench baseline``: words in, lines, files and exit codes out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opbench.cli import main
from opbench.records import Environment, opbench_block

LAUNCHES = (1.00e-3, 1.01e-3, 0.99e-3, 1.005e-3, 0.995e-3)


def write(folder, name, factors, day, launches=5, **changed):
    """Files of one record: a factor for each benchmark."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(launches):
        block = opbench_block(f"{name}-{number}", name, Environment(cpu_model="Zen 4"))
        block["environment"] |= changed.get("facts", {})
        block["launcher"] = {"controls": changed.get("controls", {"compute": 1.0, "memory": 1.0})}
        entries = [
            {
                "fullname": f"tests/t.py::{benchmark}",
                "name": benchmark,
                "group": "g" if benchmark == "a" else None,
                "extra_info": {},
                "stats": {"data": [factor * LAUNCHES[number]] * 20},
            }
            for benchmark, factor in factors.items()
        ]
        document = {
            "commit_info": {"id": f"{name}c0ffee", "dirty": False},
            "benchmarks": entries,
            "datetime": f"2026-12-{day:02}T09:{number:02}:00+00:00",
            "opbench": block,
        }
        path = folder / f"{100 * day + number:04}_{name}.json"
        path.write_text(json.dumps(document), encoding="utf-8")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose store has two records; the second has a slower and a faster benchmark."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    store = tmp_path / "results" / "runs" / "Linux"
    write(store, "first", {"a": 1, "b": 1, "c": 1}, day=1)
    write(store, "second", {"a": 1.2, "b": 0.8, "c": 1}, day=2)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys, *words):
    code = main([*map(str, words)])
    told = capsys.readouterr()
    return code, told.out.splitlines(), told.err


def test_a_baseline_is_set_and_the_newest_run_is_judged_against_it(project, capsys):
    code, out, err = run(capsys, "baseline", "set", "main", "first")
    assert (code, out, err) == (0, ["baseline main: record first, 3 benchmarks, 5 launches"], "")
    code, out, err = run(capsys, "compare", "main")
    assert (code, err) == (1, "")
    assert out[0] == ("opbench compare   firstc0ffe -> secondc0ff   5 and 5 launches   floor 5 %")
    assert [line.split()[:3] for line in out if line[:1] in "▲▼" and "×" in line] == [
        ["▲", "slower", "a"],
        ["▼", "faster", "b"],
    ]
    assert out[-1] == "exit 1: a regression is confirmed"


def test_the_sides_the_other_way_round(project, capsys):
    code, out, _ = run(capsys, "compare", "second", "first", "--only", "slower")
    assert code == 1
    assert [line.split()[2] for line in out if line.startswith("▲ slower")] == ["b"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["-k", "c"], 0),
        (["-k", "*::[bc]"], 0),
        (["-k", "a"], 1),
        (["--group", "g"], 1),
        (["-k", "none of it"], 3),
        (["--floor", "30%"], 0),
        (["--floor", "tests/t.py::a 30%"], 0),
        (["--floor", "g 30%"], 0),
        (["--floor", "3%", "--floor", "g 500us"], 0),
        (["--only", "improved"], 1),
        (["--strict", "-k", "c"], 0),
        (["-k", "c", "--rename", "tests/t.py::c", "tests/t.py::x"], 3),
    ],
)
def test_exit_codes(project, capsys, words, code):
    assert run(capsys, "compare", "first", "second", *words)[0] == code


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none", "second"], "'none' is no record"),
        (["first", "second", "--floor", "five"], "floor 'five' (--floor) is none"),
        (["first", "second", "--only", "slow"], "--only 'slow' is no verdict"),
        (["first", "second", "--although", "weather"], "--although 'weather' is no fact"),
        (["first", "second", "--rename", "a*", "b"], "rename of 'a*' to 'b' is none"),
        (["first", "second", "--rename-map", "none.json"], "rename map none.json: cannot be read"),
        (["first", "first"], "a record compared with itself"),
        (["first", "second", "--json", "pytest.ini/x.json"], "cannot be written"),
        (["first"] * 3, "unrecognized arguments: first"),
        ([], "the following arguments are required: BASELINE"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(project, capsys, words, message):
    code, out, err = run(capsys, "compare", *words)
    assert (code, out) == (2, [])
    assert err.startswith("opbench compare: ")
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\x7fELF\x00\xff", "is not strict JSON"),
        (b'{"benchmarks": [{"fullname"', "is not strict JSON"),
        (b'{"traceEvents": []}', "is no saved run"),
        (b'{"benchmarks": [], "x": NaN}', "NaN is not a JSON number"),
        (b'{"benchmarks": [], "opbench": {"schema_version": 99}}', "upgrade opbench"),
    ],
)
def test_a_file_that_cannot_be_read_is_exit_code_2_with_its_name(project, capsys, content, message):
    path = project / "theirs.json"
    path.write_bytes(content)
    code, out, err = run(capsys, "compare", "first", path)
    assert (code, out) == (2, [])
    assert "theirs.json: " in err
    assert message in err


def test_a_file_of_a_gigabyte_is_exit_code_2_and_is_not_read(project, capsys, monkeypatch):
    path = project / "huge.json"
    with path.open("wb") as stream:
        stream.truncate(1_000_000_000)

    def read(raw, **options):
        pytest.fail("a file that is too large was read")

    monkeypatch.setattr("opbench.records.launches.json.loads", read)
    code, out, err = run(capsys, "compare", path, path)
    assert (code, out) == (2, [])
    assert "huge.json: has 1.00 GB, more than the 256 MB of any saved run" in err


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-1.0", "1e999"])
def test_rounds_that_are_no_times_cost_their_benchmark_or_the_file_and_never_pass(
    project, capsys, value
):
    store = project / "results" / "runs" / "Linux"
    for path in store.glob("*second.json"):
        front, _, rest = path.read_text().partition('"data": [')
        path.write_text(f'{front}"data": [{value},{rest.partition(",")[2]}')
    code, out, err = run(capsys, "compare", "first", "second", "-k", "a")
    if value in {"NaN", "Infinity"}:
        assert (code, out) == (2, [])
        assert "is not a JSON number" in err
    else:
        assert code == 3
        assert any("no duration" in line for line in out)


def test_a_record_without_benchmarks_judges_nothing(project, capsys):
    write(project / "results" / "runs" / "Linux", "third", {}, day=3)
    code, out, _ = run(capsys, "compare", "first", "third")
    assert code == 3
    assert "Nothing could be compared: there is no benchmark on both sides" not in out
    assert any(line.startswith("Nothing could be compared: ") for line in out)
    assert any(line.startswith("- removed  a, b, c") for line in out)


def test_another_machine_judges_nothing_and_says_what_differs(project, capsys):
    write(project / "other", "other", {"a": 9}, day=4, facts={"cpu_model": "M4"})
    code, out, _ = run(capsys, "compare", "first", "other")
    assert code == 3
    assert "Nothing could be compared: another environment: cpu_model is M4, and was Zen 4" in out
    assert out[-1] == "exit 3: nothing was judged"
    assert run(capsys, "compare", "first", "other", "--although", "cpu_model")[0] == 1


def test_a_machine_that_moved_judges_nothing(project, capsys):
    write(project / "other", "other", {"a": 1.1}, day=4, controls={"compute": 1.1, "memory": 1})
    code, out, _ = run(capsys, "compare", "first", "other")
    assert code == 3
    assert any("machine moved: the compute control" in line for line in out)


def test_every_form_is_written_and_agrees(project, capsys):
    words = [f"--{form}={form}.out" for form in ("markdown", "json", "csv", "junit")]
    code, _, _ = run(capsys, "compare", "first", "second", *words)
    assert code == 1
    text = {form: Path(f"{form}.out").read_text("utf-8") for form in
            ("markdown", "json", "csv", "junit")}  # fmt: skip
    assert text["markdown"].startswith("### 1 of 3 slower, the worst by 20 %\n")
    assert "`opbench compare first second`" in text["markdown"]
    assert json.loads(text["json"])["exit_code"] == code
    assert text["csv"].count("\n") == 4
    assert 'failures="1"' in text["junit"]


def test_a_report_that_cannot_be_written_in_the_end_does_not_change_the_verdict(project, capsys):
    Path("there").mkdir()
    code, _, err = run(capsys, "compare", "first", "second", "--json", "there")
    assert code in {1, 2}
    assert "--json there" in err


def test_the_command_to_repeat_names_the_record_that_was_the_newest(project, capsys):
    run(capsys, "compare", "first", "--floor", "3%", "-k", "t.py::a", "--markdown", "x.md")
    assert "`opbench compare first second --floor 3% -k t.py::a`" in Path("x.md").read_text("utf-8")


# Baselines


def test_the_life_of_a_baseline(project, capsys):
    assert run(capsys, "baseline", "list")[0] == 0
    run(capsys, "baseline", "set", "main", "first")
    code, _, err = run(capsys, "baseline", "set", "main")
    assert code == 2
    assert "give --replace to move it" in err
    code, out, _ = run(capsys, "baseline", "set", "main", "--replace")
    assert (code, out[0]) == (0, "baseline main: record second, 3 benchmarks, 5 launches")
    code, out, _ = run(capsys, "baseline", "list")
    assert [line.split() for line in out] == [
        ["baseline", "launches", "date", "record"],
        ["main", "5", "2026-12-02", "second"],
    ]
    code, out, _ = run(capsys, "baseline", "show", "main")
    assert out[0] == "record second"
    assert "cpu_model Zen 4" in out
    assert out[-3].split() == ["tests/t.py::a", "1.20", "ms", "0.7", "%", "5"]
    code, out, _ = run(capsys, "baseline", "prune", "--older-than", "1d", "--dry-run")
    assert out in (["would remove main"], ["no baseline is that old"])
    assert run(capsys, "baseline", "prune", "main")[1] == ["removed main"]
    assert not (project / "results" / "baseline" / "main").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["set", "a/b"], "'a/b' cannot name a baseline"),
        (["set", "x", "nowhere"], "'nowhere' is no record"),
        (["show", "x"], "there is no baseline 'x' in"),
        (["prune"], "nothing to prune: name baselines"),
        (["prune", "x"], "there is no baseline 'x' in"),
        (["prune", "--older-than", "soon"], "--older-than 'soon' is no age"),
        (["prune", "--older-than", "-3d"], "--older-than"),
        ([], "ACTION"),
    ],
)
def test_a_mistake_about_baselines_is_exit_code_2(project, capsys, words, message):
    code, out, err = run(capsys, "baseline", *words)
    assert (code, out) == (2, [])
    assert message in err


def test_few_launches_are_said_when_a_baseline_is_set(project, capsys):
    write(project / "results" / "runs" / "Linux", "lone", {"a": 1}, day=5, launches=1)
    code, out, err = run(capsys, "baseline", "set", "lone")
    assert (code, out) == (0, ["baseline lone: record lone, 1 benchmarks, 1 launch"])
    assert "a verdict needs at least 5 launches" in err


def test_a_damaged_baseline_is_listed_with_its_problem(project, capsys):
    run(capsys, "baseline", "set", "main", "first")
    for path in (project / "results" / "baseline" / "main").iterdir():
        path.write_bytes(b"{")
    code, out, err = run(capsys, "baseline", "list")
    assert code == 2
    assert out[1].split()[0] == "main"
    assert "is not strict JSON" in err


def test_a_results_folder_that_cannot_be_written_keeps_what_it_has(project, capsys, monkeypatch):
    """Played, since root may write everywhere."""

    def refuse(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    before = sorted(path for path in project.rglob("*"))
    for method in ("mkdir", "write_text", "write_bytes", "touch", "rename"):
        monkeypatch.setattr(Path, method, refuse)
    assert run(capsys, "compare", "first", "second")[0] == 1
    code, out, err = run(capsys, "baseline", "set", "main", "first")
    assert (code, out) == (2, [])
    assert "cannot set the baseline 'main' in" in err
    assert "Permission denied; nothing was changed" in err
    assert sorted(path for path in project.rglob("*")) == before


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"tty": "1", "TERM": "xterm"}, True),
        ({"tty": "1", "TERM": "dumb"}, False),
        ({"tty": "1", "TERM": "xterm", "NO_COLOR": "1"}, False),
    ],
)
def test_colour_is_for_terminals_and_for_who_asks(
    project, capsys, monkeypatch, environment, coloured
):
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: "tty" in environment)
    _, out, _ = run(capsys, "compare", "first", "second")
    assert any("\x1b[31m▲ slower" in line for line in out) is coloured
