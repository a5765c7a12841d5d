"""Garbage collections and compilations: slices of their own, and counted against the operator."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
from collections import defaultdict
from types import SimpleNamespace

import numba
import pytest
from numba.core import event as numba_event

from opbench.probes import INTERRUPTIONS, Source, attach
from opbench.probes.collector import CollectorSlices
from opbench.probes.compiles import CompileSlices
from opbench.profiler import RECORDER, Profiler, aggregate, check, encode


class Clock:
    def __init__(self):
        self.now = 0

    def __call__(self):
        self.now += 10
        return self.now


@pytest.fixture(autouse=True)
def no_collection_by_chance():
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def recorder():
    return Profiler(clock=Clock(), price=lambda: 0.0)


class Events:
    """Numba's event module, with the compilations under the test's control."""

    class Listener:
        pass

    def __init__(self):
        self.listeners = defaultdict(list)

    def register(self, kind, listener):
        assert isinstance(listener, self.Listener)
        self.listeners[kind].append(listener)

    def unregister(self, kind, listener):
        self.listeners[kind].remove(listener)

    def start(self, function=None, args=(), failed=False):
        data = {"dispatcher": SimpleNamespace(py_func=function), "args": args}
        event = SimpleNamespace(data=data, _exc_details=None)
        for listener in self.listeners["numba:compile"]:
            listener.on_start(event)
        return event

    def end(self, event, error=None):
        event._exc_details = error
        for listener in self.listeners["numba:compile"]:
            listener.on_end(event)


def source(events):
    return Source(modules={"numba.core.event": events} if events else {})


def kernel():
    """Something to be compiled."""


class TestCollector:
    def test_a_collection_is_a_slice_that_says_what_it_collected(self, recorder):
        recorder.add_listener(CollectorSlices(recorder))
        recorder.run("none", "test")
        cycle = []
        cycle.append(cycle)
        del cycle
        gc.collect(1)
        (event,) = recorder.stop("test").events

        assert (event.name, event.category, event.phase) == ("gc generation 1", "gc", "X")
        assert event.duration_ns == 10
        assert event.tid == threading.get_native_id()
        assert event.args["collected"] >= 1
        assert event.args["generation"] == 1

    def test_it_stands_on_the_thread_that_it_held_up(self, recorder):
        recorder.add_listener(CollectorSlices(recorder))
        recorder.run("none", "test")
        thread = threading.Thread(target=gc.collect)
        thread.start()
        thread.join()
        (event,) = recorder.stop("test").events

        assert event.tid != threading.get_native_id()

    def test_nothing_is_hooked_while_no_window_is_open(self, recorder):
        before = list(gc.callbacks)
        recorder.add_listener(CollectorSlices(recorder))
        assert gc.callbacks == before

        recorder.run("none", "test")
        assert len(gc.callbacks) == len(before) + 1
        recorder.pause()
        recorder.stop("test")
        assert gc.callbacks == before

    def test_one_that_was_under_way_when_the_window_opened_is_left_out(self, recorder):
        recorder.add_listener(CollectorSlices(recorder))
        recorder.run("none", "test")
        gc.callbacks[-1]("stop", {"generation": 2, "collected": 0, "uncollectable": 0})

        assert recorder.stop("test").events == ()

    def test_one_in_a_pause_is_left_out(self, recorder):
        recorder.add_listener(CollectorSlices(recorder))
        recorder.run("none", "test")
        recorder.pause()
        gc.collect()
        recorder.resume()

        assert recorder.stop("test").events == ()


class TestCompiles:
    def test_a_compilation_is_a_slice_with_function_and_signature(self, recorder):
        events = Events()
        recorder.add_listener(CompileSlices(recorder, source(events)))
        recorder.run("none", "test")
        event = events.start(kernel, ("float32", "int64"))
        events.end(event)
        (slice_,) = recorder.stop("test").events

        assert (slice_.name, slice_.category, slice_.duration_ns) == (
            "compile kernel",
            "compile",
            10,
        )
        assert slice_.args == {
            "function": f"{__name__}.kernel",
            "signature": "(float32, int64)",
            "iteration": None,
        }

    def test_the_callees_compilation_nests_in_the_callers(self, recorder):
        events = Events()
        recorder.add_listener(CompileSlices(recorder, source(events)))
        recorder.run("none", "test")
        outer, inner = events.start(kernel), events.start(None)
        events.end(inner)
        events.end(outer)
        first, second = recorder.stop("test").events

        assert (first.name, second.name) == ("compile kernel", "compile a function")
        assert first.start_ns < second.start_ns
        assert second.end_ns < first.end_ns

    def test_one_that_fails_says_so(self, recorder):
        events = Events()
        recorder.add_listener(CompileSlices(recorder, source(events)))
        recorder.run("none", "test")
        events.end(events.start(kernel), error=(TypeError, TypeError(), None))
        (slice_,) = recorder.stop("test").events

        assert "error" in slice_.args["failed"]

    def test_two_threads_are_kept_apart(self, recorder):
        events = Events()
        recorder.add_listener(CompileSlices(recorder, source(events)))
        recorder.run("none", "test")
        mine = events.start(kernel)
        other = threading.Thread(target=lambda: events.end(events.start(kernel)))
        other.start()
        other.join()
        events.end(mine)
        trace = recorder.stop("test")

        assert sorted(event.duration_ns for event in trace.events) == [10, 30]
        assert len({event.tid for event in trace.events}) == 2

    def test_nothing_is_registered_while_no_window_is_open(self, recorder):
        events = Events()
        recorder.add_listener(CompileSlices(recorder, source(events)))
        assert not events.listeners["numba:compile"]
        for _ in range(2):
            recorder.run("none", "test")
            assert len(events.listeners["numba:compile"]) == 1
            recorder.stop("test")
            assert not events.listeners["numba:compile"]

    def test_a_numba_that_was_loaded_inside_the_window_is_heard_from_the_next_iteration_on(
        self, recorder
    ):
        modules, events = {}, Events()
        recorder.add_listener(CompileSlices(recorder, Source(modules=modules)))
        recorder.run("none", "test")
        modules["numba.core.event"] = events
        recorder.pause()
        recorder.resume()
        events.end(events.start(kernel))

        assert len(recorder.stop("test").events) == 1
        assert not events.listeners["numba:compile"]

    def test_somebody_who_cleared_numbas_list_is_no_error(self, recorder):
        events = Events()
        recorder.add_listener(CompileSlices(recorder, source(events)))
        recorder.run("none", "test")
        events.listeners.clear()
        recorder.stop("test")

    def test_this_numba_is_heard_and_a_failure_of_its_told(self):
        @numba.njit
        def good(x):
            return x + 1

        @numba.njit
        def bad(x):
            return x.nothing_of_the_kind

        registered = len(numba_event._registered["numba:compile"])
        RECORDER.run("none", "test")
        try:
            good(3)
            good(3)
            with pytest.raises(numba.TypingError):
                bad(3)
        finally:
            trace = RECORDER.stop("test")
        slices = [event for event in trace.events if event.category == "compile"]

        assert [event.name for event in slices] == ["compile good", "compile bad"]
        assert slices[0].args["signature"] == "(int64)"
        assert slices[0].args["function"].endswith("<locals>.good")
        assert ["failed" in event.args for event in slices] == [False, True]
        assert len(numba_event._registered["numba:compile"]) == registered


class TestSums:
    def test_what_is_inside_is_not_counted_twice(self):
        before = INTERRUPTIONS.so_far
        outer = INTERRUPTIONS.so_far
        inner = INTERRUPTIONS.so_far
        INTERRUPTIONS.collected(5, INTERRUPTIONS.so_far)
        INTERRUPTIONS.compiled(30, inner)
        INTERRUPTIONS.compiled(100, outer)

        assert INTERRUPTIONS.since(before) == {"compile_ns": 95, "gc_ns": 5}

    def test_an_undisturbed_stretch_says_nothing(self):
        INTERRUPTIONS.collected(5, INTERRUPTIONS.so_far)

        assert INTERRUPTIONS.since(INTERRUPTIONS.so_far) == {}

    def test_each_thread_has_its_own(self):
        before = INTERRUPTIONS.so_far
        other = threading.Thread(target=lambda: INTERRUPTIONS.collected(5, INTERRUPTIONS.so_far))
        other.start()
        other.join()

        assert INTERRUPTIONS.since(before) == {}


class TestInsideAnOperator:
    def run(self, kernel):
        from opbench.runtime import cpu, nd
        from opbench.runtime.program import Program, Step, launch

        a = nd.ones((2, 2))
        step = Step("mine", kernel, (0,), 1, (2, 2), a.dtype, (), {"operator": "mine"})
        program = Program((step,), 2, ((1, (2, 2), a.dtype),))
        RECORDER.run("imperative", "test")
        try:
            launch(program, [a], cpu(), 2)[0].wait_to_read()
        finally:
            self.trace = RECORDER.stop("test")
        (operator,) = self.named("imperative")
        return operator

    def named(self, category):
        return [event for event in self.trace.events if event.category == category]

    def test_a_collection_and_a_compilation_are_told_apart_from_its_own_time(self):
        def kernel(x, out):
            @numba.njit
            def fresh(x):
                return x + 1

            gc.collect()
            fresh(1)

        operator = self.run(kernel)
        (collection,), (compilation,) = self.named("gc"), self.named("compile")

        assert operator.args["gc_ns"] == collection.duration_ns
        assert operator.args["compile_ns"] == compilation.duration_ns
        for inside in (collection, compilation):
            assert inside.tid == operator.tid
            assert operator.start_ns <= inside.start_ns
            assert inside.end_ns <= operator.end_ns
        (row,) = [row for row in aggregate(self.trace) if row.name == "mine"]
        own = operator.duration_ns - collection.duration_ns - compilation.duration_ns
        assert row.self_total == own
        assert check(json.loads("".join(encode(self.trace)))) == []

    def test_an_undisturbed_operator_says_nothing(self):
        operator = self.run(lambda x, out: None)

        assert not {"gc_ns", "compile_ns"} & set(operator.args)

    def test_a_collection_before_it_is_not_its_own(self):
        RECORDER.run("none", "test")
        gc.collect()
        RECORDER.stop("test")
        operator = self.run(lambda x, out: None)

        assert "gc_ns" not in operator.args


def test_the_probes_of_the_processs_recorder_are_attached_once():
    assert attach() is attach(RECORDER)


def test_a_window_that_was_open_before_the_probes_came_is_heard():
    program = """
import gc
from opbench.profiler import RECORDER
RECORDER.run("none", "test")
import opbench.probes
gc.collect()
print([event.category for event in RECORDER.stop("test").events])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "['gc']\n"


def test_the_room_loads_nothing_heavy_even_while_a_window_is_open():
    program = """
import sys
import opbench.plugin, opbench.probes
from opbench.profiler import RECORDER
RECORDER.run("all", "test")
RECORDER.stop("test")
print(sorted({"numba", "numpy", "scipy", "psutil"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_a_forked_child_hears_nothing_any_more():
    program = """
import gc, os
import opbench.probes
from opbench.profiler import RECORDER
before = list(gc.callbacks)
RECORDER.run("none", "test")
child = os.fork()
if child == 0:
    os._exit(0 if gc.callbacks == before else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(gc.callbacks) - len(before))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "0 1\n"
