"""Traces of several processes on one axis of time."""

from __future__ import annotations

import pytest

from opbench.errors import TraceError
from opbench.profiler import (
    ClockAnchor,
    Lane,
    Mode,
    Part,
    Profiler,
    Trace,
    TraceEvent,
    check,
    join,
    write,
)

HOUR = 3_600_000_000_000


def trace_of(pid, start, anchor, *names, tid=None, groups=()):
    events = tuple(
        TraceEvent(name, "api", "X", start + 10 * n, 5, pid, tid or pid, {})
        for n, name in enumerate(names)
    )
    return Trace(
        events=events,
        modes=Mode.API,
        windows=((start, start + 100),),
        dropped=1,
        anchor=anchor,
        process_names={pid: "opbench", **dict(groups)},
        thread_names={(pid, tid or pid): "MainThread"},
        metadata={"pid": pid},
    )


def starts(trace):
    return {event.name: event.start_ns for event in trace.events}


def test_one_start_of_the_machine_is_one_clock_whatever_the_date_says():
    one = trace_of(10, 1000, ClockAnchor(900, HOUR), "a")
    two = trace_of(20, 1500, ClockAnchor(1400, HOUR + 400), "b")  # the date was stepped meanwhile
    whole = join([Part("one", one), Part("two", two)])
    assert starts(whole) == {"a": 1000, "b": 1500}
    assert whole.windows == ((1000, 1100), (1500, 1600))
    assert whole.dropped == 2
    assert whole.process_names == {10: "opbench · one", 20: "opbench · two"}
    assert [part["file"] for part in whole.metadata["merged"]] == ["one", "two"]


def test_two_machines_are_placed_by_the_date():
    one = trace_of(10, 1000, ClockAnchor(1000, 50 * HOUR), "a")
    two = trace_of(20, 7_000_000, ClockAnchor(7_000_000, 50 * HOUR + 300), "b")
    two = two._replace(anchor=ClockAnchor(7_000_000 - HOUR, 49 * HOUR + 300))
    far = two._replace(
        events=tuple(e._replace(start_ns=e.start_ns + HOUR) for e in two.events),
        windows=((7_000_000 + HOUR, 7_000_100 + HOUR),),
        anchor=ClockAnchor(7_000_000 + HOUR, 50 * HOUR + 300),
    )
    assert starts(join([Part("one", one), Part("far", far)])) == {"a": 1000, "b": 1300}


def test_traces_can_begin_at_one_moment():
    one = trace_of(10, 1000, ClockAnchor(0, 0), "a", "c")
    two = trace_of(20, 900_000, ClockAnchor(0, 0), "b")
    whole = join([Part("one", one), Part("two", two)], align="start")
    assert starts(whole) == {"a": 900_000, "b": 900_000, "c": 900_010}


def test_a_trace_without_a_date_is_refused_by_name():
    one = trace_of(10, 1000, ClockAnchor(900, HOUR), "a")
    two = trace_of(20, 1500, ClockAnchor(0, 0), "b")
    with pytest.raises(TraceError, match=r"two\.json does not tell when .*--align start"):
        join([Part("one.json", one), Part("two.json", two)])
    dated = trace_of(20, 1_700_000_000_000_000_000, ClockAnchor(0, 0), "b")
    assert len(join([Part("mxnet", dated), Part("again", dated)]).events) == 2


def test_nothing_to_join_is_refused():
    with pytest.raises(TraceError, match="at least one"):
        join([])


def test_processes_of_one_number_stay_apart_with_their_lanes(tmp_path):
    anchor = ClockAnchor(900, HOUR)
    group = 10 + (1 << 22)
    one = trace_of(10, 1000, anchor, "a", groups=[(group, "numba workers")])
    lane = TraceEvent("chunk", "worker", "X", 1001, 2, group, 1, {})
    one = one._replace(events=(*one.events, lane))
    whole = join([Part("one", one), Part("two", one), Part("three", one)])
    assert len(whole.process_names) == 6
    pids = {event.pid for event in whole.events}
    assert len(pids) == 6
    bases = sorted(pid % (1 << 22) for pid in pids)
    assert bases[0::2] == bases[1::2]  # a process's lanes stay with it
    write(whole, tmp_path / "t.json")
    assert check(tmp_path / "t.json") == []


def test_arrows_and_overlapping_slices_of_two_processes_keep_their_own_ids(tmp_path):
    def recorded(pid):
        recorder = Profiler()
        recorder.run("all", "test")
        start = recorder.clock()
        recorder.complete("op", "api", start, start + 1000)
        lane = Lane("numba workers", 1, "worker 0")
        recorder.complete("chunk", "worker", start + 5, start + 50, lane=lane)
        recorder.flow("go", "worker", (start + 1, None), (start + 5, lane))
        recorder.span("frame", "api", start, start + 3)
        return recorder.stop("test")

    whole = join([Part("one", recorded(1)), Part("two", recorded(2))])
    ids = sorted(event.id for event in whole.events if event.id)
    assert len(set(ids)) == 4  # two arrows of two ends each, two frames
    assert len(ids) == 6
    write(whole, tmp_path / "t.json")
    assert check(tmp_path / "t.json") == []
