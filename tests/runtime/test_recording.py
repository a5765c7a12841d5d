"""What the runtime tells the profiler: each mode alone, together, and nothing when stopped."""

from __future__ import annotations

import contextlib
import pickle
import threading

import numpy as np
import pytest

from opbench.profiler import RECORDER, IterationWindow, operator_totals
from opbench.runtime import cpu, nd, random, sym
from opbench.runtime.recording import api

A = np.arange(6.0).reshape(2, 3)
B = np.arange(12.0).reshape(3, 4)


class Recording:
    trace = None

    def named(self, category):
        return [event for event in self.trace.events if event.category == category]


@contextlib.contextmanager
def recording(modes):
    result = Recording()
    RECORDER.run(modes, "test")
    try:
        yield result
    finally:
        result.trace = RECORDER.stop("test")


def work():
    """One operator of each kind, with its allocations and calls."""
    a, b = nd.array(A), nd.array(B)
    nd.dot(a, b).wait_to_read()
    executor = sym.dot(sym.var("a"), sym.var("b")).bind(cpu(), {"a": a, "b": b})
    executor.forward()[0].asnumpy()


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        ("symbolic", {"dot"}),
        ("imperative", {"dot"}),
        (
            "api",
            {
                "nd.array",
                "nd.dot",
                "NDArray.wait_to_read",
                "sym.var",
                "sym.dot",
                "Symbol.bind",
                "Executor.forward",
                "NDArray.asnumpy",
            },
        ),
        ("memory", {"memory cpu(0)", "alloc", "free"}),
    ],
)
def test_a_mode_alone_gives_events_of_that_mode_only(mode, names):
    with recording(mode) as result:
        work()

    assert {event.category for event in result.trace.events} == {mode}
    assert {event.name for event in result.trace.events} == names


def test_modes_combine():
    with recording("symbolic + memory") as result:
        work()

    assert {event.category for event in result.trace.events} == {"symbolic", "memory"}
    assert len(result.named("symbolic")) == 1


def test_all_modes():
    with recording("all") as result:
        work()

    categories = {event.category for event in result.trace.events}
    assert categories == {"symbolic", "imperative", "api", "memory"}
    rows = operator_totals(result.trace)
    assert {(row.category, row.name, row.count) for row in rows} == {
        ("symbolic", "dot", 1),
        ("imperative", "dot", 1),
    }


def test_nothing_is_recorded_while_paused_or_stopped():
    work()
    with recording("all") as result:
        RECORDER.pause()
        work()
        RECORDER.resume()

    # The free of what died in the pause is booked in the pause.
    assert result.trace.events == ()


def test_a_stopped_profiler_is_asked_for_its_mask_and_nothing_else(monkeypatch):
    def asked(*_, **__):
        raise AssertionError("called while stopped")

    for name in ("clock", "complete", "counter", "instant"):
        monkeypatch.setattr(RECORDER, name, asked)
    work()
    nd.waitall()


def operator_args(iteration):
    return {
        "operator": "dot",
        "inputs": [[2, 3], [3, 4]],
        "outputs": [[2, 4]],
        "dtype": "float64",
        "flop": 2 * 2 * 3 * 4,
        "bytes": 8 * (6 + 12 + 8),
        "iteration": iteration,
    }


@pytest.mark.parametrize("mode", ["symbolic", "imperative"])
def test_an_operators_event(mode):
    with recording(mode) as result:
        work()
    (event,) = result.trace.events

    assert (event.name, event.phase) == ("dot", "X")
    assert event.args == operator_args(None)
    assert result.trace.thread_names[event.pid, event.tid] == "opbench engine"
    assert event.tid != threading.get_native_id()


def test_an_operators_event_without_dimensions():
    with recording("imperative") as result:
        nd.dot(nd.ones(3), nd.ones(3))

    assert result.trace.events[0].args["inputs"] == [[3], [3]]
    assert result.trace.events[0].args["outputs"] == [[]]


def test_the_mode_at_the_submission_decides():
    gate = threading.Event()
    from opbench.runtime.engine import ENGINE

    a = nd.ones((2, 2))
    with recording("symbolic") as result:
        ENGINE.submit(lambda: gate.wait() and None)
        nd.dot(a, a)
        # As a window that opens without waiting for pending work would do.
        RECORDER.mask = 15
        gate.set()
        nd.waitall()
        RECORDER.mask = 1

    assert result.named("imperative") == []


