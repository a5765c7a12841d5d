from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest

from opbench import records
from opbench.errors import ConfigError, RecordError
from opbench.launch import LaunchResult, RecordResult, RunOptions, measure_record
from opbench.launch.noise import Noise

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
IDS = ("t.py::x", "t.py::y")


class FakeSuite:
    """Stands in for ``run_launch``: every launch measures both benchmarks, if nothing is wrong."""

    def __init__(self):
        self.launches, self.failed, self.wrong = [], {}, {}
        self.block = {"launch_id": None}

    def __call__(self, launch, group=None):
        self.launches.append(launch)
        number = len(self.launches)
        if number in self.wrong:
            return self.wrong[number]
        survey = {
            "root": str(launch.cwd),
            "items": [],
            "errors": [],
            "outcomes": {name: self.failed.get(name, ["passed", "", 0.1]) for name in IDS},
            "modules": {},
            "plugins": ["benchmark"],
            "operators": {"dot": "0123abcd"},
            "prefixes": [],
        }
        Path(launch.environment["OPBENCH_SURVEY"]).write_text(json.dumps(survey))
        entries = [
            {"fullname": name, "stats": {"data": [number * 1e-3] * 3}, "extra_info": {}}
            for name in IDS
        ]
        document = {
            "benchmarks": entries,
            "datetime": NOW.isoformat(),
            "commit_info": {"id": "abc123", "dirty": True},
        }
        if self.block is not None:
            facts = {"cpu_model": "a CPU", "numpy": "2.0"}
            launch_id = f"20260102T030405Z-{number:08}"
            document["opbench"] = {**self.block, "launch_id": launch_id, "environment": facts}
            document["opbench"]["schema_version"] = 1
        noise = Noise(0.5, 1.0, 2.0, 30, 40)
        return LaunchResult(0, False, document, 1.5, "", "", 0.25, noise)


def crash(code=-11, *, timed_out=False):
    return LaunchResult(code, timed_out, None, 1.0, "", "E   it broke", None)


@pytest.fixture
def suite():
    return FakeSuite()


@pytest.fixture
def measured(tmp_path, suite, progress):
    def measure(launches=3, result=None, **changed):
        options = RunOptions(tmp_path, tmp_path / "results" / "runs", launches, **changed)
        controls = {"compute": 1e-3, "memory": 2e-3}
        return measure_record(options, progress, result, suite, lambda: controls, lambda: NOW)

    return measure


def test_a_record_is_a_file_for_each_launch_under_one_id(measured):
    result = measured()
    read = [records.read_run(path) for path in result.saved]
    assert {run.record_id for run in read} == {result.record_id}
    assert len({run.launch_id for run in read}) == 3
    assert [run.samples[0].values[0] for run in read] == [1e-3, 2e-3, 3e-3]
    assert result.benchmarks == set(IDS)
    assert (result.failed, result.problems) == ({}, [])
    assert [path.name for path in result.saved] == [
        f"000{n}_{result.record_id}-{n}of3.json" for n in (1, 2, 3)
    ]
    assert {(run.commit, run.dirty) for run in read} == {("abc123", True)}
    assert read[0].environment.cpu_model == "a CPU"
    assert read[0].warnings == ()


def test_a_record_keeps_what_went_on_around_each_launch(measured):
    block = json.loads(measured().saved[1].read_text())["opbench"]
    assert block["launcher"] == {
        "controls": {"compute": 1e-3, "memory": 2e-3},
        "seconds": 1.5,
        "exit_code": 0,
        "busy_elsewhere": 0.25,
        "steal": 0.5,
        "load_before": 1.0,
        "load_after": 2.0,
        "voluntary_switches": 30,
        "involuntary_switches": 40,
    }
    assert block["operators"] == {"dot": "0123abcd"}
    assert set(block["usage"]) == {"before", "after"}
    machine = {"kernel", "caches", "container", "virtual_machine", "governor", "turbo"}
    assert machine <= set(block["environment"])
    assert not {"node", "hz_actual", "hostname"} & set(block["environment"])


