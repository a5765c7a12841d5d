"""A user's kernel shows its workers: in the profiled pass, and in no timed round."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from opbench import profiler

pytest_plugins = ["pytester"]

PAGE = Path(__file__).parents[2] / "docs" / "lanes.md"
HEAD = """
import numpy as np
import pytest
from numba import njit, prange
from opbench import kernels, nd
from opbench.kernels import lane_begin, lane_end, lanes

@njit(parallel=True)
def fill(out, buffer):
    for piece in prange(6):
        lane_begin(buffer, piece)
        for i in range(len(out) * piece // 6, len(out) * (piece + 1) // 6):
            out[i] = i
        lane_end(buffer, piece, len(out) // 6, 8 * len(out) // 6)
    return out
"""


def events(trace, **wanted):
    return [
        event
        for event in trace["traceEvents"]
        if all(event.get(key) == value for key, value in wanted.items())
    ]


def pieces(trace):
    return events(trace, cat="worker", ph="X")


def stored(benchmarks, name):
    return benchmarks[name]["extra_info"]["opbench"]


def test_each_recorded_call_shows_its_pieces_and_how_they_were_shared(project, monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    project.file(
        test_fill=HEAD
        + """
def test_fill(profiler):
    profiler.options(iterations=4, begin=1, end=3)
    profiler(fill, np.empty(60_000), profiler.lanes(6))
"""
    )
    benchmarks, result = project.bench("--benchmark-only")
    assert "lost" not in result.stdout.str()
    trace = project.trace()
    assert [event["args"]["tag"] for event in pieces(trace)].count(5) == 2
    assert len(pieces(trace)) == 2 * 6
    assert sum(event["args"]["items"] for event in pieces(trace)) == 2 * 60_000
    assert {event["name"] for event in pieces(trace)} == {"fill"}
    calls = events(trace, cat="call")
    assert [call["args"]["iteration"] for call in calls] == [1, 2]
    for call in calls:
        assert call["args"]["workers_asked"] == 2
        assert len(call["args"]["busy_ns"]) == call["args"]["workers"]
        inside = [p for p in pieces(trace) if call["ts"] <= p["ts"] < call["ts"] + call["dur"]]
        assert len(inside) == 6
    (row,) = stored(benchmarks, "test_fill")["lanes"]["operators"]
    assert (row["name"], row["category"], row["count"], row["asked"]) == ("fill", "call", 2, 2)
    assert row["imbalance"] == stored(benchmarks, "test_fill")["lanes"]["imbalance"] >= 1
    assert trace["otherData"]["cost"]["worker_records"] == 12
    assert trace["otherData"]["cost"]["worker_record_ns"] > 0
    assert profiler.check(next(project.path.glob("results/traces/*.json"))) == []


def test_the_kernel_is_compiled_once_and_records_in_no_timed_round(project):
    project.file(
        test_fill=HEAD
        + """
states = []

def call(out, buffer):
    states.append(int(buffer["start"].astype(bool).sum()))
    return fill(out, buffer)

def test_fill(profiler):
    buffer = profiler.lanes(6)
    profiler(call, np.empty(600), buffer)
    assert len(fill.signatures) == 1
    # Before each call: nothing in any of the timed ones, and nothing left over in the others.
    assert set(states) == {0}
    assert int(buffer["start"].astype(bool).sum()) == 6
"""
    )
    project.bench("--benchmark-only")
    assert len(pieces(project.trace())) == 3 * 6


@pytest.mark.parametrize("way", ["pedantic", "setup", "wrapped", "keyword"])
def test_a_buffer_reaches_the_kernel_on_any_way(project, way):
    body = {
        "pedantic": "profiler.pedantic(fill, (np.empty(600), buffer), rounds=2)",
        "setup": "profiler.pedantic(fill, setup=lambda: ((np.empty(600), buffer), {}), rounds=2)",
        "wrapped": "profiler(lambda: fill(np.empty(600), buffer))",
        "keyword": "profiler(fill, np.empty(600), buffer=buffer)",
    }[way]
    project.file(
        test_fill=f"{HEAD}\ndef test_fill(profiler):\n    buffer = profiler.lanes(6)\n    {body}\n"
    )
    project.bench("--benchmark-only")
    assert len(pieces(project.trace())) == 3 * 6


def test_a_buffer_that_is_too_small_and_one_that_nobody_writes_to_are_said(project):
    project.file(
        test_fill=HEAD
        + """
def test_small(profiler):
    profiler(fill, np.empty(600), profiler.lanes(4))

def test_silent(profiler):
    profiler.lanes(4)
    profiler(sum, [1])
"""
    )
    _, result = project.bench("--benchmark-only")
    result.stdout.fnmatch_lines(
        [
            "*test_small: fill: 6 worker records were lost, its buffer is too small",
            "*test_silent: no worker wrote to profiler.lanes(...): does the kernel call*",
        ]
    )


def test_the_verdict_of_most_calls_is_a_note(project, monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    project.file(
        test_fill=HEAD
        + """
@njit
def alone(out, buffer, times):
    for piece in range(6):
        lane_begin(buffer, piece)
        for _ in range(times):
            for i in range(len(out)):
                out[i] = np.sin(out[i] + 1)
        lane_end(buffer, piece, 1, 1)

def test_long(profiler):
    profiler(alone, np.ones(1000), profiler.lanes(6), 200)

def test_short(profiler):
    profiler(alone, np.ones(1000), profiler.lanes(6), 0)
"""
    )
    benchmarks, result = project.bench("--benchmark-only")
    noted = [line for line in result.outlines if "fewer workers than asked" in line]
    assert [" ".join(line.split()) for line in noted] == [
        "test_long: alone: fewer workers than asked in 3 of 3 profiled calls"
    ]
    (row,) = stored(benchmarks, "test_long")["lanes"]["operators"]
    assert row["verdicts"] == {"fewer workers than asked": 3}
    (row,) = stored(benchmarks, "test_short")["lanes"]["operators"]
    assert (row["asked"], row["workers"], row["verdicts"]) == (2, 1, {})


def test_dot_shows_its_workers_in_all_three_forms_without_being_asked(project, monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    project.file(
        test_dot=HEAD
        + """
from opbench import cpu, sym
A = np.ones((600, 600), np.float32)

def test_kernel(profiler):
    profiler(kernels.dot, A, A, out=np.empty_like(A))

def test_nd(profiler):
    a = nd.array(A)
    profiler(nd.dot, a, a)

def test_sym(profiler):
    graph = sym.dot(sym.var("a"), sym.var("b"))
    profiler(graph.bind(cpu(), {"a": A, "b": A}).forward)

def test_small(profiler):
    profiler(kernels.dot, A[:4, :4], A[:4, :4])
"""
    )
    benchmarks, _ = project.bench("--benchmark-only", "--opbench-mode=all")
    for name, category in (("kernel", "call"), ("nd", "imperative"), ("sym", "symbolic")):
        summary = stored(benchmarks, f"test_{name}")
        trace = profiler.read(project.path / summary["trace"])
        found = [e for e in events(trace, cat=category, ph="X") if e["name"] == "dot"]
        assert len(found) == 3
        assert all(e["args"]["workers_asked"] == 2 for e in found)
        # Each multiply-add of each product was recorded as somebody's.
        assert sum(e["args"]["items"] for e in pieces(trace)) == 3 * 600**3
        assert [row["category"] for row in summary["lanes"]["operators"]] == [category]
    small = stored(benchmarks, "test_small")
    assert "lanes" not in small
    assert pieces(profiler.read(project.path / small["trace"])) == []


def test_a_users_operator_shows_its_workers_also_from_nd(project):
    project.file(
        test_op=HEAD
        + """
import opbench

@opbench.operator(flops=0, reference=lambda x: x.copy(), lanes=lambda x: 5)
@njit(parallel=True)
def kept(x, out, lanes):
    for piece in prange(5):
        lane_begin(lanes, piece)
        for i in range(len(x) * piece // 5, len(x) * (piece + 1) // 5):
            out[i] = x[i]
        lane_end(lanes, piece, len(x) // 5, 0)
    return out

def test_kernel(profiler):
    profiler(kept, np.ones(500), np.empty(500), profiler.lanes(5))

def test_nd(profiler):
    profiler(nd.kept, nd.array(np.ones(500)))
"""
    )
    benchmarks, _ = project.bench("--benchmark-only")
    for name in ("test_kernel", "test_nd"):
        trace = profiler.read(project.path / stored(benchmarks, name)["trace"])
        assert len(pieces(trace)) == 3 * 5
        told = [e for e in events(trace, ph="X") if "workers_asked" in e.get("args", {})]
        assert [(e["name"], e["cat"]) for e in told] == [("kept", "imperative")] * 3


def test_the_two_functions_come_from_the_package_itself_also_into_a_cached_kernel(project):
    project.file(
        test_fill="""
import numpy as np
import opbench
from numba import njit
from opbench import lane_begin, lane_end

@njit(cache=True)
def fill(out, lanes):
    lane_begin(lanes, 0)
    out[:] = 1
    lane_end(lanes, 0, out.size, 8, 7)
    opbench.lane_begin(lanes, 1)
    opbench.lane_end(lanes, 1, 0, 0)

def test_fill(profiler):
    profiler(fill, np.empty(3), profiler.lanes(2))
    print("cache hits", sum(fill.stats.cache_hits.values()))
"""
    )
    for hits in (0, 1):
        _, result = project.bench("--benchmark-only", "-s")
        result.stdout.fnmatch_lines([f"*cache hits {hits}*"])
        assert [p["args"]["tag"] for p in pieces(project.trace())] == [7, 1] * 3


def test_without_the_compiler_a_kernel_runs_and_records_nothing(project, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    project.file(
        test_fill="""
import numpy as np
from numba import njit
from opbench.kernels import lane_begin, lane_end

@njit
def fill(out, lanes):
    lane_begin(lanes, 0)
    out[:] = 1
    lane_end(lanes, 0, 1, 1)
    return out

def test_fill(profiler):
    assert profiler(fill, np.empty(3), profiler.lanes(1)).tolist() == [1, 1, 1]
"""
    )
    project.bench("--benchmark-only")
    assert pieces(project.trace()) == []


def test_a_number_of_records_that_is_none_is_refused(project):
    project.file(test_fill="def test_fill(profiler):\n    profiler.lanes(-1)\n")
    result = project.run("--benchmark-only", code=1)
    result.stdout.fnmatch_lines(["*ConfigError: a buffer for -1 records: give a whole number*"])


def test_the_page_on_lanes_shows_kernels_that_run(project):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    before, after, script = blocks
    imports = "import numpy as np\nfrom numba import njit, prange\n"
    project.file(test_before=imports + before, test_after=imports + after)
    project.bench("--benchmark-only")
    with_lanes, without = (len(pieces(trace)) for trace in project.traces())
    assert {with_lanes, without} == {0, 3 * 16}
    kernel = after.partition("def test_total")[0]
    (project.path / "program.py").write_text(imports + kernel + script)
    subprocess.run([sys.executable, "program.py"], cwd=project.path, check=True)
    assert len(pieces(profiler.read(project.path / "total.trace.json"))) == 16
    added = set(after.splitlines()) - set(before.splitlines())
    assert len(added) < 15
