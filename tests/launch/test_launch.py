from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from opbench.errors import ConfigError
from opbench.launch import Launch, run_launch
from opbench.launch import launch as launching

FAST = ("--benchmark-max-time=0.001", "--benchmark-min-rounds=3", "-p", "no:cacheprovider")


@pytest.fixture
def project(tmp_path):
    """A stranger's project; returns a function that launches it."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n")

    def launch(source, *arguments, **changed):
        (folder / "test_it.py").write_text(source)
        return run_launch(Launch(("test_it.py", *FAST, *arguments), folder, **changed))

    return launch


def is_running(pid):
    """Whether a process runs; one that is dead and not yet collected does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_launch_gives_every_round_and_leaves_nothing_behind(project, tmp_path):
    result = project("def test_one(benchmark):\n    benchmark(sum, [1, 2])\n")
    assert (result.exit_code, result.timed_out) == (0, False), result.stdout
    (benchmark,) = result.document["benchmarks"]
    assert benchmark["fullname"] == "test_it.py::test_one"
    assert len(benchmark["stats"]["data"]) == benchmark["stats"]["rounds"] >= 3
    assert "1 passed" in result.stdout
    assert result.seconds > 0
    left = {path.name for path in (tmp_path / "project").iterdir()}
    assert left - {"__pycache__"} == {"pytest.ini", "test_it.py"}


def test_only_benchmarks_run(project):
    result = project(
        "def test_plain():\n    assert False\n\ndef test_one(benchmark):\n    benchmark(int)\n"
    )
    assert result.exit_code == 0
    assert "1 passed, 1 skipped" in result.stdout


def test_a_failing_suite_keeps_what_it_measured(project):
    result = project(
        "def test_good(benchmark):\n    benchmark(int)\n\n"
        "def test_bad(benchmark):\n    benchmark(int, 'x')\n"
    )
    assert result.exit_code == 1
    names = [benchmark["name"] for benchmark in result.document["benchmarks"]]
    assert names == ["test_good"]
    assert "invalid literal" in result.stdout


def test_a_suite_without_benchmarks_has_no_document(project):
    result = project("")
    assert (result.exit_code, result.document) == (5, None)


def test_a_usage_error_is_told_on_stderr(project):
    result = project("", "--no-such-flag")
    assert (result.exit_code, result.document) == (4, None)
    assert "unrecognized arguments: --no-such-flag" in result.stderr


def test_a_process_that_dies_has_the_signals_number(project):
    result = project("import os\nos.kill(os.getpid(), 9)\n")
    assert (result.exit_code, result.timed_out, result.document) == (-9, False, None)


def test_output_that_is_no_text_is_tolerated_and_cut_to_its_end(project):
    result = project(
        "import os\n\ndef test_one(benchmark):\n    benchmark(int)\n"
        "    os.write(1, b'begin' + b'\\xff' * 40_000 + b'end of noise')\n",
        "-s",
    )
    assert result.exit_code == 0
    assert "begin" not in result.stdout
    assert "\ufffdend of noise" in result.stdout


@pytest.mark.parametrize("garbage", ["", "{", "[]", "NaN", "[" * 100_000, '{"traceEvents": []}'])
def test_a_document_that_does_not_read_is_none(project, garbage):
    result = project(
        "import atexit, sys\n"
        "path = [a for a in sys.argv if a.startswith('--benchmark-json=')][0].partition('=')[2]\n"
        f"atexit.register(lambda: open(path, 'w').write({garbage!r}))\n"
        "def test_one(benchmark):\n    benchmark(int)\n"
    )
    assert (result.exit_code, result.document) == (0, None)


def test_the_environment_is_the_one_given_and_no_other(project, monkeypatch):
    monkeypatch.setenv("OPBENCH_TEST_LEAK", "1")
    source = (
        "import os\n\ndef test_one(benchmark):\n    benchmark(int)\n"
        "    assert 'OPBENCH_TEST_LEAK' not in os.environ\n"
        "    assert os.environ['OMP_NUM_THREADS'] == '1'\n"
    )
    given = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}
    assert project(source, environment=given).exit_code == 0


def test_without_an_environment_ours_is_passed_on(project, monkeypatch):
    monkeypatch.setenv("OPBENCH_TEST_LEAK", "1")
    source = (
        "import os\n\ndef test_one(benchmark):\n    benchmark(int)\n"
        "    assert os.environ['OPBENCH_TEST_LEAK'] == '1'\n"
    )
    assert project(source).exit_code == 0


