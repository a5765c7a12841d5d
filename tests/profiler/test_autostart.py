"""Recording by environment variables alone, in programs that do not know of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from opbench.errors import ConfigError, StateError
from opbench.profiler import IterationWindow, check, profile
from opbench.profiler.autostart import autostart
from opbench.profiler.config import ProfilerConfig
from opbench.profiler.doors import WindowStore

ROOT = Path(__file__).parents[2]
PROGRAM = """
from opbench import cpu, nd, sym
a = nd.ones((4, 4))
nd.dot(a, a).asnumpy()
sym.dot(sym.var("a"), sym.var("b")).bind(cpu(), {"a": a, "b": a}).forward()[0].asnumpy()
"""


def run(folder, program=PROGRAM, **variables):
    named = {f"OPBENCH_PROFILER_{name}": value for name, value in variables.items()}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=folder,
        env={**os.environ, **named, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


def events(path):
    assert check(path) == []
    return [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] != "M"]


@pytest.mark.parametrize(
    ("mode", "categories"),
    [
        (None, {"symbolic", "imperative", "api", "memory"}),
        ("imperative", {"imperative"}),
        ("symbolic+mem", {"symbolic", "memory"}),
        ("13", {"symbolic", "api", "memory"}),
        ("0", set()),
    ],
)
def test_a_program_is_recorded_without_a_line_of_it_changed(tmp_path, mode, categories):
    run(tmp_path, AUTOSTART="1", **({"MODE": mode} if mode else {}))
    ours = {"symbolic", "imperative", "api", "memory"}
    recorded = {e["cat"] for e in events(tmp_path / "profile.json")}
    assert recorded & ours == categories


@pytest.mark.parametrize("word", ["0", "off", "", "no"])
def test_off_is_off(tmp_path, word):
    run(tmp_path, AUTOSTART=word, MODE="nonsense")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"AUTOSTART": "yess"}, "OPBENCH_PROFILER_AUTOSTART='yess' in the environment; did you"),
        (
            {"AUTOSTART": "1", "MODE": "symbollic"},
            "unknown mode 'symbollic' in OPBENCH_PROFILER_MODE in the environment; did you mean",
        ),
        ({"AUTOSTART": "1", "MODE": "16"}, "must lie between 0 and 15"),
    ],
)
def test_a_mistake_is_told_in_one_line_and_the_program_runs(tmp_path, variables, message):
    done = run(tmp_path, f"{PROGRAM}\nprint('done')", **variables)
    assert done.stdout == "done\n"
    (line,) = done.stderr.splitlines()
    assert line.startswith("opbench: the profiler was not started: ")
    assert message in line
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_drives_the_profiler_itself_still_can(tmp_path):
    program = f"""
from opbench import nd, profiler
nd.ones(3)
profiler.set_config(profile_imperative=True, filename="mine.json")
profiler.set_state("run")
{PROGRAM}
profiler.set_state("stop")
profiler.dump()
nd.ones(3)
"""
    run(tmp_path, program, AUTOSTART="1", MODE="api")
    # A collection of garbage may fall into any window.
    assert {e["cat"] for e in events(tmp_path / "profile.json")} - {"gc"} == {"api"}
    mine = [e for e in events(tmp_path / "mine.json") if e["cat"] in ("imperative", "api")]
    assert [(e["cat"], e["name"]) for e in mine] == [("imperative", "dot")]


def test_its_own_run_without_a_configuration_goes_on_with_the_window(tmp_path):
    program = f"from opbench import profiler\nprofiler.set_state('run')\n{PROGRAM}\nprofiler.dump()"
    run(tmp_path, program, AUTOSTART="1", MODE="imperative")
    names = [e["name"] for e in events(tmp_path / "profile.json") if e["cat"] == "imperative"]
    assert names == ["dot"]


# ---- giving way


@pytest.fixture
def windows(recorder, tmp_path, monkeypatch):
    """Autostart's window on a recorder with a fake clock."""
    monkeypatch.chdir(tmp_path)
    made = WindowStore(recorder)
    made._exit_watched = True
    for module in ("doors", "window", "autostart"):
        monkeypatch.setattr(sys.modules[f"opbench.profiler.{module}"], "WINDOWS", made)
    assert autostart({"OPBENCH_PROFILER_AUTOSTART": "on"}, made)
    return made


