"""What went wrong in MXNet's profiler, done here: the sequences that spoilt its files, and more.

docs/profiler.md has the whole list, and where each of its points is tested.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

from opbench import cpu, profiler, sym
from opbench.errors import ConfigError
from opbench.profiler import Domain, Event, Frame, Task, check, load, scope

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    profiler.set_config()


def window(name):
    profiler.set_state("run")
    profiler.RECORDER.instant(name, "mine")
    profiler.set_state("stop")


def marks(path):
    """The names of our instants in a file that both viewers open."""
    assert check(path) == []
    events = json.loads(Path(path).read_text("ascii"))["traceEvents"]
    return [event["name"] for event in events if event.get("cat") == "mine"]


@pytest.mark.parametrize("continuous", [False, True])
def test_every_sequence_of_windows_dumps_and_names_gives_whole_files(continuous):
    profiler.set_config(filename="a.json", continuous_dump=continuous, dump_period=0.05)
    window("first")
    profiler.dump()
    assert marks("a.json") == ["first"]
    window("second")
    profiler.dump()
    profiler.dump()
    assert marks("a.json") == ["second"]
    window("third")
    profiler.dump(finished=False)
    window("fourth")
    profiler.dumps()
    profiler.dump()
    assert marks("a.json") == ["third", "fourth"]
    profiler.set_config(filename="b.json", continuous_dump=continuous, dump_period=0.05)
    window("fifth")
    profiler.dump()
    profiler.dumps(reset=True)
    profiler.dump()
    assert marks("b.json") == ["fifth"]
    assert marks("a.json") == ["third", "fourth"]
    assert sorted(path.name for path in Path().iterdir()) == ["a.json", "b.json"]


def test_a_continuous_dump_that_is_killed_is_a_trace_with_what_had_happened():
    program = """
import time
from opbench import profiler
profiler.set_config(filename="t.json", continuous_dump=True, dump_period=0.05)
profiler.set_state("run")
profiler.RECORDER.instant("seen", "mine")
time.sleep(60)
"""

    def seen():
        if not Path("t.json").exists():
            return []
        assert check("t.json") == []  # at every moment, also while it grows
        return [event.name for event in load("t.json").events if event.category == "mine"]

    child = subprocess.Popen(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    try:
        late = time.monotonic() + 60
        while not seen() and time.monotonic() < late:
            time.sleep(0.01)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait(60)
    assert seen() == ["seen"]
    assert [path.name for path in Path().iterdir()] == ["t.json"]


def test_two_processes_with_one_filename_leave_the_whole_file_of_one():
    program = """
import sys
from opbench import profiler
profiler.set_config(filename="t.json")
profiler.set_state("run")
for number in range(5000):
    profiler.RECORDER.instant(sys.argv[1], "mine")
for _ in range(5):
    profiler.dump(finished=False)
