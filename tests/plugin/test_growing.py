"""A trace that is in its file while it is recorded: what a test that kills the process leaves."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys

import pytest

from opbench import profiler

pytest_plugins = ["pytester"]

HEAD = """
import os
import signal
import threading
import time
import numpy as np
import pytest
from opbench import nd
from opbench import profiler as core
from opbench.profiler import RECORDER
A = nd.array(np.ones((4, 4), "f4"))

def growing():
    return [t.name for t in threading.enumerate() if "continuous" in t.name]

def in_file(path, word):
    # The file is read as another program would: at any moment, whole.
    for _ in range(2000):
        if any(event.name == word for event in core.load(path).events):
            return
        time.sleep(0.005)
    raise AssertionError(f"{word} never came")

def file_of(request):
    (only,) = request.config.rootpath.glob("results/traces/*.json")
    return only
"""


def only_file(project):
    (path,) = (project.path / "results" / "traces").glob("*.json")
    return path


def crash(project, *options):
    """Run pytest, which does not come to its end; the trace that it leaves."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "opbench.plugin", "-p", "no:faulthandler", *options],
        cwd=project.path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode < 0, done.stdout + done.stderr
    return sorted((project.path / "results" / "traces").glob("*.trace.json"))


CRASH = (
    HEAD
    + """
calls = []

def kernel(request):
    calls.append(1)
    nd.dot(A, A).wait_to_read()
    if RECORDER.recording and RECORDER.iteration == 2:
        in_file(file_of(request), "iteration 1")
        os.abort()

def test_it(profiler, request):
    profiler.options(iterations=5)
    profiler.pedantic(kernel, (request,), rounds=3)
"""
)


@pytest.mark.parametrize("way", ["ini", "option", "marker"])
def test_a_kernel_that_aborts_leaves_a_trace_up_to_the_last_period(project, way):
    mark = "@pytest.mark.opbench(continuous_dump=True, dump_period=0.01)\ndef test_it"
    project.file(test_it=CRASH.replace("def test_it", mark) if way == "marker" else CRASH)
    if way == "ini":
        project.ini("opbench_continuous_dump = true\nopbench_dump_period = 0.01")
    given = ("--opbench-continuous-dump", "--opbench-dump-period=0.01") if way == "option" else ()
    (path,) = crash(project, "--benchmark-only", *given)
    loaded = profiler.load_file(path)
    assert loaded.growing
    trace = loaded.trace
    assert trace.metadata["test"] == "test_it.py::test_it"
    assert {event.args.get("iteration") for event in trace.events if event.name == "dot"} >= {1}
    by_name = {event.name: event for event in trace.events}
    assert "unfinished" not in by_name["iteration 1"].args
    # Where it died: inside the window, and not before the iteration that aborts had begun.
    assert by_name["window of the profiler fixture of test_it.py::test_it"].args["unfinished"]
    assert "iteration 3" not in by_name


def test_without_asking_such_a_test_leaves_none(project):
    project.file(test_it=CRASH.replace('in_file(file_of(request), "iteration 1")', "pass"))
    assert crash(project, "--benchmark-only") == []


def test_a_second_window_that_aborts_loses_neither(project):
    project.file(
        test_it=HEAD
        + """
def test_it(profiler, request):
    profiler.options(continuous_dump=True, dump_period=0.01)
    with profiler.window():
        nd.dot(A, A)
    profiler.run("memory")
    RECORDER.instant("late", "mine")
    (first,) = request.config.rootpath.glob("results/traces/test_it-????????.trace.json")
    in_file(first.with_name(first.name.replace(".trace", "-window2.trace")), "late")
    os.abort()
"""
    )
    second, first = (profiler.load(path) for path in crash(project))
    assert [event.name for event in first.events if event.category == "imperative"] == ["dot"]
    assert [event.name for event in second.events if event.category == "mine"] == ["late"]


def test_what_windows_of_a_crashed_run_left_goes_with_the_next_whole_trace(project):
    project.file(
        test_it=HEAD
        + """
def test_it(profiler):
    profiler.options(continuous_dump=True, dump_period=0.01)
    for _ in range(2):
        with profiler.window():
            nd.dot(A, A)
    with profiler.window():
        os.abort()
"""
    )
    second, third, first = crash(project)
    assert second.name == first.name.replace(".trace", "-window2.trace")
    # Another test's, and one that another process is writing, are not this test's to remove.
    other = first.with_name(first.name.replace("test_it-", "test_it-window2-"))
    like = first.with_name(first.name.replace(".trace", "-window2-12345678.trace"))
    for path in (other, like):
        path.write_bytes(b"[]")
    project.file(test_it="def test_it(profiler): profiler(len, ())")
    with third.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        project.run()
    assert set(first.parent.glob("*.json")) == {first, third, other, like}
    project.run()
    assert set(first.parent.glob("*.json")) == {first, other, like}
    assert "iteration 1" in [event.name for event in profiler.load(first).events]


