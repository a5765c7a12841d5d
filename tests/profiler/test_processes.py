"""Processes that are started inside a window, and those that are not."""

from __future__ import annotations

import json
import multiprocessing.process
import os
import subprocess
import sys
from pathlib import Path

import pytest

from opbench.profiler import Mode, Part, check, join, load, write
from opbench.profiler.config import ProfilerConfig
from opbench.profiler.processes import inherited, rank, ranked

ROOT = Path(__file__).parents[2]
PROGRAM = """
import multiprocessing, os, sys, time
from opbench import profiler

def work(number):
    start = profiler.RECORDER.clock()
    profiler.RECORDER.complete(f"work {number}", "api", start, profiler.RECORDER.clock())
    if number == 1:
        time.sleep(30)  # until it is ended by a signal

if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    profiler.set_config(profile_api=True, filename="t.json")
    profiler.set_state("run")
    children = [spawn.Process(target=work, args=(number,)) for number in range(2)]
    for child in children:
        child.start()
    children[0].join()
    late = time.monotonic() + 30
    while "work 1" not in (open("t-rank2.json").read() if os.path.exists("t-rank2.json") else ""):
        assert time.monotonic() < late
        time.sleep(0.02)
    children[1].terminate()
    children[1].join()
    forked = multiprocessing.get_context("fork").Process(target=work, args=(2,))
    forked.start()
    forked.join()
    plain = [sys.executable, "-c", "import opbench.profiler as p; assert p.state() == 'stop'"]
    import subprocess
    subprocess.run(plain, check=True)
    work(0)
    profiler.dump()
    after = spawn.Process(target=work, args=(3,))
    after.start()
    after.join()
"""


def test_spawned_children_record_into_files_of_their_own_rank(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-W", "error", "program.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    files = {path.name: load(path) for path in tmp_path.glob("*.json")}
    names = {
        name: [e.name for e in trace.events if e.category == "api"] for name, trace in files.items()
    }
    assert names == {
        "t.json": ["work 0"],
        "t-rank1.json": ["work 0"],
        "t-rank2.json": ["work 1"],  # ended by a signal: the growing file is there
    }
    assert check(tmp_path / "t-rank1.json") == []
    assert files["t-rank1.json"].metadata == {"rank": "rank1"}
    whole = join([Part(name, trace) for name, trace in sorted(files.items())])
    assert len({event.pid for event in whole.events if event.category == "api"}) == 3
    opened, closed = files["t.json"].windows[0]
    inside = [event for event in whole.events if event.category == "api"]
    assert all(opened <= event.start_ns <= closed for event in inside)  # one axis of time
    write(whole, tmp_path / "whole.json")
    assert check(tmp_path / "whole.json") == []


@pytest.fixture
def named(monkeypatch):
    def name(text):
        monkeypatch.setattr(multiprocessing.process.current_process(), "_name", text)

    return name


@pytest.mark.parametrize(
    ("process", "worker", "told"),
    [
        ("MainProcess", "", ""),
        ("SpawnProcess-3", "", "rank3"),
        ("SpawnPoolWorker-12", "", "rank12"),
        ("SpawnProcess-3:2", "", "rank3.2"),
        ("mine", "", "pid{pid}"),
        ("MainProcess", "gw1", "gw1"),
        ("SpawnProcess-3", "gw1", "gw1-rank3"),
        ("MainProcess", "../x", ""),
    ],
)
def test_the_rank_is_the_number_among_its_siblings(named, process, worker, told):
    named(process)
    assert rank({"PYTEST_XDIST_WORKER": worker}) == told.format(pid=os.getpid())


def test_the_rank_goes_into_the_name_before_the_suffix(named):
    named("SpawnProcess-3")
    assert ranked(ProfilerConfig(filename="/x/a.b.json"), {}).filename == "/x/a.b-rank3.json"
    named("MainProcess")
    assert ranked(ProfilerConfig(filename="/x/a.json"), {}).filename == "/x/a.json"


WINDOW = {"pid": 1, "modes": 5, "filename": "t.json", "period": 3.0}


def announced(**changes):
    return {"OPBENCH_PROFILER_WINDOW": json.dumps({**WINDOW, **changes})}


def test_a_child_streams_what_its_parent_records(named, tmp_path):
    named("SpawnProcess-1")
    config = inherited(announced(filename=str(tmp_path / "t.json")))
    assert config.modes == Mode.SYMBOLIC | Mode.API
    assert (config.continuous_dump, config.dump_period) == (True, 0.5)
    assert config.filename == str(tmp_path / "t-rank1.json")


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OPBENCH_PROFILER_WINDOW": "nonsense"},
        {"OPBENCH_PROFILER_WINDOW": "[]"},
        announced(modes="many"),
        announced(period=None),
        announced(pid=os.getpid()),
    ],
)
def test_without_a_parents_window_a_child_records_nothing(named, environment):
    named("SpawnProcess-1")
    assert inherited(environment) is None


def test_another_program_is_left_alone(named):
    named("MainProcess")
    assert inherited(announced()) is None