profiler.dump()
"""
    children = [
        subprocess.Popen(
            [sys.executable, "-c", program, name],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        for name in ("one", "other")
    ]
    assert [child.wait(120) for child in children] == [0, 0]
    names = marks("t.json")
    assert names in (["one"] * 5000, ["other"] * 5000)
    assert [path.name for path in Path().iterdir()] == ["t.json"]


def test_a_dump_in_the_handler_of_a_signal_is_a_whole_file():
    dumped = []

    def handler(*_):
        profiler.dump(finished=False)
        dumped.append(marks("t.json"))

    profiler.set_config(filename="t.json")
    profiler.set_state("run")
    profiler.RECORDER.instant("before", "mine")
    old = signal.signal(signal.SIGUSR1, handler)
    try:
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGUSR1)
            profiler.RECORDER.instant("after", "mine")
    finally:
        signal.signal(signal.SIGUSR1, old)
    profiler.dump()
    assert dumped == [["before"] + ["after"] * count for count in range(3)]
    assert marks("t.json") == ["before", "after", "after", "after"]


def test_the_duration_of_a_known_sleep_is_in_the_trace():
    profiler.set_config(filename="t.json")
    profiler.set_state("run")
    with profiler.Event("sleep"):
        time.sleep(0.05)
    profiler.dump()
    (event,) = [
        e for e in json.loads(Path("t.json").read_text())["traceEvents"] if e["name"] == "sleep"
    ]
    # A sleep is never shorter; how much longer is the machine's business.
    assert event["ph"] == "X"
    assert event["dur"] >= 50_000


def test_a_process_has_its_own_number_and_name_and_so_has_each_thread():
    profiler.set_config(filename="t.json")
    window("seen")
    profiler.dump()
    document = json.loads(Path("t.json").read_text("ascii"))
    (event,) = [e for e in document["traceEvents"] if e.get("cat") == "mine"]
    names = {e["name"]: e for e in document["traceEvents"] if e["ph"] == "M"}
    assert event["pid"] == os.getpid() == names["process_name"]["pid"]
    assert event["tid"] == names["thread_name"]["tid"]
    assert names["thread_name"]["args"] == {"name": "MainThread"}
    # MXNet's lists every device that there could be.
    assert [e["name"] for e in document["traceEvents"] if e["ph"] == "M"].count("process_name") == 1
    assert max(event["pid"], event["tid"]) < 2**32


def test_the_key_of_gpus_is_an_unknown_one():
    with pytest.raises(ConfigError, match="unknown key 'gpu_memory_profile_filename_prefix'"):
        profiler.set_config(gpu_memory_profile_filename_prefix="gpu")


def test_a_file_name_may_hold_the_signs_that_mxnets_server_options_could_not():
    name = "rank0:a,b;'c'.json"
    profiler.set_config(filename=name)
    window("seen")
    profiler.dump()
    assert marks(name) == ["seen"]
    assert [path.name for path in Path().iterdir()] == [name]


def operators(*, aggregate_stats):
    """What ran in a window: name, node, shapes and thread of each operator, in order."""
    a = np.ones((3, 3), "f4")
    first, second = sym.var("a"), sym.var("b")
    graph = sym.dot(sym.dot(first, second, name="inner"), second, name="outer")
    executor = graph.bind(cpu(), {"a": a, "b": a})
    profiler.set_config(profile_symbolic=True, aggregate_stats=aggregate_stats, filename="t.json")
    profiler.set_state("run")
    for _ in range(2):
        executor.forward()[0].wait_to_read()
    profiler.set_state("stop")
    profiler.dumps(reset=True)
    profiler.dump()
    return [
        (e["name"], e["args"]["node"], e["args"]["inputs"], e["tid"])
        for e in json.loads(Path("t.json").read_text("ascii"))["traceEvents"]
        if e.get("cat") == "symbolic"
    ]


def test_statistics_do_not_change_what_runs():
    plain = operators(aggregate_stats=False)
    assert [node for _, node, *_ in plain] == ["inner", "outer"] * 2
    assert operators(aggregate_stats=True) == plain


def test_switching_statistics_off_discards_none():
    profiler.dumps(reset=True)
    profiler.set_config(aggregate_stats=True, filename="t.json")
    profiler.set_state("run")
    with Event("mine"):
        pass
    profiler.dump()
    profiler.set_config(aggregate_stats=False, filename="t.json")
    assert [row.count for row in profiler.statistics() if row.name == "mine"] == [1]
    profiler.dumps(reset=True)


def test_a_domain_and_what_it_made_die_with_their_last_user():
    class Watched(Domain):
        """One that can be watched."""

    domain = Watched("mine")
    seen = weakref.ref(domain)
    profiler.set_config(filename="t.json")
    profiler.set_state("run")
    with domain.new_task("task"):
        domain.new_counter("count", 1)
        domain.new_marker("marker").mark()
    del domain
    assert seen() is None
    profiler.set_state("stop")
    profiler.dump()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Task(Domain("d"), "it", {"key": 1}),
        lambda: Frame(Domain("d"), "it", {"key": 1}),
        lambda: Event("it", {"key": 1}),
        lambda: scope("it", args={"key": 1}),
    ],
    ids=["Task", "Frame", "Event", "scope"],
)
def test_every_interval_is_a_context_manager_and_a_decorator_and_takes_arguments(make):
    @make()
    def decorated(value):
        return value + 1

    profiler.set_config(filename="t.json")
    profiler.set_state("run")
    with make():
        pass
    assert decorated(2) == 3
    profiler.dump()
    found = [event for event in load("t.json").events if event.name == "it"]
    assert [event.args["key"] for event in found] == [1, 1]
