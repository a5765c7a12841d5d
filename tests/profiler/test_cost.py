"""What recording costs: timed in the process, and stated with each trace."""

from __future__ import annotations

import json

import pytest

from opbench.profiler import (
    WORKERS,
    Cost,
    Lane,
    Profiler,
    encode,
    load,
    merge,
    overhead,
    record_lanes,
    summary,
    write,
)
from opbench.profiler.price import empty_span_ns, worker_event_ns
from opbench.profiler.tally import Tally, tally_of


@pytest.fixture
def priced(clock, wall_clock):
    return Profiler(clock, wall_clock, capacity=3, price=lambda: 500.0, worker_price=lambda: 3000.0)


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
    assert trace.cost == Cost(500.0, 50.0, 3000.0)
    assert (paid.events, paid.worker_records, paid.worker_events) == (3, 1, 1)
    assert paid.recorded_ns == 100_000
    assert paid.share == (3 * 500 + 50 + 3000) / 100_000
    told = json.loads(encode(trace))["otherData"]["cost"]
    assert told == paid._asdict()


def test_what_workers_records_become_is_paid_at_a_price_of_its_own(clock, wall_clock, tmp_path):
    recorder = Profiler(clock, wall_clock, price=lambda: 500.0, worker_price=lambda: 3000.0)
    recorder.worker_record_ns = 50.0
    recorder.run("imperative", "test")
    start = clock.now
    rows = [[n % 2, n % 2, 0, 0, start + 10 * n, start + 10 * n + 9, n, 1, 8] for n in range(6)]
    end = clock.advance(1_000_000)
    figures = record_lanes(recorder, rows, "dot", start, end, 2)
    recorder.complete("dot", "imperative", start, end, figures.args())
    recorder.flow("mine", "worker", (start, None), (end, None))
    trace = recorder.stop("test")
    counters = sum(event.phase == "C" for event in trace.events)
    paid = overhead(trace)
    # The operator and the ends of its own arrow; 6 pieces, 2 arrows of two ends, the counter.
    assert (paid.events, paid.worker_records) == (3, 6)
    assert paid.worker_events == 6 + 4 + counters
    assert counters > 0
    assert len(trace.events) == paid.events + paid.worker_events
    assert paid.share == (3 * 500 + 6 * 50 + (10 + counters) * 3000) / 1_000_000
    # The table's footer and the file say the same, and so does the file that is read again.
    assert tally_of(trace).overhead() == paid
    write(trace, tmp_path / "t.json")
    assert overhead(load(tmp_path / "t.json")) == paid
    # A file in which nobody timed them: each cost at least what an event does.
    before = trace._replace(cost=Cost(500.0, 50.0))
    assert overhead(before).share == ((13 + counters) * 500 + 6 * 50) / 1_000_000


def test_figures_that_begin_anew_pay_for_the_rest_only(priced, clock):
    priced.run("all", "test")
    priced.instant("a", "api")
    clock.advance(1_000)
    first = tally_of(priced.snapshot("test"))
    priced.instant("b", "api")
    clock.advance(1_000)
    rest = tally_of(priced.stop("test"))
    rest.subtract(first)
    assert (rest.overhead().events, rest.overhead().share) == (1, 500 / 1_000)


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


@pytest.mark.parametrize("workers_first", [True, False])
def test_a_window_without_workers_hides_no_price_of_theirs(priced, workers_first):
    priced.run("all", "test")
    trace = priced.stop("test")
    before, after = trace._replace(cost=Cost(500.0)), trace._replace(cost=Cost(600.0, 50.0, 3000.0))
    traces = [after, before] if workers_first else [before, after]
    for place, one in enumerate(traces):
        traces[place] = one._replace(windows=((place, place + 1),))
    expected = Cost(600.0 if workers_first else 500.0, 50.0, 3000.0)
    assert merge(traces).cost == expected
    tally = Tally()
    for one in traces:
        tally.add(tally_of(one))
    assert tally.cost == expected


def test_a_price_of_nothing_is_a_price(priced):
    priced.run("all", "test")
    trace = priced.stop("test")
    costs = (Cost(0.0, 0.0), Cost(600.0, 50.0, 3000.0))
    assert merge(trace._replace(cost=cost) for cost in costs).cost == Cost(0.0, 0.0, 3000.0)


def test_the_price_is_found_by_recording():
    price = empty_span_ns()
    assert 0 < price < 1_000_000
    assert empty_span_ns() == price  # once in a process
    assert 0 < worker_event_ns() < 10_000_000
    assert worker_event_ns() == worker_event_ns()
    recorder = Profiler()
    recorder.run("all", "test")
    assert recorder.stop("test").events == ()  # nothing of it is in a window
