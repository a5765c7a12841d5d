"""The resident set, and what tracemalloc sees."""

from __future__ import annotations

import gc
import os
import threading
import tracemalloc

import numba
import numpy as np
import pytest

from opbench.probes import Source, track_python_memory
from opbench.probes.around import AROUND
from opbench.probes.memory import INTERVAL_NS, PythonMemory, ResidentMemory
from opbench.profiler import RECORDER, Profiler

MIB = 1 << 20


class Clock:
    now = 0

    def __call__(self):
        self.now += 1
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def recorder(clock):
    return Profiler(clock=clock, price=lambda: 0.0)


def values(trace, name, series="bytes"):
    return [event.args[series] for event in trace.events if event.name == name]


class TestResident:
    def probe(self, recorder, *readings):
        left = iter(readings)
        probe = ResidentMemory(recorder, Source(resident=lambda: next(left)))
        recorder.add_listener(probe)
        return probe

    def test_it_is_read_at_the_opening_and_after_each_pause(self, recorder):
        self.probe(recorder, 100, 200)
        recorder.run("memory", "test")
        recorder.pause()
        recorder.resume()

        assert values(recorder.stop("test"), "memory resident") == [100, 200]

    def test_a_sample_is_taken_at_most_every_5_ms(self, recorder, clock):
        probe = self.probe(recorder, 1, 2, 3)
        recorder.run("memory", "test")
        probe.sample()
        clock.now += INTERVAL_NS
        probe.sample()
        probe.sample()

        assert values(recorder.stop("test"), "memory resident") == [1, 2]

    def test_in_another_mode_it_is_not_read(self, recorder):
        probe = self.probe(recorder)
        recorder.run("symbolic+api", "test")
        probe.sample()

        assert recorder.stop("test").events == ()

    def test_a_platform_that_does_not_tell_has_no_counter(self, recorder):
        self.probe(recorder, None)
        recorder.run("memory", "test")

        assert recorder.stop("test").events == ()

    @pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="Linux only")  # noqa: PTH110 - at import
    def test_this_process_grows_by_what_it_touches(self):
        read = Source().resident
        before = read()
        block = np.ones(64 * MIB, dtype=np.uint8)
        grown = read() - before

        assert 60 * MIB < grown < 80 * MIB
        assert block[-1] == 1

    def test_the_last_value_is_read_before_the_window_closes(self):
        RECORDER.run("memory", "test")
        first = RECORDER.clock()
        trace = RECORDER.stop("test")

        times = [event.start_ns for event in trace.events if event.name == "memory resident"]
        assert times[0] <= first <= times[-1]


@pytest.fixture
def python(recorder):
    probe = PythonMemory(recorder)
    probe.asked = True
    recorder.add_listener(probe)
    gc.disable()
    yield probe
    gc.enable()
    assert not tracemalloc.is_tracing()


def about(size):
    """A size, and what the interpreter allocates and frees beside it."""
    return pytest.approx(size, abs=50_000)


def call(work):
    """What the runtime does around an operator; its args."""
    entered = AROUND.enter("mine")
    kept = work()
    return AROUND.leave(entered), kept


class TestPython:
    def test_an_operators_peak_and_what_it_leaves(self, recorder, python):
        recorder.run("memory", "test")
        args, _ = call(lambda: (bytearray(3 * MIB), None)[1])
        held, kept = call(lambda: bytearray(2 * MIB))
        again, _ = call(lambda: None)
        trace = recorder.stop("test")

        assert (args["python_bytes"], args["python_peak_bytes"]) == (about(0), about(3 * MIB))
        assert held["python_bytes"] == about(2 * MIB)
        assert again["python_peak_bytes"] == about(0)
        live = values(trace, "memory python", "live bytes")
        assert (live[0], live[-1]) == (about(0), about(2 * MIB))
        peaks = values(trace, "memory peak python")
        assert peaks == sorted(peaks)
        assert peaks[-1] == about(3 * MIB)
        assert len(kept) == 2 * MIB

    def test_the_outer_call_knows_the_peak_of_the_inner_one(self, recorder, python):
        recorder.run("memory", "test")
        entered = AROUND.enter("outer")
        call(lambda: (bytearray(3 * MIB), None)[1])
        outer = AROUND.leave(entered)
        recorder.stop("test")

        assert outer["python_peak_bytes"] == about(3 * MIB)

    def test_arrays_of_compiled_code_and_of_numpy_are_seen(self, recorder, python):
        @numba.njit
        def inside(n):
            block = np.ones(n)
            return block.sum()

        inside(10)
        recorder.run("memory", "test")
        compiled, _ = call(lambda: inside(MIB))
        numpy, _ = call(lambda: np.ones(MIB).sum())
        recorder.stop("test")

        for args in (compiled, numpy):
            assert args["python_peak_bytes"] == about(8 * MIB)
            assert args["python_bytes"] == about(0)

    def test_it_is_off_unless_asked_and_in_other_modes(self, recorder, python):
        recorder.run("symbolic", "test")
        assert (AROUND.hooks, tracemalloc.is_tracing()) == ((), False)
        recorder.stop("test")
        python.asked = False
        recorder.run("memory", "test")
        assert (AROUND.hooks, tracemalloc.is_tracing()) == ((), False)

        assert recorder.stop("test").events == ()

    def test_a_session_that_traces_already_traces_on_and_keeps_its_peak(self, recorder, python):
        tracemalloc.start()
        try:
            del (block := [bytearray(5 * MIB)])[0]
            recorder.run("memory", "test")
            args, kept = call(lambda: bytearray(MIB))
            recorder.stop("test")
            assert tracemalloc.is_tracing()
            assert tracemalloc.get_traced_memory()[1] > 5 * MIB
        finally:
            tracemalloc.stop()

        assert set(args) == {"python_bytes"}
        assert args["python_bytes"] == about(MIB)
        assert (block, len(kept)) == ([], MIB)

    def test_somebody_who_stops_tracing_inside_the_window_is_no_error(self, recorder, python):
        recorder.run("memory", "test")
        tracemalloc.stop()
        recorder.pause()
        recorder.resume()
        recorder.stop("test")

    def test_an_operator_that_outlives_its_window_does_not_cost_the_next_one(
        self, recorder, python
    ):
        recorder.run("memory", "test")
        outlived = AROUND.enter("slow")
        recorder.stop("test")
        recorder.run("memory", "test")
        noticed = AROUND.leave(outlived)
        hooks = AROUND.hooks
        recorder.stop("test")

        assert noticed == {}
        assert hooks == (python,)

    def test_a_child_that_was_forked_while_a_thread_held_the_lock_does_not_hang(
        self, recorder, python
    ):
        recorder.run("memory", "test")
        thread = threading.Thread(target=python._lock.acquire)
        thread.start()
        thread.join()
        python.detach()
        recorder.stop("test")

        assert not tracemalloc.is_tracing()

    def test_the_recorders_configuration_can_ask_for_it(self, recorder, python):
        python.asked = False
        recorder.python_memory = True
        recorder.run("memory", "test")
        assert tracemalloc.is_tracing()
        recorder.stop("test")

    def test_the_processs_recorder_is_asked_by_name(self):
        track_python_memory(RECORDER)
        try:
            RECORDER.run("memory", "test")
            tracing = tracemalloc.is_tracing()
            RECORDER.stop("test")
        finally:
            track_python_memory(RECORDER, on=False)
        RECORDER.run("memory", "test")
        off = tracemalloc.is_tracing()
        RECORDER.stop("test")

        assert (tracing, off) == (True, False)