def written(windows, tmp_path):
    windows.write_at_exit()
    return [e["name"] for e in events(tmp_path / "profile.json")]


def test_it_gives_way_to_an_iteration_window(windows, recorder, tmp_path):
    recorder.instant("before", "api")
    with IterationWindow(recorder, 2, modes="symbolic") as window:
        for _ in window:
            recorder.instant("theirs", "symbolic")
    recorder.instant("after", "api")
    assert [e.name for e in window.trace.events if e.phase == "i"] == ["theirs", "theirs"]
    assert window.trace.modes == 1
    assert written(windows, tmp_path) == ["before", "after"]


def test_it_gives_way_to_a_schedule(windows, recorder, tmp_path):
    recorder.instant("before", "api")
    with profile(recorder=recorder) as course:
        recorder.instant("theirs", "api")
    recorder.instant("after", "api")
    assert [e.name for e in course.trace.events if e.phase == "i"] == ["theirs"]
    assert written(windows, tmp_path) == ["before", "after"]


def test_inside_a_timed_test_it_stays_away_until_the_last_has_gone(windows, recorder, tmp_path):
    windows.give_way(recorder)
    with IterationWindow(recorder, 1) as window:
        for _ in window:
            pass
    assert recorder.state == "stop"
    windows.give_way(recorder)
    windows.go_on(recorder)
    assert recorder.state == "stop"
    windows.go_on(recorder)
    assert recorder.recording
    recorder.instant("after", "api")
    windows.go_on(recorder)
    assert written(windows, tmp_path) == ["after"]


def test_another_recorder_is_none_of_its_business(windows, recorder, clock):
    from opbench.profiler import Profiler

    windows.give_way(Profiler(clock, clock))
    assert recorder.recording
    windows.set_state("stop")


def test_a_window_of_the_programs_own_is_not_taken_away(recorder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    windows = WindowStore(recorder)
    windows._exit_watched = True
    windows.set_state("run")
    windows.give_way(recorder)
    assert recorder.recording
    windows.go_on(recorder)
    windows.set_state("stop")


def test_a_wrong_configuration_leaves_it_running(windows, recorder):
    with pytest.raises(ConfigError):
        windows.set_config(profile_symbollic=True)
    assert recorder.recording
    windows.set_state("stop")


def test_a_server_cannot_be_started_by_a_configuration(recorder, tmp_path):
    windows = WindowStore(recorder)
    with pytest.raises(ConfigError, match="needs a distributed engine"):
        windows.autostart(ProfilerConfig(profile_process="server"))
    assert recorder.state == "stop"


def test_a_configuration_while_it_has_given_way_gets_none_of_its_events(
    windows, recorder, tmp_path, clock
):
    recorder.instant("automatic", "api")
    windows.give_way(recorder)
    windows.set_config(filename="own.json")
    windows.set_state("run")
    recorder.instant("own", "api")
    windows.give_way(recorder)  # of autostart's window only
    assert recorder.recording
    windows.dump()
    assert [e["name"] for e in events(tmp_path / "profile.json")] == ["automatic"]
    assert [e["name"] for e in events(tmp_path / "own.json")] == ["own"]


def test_a_window_opened_while_it_has_given_way_is_the_programs_own(windows, recorder):
    windows.give_way(recorder)
    windows.set_state("run")
    windows.give_way(recorder)
    assert recorder.recording
    windows.set_state("stop")


def test_it_takes_no_configuration_inside_somebody_elses_window(windows, recorder):
    with IterationWindow(recorder, 1) as window:
        for _ in window:
            with pytest.raises(StateError, match="'run', its owner 'iteration window'"):
                windows.set_config(filename="own.json")
    assert recorder.recording
    windows.set_state("stop")


ALLOCATES = """
import numpy as np
from opbench import nd
import numba
nd.zeros(4)

@numba.njit
def fresh(x):
    return x + 1

fresh(1)
"""


def test_arrays_and_compilations_are_in_it_though_it_opened_before_the_runtime(tmp_path):
    run(tmp_path, ALLOCATES, AUTOSTART="1")
    found = events(tmp_path / "profile.json")
    assert [e["args"]["bytes"] for e in found if e["name"] == "alloc"] == [16]
    assert "compile fresh" in [e["name"] for e in found if e["cat"] == "compile"]
