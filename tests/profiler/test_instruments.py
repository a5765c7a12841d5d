"""What a program marks by hand: where it stands in the trace, and what misuse is told."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import signal
import threading

import pytest

from opbench import profiler
from opbench.errors import ConfigError, StateError
from opbench.profiler import RECORDER, Counter, Domain, Event, Frame, Marker, Task, check, scope
from opbench.profiler.scopes import current_scope


@pytest.fixture
def record():
    """Runs a function in a window of no mode, and gives the trace."""

    @contextlib.contextmanager
    def recording(modes="none"):
        traces = []
        RECORDER.run(modes, "test")
        try:
            yield traces
        finally:
            trace = RECORDER.stop("test")
            # A collection of garbage may fall into any window.
            ours = tuple(event for event in trace.events if event.category != "gc")
            traces.append(trace._replace(events=ours))

    return recording


def timed(events):
    """Name, category and phase of each."""
    return [(event.name, event.category, event.phase) for event in events]


# ---- where each stands


def test_each_kind_has_mxnets_category_in_a_phase_that_viewers_draw(record):
    domain = Domain("mine")
    with record() as traces:
        with domain.new_task("task"):
            pass
        with domain.new_frame("frame"):
            pass
        with Event("event"):
            pass
        domain.new_counter("count", 3)
        domain.new_marker("marker").mark()
        with scope("scope"):
            pass
    assert timed(traces[0].events) == [
        ("task", "mine", "b"),
        ("frame", "mine,frame", "b"),
        ("event", "event", "X"),
        ("count", "mine", "C"),
        ("marker", "mine,instant_marker", "i"),
        ("scope", "scope", "X"),
    ]


@pytest.mark.parametrize("modes", ["none", "api", "all"])
def test_they_are_recorded_in_every_mode_and_not_while_paused_or_stopped(record, modes):
    task = Task(Domain("d"), "task")
    counter = Counter(Domain("d"), "count")
    with task:
        counter.increment()
    with record(modes) as traces:
        with task:
            counter.increment()
        RECORDER.pause()
        with task:
            counter.increment()
            Marker(Domain("d"), "m").mark()
        RECORDER.resume()
        counter.increment()
    kept = [event for event in traces[0].events if event.category == "d"]
    assert timed(kept) == [("task", "d", "b"), ("count", "d", "C"), ("count", "d", "C")]
    # The counter counts on while nobody looks.
    assert [event.args for event in kept if event.phase == "C"] == [{"d": 2}, {"d": 4}]


def test_a_task_and_its_arguments_from_its_constructor_its_start_and_its_stop(record):
    task = Task(Domain("io"), "load", {"file": "a.bin"})
    with record() as traces:
        task.start(rows=3)
        task.stop(bytes=24)
    (event,) = traces[0].events
    assert event.args == {"file": "a.bin", "rows": 3, "bytes": 24}


def test_arguments_hold_on_to_no_array_and_take_whatever_they_get(record):
    class Array:
        shape = (3, 4)
        dtype = "float32"

        def __str__(self):
            raise AssertionError("an array was turned into text")

    class Strange:
        def __str__(self):
            raise RuntimeError

    given = {"a": Array(), "deep": {"list": [1, (2.5, None)]}, "odd": Strange()}
    with record() as traces, Event("e", given):
        pass
    (event,) = traces[0].events
    assert event.args["a"] == "float32[3,4]"
    assert event.args["deep"] == {"list": [1, [2.5, None]]}
    assert "Strange" in event.args["odd"]


def test_overlapping_tasks_of_one_thread_keep_their_times_and_have_ids_of_their_own(record):
    a, b = Task(Domain("d"), "a"), Task(Domain("d"), "b")
    with record() as traces:
        a.start()
        b.start()
        a.stop()
        b.stop()
    first, second = traces[0].events
    assert (first.name, second.name) == ("a", "b")
    assert first.start_ns <= second.start_ns <= first.end_ns <= second.end_ns
    assert first.id != second.id


def test_an_event_nests_in_its_thread_and_one_that_changes_threads_is_drawn_like_a_task(record):
    moved = Event("moved")
    with record() as traces:
        with Event("outer"), Event("inner"):
            pass
        moved.start()
        thread = threading.Thread(target=moved.stop)
        thread.start()
        thread.join(60)
    assert timed(traces[0].events) == [
        ("outer", "event", "X"),
        ("inner", "event", "X"),
        ("moved", "event", "b"),
    ]


def test_what_began_before_the_window_is_left_out_and_not_cut(record):
    early = Task(Domain("d"), "early")
    early.start()
    with record() as traces:
        early.stop()
    assert traces[0].events == ()


# ---- decorators


def test_a_decorated_function_is_one_interval_per_call_and_may_recurse(record):
    @Event("fib")
    def fib(n):
        """Doc."""
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    with record() as traces:
        assert fib(4) == 3
    assert len(traces[0].events) == 9
    assert fib.__name__ == "fib"
    assert fib.__doc__ == "Doc."


def test_a_decorated_coroutine_lasts_until_it_was_awaited(record):
    order = []

    @Event("wait")
    async def wait(name):
        order.append(f"{name} begins")
        await asyncio.sleep(0)
        order.append(f"{name} ends")

    async def both():
        await asyncio.gather(wait("a"), wait("b"))

    with record() as traces:
        asyncio.run(both())
    events = traces[0].events
    assert order == ["a begins", "b begins", "a ends", "b ends"]
    # Two that take turns cross; on one track they could not.
    assert timed(events) == [("wait", "event", "b")] * 2
    assert events[0].end_ns > events[1].start_ns


@pytest.mark.parametrize("made", [Event("e"), Task(Domain("d"), "t"), scope("s")])
def test_a_generator_is_refused_where_it_is_decorated(made):
    def produce():
        yield 1

    with pytest.raises(ConfigError, match=r"produce' is a generator: .* use a 'with' block"):
        made(produce)
    with pytest.raises(ConfigError, match="only a function can be decorated, not 3"):
        made(3)


def test_a_counter_around_a_block_or_a_call_counts_what_is_in_flight(record):
    counter = Counter(Domain("d"), "busy")

    @counter
    def call():
        return counter.value

    with record() as traces:
        with counter:
            assert call() == 2
        with pytest.raises(ZeroDivisionError), counter:
            _ = 1 / 0
    values = [event.args["d"] for event in traces[0].events]
    assert values == [1, 2, 1, 0, 1, 0]


def test_a_marker_marks_where_a_block_or_a_call_begins(record):
    marker = Marker(Domain("d"), "here")

    @marker
    def call():
        raise KeyError

    with record() as traces:
        with marker:
            pass
        with pytest.raises(KeyError):
            call()
    assert [event.name for event in traces[0].events] == ["here", "here"]


# ---- misuse


@pytest.mark.parametrize("made", [Event("e"), Task(Domain("d"), "t"), Frame(Domain("d"), "f")])
def test_a_stop_without_a_start_and_a_double_start_are_told(record, made):
    name = type(made).__name__
    with record() as traces:
        with pytest.raises(StateError, match=rf"cannot stop {name}\('.'\): it was not started"):
            made.stop()
        made.start()
        with pytest.raises(StateError, match=rf"cannot start {name}.*: it was started already"):
            made.start()
        made.stop()
        with pytest.raises(StateError, match="was not started"):
            made.stop()
        made.start()
        made.stop()
    assert len(traces[0].events) == 2


def test_of_a_hundred_threads_that_start_one_task_exactly_one_succeeds():
    task = Task(Domain("d"), "t")
    together = threading.Barrier(100)
    refused = []

    def start():
        together.wait(60)
        try:
            task.start()
        except StateError as error:
            refused.append(error)

    threads = [threading.Thread(target=start) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(refused) == 99
    task.stop()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Domain(""), "the name of a Domain is a text that is not empty, not ''"),
        (lambda: Event(None), "the name of a Event is a text that is not empty, not None"),
        (lambda: Task("mine", "t"), "a Task belongs to a Domain, not to 'mine'; make one: Task("),
        (lambda: Counter(Domain("d"), "c", "3"), "counts numbers, not '3'"),
        (lambda: Counter(Domain("d"), "c", [3]), "counts numbers, not [3]"),
        (lambda: Counter(Domain("d"), "c", 3 + 1j), "counts numbers, not (3+1j)"),
        (lambda: Event("e", ["x"]), "args of a Event is a dictionary of name to value, not ['x']"),
        (lambda: Marker(Domain("d"), "m").mark("thraed"), "unknown scope 'thraed'; did you mean"),
        (lambda: scope(3), "the name of a scope is a text that is not empty, not 3"),
    ],
)
def test_a_wrong_argument_is_told(make, message):
    with pytest.raises(ConfigError) as caught:
        make()
    assert message in str(caught.value)


# ---- counters and markers


def test_a_counter_is_signed_fractional_and_as_large_as_it_gets(record):
    with record() as traces:
        counter = Counter(Domain("d"), "c", 1)
        counter.decrement(3)
        counter += 0.25
        counter -= 2
        counter.set_value(2**70)
    values = [event.args["d"] for event in traces[0].events]
    assert values == [1, -2, -1.75, -3.75, 2**70]
    assert counter.value == 2**70


def test_a_counter_that_is_no_finite_number_is_left_out_and_counted(record):
    with record() as traces:
        counter = Counter(Domain("d"), "c", 1)
        for value in (math.nan, math.inf, -math.inf):
            counter.set_value(value)
        counter.set_value(2)
    (trace,) = traces
    assert [event.args["d"] for event in trace.events] == [1, 2]
    assert trace.dropped == 3


def test_numbers_of_other_kinds_are_numbers(record):
    class Whole:
        def __index__(self):
            return 7

    with record() as traces:
        counter = Counter(Domain("d"), "c", Whole())
        counter.set_value(True)
    assert [event.args["d"] for event in traces[0].events] == [7, 1]


def test_many_threads_lose_no_count(record):
    counter = Counter(Domain("d"), "c")
    with record() as traces:
        threads = [
            threading.Thread(target=lambda: [counter.increment() for _ in range(500)])
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert counter.value == 4000
    # In the order in which they were reached, so that the track never jumps back.
    assert [event.args["d"] for event in traces[0].events] == list(range(1, 4001))


@pytest.mark.parametrize(
    ("given", "written"),
    [("global", "g"), ("process", "p"), ("task", "p"), ("marker", "p"), ("thread", "t")],
)
def test_a_markers_scope(record, given, written):
    with record() as traces:
        Marker(Domain("d"), "m").mark(given, {"why": "x"})
    (event,) = traces[0].events
    assert (event.scope, event.args) == (written, {"why": "x"})


# ---- scope


def test_scopes_nest_and_the_outer_one_is_restored_also_by_an_exception():
    assert current_scope() == "<unk>:"
    with scope("outer"):
        with pytest.raises(KeyError, match="outer:inner:"), scope("inner"):
            raise KeyError(current_scope())
        assert current_scope() == "outer:"
        with scope("alone:", append_mode=False):
            assert current_scope() == "alone:"
    assert current_scope() == "<unk>:"


def test_a_scope_is_its_threads_own():
    seen = []
    with scope("mine"):
        thread = threading.Thread(target=lambda: seen.append(current_scope()))
        thread.start()
        thread.join(60)
    assert seen == ["<unk>:"]


def test_an_exception_inside_a_scope_ends_its_slice(record):
    with record() as traces:
        with pytest.raises(KeyError), scope("s", args={"n": 1}):
            raise KeyError
        with Event("after"):
            pass
    first, second = traces[0].events
    assert (first.name, first.args) == ("s", {"n": 1})
    assert first.end_ns <= second.start_ns


def test_a_scope_decorates_and_is_not_entered_twice(record):
    @scope("layer")
    def call(depth):
        return call(depth - 1) if depth else current_scope()

    with record() as traces:
        assert call(2) == "layer:layer:layer:"
    assert len(traces[0].events) == 3
    one = scope("one")
    with one, pytest.raises(StateError, match="it is open already"):
        one.__enter__()
    assert current_scope() == "<unk>:"


# ---- faults

NAMES = {
    "quotes": "say \"x\" \\ and 'y'",
    "control": "tab\tline\nnul\0bell\x07",
    "surrogate": "half \ud800 of a pair",
    "emoji": "\U0001f600 名前",
    "10 MB": "n" * 10_000_000,
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_any_name_makes_a_file_that_both_viewers_take_and_a_table(tmp_path, name):
    domain = Domain(name)
    profiler.set_config(profile_all=False, filename=tmp_path / "t.json")
    profiler.set_state("run")
    with domain.new_task(name, {name[:100]: name}), Event(name), scope(name):
        domain.new_counter(name, 1)
        domain.new_marker(name).mark("global")
    profiler.dump()
    assert check(tmp_path / "t.json") == []
    lines = profiler.dumps().splitlines()
    assert max(map(len, lines)) < 250
    json.loads(profiler.dumps(reset=True, format="json"))


def test_a_hundred_threads_start_and_stop_tasks_while_another_stops_the_profiler():
    domain, begun = Domain("d"), threading.Semaphore(0)
    problems = []

    def work():
        task = domain.new_task("t")
        try:
            for _ in range(100):
                task.start()
                task.stop()
                begun.release()
        except Exception as error:  # noqa: BLE001 - whatever it is, the test is to show it
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(100)]
    RECORDER.run("none", "test")
    for thread in threads:
        thread.start()
    # Those whose stop has returned are in the trace, whatever the others are at.
    returned = 0
    while returned < 500 and begun.acquire(timeout=60):
        returned += 1
    trace = RECORDER.stop("test")
    for thread in threads:
        thread.join(60)
    assert problems == []
    events = [event for event in trace.events if event.category == "d"]
    assert 500 <= len(events) <= 10_000
    assert trace.dropped == 0
    ((start, end),) = trace.windows
    assert all(start <= event.start_ns <= end for event in events)
    assert len({event.id for event in events}) == len(events)


def test_a_signal_handler_may_use_the_instrument_that_it_interrupts(record):
    counter, task = Counter(Domain("d"), "c"), Task(Domain("d"), "t")

    def handler(*_):
        counter.increment()
        with contextlib.suppress(StateError):
            task.start()
        counter.increment()

    old = signal.signal(signal.SIGUSR1, handler)
    try:
        with record():
            for _ in range(200):
                signal.raise_signal(signal.SIGUSR1)
                counter.decrement(2)
            task.stop()
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert counter.value == 0
