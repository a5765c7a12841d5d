"""Compiled kernels say which worker did what and when, at no cost in locks, and nothing is lost."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from llvmlite import ir
from numba import njit, prange
from numba.core.errors import TypingError

from opbench import kernels
from opbench.errors import ConfigError
from opbench.kernels import lane_begin, lane_calls, lane_end, lanes

ROOT = Path(__file__).parents[2]
WORKER, OS_THREAD, CPU_BEFORE, CPU_AFTER, BEGAN, ENDED, TAG, ITEMS, BYTES = range(9)

pytestmark = pytest.mark.skipif(
    bool(lanes.available()), reason="workers cannot be recorded on this system"
)


@njit
def pieces(indices, buffer):
    for index in indices:
        lane_begin(buffer, index)
        lane_end(buffer, index, 10 * index, 100 * index)


@njit
def tagged(buffer):
    lane_begin(buffer, 0)
    lane_end(buffer, 0, 1, 2, 3)
    lane_begin(buffer, 1)
    lane_end(buffer, 1, 4, 5, tag=-6)


@njit
def only(begin, end, buffer):
    if begin:
        lane_begin(buffer, 0)
    if end:
        lane_end(buffer, 0, 0, 0)


@njit
def nested(buffer):
    lane_begin(buffer, 0)
    lane_begin(buffer, 1)
    lane_end(buffer, 1, 0, 0)
    lane_end(buffer, 0, 0, 0)


def run_pieces(buffer, *indices):
    pieces(np.array(indices, np.int64), buffer)
    return lanes.taken(buffer)


# what a record is


def test_a_record_is_a_cache_line_and_begins_on_one():
    assert lanes.RECORD.itemsize == 64
    assert lanes.RECORD.names[:9] == lanes.FIELDS
    assert [lanes.buffer(n).ctypes.data % 64 for n in (1, 2, 3)] == [0, 0, 0]


def test_a_piece_is_recorded_in_the_recorders_clock_by_the_thread_that_ran_it():
    buffer = lanes.buffer(2)
    enter = time.perf_counter_ns()
    rows, lost = run_pieces(buffer, 0, 1)
    leave = time.perf_counter_ns()
    assert lost == 0
    first, second = rows
    assert enter <= first[BEGAN] <= first[ENDED] <= second[BEGAN] <= second[ENDED] <= leave
    assert [first[OS_THREAD], second[OS_THREAD]] == [threading.get_native_id()] * 2
    assert [(r[WORKER], r[TAG], r[ITEMS], r[BYTES]) for r in rows] == [
        (0, 0, 0, 0),
        (0, 1, 10, 100),
    ]
    cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else {-1}
    assert {r[at] for r in rows for at in (CPU_BEFORE, CPU_AFTER)} <= cpus


def test_a_tag_is_what_the_kernel_says_else_the_index():
    buffer = lanes.buffer(2)
    tagged(buffer)
    assert [row[TAG:] for row in lanes.taken(buffer).rows] == [(3, 1, 2), (-6, 4, 5)]
    assert [row[TAG] for row in run_pieces(lanes.buffer(9), 8, 3).rows] == [3, 8]


def test_a_piece_inside_another_is_recorded_inside_it():
    buffer = lanes.buffer(2)
    nested(buffer)
    outer, inner = lanes.taken(buffer).rows
    assert outer[BEGAN] <= inner[BEGAN] <= inner[ENDED] <= outer[ENDED]


def test_two_threads_in_turn_are_told_apart():
    buffer = lanes.buffer(2)
    run_pieces(buffer, 0)
    ids = []

    def other():
        ids.append(threading.get_native_id())
        run_pieces(buffer, 1)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert [row[OS_THREAD] for row in lanes.taken(buffer).rows] == [threading.get_native_id(), *ids]


# what is not recorded


@pytest.mark.parametrize(
    ("indices", "kept", "lost"),
    [
        ((0, 1, 2), [0, 1, 2], 0),
        ((0, 3), [0], 1),
        ((-1, 1), [1], 1),
        ((2**40, -(2**40)), [], 2),
        ((1, 1, 1), [1], 2),
    ],
)
def test_what_finds_no_place_is_counted(indices, kept, lost):
    rows, counted = run_pieces(lanes.buffer(3), *indices)
    assert [row[TAG] for row in rows] == kept
    assert counted == lost


@pytest.mark.parametrize(("begin", "end"), [(True, False), (False, True)])
def test_half_a_piece_is_counted(begin, end):
    buffer = lanes.buffer(1)
    only(begin, end, buffer)
    assert lanes.taken(buffer) == ([], 1)


def test_a_piece_that_began_again_and_did_not_end_is_no_record():
    buffer = lanes.buffer(1)
    only(True, True, buffer)
    only(True, False, buffer)
    assert lanes.taken(buffer) == ([], 2)


@pytest.mark.parametrize("kind", ["off", "foreign", "switched off"])
def test_a_buffer_that_is_off_stays_as_it_is(kind):
    buffer = lanes.OFF if kind == "off" else np.zeros(9, lanes.RECORD)
    if kind == "switched off":
        buffer = lanes.buffer(3)
        lanes.switch_off(buffer)
    before = buffer.tobytes()
    pieces(np.arange(5), buffer)
    assert buffer.tobytes() == before


def test_a_buffer_is_used_again_and_forgets():
    buffer = lanes.buffer(2)
    run_pieces(buffer, 0, 1, 1, 9)
    lanes.switch_off(buffer)
    assert len(lanes.taken(buffer).rows) == 2
    lanes.switch_on(buffer)
    assert lanes.taken(buffer) == ([], 0)
    rows, lost = run_pieces(buffer, 1)
    assert ([row[TAG] for row in rows], lost) == ([1], 0)


@pytest.mark.parametrize("count", [-1, 1.5, True, "3", None])
def test_a_buffer_of_no_number_of_records_is_refused(count):
    with pytest.raises(ConfigError, match=re.escape(f"{count!r} records: give a whole number")):
        lanes.buffer(count)


def test_a_buffer_for_none_is_empty():
    assert lanes.buffer(0) is lanes.OFF
    assert lanes.taken(lanes.OFF) == ([], 0)


@pytest.mark.parametrize(
    "given",
    [
        lambda: np.zeros(3),
        lambda: np.zeros(9, lanes.RECORD),
        lambda: lanes.buffer(4)[1:],
        lambda: lanes.buffer(4)[:-1],
        lambda: lanes.buffer(4)[::2],
        lambda: [1, 2],
    ],
    ids=["floats", "foreign", "tail", "head", "strided", "list"],
)
def test_another_array_is_no_buffer(given):
    given = given()
    with pytest.raises(ConfigError, match=r"no buffer for worker records.*pass it on whole"):
        lanes.taken(given)
    a = np.ones((600, 600), np.float32)
    with pytest.raises(ConfigError, match="no buffer for worker records"):
        kernels.dot(a, a, lanes=given)


def test_an_argument_of_the_wrong_type_is_refused_while_compiling():
    @njit
    def wrong_buffer(x):
        lane_begin(x, 0)

    @njit
    def wrong_index(x, i):
        lane_end(x, 0, i, 0)

    with pytest.raises(TypingError, match=r"lanes is of the type array\(float64.*profiler.lanes"):
        wrong_buffer(np.zeros(3))
    with pytest.raises(TypingError, match="items must be a whole number, and is of the type float"):
        wrong_index(lanes.OFF, 1.5)


def test_interpreted_code_records_nothing_and_says_so():
    lane_begin(lanes.OFF, 0)
    lane_end(lanes.OFF, 0, 1, 2)
    for call in (lambda b: lane_begin(b, 0), lambda b: lane_end(b, 0, 1, 2)):
        with pytest.raises(ConfigError, match=r"in compiled code only.*numba\.njit"):
            call(lanes.buffer(1))


def test_another_clock_is_refused(monkeypatch):
    class Info:
        implementation = "QueryPerformanceCounter()"

    monkeypatch.setattr(time, "get_clock_info", lambda name: Info)
    with pytest.raises(ConfigError, match=r"Linux and macOS.*QueryPerformanceCounter"):
        lanes.buffer(1)
    assert kernels.dot_records(((2000, 2000), (2000, 2000)), "float32") == 0
    assert lanes.record_ns.__wrapped__() is None


# how it is recorded


@njit
def many(count, buffer):
    for index in range(count):
        lane_begin(buffer, index)
        lane_end(buffer, index, index, index)


def test_recording_takes_no_lock_no_atomic_and_no_interpreter():
    many(1, lanes.OFF)
    code = many.inspect_llvm(many.signatures[0])
    start = code.index("define", code.index("target triple"))
    body = code[start : code.index("\n}", start)]
    called = set(re.findall(r'@"?([a-z]\w+)"?\(', body[body.index("\n") :]))
    # Nothing that counts references to the buffer either, which is what numba does for an array
    # that is passed to another function: workers that do wait for each other's cache line.
    assert called - {"gettid", "pthread_threadid_np"} in (
        {"clock_gettime", "sched_getcpu", "pthread_self"},
        {"clock_gettime_nsec_np", "pthread_self"},
    )
    for word in ("atomicrmw", "cmpxchg", "fence", " volatile "):
        assert word not in body


def test_the_clock_and_the_thread_of_macos_are_its_own():
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), []), "f")
    builder = ir.IRBuilder(function.append_basic_block())
    assert lane_calls.now(builder, "darwin").type == ir.IntType(64)
    assert lane_calls.thread(builder, "darwin").type == ir.IntType(32)
    builder.ret_void()
    text = str(module)
    assert 'call i64 @"clock_gettime_nsec_np"(i32 8)' in text
    assert '@"pthread_threadid_np"(i64 0, i64*' in text.replace("ptr", "i64*")


def test_the_price_of_a_record_is_found_once():
    price = lanes.record_ns()
    assert 0 < price < float("inf")
    assert lanes.record_ns() is price


# kernels of users, cached, under each threading layer

USERS = """
import sys, json, threading, time
import numpy as np
from numba import njit, prange, threading_layer
from opbench.kernels import lane_begin, lane_end, lanes