def test_a_suite_that_opbench_does_not_know_is_recorded_too(measured, suite):
    suite.block = None
    run = records.read_run(measured(1).saved[0])
    assert run.schema_version == 1
    assert run.environment.python is not None


def test_the_numbers_of_a_failed_test_reach_no_record(measured, suite):
    suite.failed = {"t.py::y": ["failed", "assert 1 == 2\nmore", 0.1]}
    result = measured()
    assert result.failed == {"t.py::y": "assert 1 == 2"}
    assert [s.benchmark for s in records.read_run(result.saved[0]).samples] == ["t.py::x"]
    assert result.benchmarks == {"t.py::x"}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (crash(), "the launch was ended by signal 11"),
        (crash(-9, timed_out=True), "the launch took longer than 600 s"),
        (crash(5), "pytest ended with exit code 5: it broke"),
        (LaunchResult(0, False, {"benchmarks": 3}, 1.0, "", "", None), "no benchmark passed"),
    ],
)
def test_a_launch_that_gives_nothing_is_told_and_the_others_are_kept(measured, suite, wrong, words):
    suite.wrong = {2: wrong}
    result = measured()
    assert len(result.saved) == 2
    (problem,) = result.problems
    assert problem.startswith(f"launch 2 of 3: {words}")


def test_a_usage_error_ends_it_at_once(measured, suite):
    suite.wrong = {1: crash(4)}
    result = measured()
    assert (len(suite.launches), result.saved) == (1, [])
    assert "it broke" in result.usage_error


def test_what_was_saved_before_an_interrupt_is_kept(measured, suite):
    class Interrupts:
        def __getattr__(self, name):
            raise KeyboardInterrupt

    suite.wrong = {3: Interrupts()}
    result = RecordResult("", 0)
    with pytest.raises(KeyboardInterrupt):
        measured(result=result)
    assert len(result.saved) == 2
    assert all(path.exists() for path in result.saved)


def test_a_launch_is_given_the_users_words_last(measured, suite):
    measured(1, words=("--benchmark-min-rounds=3", "tests"), threads=2)
    (launch,) = suite.launches
    assert launch.arguments[-2:] == ("--benchmark-min-rounds=3", "tests")
    assert launch.environment["NUMBA_NUM_THREADS"] == "2"
    assert "OPBENCH_TIMING_ONLY" not in launch.environment


def test_a_folder_that_cannot_be_written_is_told_before_anything_runs(measured, suite, tmp_path):
    (tmp_path / "results").write_text("a file")
    with pytest.raises(
        RecordError, match=r"cannot save a run in .*nothing was measured.*--results"
    ):
        measured()
    assert suite.launches == []


@pytest.mark.parametrize("launches", [0, -1])
def test_no_launches_are_refused(measured, launches):
    with pytest.raises(ConfigError, match=f"--launches is {launches}; give at least 1"):
        measured(launches)


def test_two_writers_lose_nothing(measured, suite, tmp_path, progress):
    # Another record is written while this one is: numbers differ, and both are whole.
    inner = []

    def both(launch, group=None):
        if len(inner) < 3:
            options = RunOptions(tmp_path, tmp_path / "results" / "runs", 1)
            other = FakeSuite()
            inner.append(measure_record(options, progress, None, other, dict, lambda: NOW))
        return suite(launch, group)

    options = RunOptions(tmp_path, tmp_path / "results" / "runs", 3)
    outer = measure_record(options, progress, None, both, dict, lambda: NOW)
    paths = [*outer.saved, *(path for one in inner for path in one.saved)]
    assert len({path.name[:4] for path in paths}) == 6
    by_record = [records.read_run(path).record_id for path in outer.saved]
    assert by_record == [outer.record_id] * 3
