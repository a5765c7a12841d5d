"""The books of memory: alive bytes, alloc and free, and the executors' pools."""

from __future__ import annotations

import contextlib
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

from opbench import profiler
from opbench.profiler import RECORDER, aggregate
from opbench.runtime import cpu, nd, sym
from opbench.runtime.context import Context
from opbench.runtime.ledger import LEDGER, NEVER
from opbench.runtime.storage import Pool, empty

F4 = np.dtype("float32")


@pytest.fixture
def context():
    """A context that no other test uses."""
    return Context("cpu", 77)


class Entry:
    """What the ledger needs to know of an array, and no array."""

    name = ""
    window = NEVER

    def __init__(self, context, nbytes, operator=""):
        self.context = context
        self.nbytes = nbytes
        self.operator = operator


class Window:
    """A window in mode memory, and what it says about one context."""

    trace = None

    def named(self, name):
        return [event for event in self.trace.events if event.name == name]

    def counter(self, series, name="memory cpu(77)"):
        """The values of one series, in order."""
        return [event.args[series] for event in self.named(name)]

    def peaks(self):
        return self.counter("bytes", "memory peak cpu(77)")

    def changes(self):
        """Name, bytes, array number and origin of each alloc and free."""
        found = []
        for event in self.trace.events:
            if event.phase == "i" and event.args["context"] == "cpu(77)":
                args = event.args
                found.append((event.name, args["bytes"], args["array"], args.get("operator")))
        return found


@contextlib.contextmanager
def window(modes="memory"):
    result = Window()
    RECORDER.run(modes, "test")
    try:
        yield result
    finally:
        result.trace = RECORDER.stop("test")


def live(context):
    return LEDGER.live(context)


def test_each_alloc_and_free_says_how_much_of_what_by_whom(context):
    with window() as w:
        a = nd.zeros(10, context)
        b = nd.array(np.zeros((2, 5)), context)
        del a, b

    assert w.changes() == [
        ("alloc", 40, 1, "nd.zeros"),
        ("alloc", 80, 2, "nd.array"),
        ("free", -40, 1, "nd.zeros"),
        ("free", -80, 2, "nd.array"),
    ]


def test_live_bytes_return_to_the_baseline_when_all_arrays_have_died(context):
    before = nd.zeros(25, context)
    with window() as w:
        arrays = [nd.zeros(10, context) for _ in range(5)]
        x = nd.array(np.eye(4, dtype="f4"), context)
        y = sym.var("y")
        executor = sym.dot(y, y).bind(context, {"y": x})
        arrays += [executor.forward()[0], nd.dot(x, x)]
        nd.waitall()
        arrays.clear()
        del executor, x
        gc.collect()
        nd.waitall()

    (total,) = {sum(bytes_ for _, bytes_, _, _ in w.changes())}
    assert total == 0
    assert w.counter("live bytes")[-1] == 0
    assert max(w.counter("live bytes")) == w.peaks()[-1] == 5 * 40 + 64 + 2 * 64
    assert set(w.counter("earlier bytes")) == {100}
    assert live(context) == before.nbytes
    born = [number for name, _, number, _ in w.changes() if name == "alloc"]
    died = [number for name, _, number, _ in w.changes() if name == "free"]
    assert sorted(born) == sorted(died) == list(range(1, 9))


def test_arrays_from_before_the_window_are_its_baseline_and_not_its_allocations(context):
    before = nd.zeros(100, context)
    with window() as w:
        nd.zeros(1, context)
        del before
        nd.zeros(50, context)

    assert w.counter("live bytes") == [0, 4, 0, 0, 200, 0]
    assert w.counter("earlier bytes") == [400, 400, 400, 0, 0, 0]
    assert w.changes()[2] == ("free", -400, 0, "nd.zeros")


def test_the_counters_begin_where_the_window_does(context):
    with window() as w:
        first = RECORDER.clock()
        nd.zeros(1, context)

    assert w.trace.windows[0][0] <= w.named("memory cpu(77)")[0].start_ns <= first


def test_the_peak_is_over_the_baseline(context):
    before = nd.zeros(100, context)
    with window() as w:
        del before  # 400 bytes under it
        a = nd.zeros(150, context)  # 200 bytes over it
        del a
        nd.zeros(10, context)

    assert w.peaks() == [0, 200]
    (row,) = [r for r in aggregate(w.trace) if r.name == "memory peak cpu(77) bytes"]
    assert (row.max, row.unit) == (200, "bytes")