@njit(cache=True)
def alone(buffer):
    lane_begin(buffer, 0)
    lane_end(buffer, 0, 5, 6)

@njit(parallel=True, cache=True)
def halves(x, buffer):
    total = 0.0
    for piece in prange(4):
        lane_begin(buffer, piece)
        part = 0.0
        for i in range(len(x) * piece // 4, len(x) * (piece + 1) // 4):
            part += x[i]
        total += part
        lane_end(buffer, piece, len(x) // 4, 2 * len(x))
    return total

def main():
    alone(lanes.OFF)  # before any thread has started
    first = lanes.buffer(1)
    alone(first)
    x = np.ones(1 << 20)
    found = halves(x, lanes.OFF)
    buffer = lanes.buffer(4)
    enter = time.perf_counter_ns()
    assert halves(x, buffer) == found == len(x)
    leave = time.perf_counter_ns()
    rows, lost = lanes.taken(buffer)
    hits = [sum(f.stats.cache_hits.values()) for f in (alone, halves)]
    return {
        "layer": threading_layer(), "hits": hits, "alone": lanes.taken(first).rows[0][7:],
        "workers": [r[0] for r in rows], "threads": [r[1] for r in rows], "lost": lost,
        "inside": all(enter <= r[4] <= r[5] <= leave for r in rows),
        "tags": [r[6] for r in rows], "items": sum(r[7] for r in rows),
        "main": threading.get_native_id(), "signatures": len(halves.signatures),
    }
"""


def run_users(folder, layer):
    code = "import json, users; print(json.dumps(users.main()))"
    settings = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]),
        "NUMBA_CACHE_DIR": str(folder / "cache"),
        "NUMBA_THREADING_LAYER": layer,
        "NUMBA_NUM_THREADS": "2",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=settings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("layer", ["omp", "workqueue", "tbb"])
def test_a_users_cached_kernel_records_in_a_process_that_only_loads_it(tmp_path, layer):
    if layer == "tbb":
        try:
            importlib.import_module("numba.np.ufunc.tbbpool")
        except ImportError:
            pytest.skip("tbb is not installed")
    (tmp_path / "users.py").write_text(USERS)
    compiled, loaded = run_users(tmp_path, layer), run_users(tmp_path, layer)
    assert (compiled["hits"], loaded["hits"]) == ([0, 0], [1, 1])
    for found in (compiled, loaded):
        assert found["layer"] == layer
        assert found["signatures"] == 1
        assert (found["lost"], found["inside"], found["alone"]) == (0, True, [5, 6])
        assert (found["tags"], found["items"]) == ([0, 1, 2, 3], 1 << 20)
        assert set(found["workers"]) <= {0, 1}
        owners = {(w, t) for w, t in zip(found["workers"], found["threads"], strict=True)}
        assert len(owners) == len({t for _, t in owners}), "a thread with two numbers"
        if layer != "tbb":  # which may leave all to one
            assert found["workers"] == [0, 0, 1, 1]
        if layer == "omp":
            assert found["threads"][0] == found["main"]
        if layer == "workqueue":
            assert found["main"] not in found["threads"]


def test_without_the_compiler_a_kernel_runs_and_records_nothing(tmp_path):
    code = """
import numpy as np
from numba import njit
from opbench.errors import ConfigError
from opbench.kernels import lane_begin, lane_end, lanes
@njit
def kernel(buffer):
    lane_begin(buffer, 0)
    lane_end(buffer, 0, 1, 2)
    return 3
print(kernel(lanes.OFF), "NUMBA_DISABLE_JIT" in lanes.available())
"""
    settings = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=settings, capture_output=True, text=True, check=False
    )
    assert (done.stdout.split(), done.stderr) == (["3", "True"], "")


# dot


@pytest.fixture
def two_workers(monkeypatch):
    """Whatever this machine has: two workers for each product that is shared."""
    from opbench.kernels.dot import door, records

    if int(os.environ.get("NUMBA_NUM_THREADS", os.cpu_count() or 1)) < 2:
        pytest.skip("needs two threads")
    monkeypatch.setattr(door, "workers", lambda: 2)
    monkeypatch.setattr(records, "workers", lambda: 2)


SHARED = [
    ((700, 300), (300, 500)),
    ((1024, 1024), (1024, 1024)),
    ((64, 9000), (9000, 64)),
    ((1500, 1500), (1500,)),
    ((1000,), (1000, 2000)),
    ((900_000,), (900_000,)),
    ((1, 3000), (3000, 1000)),
    ((1000, 2500), (2500, 1)),
]


def flat(shapes):
    """Multiply-adds of a product."""
    (*rows, k), (_, *columns) = shapes
    return int(np.prod(rows) * k * np.prod(columns))


@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize("shapes", SHARED, ids=str)
def test_the_pieces_of_a_product_are_all_recorded_and_are_all_of_it(shapes, layout):
    generator = np.random.default_rng(1)
    a, b = (generator.random(shape, np.float32) for shape in shapes)
    if layout == "columns":
        a, b = np.asfortranarray(a), np.asfortranarray(b)
    most = kernels.dot_records(shapes, "float32")
    buffer = lanes.buffer(most)
    recorded = kernels.dot(a, b, lanes=buffer)
    assert np.array_equal(recorded, kernels.dot(a, b))
    rows, lost = lanes.taken(buffer)
    assert lost == 0
    assert 2 <= len(rows) <= most
    assert sum(row[ITEMS] for row in rows) == flat(shapes)
    assert [row[TAG] for row in rows] == list(range(len(rows)))
    assert all(row[BYTES] > 0 for row in rows)


@pytest.mark.usefixtures("two_workers")
def test_the_count_is_exact_for_products_of_plain_matrices():
    for shapes in SHARED[:3]:
        buffer = lanes.buffer(200)
        a, b = (np.ones(shape, np.float64) for shape in shapes)
        kernels.dot(a, b, lanes=buffer)
        transposed = [tuple(reversed(shape)) for shape in reversed(shapes)]
        counts = [kernels.dot_records(s, "float64") for s in (shapes, transposed)]
        assert len(lanes.taken(buffer).rows) <= max(counts) == counts[0]


@pytest.mark.usefixtures("two_workers")
def test_a_product_with_too_small_a_buffer_is_right_and_says_what_is_lost():
    a = np.ones((1024, 1024), np.float32)
    buffer = lanes.buffer(3)
    assert (kernels.dot(a, a, lanes=buffer) == 1024).all()
    rows, lost = lanes.taken(buffer)
    assert len(rows) == 3
    assert len(rows) + lost == kernels.dot_records((a.shape, a.shape), "float32")


@pytest.mark.parametrize(
    "shapes", [((3, 3), (3, 3)), ((64, 64), (64, 64)), ((9,), (9,)), ((0, 5), (5, 0))]
)
def test_a_product_of_the_calling_thread_records_nothing(shapes):
    a, b = (np.ones(shape, np.float32) for shape in shapes)
    buffer = lanes.buffer(8)
    for _ in range(3):
        kernels.dot(a, b, lanes=buffer)
    assert lanes.taken(buffer) == ([], 0)
    assert kernels.dot_records(shapes, "float32") == 0


def test_counting_the_records_of_a_small_product_starts_no_threads():
    code = """
from numba.np.ufunc import parallel
from opbench import kernels
assert kernels.dot_records(((8, 8), (8, 8)), "float32") == 0
print(parallel._is_initialized)
"""
    settings = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=settings, capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("False", "")


@njit(parallel=True)
def every(buffer, count):
    for piece in prange(count):
        lane_begin(buffer, piece)
        lane_end(buffer, piece, piece, 0)


def test_no_record_of_many_workers_is_lost():
    buffer = lanes.buffer(50_000)
    every(buffer, 50_000)
    rows, lost = lanes.taken(buffer)
    assert lost == 0
    assert [row[ITEMS] for row in rows] == list(range(50_000))


def test_the_losses_of_all_workers_add_up():
    buffer = lanes.buffer(10)
    every(buffer, 50_000)
    rows, lost = lanes.taken(buffer)
    assert (len(rows), lost) == (10, 49_990)