def test_a_trace_behind_a_symlink_stays_though_its_stream_found_no_folder(project):
    (project.path / "elsewhere").mkdir()
    (project.path / "results").symlink_to("elsewhere")
    project.file(
        test_it=HEAD
        + """
@pytest.mark.filterwarnings("ignore:continuous dump")
def test_it(profiler, request):
    traces = request.config.rootpath / "results" / "traces"
    profiler.options(continuous_dump=True, dump_period=1000)
    (traces / ".gitignore").unlink(missing_ok=True)
    traces.rmdir()
    with profiler.window():
        nd.dot(A, A)
    traces.mkdir()
"""
    )
    project.run()
    assert "dot" in [event["name"] for event in project.trace("elsewhere")["traceEvents"]]


NORMAL = (
    HEAD
    + """
import opbench
from numba import njit, prange
from opbench import lane_begin, lane_end

seen = []

def reference(x):
    seen.append(len(growing()))
    return 2 * x

@opbench.operator(flops=lambda x: x.size, reference=reference, lanes=6)
@njit(parallel=True)
def doubled(x, out, lanes):
    for piece in prange(6):
        lane_begin(lanes, piece)
        for i in range(len(x) * piece // 6, len(x) * (piece + 1) // 6):
            out[i] = 2 * x[i]
        lane_end(lanes, piece, len(x) // 6, 0)

def test_it(profiler):
    x, out = np.ones(60_000), np.empty(60_000)
    profiler(doubled, x, out, profiler.lanes(6))
    # It is timed after the profiled pass, of which nothing may be left.
    assert len(seen) > 5 and set(seen) == {0}
    with profiler.window():
        nd.dot(A, A)
    assert not growing()
"""
)


