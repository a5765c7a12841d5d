"""The books of memory: alive bytes, alloc and free, and the executors' pools."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

from opbench.profiler import RECORDER
from opbench.runtime import cpu, nd, sym
from opbench.runtime.context import Context
from opbench.runtime.storage import LEDGER, Ledger, Pool, empty

F4 = np.dtype("float32")


@pytest.fixture
def context():
    """A context that no other test uses."""
    return Context("cpu", 77)


@pytest.fixture
def record():
    traces = []
    RECORDER.run("memory", "test")

    def stop():
        traces.append(RECORDER.stop("test"))
        return traces[-1].events

    yield stop
    if RECORDER.state == "run":
        RECORDER.stop("test")


def live(context):
    return LEDGER._live.get(context, 0)


def counters(events):
    return [event.args["live bytes"] for event in events if event.phase == "C"]


def instants(events):
    return [(event.name, event.args["bytes"]) for event in events if event.phase == "i"]


def test_alloc_and_free(context, record):
    a = nd.zeros(10, context)
    b = nd.zeros((2, 5), context, "float64")
    del a
    del b
    events = record()

    assert instants(events) == [("alloc", 40), ("alloc", 80), ("free", -40), ("free", -80)]
    assert counters(events) == [40, 120, 80, 0]
    assert {event.name for event in events if event.phase == "C"} == {"memory cpu(77)"}
    assert {event.args["context"] for event in events if event.phase == "i"} == {"cpu(77)"}


def test_bytes_that_lived_before_the_window_are_in_the_counter(context):
    before = nd.zeros(100, context)
    RECORDER.run("memory", "test")
    try:
        nd.zeros(1, context)
        del before
    finally:
        events = RECORDER.stop("test").events

    assert counters(events) == [404, 400, 0]


def test_a_view_keeps_the_bytes_alive(context):
    view = np.asarray(nd.zeros(10, context))[2:]
    assert live(context) == 40

    del view
    assert live(context) == 0


def test_a_copy_is_the_callers_own(context):
    mine = nd.zeros(10, context).asnumpy()

    assert live(context) == 0
    assert mine.size == 10


def test_a_pickle_and_its_copy_are_booked(context):
    a = nd.zeros(10, context)
    restored = pickle.loads(pickle.dumps(a))  # noqa: S301 - bytes of our own
    assert (restored.context, live(context)) == (context, 80)

    del a, restored
    assert live(context) == 0


def test_results_and_intermediates_are_booked(context, record):
    a = nd.ones((4, 4), context)
    x = sym.var("x")
    executor = sym.dot(sym.dot(x, x), x).bind(context, {"x": a})
    executor.forward()[0].wait_to_read()
    events = record()

    assert instants(events) == [("alloc", 64), ("alloc", 64), ("alloc", 64), ("free", -64)]
    assert counters(events) == [64, 128, 192, 128]


def test_a_reference_cycle_is_booked_when_it_is_collected(context):
    a = nd.zeros(10, context)
    cycle = [a]
    cycle.append(cycle)
    del a, cycle
    gc.collect()

    assert live(context) == 0


def test_allocations_of_many_threads_add_up(context):
    def allocate():
        for _ in range(300):
            nd.zeros(10, context)

    threads = [threading.Thread(target=allocate) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert live(context) == 0


def test_a_free_while_the_books_are_being_written_is_booked_afterwards(context, monkeypatch):
    ledger = Ledger()
    seen = []

    def record(where, nbytes, live):
        seen.append((nbytes, live))
        if nbytes == 10:
            # As a finaliser would on this very thread, in the middle of the booking.
            ledger.change(context, -4)
            assert len(seen) == 1

    monkeypatch.setattr("opbench.runtime.storage._record", record)
    RECORDER.run("memory", "test")
    try:
        ledger.change(context, 10)
    finally:
        RECORDER.stop("test")

    assert seen == [(10, 10), (-4, 6)]


class TestPool:
    def test_a_block_comes_back_when_its_last_view_has_died(self, context):
        pool = Pool()
        a = pool.empty((2, 3), F4, context)
        address = a.__array_interface__["data"][0]
        view = a.T[1:]
        del a
        other = pool.empty((2, 3), F4, context)
        assert other.__array_interface__["data"][0] != address
        assert live(context) == 48

        del view
        again = pool.empty((3, 2), F4, context)
        assert again.__array_interface__["data"][0] == address

    def test_shapes_and_alignment(self, context):
        pool = Pool()
        for shape in ((), (0,), (0, 3), (5,), (2, 3, 4)):
            array = pool.empty(shape, F4, context)
            assert (array.shape, array.dtype) == (shape, F4)
            assert array.flags.c_contiguous
            assert array.flags.writeable
            if array.size:
                assert array.__array_interface__["data"][0] % 64 == 0

    def test_keeps_two_blocks_of_a_size(self, context):
        pool = Pool()
        arrays = [pool.empty((8,), F4, context) for _ in range(5)]
        arrays.clear()

        assert [len(blocks) for blocks in pool._free.values()] == [2]

    def test_dies_with_its_executor_though_a_result_lives_on(self):
        a = sym.var("a")
        executor = sym.dot(a, a).bind(cpu(), {"a": np.eye(3)})
        out = executor.forward()[0]
        out.wait_to_read()
        pool = weakref.ref(executor._pool)
        del executor
        nd.waitall()

        assert pool() is None
        assert out.asnumpy().tolist() == np.eye(3).tolist()


def test_memory_outside_a_pool_is_freed_with_its_array(context):
    a = empty((3,), F4, context)
    watch = weakref.ref(a)
    del a

    assert watch() is None
    assert live(context) == 0
