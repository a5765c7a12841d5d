"""Statistics of a trace, with a fake clock: every figure is exact, or NumPy's."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opbench.errors import ConfigError, StateError
from opbench.profiler import WORKERS, Cost, Lane, Profiler, aggregate, summary
from opbench.profiler.doors import WindowStore
from opbench.profiler.rendering import render
from opbench.profiler.rows import percentile, rows_of
from opbench.profiler.tally import tally_of


@pytest.fixture
def slices(recorder, clock):
    """Records slices one after the other: (name, ns) pairs; the window is 1000 ns long."""

    def record(*pairs, category="imperative", **args):
        recorder.run(15, "test")
        opened = clock.now
        for name, ns in pairs:
            start = clock.now
            recorder.complete(name, category, start, clock.advance(ns), dict(args))
        clock.now = opened + 1000
        return recorder.stop("test")

    return record


def row(rows, name):
    (found,) = [row for row in rows if row.name == name]
    return found


# ---- times


def test_the_figures_of_one_operator(slices):
    (dot,) = aggregate(slices(*(("dot", ns) for ns in (40, 10, 20, 30)), flop=100, bytes=8))
    assert dot._asdict() == {
        "category": "imperative",
        "name": "dot",
        "shape": "",
        "thread": "",
        "unit": "ns",
        "count": 4,
        "total": 100,
        "min": 10,
        "max": 40,
        "mean": 25.0,
        "median": 25.0,
        "p90": pytest.approx(37.0),
        "p99": pytest.approx(39.7),
        "std": pytest.approx(125**0.5),
        "share": 0.1,
        "self_total": 100,
        "flop": 400,
        "bytes": 32,
    }
    assert dot.is_time


@given(
    st.lists(st.integers(0, 2**62), min_size=1, max_size=50),
    st.sampled_from([0.0, 0.5, 0.9, 0.99, 1.0]),
)
def test_percentiles_are_numpys(values, fraction):
    ours = percentile(sorted(values), fraction)
    assert ours == pytest.approx(float(np.percentile(values, fraction * 100)), rel=1e-12)
    assert min(values) <= ours <= max(values)


def test_a_duration_of_an_hour_keeps_its_nanoseconds(slices):
    hour = 3_600_000_000_001
    (dot,) = aggregate(slices(("dot", hour)))
    assert (dot.min, dot.max, dot.total, dot.median) == (hour, hour, hour, hour)


def test_the_self_time_is_without_the_slices_inside_on_the_same_thread(recorder, clock):
    recorder.run(15, "test")
    begin = clock.now
    inner = clock.advance(10)
    leaf = clock.advance(5)
    recorder.complete("leaf", "api", leaf, clock.advance(20))
    recorder.complete("inner", "api", inner, clock.advance(5))
    recorder.complete("inner", "api", clock.now, clock.advance(7))
    recorder.complete("elsewhere", "lane", begin, clock.now, lane=Lane("workers", 1, "w"))
    recorder.complete("outer", "api", begin, clock.advance(3))
    rows = aggregate(recorder.stop("test"))
    assert {row.name: (row.total, row.self_total) for row in rows} == {
        "outer": (50, 50 - 30 - 7),
        "inner": (37, 30 - 20 + 7),
        "leaf": (20, 20),
        "elsewhere": (47, 47),
    }


def test_what_crosses_takes_only_what_it_covers_of_its_parent(recorder, clock):
    recorder.run(15, "test")
    at = clock.now
    clock.advance(100)
    recorder.complete("first", "api", at, at + 50)
    recorder.complete("crossing", "api", at + 30, at + 80)
    rows = aggregate(recorder.stop("test"))
    assert row(rows, "first").self_total == 30
    assert row(rows, "crossing").self_total == 50


def test_tasks_that_overlap_are_no_ones_parents(recorder, clock):
    recorder.run(15, "test")
    at = clock.now
    clock.advance(100)
    recorder.span("a", "d", at, at + 60)
    recorder.span("b", "d", at + 30, at + 90)
    recorder.complete("slice", "api", at + 10, at + 20)
    rows = aggregate(recorder.stop("test"))
    assert {row.name: row.self_total for row in rows} == {"a": 60, "b": 60, "slice": 10}


def test_the_share_is_of_what_was_recorded_not_of_the_pauses(recorder, clock):
    recorder.run(15, "test")
    recorder.complete("dot", "imperative", clock.now, clock.advance(50))
    recorder.pause()
    clock.advance(900)
    recorder.resume()
    clock.advance(50)
    (dot,) = aggregate(recorder.stop("test"))
    assert dot.share == 0.5


def test_every_event_is_counted_once_and_the_iterations_are_one_row(recorder, clock):
    recorder.run(15, "test")
    for number in range(3):
        start = clock.now
        recorder.complete("dot", "symbolic", start, clock.advance(5), {"operator": "dot"})
        recorder.complete(f"iteration {number}", "iteration", start, clock.advance(1))
    recorder.instant("marker", "mine,instant_marker")
    rows = aggregate(recorder.stop("test"))
    assert [(row.category, row.name, row.count) for row in rows] == [
        ("iteration", "iteration", 3),
        ("symbolic", "dot", 3),
    ]
    assert row(rows, "iteration").self_total == 3


def test_groups(recorder, clock):
    recorder.run(15, "test")
    for n in (2, 2, 3):
        args = {"operator": "dot", "inputs": [[n, n], [n]], "dtype": "float32"}
        recorder.complete("dot", "imperative", clock.now, clock.advance(10), args)
    lane = Lane("workers", 7, "worker 7")
    recorder.complete("dot", "imperative", clock.now, clock.advance(1), args, lane=lane)
    trace = recorder.stop("test")
    assert [row.count for row in aggregate(trace)] == [4]
    assert [(row.shape, row.count) for row in aggregate(trace, by="shape")] == [
        ("2×2 · 2 float32", 2),
        ("3×3 · 3 float32", 2),
    ]
    threads = [(row.thread, row.count) for row in aggregate(trace, by="thread")]
    assert threads[0][0].startswith("MainThread · ")
    assert [threads[0][1], threads[1]] == [3, ("worker 7 · 7", 1)]
    with pytest.raises(ConfigError, match="unknown grouping by='shapes'; did you mean 'shape'"):
        aggregate(trace, by="shapes")


# ---- counters


def test_a_counter_weighs_each_value_by_the_time_that_it_held(recorder, clock):
    recorder.run(15, "test")
    recorder.counter("memory cpu(0)", {"live bytes": 100})
    clock.advance(10)
    recorder.counter("memory cpu(0)", {"live bytes": 1000})
    clock.advance(80)
    recorder.counter("memory cpu(0)", {"live bytes": 0})
    clock.advance(10)
    (live,) = aggregate(recorder.stop("test"))
    assert (live.name, live.unit, live.count) == ("memory cpu(0) live bytes", "bytes", 3)
    assert (live.total, live.share, live.self_total) == (None, None, None)
    assert (live.min, live.max, live.mean, live.median) == (0, 1000, 810.0, 1000)
    assert live.p90 == 1000
    assert live.std == pytest.approx((0.1 * 710**2 + 0.8 * 190**2 + 0.1 * 810**2) ** 0.5)


def test_mxnets_average_of_a_counter_was_half_its_range_and_ours_is_a_mean(recorder, clock):
    recorder.run(15, "test")
    for value in (67_108_900, 201_326_600):
        recorder.counter("m", {"live bytes": value})
        clock.advance(10)
    (live,) = aggregate(recorder.stop("test"))
    assert live.mean == (67_108_900 + 201_326_600) / 2


def test_signed_and_large_values_of_a_counter_stay_what_they_are(recorder, clock):
    recorder.run(15, "test")
    for value in (-5, 2.7, 3 * 2**40):
        recorder.counter("c", {"c": value}, "c")
        clock.advance(1)
    (found,) = aggregate(recorder.stop("test"))
    assert (found.name, found.unit, found.min, found.max) == ("c", "", -5, 3 * 2**40)


def test_a_counter_holds_neither_in_a_pause_nor_past_its_window(recorder, clock):
    recorder.run(15, "test")
    recorder.counter("c", {"n": 1}, "x")
    clock.advance(10)
    recorder.pause()
    clock.advance(1000)
    recorder.resume()
    recorder.counter("c", {"n": 4}, "x")
    clock.advance(20)
    (found,) = aggregate(recorder.stop("test"))
    assert found.mean == (1 * 10 + 4 * 20) / 30


def test_a_counter_that_never_held_still_has_its_values(recorder):
    recorder.run(15, "test")
    recorder.counter("c", {"n": 1}, "x")
    recorder.counter("c", {"n": 3}, "x")
    (found,) = aggregate(recorder.stop("test"))
    assert (found.min, found.max, found.mean) == (1, 3, 2.0)


# ---- a reset in the middle of a window


def events_of(recorder, clock, plan):
    """Emit what a plan of small numbers says: slices, nested slices, counters."""
    for number in plan:
        start = clock.now
        if number % 3 == 0:
            recorder.counter("c", {"n": number}, "x")
        clock.advance(number)
        recorder.complete(f"f{number % 4}", "api", start, clock.advance(1), {"flop": number})


@given(st.lists(st.integers(0, 9), max_size=20), st.lists(st.integers(0, 9), max_size=20))
def test_what_was_counted_before_a_reset_and_after_it_is_the_whole(before, after):
    clock = Clock()
    recorder = Profiler(clock, clock)
    recorder.run(15, "test")
    events_of(recorder, clock, before)
    first = tally_of(recorder.snapshot("test"))
    events_of(recorder, clock, after)
    whole = tally_of(recorder.stop("test"))
    rest = tally_of_copy(whole)
    rest.subtract(first)
    counts = {row.name: row.count for row in rows_of(rest) if row.is_time}
    expected = [f"f{number % 4}" for number in after]
    assert counts == {name: expected.count(name) for name in set(expected)}
    rest.windows -= first.windows
    rest.add(first)
    assert rows_of(rest) == rows_of(whole)


class Clock:
    now = 1000

    def __call__(self):
        return self.now

    def advance(self, ns):
        self.now += ns
        return self.now


def tally_of_copy(tally):
    copy = type(tally)()
    copy.add(tally)
    return copy


# ---- the doors


@pytest.fixture
def session(recorder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = WindowStore(recorder)
    made._exit_watched = True  # what a test records is not written when pytest ends
    monkeypatch.setattr("opbench.profiler.doors.WINDOWS", made)
    return made


@pytest.fixture
def dumps(session):
    from opbench.profiler import doors

    return doors.dumps


@pytest.fixture
def statistics(session):
    from opbench.profiler import doors

    return doors.statistics


def counts(rows):
    return {row.name: row.count for row in rows}


def work(recorder, clock, name="dot", ns=10):
    start = clock.now
    recorder.complete(name, "imperative", start, clock.advance(ns), {"operator": name})


def test_statistics_cover_the_closed_windows_and_the_open_one(session, recorder, clock, statistics):
    session.set_state("run")
    work(recorder, clock)
    session.set_state("stop")
    session.set_state("run")
    work(recorder, clock)
    assert counts(statistics()) == {"dot": 2}
    assert recorder.recording
    work(recorder, clock)
    session.set_state("stop")
    assert counts(statistics()) == {"dot": 3}
    assert counts(statistics()) == {"dot": 3}


def test_a_reset_begins_anew_and_touches_no_event_of_the_trace(
    session, recorder, clock, statistics, tmp_path
):
    session.set_state("run")
    work(recorder, clock, "early")
    assert counts(statistics(reset=True)) == {"early": 1}
    assert statistics() == []
    work(recorder, clock, "late")
    assert counts(statistics()) == {"late": 1}
    session.set_state("stop")
    assert counts(statistics(reset=True)) == {"late": 1}
    session.set_state("run")
    work(recorder, clock, "last")
    session.dump()
    assert counts(statistics()) == {"last": 1}
    events = json.loads((tmp_path / "profile.json").read_text())["traceEvents"]
    assert [e["name"] for e in events if e["ph"] == "X"] == ["early", "late", "last"]


@pytest.mark.parametrize(("kept", "expected"), [(True, {"a": 1, "b": 1}), (False, {"b": 1})])
def test_aggregate_stats_keeps_figures_past_the_events_that_a_dump_lets_go_of(
    session, recorder, clock, statistics, kept, expected
):
    session.set_config(aggregate_stats=kept)
    session.set_state("run")
    work(recorder, clock, "a")
    session.dump()
    session.set_state("run")
    work(recorder, clock, "b")
    assert counts(statistics()) == expected
    session.set_state("stop")


@pytest.mark.parametrize("aggregate_stats", [False, True])
def test_statistics_change_neither_the_events_nor_any_file(
    session, recorder, clock, dumps, tmp_path, aggregate_stats
):
    session.set_config(aggregate_stats=aggregate_stats, profile_imperative=True)
    session.set_state("run")
    work(recorder, clock)
    dumps()
    dumps(reset=True, format="json")
    work(recorder, clock)
    assert recorder.mask == 2
    assert list(tmp_path.iterdir()) == []
    session.dump()
    document = json.loads((tmp_path / "profile.json").read_text())
    ends = [(e["ts"], e["dur"]) for e in document["traceEvents"] if e["ph"] == "X"]
    assert ends == [(0.0, 0.01), (0.01, 0.01)]
    before = (tmp_path / "profile.json").stat().st_mtime_ns
    dumps()
    assert (tmp_path / "profile.json").stat().st_mtime_ns == before
    session.dump()


def test_without_any_window_it_is_told(dumps):
    with pytest.raises(StateError, match=r"no window was recorded; set_state\('run'\) opens one"):
        dumps()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"format": "xml"}, "unknown format='xml'; valid are json, table"),
        ({"sort_by": "totel"}, "unknown sort_by='totel'; did you mean 'total'"),
        ({"by": "operators"}, "unknown grouping by='operators'; did you mean 'operator'"),
        ({"sort_by": None}, "unknown sort_by=None"),
    ],
)
def test_a_wrong_word_is_told_and_resets_nothing(
    session, recorder, clock, dumps, statistics, wrong, message
):
    session.set_state("run")
    work(recorder, clock)
    with pytest.raises(ConfigError) as caught:
        dumps(reset=True, **wrong)
    assert message in str(caught.value)
    assert counts(statistics()) == {"dot": 1}
    session.set_state("stop")


SORTED = [
    ("total", lambda row: row.total),
    ("count", lambda row: row.count),
    ("avg", lambda row: row.mean),
    ("mean", lambda row: row.mean),
    ("min", lambda row: row.min),
    ("max", lambda row: row.max),
    ("median", lambda row: row.median),
    ("p90", lambda row: row.p90),
    ("p99", lambda row: row.p99),
    ("std", lambda row: row.std),
    ("share", lambda row: row.share),
    ("self", lambda row: row.self_total),
    ("name", lambda row: row.name),
]


@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize(("word", "measure"), SORTED)
def test_every_order_in_both_directions(
    session, recorder, clock, statistics, dumps, word, measure, ascending
):
    session.set_state("run")
    for name, durations in {"b": (1, 90), "a": (40, 50, 45), "c": (70,), "d": (2, 3)}.items():
        for ns in durations:
            work(recorder, clock, name, ns)
    session.set_state("stop")
    rows = statistics(sort_by=word, ascending=ascending)
    assert [measure(row) for row in rows] == sorted(map(measure, rows), reverse=not ascending)
    document = json.loads(dumps(format="json", sort_by=word, ascending=ascending))
    assert list(document["Time"]["imperative"]) == [row.name for row in rows]


def test_json_has_mxnets_keys_and_all_digits(session, recorder, clock, dumps):
    session.set_state("run")
    for ns in (1_234_567, 7_654_321):
        work(recorder, clock, ns=ns)
    recorder.counter("memory cpu(0)", {"live bytes": 123_456_789})
    recorder.counter("queue", {"mine": 42}, "mine")
    recorder.instant("marker", "mine,instant_marker")
    clock.advance(11)
    session.set_state("stop")
    document = json.loads(dumps(format="json"))
    assert document["Unit"] == {"Time": "ms", "Memory": "kB", "Counter": ""}
    dot = document["Time"]["imperative"]["dot"]
    assert (dot["Count"], dot["Total"], dot["Min"], dot["Max"]) == (
        2,
        8.888888,
        1.234567,
        7.654321,
    )
    assert dot["Avg"] == 4.444444
    live = document["Memory"]["memory"]["memory cpu(0) live bytes"]
    assert (live["Count"], live["Avg"], "Total" in live) == (1, 123_456.789, False)
    # MXNet printed a counter of 42 among the times, as 0.0420 ms.
    assert document["Counter"] == {
        "mine": {"queue": live | dict.fromkeys(FIGURES, 42) | {"Std": 0}}
    }
    assert list(document["Time"]) == ["imperative"]


FIGURES = ("Min", "Max", "Avg", "Median", "P90", "P99")


def test_the_table(session, recorder, clock, dumps):
    session.set_state("run")
    for ns in (1_000_000, 3_000_000):
        args = {"operator": "dot", "flop": 10**9}
        recorder.complete("dot", "symbolic", clock.now, clock.advance(ns), args)
    recorder.counter("memory cpu(0)", {"live bytes": 2_000_000})
    clock.advance(4_000_000)
    session.set_state("stop")
    *lines, cost = dumps().splitlines()
    assert re.fullmatch(r"recording 3 events took about .* ms, [\d.]+% of the window \(.*\)", cost)
    expected = """symbolic
        name count unit total self mean median p90 p99 min max std share GFLOP/s
        dot 2 ms 4.000 4.000 2.000 2.000 2.800 2.980 1.000 3.000 1.000 50.0 % 500.0

        memory (counters, weighted by time)
        name count unit mean median p90 p99 min max std
        memory cpu(0) live bytes 1 MB 2 2 2 2 2 2 0

        8.00 ms recorded in 1 window, 3 events, 0 dropped"""
    assert [line.split() for line in lines] == [line.split() for line in expected.splitlines()]


def test_a_long_name_is_cut_in_the_middle_and_no_figure_moves(session, recorder, clock, dumps):
    session.set_state("run")
    work(recorder, clock, "short")
    work(recorder, clock, "begin" + "x" * 10_000 + "end")
    session.set_state("stop")
    lines = dumps().splitlines()
    assert lines[2].startswith("beginx")
    assert "…" in lines[2]
    assert "xend " in lines[2]
    assert len({len(line) for line in lines[1:4]}) == 1
    name = next(iter(json.loads(dumps(format="json", sort_by="name"))["Time"]["imperative"]))
    assert len(name) in (5, 10_008)


def test_the_table_tells_what_was_dropped(clock, wall_clock, tmp_path, monkeypatch):
    from opbench.profiler import doors

    monkeypatch.chdir(tmp_path)
    recorder = Profiler(clock, wall_clock, capacity=2)
    made = WindowStore(recorder)
    made._exit_watched = True
    monkeypatch.setattr(doors, "WINDOWS", made)
    made.set_state("run")
    for _ in range(5):
        work(recorder, clock)
    made.set_state("stop")
    assert "2 events, 3 dropped" in doors.dumps()
    assert json.loads(doors.dumps(format="json"))["Dropped"] == 3


def test_the_table_ends_with_what_recording_cost_and_warns_above_one_percent(recorder, clock):
    recorder.run(15, "test")
    for number in range(10):
        recorder.complete("dot", "imperative", clock.now, clock.advance(number))
    lane = Lane(WORKERS, 1, "worker 1")
    recorder.complete("chunk", "lane", clock.now, clock.advance(1), lane=lane)
    clock.advance(1_000_000)
    trace = recorder.stop("test")._replace(cost=Cost(span_ns=500.0, worker_record_ns=60.0))
    paid = tally_of(trace).overhead()
    assert (paid.events, paid.worker_records) == (10, 1)
    assert paid.share == (11 * 500 + 60) / paid.recorded_ns
    quiet = render([], tally_of(trace), "table")
    assert "recording 10 events and 1 worker records took about 0.00556 ms, 0.56%" in quiet
    assert "more than 1 %" not in quiet
    dear = trace._replace(cost=Cost(span_ns=5000.0))
    assert "recording took more than 1 % of the window" in render([], tally_of(dear), "table")


ALIKE = {
    "two halves of pairs": ["a\ud800", "a\ud801"],
    "a half and what replaces it": ["a\ud800", "a\ufffd"],
    "a half and its own number": ["a\ud800", "a\\ud800"],
    "a pair in two halves and one": ["\ud83d\ude00", "\U0001f600"],
    "a NUL and its picture": ["a\0", "a␀"],
    "a number that is taken": ["\0", "␀", "␀ (2)"],
}


@pytest.mark.parametrize("names", ALIKE.values(), ids=ALIKE)
def test_no_row_of_the_json_is_lost_under_the_key_of_another(recorder, clock, names):
    recorder.run(15, "test")
    for number, name in enumerate(names, 1):
        for category in names:
            recorder.complete(name, category, clock.now, clock.advance(number))
        recorder.counter(name, {name: number}, "imperative")
    document = json.loads(summary(recorder.stop("test"), form="json"))
    wanted = [pytest.approx(number / 1e6) for number in range(1, len(names) + 1)]
    assert len(document["Time"]) == len(names)
    for rows in document["Time"].values():
        assert sorted(row["Total"] for row in rows.values()) == wanted
    counters = document["Counter"]["imperative"]
    assert sorted(row["Max"] for row in counters.values()) == list(range(1, len(names) + 1))


def test_what_was_replaced_in_a_key_can_be_told(recorder, clock):
    recorder.run(15, "test")
    for name in ("a\ud800\0", "\ud83d\ude00\udfff"):
        recorder.complete(name, "imperative", clock.now, clock.advance(1))
    document = json.loads(summary(recorder.stop("test"), form="json"))
    assert set(document["Time"]["imperative"]) == {"a\\ud800␀", "\U0001f600\\udfff"}


def test_the_end_of_a_long_name_breaks_no_line(recorder, clock):
    recorder.run(15, "test")
    recorder.complete("n" * 500 + "\nend\x1b[2J", "imperative", clock.now, clock.advance(1))
    table = summary(recorder.stop("test"))
    assert len(table.split("\n\n")[0].splitlines()) == 3
    assert "\x1b" not in table
