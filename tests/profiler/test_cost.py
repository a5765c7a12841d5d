"""What recording costs: timed in the process, and stated with each trace."""

from __future__ import annotations

import json

import pytest

from opbench.profiler import WORKERS, Cost, Lane, Profiler, encode, merge, overhead, summary
from opbench.profiler.price import empty_span_ns


@pytest.fixture
def priced(clock, wall_clock):
    return Profiler(clock, wall_clock, capacity=3, price=lambda: 500.0)


def test_the_share_is_what_the_events_cost_of_what_was_recorded(priced, clock):
    priced.worker_record_ns = 50.0
    priced.run("all", "test")
    start = priced.clock()
    clock.advance(60_000)
    priced.pause()
    clock.advance(1_000_000)  # a pause is not recorded time
    priced.resume()
    clock.advance(40_000)
    priced.complete(
        "chunk", "worker", start + 100_000 + 1_000_000, clock(), lane=Lane(WORKERS, 1, "w")
    )
    priced.instant("a", "api")
    priced.counter("b", {"x": 1})
    priced.instant("dropped", "api")
    trace = priced.stop("test")
    paid = overhead(trace)
    assert trace.cost == Cost(500.0, 50.0)
    assert (paid.events, paid.worker_records, paid.recorded_ns) == (3, 1, 100_000)
    assert paid.share == (3 * 500 + 50) / 100_000
    told = json.loads(encode(trace))["otherData"]["cost"]
    assert told == paid._asdict()


@pytest.mark.parametrize(("ns", "warned"), [(50_000, False), (49_999, True)])
def test_above_one_percent_it_warns(priced, clock, ns, warned):
    priced.run("all", "test")
    priced.instant("a", "api")
    clock.advance(ns)
    trace = priced.stop("test")
    assert bool(overhead(trace).warning) == warned
    assert ("more than 1 % of the window" in summary(trace)) == warned


def test_a_window_without_length_has_no_share(priced):
    priced.run("all", "test")
    priced.instant("a", "api")
    assert overhead(priced.stop("test")).share == 0.0


def test_a_trace_of_somebody_else_states_no_cost(priced):
    priced.run("all", "test")
    trace = priced.stop("test")
    assert overhead(trace._replace(cost=None)) is None
    assert merge([trace, trace._replace(cost=None)]).cost == Cost(500.0, None)


def test_the_price_is_found_by_recording():
    price = empty_span_ns()
    assert 0 < price < 1_000_000
    assert empty_span_ns() == price  # once in a process
    recorder = Profiler()
    recorder.run("all", "test")
    assert recorder.stop("test").events == ()  # nothing of it is in a window
