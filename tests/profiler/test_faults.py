"""What goes wrong around a recorder: odd names, many threads, a clock that steps."""

from __future__ import annotations

import json
import threading

import pytest

from opbench.errors import StateError
from opbench.profiler import Domain, Profiler, check, encode, load, set_config, set_state, write
from opbench.profiler.doors import WINDOWS
from opbench.profiler.stream import Stream

NAMES = {
    "quotes": 'a"b\\"c',
    "tab": "a\tb\nc\r",
    "NUL": "a\0b",
    "lone surrogate": "a\ud800b\udfff",
    "beyond 16 bits": "𝄞",
    "ten megabytes": "x" * 10_000_000,
    "empty": "",
    "not ASCII": "naïve × µs",
}
SHOWN = {"NUL": "a␀b", "lone surrogate": "a\ufffdb\ufffd"}


@pytest.mark.parametrize("case", NAMES)
def test_any_name_survives_the_growing_file_and_the_finished_one(case, recorder, clock, tmp_path):
    path, name = str(tmp_path / "t.json"), NAMES[case]
    category = name if len(name) < 1000 else "api"
    recorder.run("all", "test")
    stream = Stream(recorder, path, 1e6, "test")
    stream.start()
    recorder.complete(name, category, clock(), clock.advance(5), {category: category})
    recorder.mark_open(name, "api", clock())
    recorder.span(name, category, clock(), clock.advance(5))
    assert stream.flush() == ""
    wanted = SHOWN.get(case, name)
    growing = json.loads((tmp_path / "t.json").read_text())
    assert [e["name"] for e in growing if e["ph"] in "XbeB"][:3] == [wanted] * 3
    trace = recorder.stop("test")
    stream.finish(trace, path)
    assert check(path) == []
    event = load(path).events[0]
    category = SHOWN.get(case, category)
    assert (event.name, event.category, event.args) == (wanted, category, {category: category})


def test_counters_that_are_no_number_are_counted_and_written_nowhere(recorder, tmp_path):
    recorder.run("all", "test")
    stream = Stream(recorder, str(tmp_path / "t.json"), 1e6, "test")
    stream.start()
    recorder.counter("c", {"nan": float("nan"), "inf": float("-inf"), "good": 1})
    stream.flush()
    text = (tmp_path / "t.json").read_text()
    assert '"args":{"good":1}' in text
    assert "nan" not in text.lower()
    assert '"dropped":2' in text
    trace = recorder.stop("test")
    stream.end()
    assert trace.dropped == 2


def test_a_wall_clock_that_steps_back_moves_nothing(recorder, clock, wall_clock, tmp_path):
    recorder.run("all", "test")
    first = wall_clock.now
    recorder.complete("a", "api", clock(), clock.advance(5))
    wall_clock.advance(-3_600_000_000_000)
    recorder.complete("b", "api", clock(), clock.advance(5))
    trace = recorder.stop("test")
    document = json.loads(encode(trace))
    assert [e["ts"] for e in document["traceEvents"] if e["ph"] == "X"] == [0.0, 0.005]
    assert document["baseTimeNanoseconds"] == first
    recorder.run("all", "test")  # a later window, at an earlier date
    recorder.stop("test")


def test_a_hundred_threads_of_tasks_while_another_opens_and_closes_windows(tmp_path):
    domain, windows, problems = Domain("domain"), [], []
    go, done = threading.Event(), threading.Event()

    def work(which):
        go.wait()
        turn = 0
        while not done.is_set():
            try:
                with domain.new_task(f"{which} {turn}"):
                    turn += 1
            except StateError as error:
                problems.append(error)
            done.wait(0.0005)

    set_config(profile_all=True, filename=str(tmp_path / "t.json"), continuous_dump=True,
               dump_period=0.005)  # fmt: skip
    threads = [threading.Thread(target=work, args=(which,)) for which in range(100)]
    try:
        for thread in threads:
            thread.start()
        go.set()
        for _ in range(5):
            set_state("run")
            done.wait(0.02)
            set_state("stop")
            windows.append(WINDOWS._windows[-1])
    finally:
        done.set()
        for thread in threads:
            thread.join(60)
    WINDOWS.dump()
    assert problems == []
    trace = load(tmp_path / "t.json")
    assert sum(len(window.events) for window in windows) == len(trace.events)
    tasks = [event for event in trace.events if event.category == "domain"]
    assert len({event.name.split()[0] for event in tasks}) > 50  # most of the threads had a turn
    for event in tasks:
        assert any(start <= event.start_ns and event.end_ns <= end for start, end in trace.windows)
    assert check(tmp_path / "t.json") == []


def test_an_emit_in_a_thread_that_ends_with_the_window_is_whole(clock, wall_clock):
    recorder = Profiler(clock, wall_clock)
    recorder.run("all", "test")
    sink = recorder._sink
    trace = recorder.stop("test")
    recorder.run("all", "test")
    sink[0].append(("X", "late", "api", 0, 1, 1, None))  # an emit that was under way
    assert (trace.events, recorder.stop("test").events) == ((), ())


def test_writing_is_refused_nowhere_in_a_trace_without_events(recorder, tmp_path):
    recorder.run("all", "test")
    write(recorder.stop("test"), tmp_path / "t.json")
    assert check(tmp_path / "t.json") == []
    assert load(tmp_path / "t.json").events == ()