def test_a_window_records_exactly_its_iterations():
    executor = sym.dot(sym.var("a"), sym.var("b")).bind(cpu(), {"a": A, "b": B})
    with IterationWindow(RECORDER, 5, begin=1, end=3, modes="symbolic", owner="test") as window:
        for _ in window:
            executor.forward()

    dots = [event for event in window.trace.events if event.category == "symbolic"]
    slices = [event for event in window.trace.events if event.category == "iteration"]
    assert [event.args for event in dots] == [operator_args(1), operator_args(2)]
    assert [event.name for event in slices] == ["iteration 1", "iteration 2"]
    (start, end) = window.trace.windows[0]
    assert all(start <= event.start_ns and event.end_ns <= end for event in dots)


def test_work_queued_before_the_window_is_not_in_it():
    gate = threading.Event()
    from opbench.runtime.engine import ENGINE

    a = nd.ones((2, 2))
    ENGINE.submit(lambda: gate.wait() and None)
    queued = nd.dot(a, a)
    threading.Timer(0.05, gate.set).start()
    with recording("all") as result:
        shown = repr(queued)

    assert "pending" not in shown
    assert result.trace.events == ()


def test_a_failed_operator_has_no_event():
    a = nd.ones((2, 2))
    from opbench.runtime.program import Program, Step, launch

    def kernel(x, out):
        raise ValueError

    step = Step("broken", kernel, (0,), 1, (2, 2), a.dtype, (), {"operator": "broken"})
    program = Program((step,), 2, ((1, (2, 2), a.dtype),))
    with recording("imperative") as result:
        launch(program, [a], cpu(), 2)

    assert result.trace.events == ()
    with pytest.raises(RuntimeError):
        nd.waitall()


class TestApi:
    def test_each_public_call_is_a_slice_on_the_callers_thread(self):
        with recording("api") as result:
            nd.zeros(2)
            nd.ones(2)
            nd.empty(2)
            random.uniform()
            nd.waitall()
            np.asarray(nd.array([1]))
        names = [event.name for event in result.trace.events]

        assert names == [
            "nd.zeros",
            "nd.ones",
            "nd.empty",
            "random.uniform",
            "nd.waitall",
            "nd.array",
            "NDArray.__array__",
        ]
        assert {event.tid for event in result.trace.events} == {threading.get_native_id()}
        assert {event.phase for event in result.trace.events} == {"X"}

    @pytest.mark.parametrize(
        ("read", "name"),
        [
            (lambda c: c + 1, "__array_ufunc__"),
            (lambda c: c[0], "__getitem__"),
            (list, "__iter__"),
            (float, "__float__"),
            (int, "__int__"),
            (bool, "__bool__"),
            (pickle.dumps, "__reduce__"),
            (lambda c: c.astype("float64"), "astype"),
        ],
    )
    def test_whatever_waits_for_values_is_a_slice(self, read, name):
        c = nd.dot(nd.ones(3), nd.ones(3))
        if name in ("__getitem__", "__iter__"):
            c = nd.dot(nd.ones((3, 3)), nd.ones(3))
        with recording("api") as result:
            read(c)

        assert f"NDArray.{name}" in [event.name for event in result.trace.events]

    def test_nested_calls_nest(self):
        @api("outer")
        def outer():
            return nd.zeros(2)

        with recording("api") as result:
            outer()
        first, second = result.trace.events

        assert (first.name, second.name) == ("outer", "nd.zeros")
        assert first.start_ns <= second.start_ns
        assert second.end_ns <= first.end_ns

    def test_a_call_that_raises_is_recorded(self):
        with recording("api") as result, pytest.raises(ValueError, match="negative"):
            nd.zeros(-1)

        assert [event.name for event in result.trace.events] == ["nd.zeros"]

    def test_the_iteration_is_in_the_args(self):
        with IterationWindow(RECORDER, 2, modes="api", owner="test") as window:
            for _ in window:
                nd.zeros(1)
        calls = [event for event in window.trace.events if event.category == "api"]

        assert [event.args["iteration"] for event in calls] == [0, 1]

    def test_a_decorated_function_keeps_name_and_docstring(self):
        assert nd.dot.__name__ == "dot"
        assert nd.dot.__doc__.startswith("The product")
