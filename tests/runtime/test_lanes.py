"""The workers inside an operator are recorded whenever its own event is, and only then."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import opbench
from opbench import kernels, profiler
from opbench.errors import ConfigError, OperatorError
from opbench.kernels import lane_begin, lane_end
from opbench.operators import registry
from opbench.profiler import RECORDER
from opbench.runtime import cpu, nd, sym

A = np.ones((500, 500), np.float32)


@pytest.fixture(autouse=True)
def _nothing_stays_registered(monkeypatch):
    monkeypatch.setattr(registry, "_OPERATORS", dict(registry._OPERATORS))


@pytest.fixture
def two_workers(monkeypatch):
    from opbench.kernels.dot import door, records

    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("needs two threads")
    monkeypatch.setattr(door, "workers", lambda: 2)
    monkeypatch.setattr(records, "workers", lambda: 2)


@numba.njit
def halves(x, out, lanes):
    for piece in range(2):
        lane_begin(lanes, piece)
        for i in range(len(x) * piece // 2, len(x) * (piece + 1) // 2):
            out[i] = 2 * x[i]
        lane_end(lanes, piece, len(x) // 2, 0, 7)


def recorded(modes, work):
    RECORDER.run(modes, "test")
    try:
        work()
    finally:
        trace = RECORDER.stop("test")
    return trace


def pieces(trace):
    return [event for event in trace.events if event.category == "worker" and event.phase == "X"]


def ways():
    a = nd.array(A)
    executor = sym.dot(sym.var("a"), sym.var("b")).bind(cpu(), {"a": a, "b": a})

    def forward():
        executor.forward()[0].wait_to_read()

    return {"imperative": lambda: nd.dot(a, a).wait_to_read(), "symbolic": forward}


@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize("way", ["imperative", "symbolic"])
def test_a_product_is_recorded_with_its_workers_in_the_mode_of_its_event(way):
    work = ways()[way]
    trace = recorded(way, work)
    (event,) = [event for event in trace.events if event.category == way]
    assert event.args["workers_asked"] == int(numba.get_num_threads())
    assert sum(piece.args["items"] for piece in pieces(trace)) == 500**3
    for piece in pieces(trace):
        assert event.start_ns <= piece.start_ns <= piece.end_ns <= event.end_ns
    arrows = [e for e in trace.events if e.phase == "s"]
    assert {(e.pid, e.tid) for e in arrows} == {(event.pid, event.tid)}
    assert trace.cost.worker_record_ns > 0
    other = {"imperative": "symbolic", "symbolic": "imperative"}[way]
    assert pieces(recorded(other, work)) == []
    assert pieces(recorded("none", work)) == []


def test_a_small_product_carries_nothing_of_workers():
    a = nd.array(A[:8, :8])
    trace = recorded("imperative", lambda: nd.dot(a, a).wait_to_read())
    (event,) = [event for event in trace.events if event.category == "imperative"]
    assert not [key for key in event.args if "worker" in key or "lost" in key]
    assert len(trace.process_names) == 1


def test_a_users_operator_gets_a_buffer_while_recorded_and_an_empty_one_else():
    sizes = []

    @opbench.operator(name="twice", flops=0, reference=lambda x: 2 * x, lanes=lambda x: x.size // 4)
    def twice(x, out, lanes):
        sizes.append(len(lanes))
        halves(x, out, lanes)

    x = nd.array(np.arange(8.0))
    nd.twice(x).wait_to_read()
    trace = recorded("imperative", lambda: nd.twice(x).wait_to_read())
    assert sizes[0] == 0
    assert sizes[1] == len(kernels.lanes.buffer(2))
    assert [piece.args["tag"] for piece in pieces(trace)] == [7, 7]
    assert {piece.name for piece in pieces(trace)} == {"twice"}


def test_a_buffer_that_the_rule_makes_too_small_is_said_so():
    @opbench.operator(name="scaled", flops=0, reference=lambda x: 2 * x, lanes=1)
    def scaled(x, out, lanes):
        halves(x, out, lanes)

    x = nd.array(np.arange(8.0))
    trace = recorded("imperative", lambda: nd.scaled(x).wait_to_read())
    (event,) = [event for event in trace.events if event.category == "imperative"]
    assert event.args["records_lost"] == 1
    assert len(pieces(trace)) == 1


def test_an_operator_without_the_rule_takes_an_empty_buffer_and_out_may_be_missing():
    @opbench.operator(name="plain_twice", flops=0, reference=lambda x: 2 * x)
    def plain_twice(x, lanes):
        assert len(lanes) == 0
        return 2 * x

    x = nd.array(np.arange(3.0))
    trace = recorded("imperative", lambda: nd.plain_twice(x).wait_to_read())
    assert pieces(trace) == []
    assert nd.plain_twice(x).asnumpy().tolist() == [0, 2, 4]


def test_a_rule_that_fails_is_the_operators_failure_and_no_windows():
    @opbench.operator(name="bad_rule", flops=0, reference=lambda x: x, lanes=lambda x: x.missing)
    def bad_rule(x, out, lanes):
        out[:] = x

    x = nd.array(np.arange(3.0))
    nd.bad_rule(x).wait_to_read()

    def work():
        with pytest.raises(OperatorError, match="its rule lanes failed"):
            nd.bad_rule(x).wait_to_read()

    assert pieces(recorded("imperative", work)) == []


def test_a_kernel_that_fails_leaves_no_lanes():
    @opbench.operator(name="failing", flops=0, reference=lambda x: x, lanes=2)
    def failing(x, out, lanes):
        halves(x, out, lanes)
        raise ValueError("no")

    x = nd.array(np.arange(4.0))

    def work():
        with pytest.raises(OperatorError):
            nd.failing(x).wait_to_read()

    trace = recorded("imperative", work)
    assert pieces(trace) == []
    assert profiler.lane_totals(trace) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lanes": 3}, "has no parameter 'lanes'"),
        ({"lanes": -1}, "lanes must be a whole number of 0 or more, not -1"),
        ({"lanes": 1.5}, "lanes must be a whole number of 0 or more, not 1.5"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_at_the_decoration(options, words):
    with pytest.raises(ConfigError, match=words):
        opbench.operator(name="refused", flops=0, reference=np.copy, **options)(lambda x: x)