def test_a_launch_from_an_xdist_worker_measures(project, monkeypatch):
    # pytest-benchmark refuses to measure in a worker, and knows one by this variable.
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    result = project("def test_one(benchmark):\n    benchmark(int)\n")
    assert result.exit_code == 0
    assert len(result.document["benchmarks"]) == 1


HANGING = """
import os, pathlib, subprocess, sys, time

def test_hangs(benchmark):
    program = "import time; time.sleep(3600)"
    child = subprocess.Popen([sys.executable, "-c", program])
    pathlib.Path({pids!r}).write_text(f"{{os.getpid()}} {{child.pid}}")
    {then}
"""


def test_a_hanging_test_is_killed_with_its_children(project, tmp_path):
    pids = tmp_path / "pids"
    source = HANGING.format(pids=str(pids), then="time.sleep(3600)")
    # A busy machine may need longer than the first timeout to come to the test at all.
    for timeout_s in (3.0, 10.0, 60.0):
        result = project(source, timeout_s=timeout_s)
        assert (result.exit_code, result.timed_out, result.document) == (-9, True, None)
        if pids.exists() and pids.read_text():
            break
    started = [int(pid) for pid in pids.read_text().split()]
    assert len(started) == 2
    assert [pid for pid in started if is_running(pid)] == []


def test_a_child_left_behind_by_a_finished_test_is_killed_too(project, tmp_path):
    pids = tmp_path / "pids"
    source = HANGING.format(pids=str(pids), then="benchmark(int)")
    result = project(source)
    assert (result.exit_code, result.timed_out) == (0, False)
    assert [pid for pid in map(int, pids.read_text().split()) if is_running(pid)] == []


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot launch pytest in .*none: no such folder"):
        run_launch(Launch((), tmp_path / "none"))


def test_an_interpreter_that_is_not_there_is_refused(tmp_path):
    missing = str(tmp_path / "python")
    with pytest.raises(ConfigError, match=f"cannot launch {missing}: No such file"):
        run_launch(Launch((), tmp_path, python=missing))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"arguments": ("a\0b",)}, r"the argument 'a\\x00b'"),
        ({"arguments": (Path("x"),)}, "the argument .*give text"),
        ({"environment": {"a=b": "x"}}, "the variable 'a=b'"),
        ({"environment": {"": "x"}}, "the variable ''"),
        ({"environment": {"a": "x\0"}}, r"the variable 'a' set to 'x\\x00'"),
        ({"environment": {"a": 3}}, "the variable 'a' set to 3"),
        ({"timeout_s": 0}, "timeout_s 0: give more than 0 seconds"),
        ({"timeout_s": -1.0}, r"timeout_s -1\.0"),
        ({"timeout_s": float("nan")}, "timeout_s nan"),
        ({"timeout_s": "9"}, "timeout_s '9'"),
        ({"cwd": "a\0b"}, "no such folder"),
        ({"python": "a\0b"}, "embedded null byte; name a Python interpreter"),
    ],
)
def test_what_no_process_can_be_given_is_refused(tmp_path, changed, reason):
    given = {"arguments": (), "cwd": tmp_path, **changed}
    with pytest.raises(ConfigError, match=f"^cannot launch .*{reason}"):
        run_launch(Launch(**given))


def test_a_folder_may_be_named_by_text(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    assert run_launch(Launch(("-p", "no:cacheprovider"), str(tmp_path))).exit_code == 5


def test_seconds_and_load_are_read_before_the_group_is_killed(tmp_path, monkeypatch):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    seen = []
    clock = launching.time.perf_counter

    def read(what, answer):
        seen.append(what)
        return answer()

    monkeypatch.setattr(launching.time, "perf_counter", lambda: read("clock", clock))
    monkeypatch.setattr(launching, "cpu_reading", lambda: read("load", lambda: None))
    monkeypatch.setattr(launching, "_kill_group", lambda group: seen.append("kill"))
    run_launch(Launch(("-p", "no:cacheprovider"), tmp_path))
    assert seen == ["load", "clock", "clock", "load", "kill"]


def test_this_interpreter_is_the_default(tmp_path):
    assert Launch((), tmp_path).python == sys.executable
