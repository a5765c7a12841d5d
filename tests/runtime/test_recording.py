"""What the runtime tells the profiler: each mode alone, together, and nothing when stopped."""

from __future__ import annotations

import contextlib
import pickle
import threading

import numpy as np
import pytest

from opbench import profiler
from opbench.profiler import RECORDER, IterationWindow, operator_totals
from opbench.runtime import cpu, nd, random, sym
from opbench.runtime.recording import api

A = np.arange(6.0).reshape(2, 3)
B = np.arange(12.0).reshape(3, 4)


class Recording:
    trace = None

    def named(self, category):
        return [event for event in self.trace.events if event.category == category]

    def calls(self):
        """The slices of mode api, without the parts of a call."""
        return [e for e in self.named("api") if e.phase == "X" and ": " not in e.name]

    def counter(self, name):
        """Its values in order."""
        events = [event for event in self.trace.events if event.phase == "C" and event.name == name]
        return [event.args["calls"] for event in events]


@contextlib.contextmanager
def recording(modes):
    result = Recording()
    RECORDER.run(modes, "test")
    try:
        yield result
    finally:
        trace = RECORDER.stop("test")
        ours = (event for event in trace.events if not of_a_probe(event))
        result.trace = trace._replace(events=tuple(ours))


def of_a_probe(event):
    """What opbench.probes adds to windows of any mode, or of mode memory, at any moment."""
    return event.category in ("gc", "compile") or event.name == "memory resident"


def hold_the_engine():
    """Keep the worker busy until the function that this returns is called."""
    from opbench.runtime.engine import ENGINE

    gate = threading.Event()
    ENGINE.submit(lambda: gate.wait() and None)
    return gate.set


def work():
    """One operator of each kind, with its allocations and calls."""
    a, b = nd.array(A), nd.array(B)
    nd.dot(a, b).wait_to_read()
    graph = sym.dot(sym.var("a"), sym.var("b"), name="layer")
    graph.bind(cpu(), {"a": a, "b": b}).forward()[0].asnumpy()


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
                "nd.dot: check",
                "nd.dot: dispatch",
                "NDArray: wait",
                "NDArray.wait_to_read",
                "sym.var",
                "sym.dot",
                "Symbol.bind",
                "Symbol.bind: check",
                "Symbol.bind: plan",
                "Executor.forward",
                "NDArray.asnumpy",
                "api calls",
                "api calls in flight",
            },
        ),
        ("memory", {"memory cpu(0)", "memory peak cpu(0)", "alloc", "free"}),
    ],
)
def test_a_mode_alone_gives_events_of_that_mode_only(mode, names):
    with recording(mode) as result:
        release = hold_the_engine()
        threading.Timer(0.05, release).start()  # so that there is something to wait for
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

    # The free of what died in the pause is booked in the pause; where the books stand when the
    # window opens is told by counters.
    assert [event for event in result.trace.events if event.phase != "C"] == []


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
    # The name that the user gave the node, or that it was given.
    node = {"node": "layer"} if mode == "symbolic" else {}
    assert event.args == operator_args(None) | node
    assert result.trace.thread_names[event.pid, event.tid] == "opbench engine"
    assert event.tid != threading.get_native_id()


def test_each_operator_of_a_graph_is_an_event_of_its_own_with_the_name_of_its_node():
    square = np.eye(3)
    inner = sym.dot(sym.var("a"), sym.var("a2"), name="inner")
    executor = sym.dot(inner, sym.var("b"), name="outer").bind(
        cpu(), {"a": square, "a2": square, "b": square}
    )
    with recording("symbolic") as result:
        executor.forward()[0].wait_to_read()

    events = result.named("symbolic")
    assert [(event.name, event.args["node"]) for event in events] == [
        ("dot", "inner"),
        ("dot", "outer"),
    ]
    assert events[0].end_ns <= events[1].start_ns


def test_an_operators_event_without_dimensions():
    with recording("imperative") as result:
        nd.dot(nd.ones(3), nd.ones(3))

    assert result.trace.events[0].args["inputs"] == [[3], [3]]
    assert result.trace.events[0].args["outputs"] == [[]]


def test_the_mode_at_the_submission_decides():
    a = nd.ones((2, 2))
    with recording("symbolic") as result:
        release = hold_the_engine()
        nd.dot(a, a)
        # As a window that opens without waiting for pending work would do.
        RECORDER.mask = 15
        release()
        nd.waitall()
        RECORDER.mask = 1

    assert result.named("imperative") == []


def test_a_window_records_exactly_its_iterations():
    graph = sym.dot(sym.var("a"), sym.var("b"), name="layer")
    executor = graph.bind(cpu(), {"a": A, "b": B})
    with IterationWindow(RECORDER, 5, begin=1, end=3, modes="symbolic", owner="test") as window:
        for _ in window:
            executor.forward()

    dots = [event for event in window.trace.events if event.category == "symbolic"]
    slices = [event for event in window.trace.events if event.category == "iteration"]
    assert [event.args for event in dots] == [
        operator_args(number) | {"node": "layer"} for number in (1, 2)
    ]
    assert [event.name for event in slices] == ["iteration 1", "iteration 2"]
    (start, end) = window.trace.windows[0]
    assert all(start <= event.start_ns and event.end_ns <= end for event in dots)


