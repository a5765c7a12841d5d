"""How many events a window holds, and which stay."""

from __future__ import annotations

import threading

import pytest

from opbench.errors import ConfigError, StateError
from opbench.profiler import Lane, Profiler, check, write


def numbers(trace, category="api"):
    return [event.args["n"] for event in trace.events if event.category == category]


def fill(recorder, clock, count):
    for number in range(count):
        recorder.complete("x", "api", clock(), clock.advance(1), {"n": number})


@pytest.mark.parametrize("count", [4, 5, 6, 69, 70, 500])
@pytest.mark.parametrize("keep", ["oldest", "newest"])
def test_the_oldest_or_the_newest_stay_and_the_rest_is_counted(recorder, clock, keep, count):
    recorder.configure(capacity=5, keep=keep)
    recorder.run("all", "test")
    fill(recorder, clock, count)
    trace = recorder.stop("test")
    kept = list(range(count))
    assert numbers(trace) == (kept[:5] if keep == "oldest" else kept[-5:])
    assert trace.dropped == max(0, count - 5)


@pytest.mark.parametrize("keep", ["oldest", "newest"])
def test_iterations_and_calls_are_always_kept(recorder, clock, keep):
    recorder.configure(capacity=5, keep=keep)
    recorder.run("all", "test")
    for number in range(3):
        start = clock()
        fill(recorder, clock, 100)
        recorder.complete("it", "iteration", start, clock(), {"n": number}, across_pauses=True)
        recorder.complete("call", "call", start, clock(), {"n": number})
    trace = recorder.stop("test")
    assert numbers(trace, "iteration") == numbers(trace, "call") == [0, 1, 2]
    assert trace.dropped + len(trace.events) == 306
    assert len(numbers(trace)) <= 5


def test_a_buffer_of_the_newest_never_grows_far_beyond_its_capacity(recorder, clock):
    recorder.configure(capacity=1000, keep="newest")
    recorder.run("all", "test")
    largest = 0
    for _ in range(20):
        fill(recorder, clock, 500)
        largest = max(largest, len(recorder._buffer.events))
    assert largest <= 1251
    recorder.stop("test")


def test_nothing_is_counted_twice_or_lost_when_many_threads_overflow():
    recorder = Profiler(capacity=500, keep="newest")
    recorder.run("all", "test")

    def emit():
        for _ in range(500):
            recorder.instant("x", "api")

    threads = [threading.Thread(target=emit) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    trace = recorder.stop("test")
    assert (len(trace.events), trace.dropped) == (500, 2500)


@pytest.mark.parametrize("given", [{"capacity": 0}, {"capacity": 1.5}, {"capacity": True},
                                   {"keep": "new"}])  # fmt: skip
def test_a_wrong_bound_is_refused_with_what_was_given(recorder, given):
    with pytest.raises(ConfigError, match=str(next(iter(given.values())))):
        recorder.configure(**given)


def test_bounds_are_set_while_stopped_and_hold_from_the_next_window_on(recorder, clock):
    recorder.run("all", "test")
    with pytest.raises(StateError, match="cannot configure the profiler: its state is 'run'"):
        recorder.configure(capacity=1)
    fill(recorder, clock, 3)
    assert len(recorder.stop("test").events) == 3
    recorder.configure(capacity=1)
    recorder.run("all", "test")
    fill(recorder, clock, 3)
    assert len(recorder.stop("test").events) == 1


def test_an_arrow_of_which_one_end_found_no_room_is_left_out(recorder, clock, tmp_path):
    recorder.configure(capacity=2)
    recorder.run("all", "test")
    start = clock()
    clock.advance(10)
    recorder.complete("x", "api", start, clock(), {"n": 0})
    recorder.flow("go", "api", (start + 1, None), (start + 2, Lane("g", 1, "lane")))
    trace = recorder.stop("test")
    assert [event.phase for event in trace.events] == ["X"]
    assert trace.dropped == 2
    write(trace, tmp_path / "t.json")
    assert check(tmp_path / "t.json") == []