def test_after_a_normal_end_the_file_is_the_one_that_is_written_without(project, monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    project.ini("opbench_dump_period = 0.01")
    written = project.path / "written.json"
    project.file(
        test_it=NORMAL,
        conftest=f"""
from opbench import profiler as core
from opbench.plugin import fixture

class Kept:
    def merge(self, traces):
        # The windows as the recorder gave them, before any file is asked.
        trace = core.merge(traces)
        core.write(trace, {str(written)!r})
        return trace
    def __getattr__(self, name):
        return getattr(core, name)

fixture.profiler = Kept()
""",
    )
    benchmarks, _ = project.bench("--benchmark-only", "--opbench-continuous-dump")
    path = only_file(project)
    assert profiler.check(path) == []
    loaded = profiler.load_file(path)
    assert (loaded.growing, loaded.notes) == (False, ())
    document, whole = (json.loads(p.read_text("ascii")) for p in (path, written))
    origin = document["otherData"].pop("metadata")
    assert origin.pop("run")
    assert origin == {"test": "test_it.py::test_it"}
    del whole["otherData"]["metadata"]
    assert document == whole
    assert document["otherData"]["cost"]["worker_records"] == 3 * 6
    assert len(document["otherData"]["windows_ns"]) == 2
    names = [e["name"] for e in document["traceEvents"] if e.get("cat") == "iteration"]
    assert names == ["iteration 1", "iteration 2", "iteration 3", "iteration 0"]
    summary = benchmarks["test_it"]["extra_info"]["opbench"]
    assert summary["trace"] == path.relative_to(project.path).as_posix()
    assert summary["lanes"]["operators"][0]["count"] == 3
    assert summary["reference"]


def test_a_file_grows_in_the_profiled_pass_and_in_no_timed_round(project):
    project.file(
        test_it=HEAD
        + """
def test_it(profiler):
    seen = []
    profiler.options(continuous_dump=True)
    profiler.pedantic(nd.dot, setup=lambda: seen.append((len(growing()))) or ((A, A), {}), rounds=5)
    # The first call, the rounds, and four iterations, the second of which opens the recorder.
    assert seen == [0] + 5 * [0] + [0, 0, 1, 1]
    assert not growing()
"""
    )
    project.run("--benchmark-only")


def test_somebody_elses_window_does_not_grow(project):
    project.file(
        test_it=HEAD
        + """
def test_it(profiler):
    profiler.options(continuous_dump=True)
    loop = profiler.iterations(3, begin=2)
    next(loop)
    RECORDER.run("all", "other")
    assert not growing()
    RECORDER.stop("other")
    for _ in loop:
        assert len(growing()) == (RECORDER.state == "run")
    assert not growing()
"""
    )
    project.run()


def test_what_finds_no_room_in_memory_is_in_the_trace_and_in_the_figures(project):
    project.file(
        test_it=HEAD
        + """
def test_it(profiler, request):
    RECORDER.configure(capacity=40)
    try:
        profiler.options(continuous_dump=True, dump_period=0.01, iterations=6, begin=0)
        for i in profiler.iterations():
            for _ in range(20):
                start = RECORDER.clock()
                args = {"operator": "mine", "flop": 3, "bytes": 4, "inputs": [[2]], "dtype": "f"}
                args["iteration"] = i
                RECORDER.complete("mine", "imperative", start, RECORDER.clock(), args)
            RECORDER.instant(f"end {i}", "mark")
            in_file(next(iter(request.config.rootpath.glob("results/traces/*.json"))), f"end {i}")
        assert len(profiler.trace.events) > 40
    finally:
        RECORDER.configure()
"""
    )
    result = project.run("--opbench-mode=imperative")
    document = project.trace()
    mine = [event["name"] for event in document["traceEvents"] if event.get("cat") == "imperative"]
    assert mine == ["mine"] * 6 * 20
    assert document["otherData"]["dropped"] == 0
    assert "lost" not in result.stdout.str()
    assert profiler.check(only_file(project)) == []


def test_a_forked_child_leaves_the_file_to_its_parent(project):
    project.file(
        test_it=HEAD
        + """
def test_it(profiler, request):
    profiler.options(continuous_dump=True, dump_period=0.01)
    with profiler.window():
        lock, held = profiler._windows.growing._stream._lock, threading.Event()
        def hold():
            with lock:
                held.set()
                time.sleep(0.5)
        threading.Thread(target=hold, daemon=True).start()
        held.wait()
        child = os.fork()
        if child == 0:
            # As a multiprocessing child that profiles something of its own; the lock that a thread
            # held at the fork is held for ever here.
            signal.alarm(20)
            RECORDER.run("all", "child")
            RECORDER.instant("of the child", "mine")
            RECORDER.stop("child")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        RECORDER.instant("of the parent", "mine")
"""
    )
    project.run()
    loaded = profiler.load(only_file(project))
    marks = [event.name for event in loaded.events if event.category == "mine"]
    assert marks == ["of the parent"]


def test_a_folder_that_cannot_be_written_costs_the_trace_and_nothing_else(project):
    (project.path / "results").write_text("a file")
    project.file(test_it=NORMAL)
    result = project.run("--benchmark-only", "--opbench-continuous-dump")
    result.stdout.fnmatch_lines(["*results/traces cannot be written*", "*1 passed*"])


def test_a_folder_that_goes_away_in_a_window_costs_the_traces_and_no_time(project):
    project.file(
        test_it=HEAD
        + """
import shutil

def test_first(profiler, request):
    def kernel():
        nd.dot(A, A).wait_to_read()
        if RECORDER.recording and RECORDER.iteration == 1:
            in_file(file_of(request), "window of the profiler fixture of " + request.node.nodeid)
            shutil.rmtree(request.config.rootpath / "results" / "traces")
    profiler.options(continuous_dump=True, dump_period=0.01)
    profiler(kernel)

def test_second(profiler):
    profiler(nd.dot, A, A)
"""
    )
    benchmarks, result = project.bench("--benchmark-only")
    # What is timed is timed as ever, also after the loss, which is said where the trace would be.
    for name in ("test_first", "test_second"):
        assert benchmarks[name]["stats"]["rounds"] > 5
        assert benchmarks[name]["extra_info"]["opbench"]["trace"] is None
        result.stdout.fnmatch_lines([f"{name}: cannot write the trace to *"])
    assert not (project.path / "results" / "traces").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--opbench-dump-period=0"], "--opbench-dump-period must be a number of seconds, more"),
        (["--opbench-dump-period=soon"], "more than 0 and under 1e9, not 'soon'"),
        (["--opbench-dump-period=nan"], "under 1e9, not 'nan'"),
        (["-o", "opbench_dump_period=1e9"], "tox.ini: opbench_dump_period must be a number of"),
    ],
)
def test_a_period_that_is_none_is_refused_with_where_it_was_said(project, options, words):
    project.ini("")
    project.file(test_it="def test_it(): pass")
    result = project.run(*options, code=4)
    assert words in result.stderr.str()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("continuous_dump='yes'", "continuous_dump in the opbench marker of *must be True or Fa*"),
        ("dump_period=True", "dump_period in the opbench marker of *must be a number of seconds*"),
    ],
)
def test_a_marker_that_is_wrong_is_refused(project, given, words):
    project.file(
        test_it=f"""
        import pytest
        @pytest.mark.opbench({given})
        def test_it(profiler): pass
        """
    )
    project.run(code=1).stdout.fnmatch_lines([f"*{words}"])