def test_each_window_has_its_own_baseline_and_numbers(context):
    with window():
        kept = nd.zeros(10, context)
    with window() as w:
        nd.zeros(1, context)
        del kept

    assert w.counter("live bytes") == [0, 4, 0, 0]
    assert w.counter("earlier bytes") == [40, 40, 40, 0]
    assert w.changes() == [
        ("alloc", 4, 1, "nd.zeros"),
        ("free", -4, 1, "nd.zeros"),
        ("free", -40, 0, "nd.zeros"),
    ]
    assert w.peaks() == [0, 4]


def test_what_changed_in_a_pause_is_in_the_counters_after_it(context):
    with window() as w:
        a = nd.zeros(10, context)
        RECORDER.pause()
        del a
        b = nd.zeros(100, context)
        RECORDER.resume()
        resumed = RECORDER.clock()

    assert [change[:3] for change in w.changes()] == [("alloc", 40, 1)]
    assert w.counter("live bytes") == [0, 40, 400]
    assert w.peaks() == [0, 40, 400]
    after = w.named("memory cpu(77)")[-1]
    assert w.trace.pauses[0][1] <= after.start_ns <= resumed
    assert b.nbytes == 400


def test_a_window_without_mode_memory_says_nothing_and_the_books_go_on(context):
    with window("imperative") as w:
        kept = nd.zeros(10, context)
    with window() as other:
        del kept

    assert w.changes() == w.named("memory cpu(77)") == []
    assert other.counter("earlier bytes") == [40, 0]


def test_a_result_is_its_operators_and_a_node_is_named(context):
    a = nd.ones((4, 4), context)
    x = sym.var("x")
    executor = sym.dot(sym.dot(x, x, name="inner"), x, name="outer").bind(context, {"x": a})
    with window() as w:
        executor.forward()[0].wait_to_read()
    instants = [event for event in w.trace.events if event.phase == "i"]

    assert [(e.name, e.args["operator"], e.args["name"]) for e in instants[:3]] == [
        ("alloc", "dot", "inner"),
        ("alloc", "dot", "outer"),
        ("free", "dot", "inner"),
    ]
    assert w.counter("live bytes") == [0, 64, 128, 64]


def test_a_scope_names_what_is_made_in_it_on_the_worker_too(context):
    a = nd.ones((4, 4), context)
    with window() as w:
        with profiler.scope("outer"), profiler.scope("inner"):
            nd.zeros(1, context)
            nd.dot(a, a)
        nd.zeros(1, context)
        nd.waitall()
    names = {(event.args["operator"], event.args.get("name")) for event in w.named("alloc")}

    assert names == {
        ("nd.zeros", "outer:inner:"),
        ("dot", "outer:inner:"),
        ("nd.zeros", None),
    }


def test_an_empty_array_is_freed_as_such(context):
    with window() as w:
        nd.zeros(0, context)

    assert [change[:2] for change in w.changes()] == [("alloc", 0), ("free", 0)]


def test_a_free_without_an_alloc_is_shown_and_not_clamped(context):
    entry = Entry(context, 8, "somebody")
    with window() as w:
        LEDGER.alloc(entry)
        LEDGER.free(entry)
        LEDGER.free(entry)
    LEDGER.alloc(entry)  # for the tests that follow

    assert w.counter("live bytes") == [0, 8, 0, -8]
    frees = w.named("free")
    assert [event.args.get("unmatched") for event in frees] == [None, True]


def test_an_alloc_that_was_never_freed_is_shown_when_it_comes_again(context):
    entry = Entry(context, 8, "somebody")
    with window() as w:
        LEDGER.alloc(entry)
        LEDGER.alloc(entry)
    LEDGER.free(entry)
    LEDGER.free(entry)

    assert [event.args.get("unmatched") for event in w.named("alloc")] == [None, True]


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
    dying = Entry(context, 4)
    LEDGER.alloc(dying)
    instant = RECORDER.instant

    def record(name, category, args):
        if name == "alloc":
            # As a finaliser would on this very thread, in the middle of the booking.
            LEDGER.free(dying)
            assert live(context) == 14
        instant(name, category, args)

    monkeypatch.setattr(RECORDER, "instant", record)
    entry = Entry(context, 10)
    with window() as w:
        LEDGER.alloc(entry)
        assert live(context) == 10
        LEDGER.free(entry)

    assert [change[:2] for change in w.changes()] == [("alloc", 10), ("free", -4), ("free", -10)]
    assert live(context) == 0


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
        gc.collect()  # a compilation leaves cycles of frames behind, the operator's among them

        assert pool() is None
        assert out.asnumpy().tolist() == np.eye(3).tolist()


def test_memory_outside_a_pool_is_freed_with_its_array(context):
    a = empty((3,), F4, context)
    watch = weakref.ref(a)
    del a

    assert watch() is None
    assert live(context) == 0