def test_work_queued_before_the_window_is_not_in_it():
    a = nd.ones((2, 2))
    release = hold_the_engine()
    queued = nd.dot(a, a)
    threading.Timer(0.05, release).start()
    with recording("all") as result:
        shown = repr(queued)

    assert "pending" not in shown
    assert [event for event in result.trace.events if event.phase != "C"] == []


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
        names = [event.name for event in result.calls()]

        assert names == [
            "nd.zeros",
            "nd.ones",
            "nd.empty",
            "random.uniform",
            "nd.waitall",
            "nd.array",
            "NDArray.__array__",
        ]
        assert {event.tid for event in result.calls()} == {threading.get_native_id()}

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
        first, second = result.calls()

        assert (first.name, second.name) == ("outer", "nd.zeros")
        assert first.start_ns <= second.start_ns
        assert second.end_ns <= first.end_ns

    def test_a_call_that_raises_is_recorded(self):
        with recording("api") as result, pytest.raises(ValueError, match="negative"):
            nd.zeros(-1)

        assert [event.name for event in result.calls()] == ["nd.zeros"]
        assert result.counter("api calls in flight") == [0, 1, 0]

    def test_the_iteration_is_in_the_args(self):
        with IterationWindow(RECORDER, 2, modes="api", owner="test") as window:
            for _ in window:
                nd.zeros(1)
        calls = [event for event in window.trace.events if event.name == "nd.zeros"]

        assert [event.args["iteration"] for event in calls] == [0, 1]

    def test_argument_checking_and_dispatch_are_parts_of_the_call_and_the_kernel_is_not(self):
        a = nd.ones((3, 3))
        with recording("api + imperative") as result:
            c = nd.dot(a, a)
            c.wait_to_read()
        (call,) = [e for e in result.calls() if e.name == "nd.dot"]
        parts = [e for e in result.named("api") if e.name.startswith("nd.dot: ")]
        (kernel,) = result.named("imperative")

        assert [part.name for part in parts] == ["nd.dot: check", "nd.dot: dispatch"]
        assert call.start_ns <= parts[0].start_ns
        assert parts[0].end_ns == parts[1].start_ns
        assert parts[1].end_ns <= call.end_ns
        assert {part.tid for part in parts} == {call.tid}
        assert kernel.tid != call.tid

    def test_the_wait_for_the_kernel_is_a_part_of_the_call_that_waits(self):
        a = nd.ones((3, 3))
        with recording("api") as result:
            release = hold_the_engine()
            c = nd.dot(a, a)
            threading.Timer(0.02, release).start()
            c.asnumpy()
            c.asnumpy()
        calls = [event for event in result.calls() if event.name == "NDArray.asnumpy"]
        (wait,) = [event for event in result.named("api") if event.name == "NDArray: wait"]

        assert calls[0].start_ns <= wait.start_ns
        assert wait.end_ns <= calls[0].end_ns

    def test_the_calls_are_counted_in_flight_and_in_total(self):
        @api("outer")
        def outer():
            nd.zeros(2)
            nd.zeros(2)

        with recording("api") as result:
            outer()

        assert result.counter("api calls in flight") == [0, 1, 2, 1, 2, 1, 0]
        assert result.counter("api calls") == [1, 2, 3]

    def test_each_window_counts_from_nothing(self):
        for _ in range(2):
            with recording("api") as result:
                nd.zeros(2)
            assert result.counter("api calls in flight") == [0, 1, 0]
            assert result.counter("api calls") == [1]

    def test_a_thread_that_was_inside_a_call_when_the_window_opened_is_not_counted_out(self):
        inside, go_on = threading.Event(), threading.Event()

        @api("slow")
        def slow():
            inside.set()
            go_on.wait(60)

        thread = threading.Thread(target=slow)
        thread.start()
        assert inside.wait(60)
        with recording("api") as result:
            nd.zeros(2)
            go_on.set()
            thread.join(60)
            nd.zeros(2)

        assert [event.name for event in result.calls()] == ["nd.zeros", "nd.zeros"]
        assert result.counter("api calls in flight") == [0, 1, 0, 1, 0]

    def test_a_call_that_outlives_its_window_is_not_counted_out_of_the_next(self):
        inside, go_on = threading.Event(), threading.Event()

        @api("slow")
        def slow():
            inside.set()
            go_on.wait(60)

        thread = threading.Thread(target=slow)
        with recording("api") as first:
            thread.start()
            assert inside.wait(60)
        with recording("api") as second:
            nd.zeros(2)
            go_on.set()
            thread.join(60)

        assert first.counter("api calls in flight") == [0, 1]
        assert first.calls() == []
        assert [event.name for event in second.calls()] == ["nd.zeros"]
        assert second.counter("api calls in flight") == [0, 1, 0]

    def test_a_call_that_ends_in_a_pause_is_not_in_flight_after_it(self):
        with recording("api") as result:

            @api("pausing")
            def pausing():
                RECORDER.pause()

            pausing()
            RECORDER.resume()
            nd.zeros(2)

        # The third is the resumption's: else the first call would be in flight until the next one.
        assert result.counter("api calls in flight") == [0, 1, 0, 1, 0]
        assert result.counter("api calls") == [1, 2]

    def test_the_profilers_own_calls_are_no_calls(self):
        domain = profiler.Domain("mine")
        with recording("api") as result:
            with domain.new_task("t"), profiler.scope("s"):
                domain.new_counter("c", 1)
                domain.new_marker("m").mark()
            RECORDER.snapshot("test")
            RECORDER.pause()
            RECORDER.resume()

        assert result.named("api") == []

    def test_a_decorated_function_keeps_name_and_docstring(self):
        assert nd.dot.__name__ == "dot"
        assert nd.dot.__doc__.startswith("The product")
