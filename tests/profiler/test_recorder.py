from __future__ import annotations

import gc
import os
import threading
import time
import weakref

import pytest

from opbench.errors import ConfigError, StateError, TraceError
from opbench.profiler import Mode, Profiler, TraceEvent, merge


def slice_of(recorder, clock, name, ns, category="imperative", args=None):
    start = recorder.clock()
    clock.advance(ns)
    recorder.complete(name, category, start, recorder.clock(), args)


def names(trace):
    return [event.name for event in trace.events]


def test_a_window_holds_its_events_exactly(recorder, clock):
    recorder.run(Mode.IMPERATIVE | Mode.MEMORY, "test")
    clock.advance(5)
    slice_of(recorder, clock, "dot", 70, args={"flop": 3})
    recorder.counter("live", {"cpu": 12})
    recorder.instant("alloc", "memory", {"bytes": 8})
    clock.advance(25)
    trace = recorder.stop("test")
    pid, tid = os.getpid(), threading.get_native_id()
    assert trace.events == (
        TraceEvent("dot", "imperative", "X", 1_000_005, 70, pid, tid, {"flop": 3}),
        TraceEvent("live", "memory", "C", 1_000_075, 0, pid, tid, {"cpu": 12}),
        TraceEvent("alloc", "memory", "i", 1_000_075, 0, pid, tid, {"bytes": 8}),
    )
    assert trace.windows == ((1_000_000, 1_000_100),)
    assert trace.modes == Mode.IMPERATIVE | Mode.MEMORY
    assert trace.dropped == 0
    assert trace.anchor == (1_000_000, 1_764_569_000_123_456_789)
    assert trace.thread_names == {(pid, tid): threading.current_thread().name}
    assert trace.process_names == {pid: "opbench"}
    assert trace.events[0].end_ns == 1_000_075


def test_the_mask_is_a_plain_integer_and_zero_unless_recording(recorder):
    seen = [recorder.mask]
    recorder.run("symbolic+memory", "test")
    seen.append(recorder.mask)
    recorder.pause()
    seen.append(recorder.mask)
    recorder.resume()
    seen.append(recorder.mask)
    recorder.stop("test")
    seen.append(recorder.mask)
    assert seen == [0, 9, 0, 9, 0]
    assert {type(mask) for mask in seen} == {int}


def test_state_paused_recording_and_owner_follow_the_transitions(recorder):
    def now():
        return recorder.state, recorder.paused, recorder.recording, recorder.owner

    assert now() == ("stop", False, False, None)
    recorder.run(0, "the fixture")
    assert now() == ("run", False, True, "the fixture")
    recorder.pause()
    assert now() == ("run", True, False, "the fixture")
    recorder.resume()
    assert now() == ("run", False, True, "the fixture")
    recorder.stop("the fixture")
    assert now() == ("stop", False, False, None)


@pytest.mark.parametrize(
    ("before", "wrong", "message"),
    [
        ([], "stop", "cannot stop the profiler for 'me': its state is 'stop', nobody owns it"),
        ([], "pause", "its state is 'stop'"),
        ([], "resume", "its state is 'stop'"),
        ([], "snapshot", "its state is 'stop'"),
        (["run"], "run", "cannot run the profiler for 'me': its state is 'run', its owner 'me'"),
        (["run"], "resume", "its state is 'run', its owner 'me'; pause it first"),
        (["run", "pause"], "pause", "its state is 'run', paused, its owner 'me'; resume it first"),
        (["run", "pause"], "run", "paused, its owner 'me'; stop it first"),
        (["run", "stop"], "stop", "its state is 'stop'"),
    ],
)
def test_a_wrong_transition_names_state_and_owner_and_changes_nothing(
    recorder, before, wrong, message
):
    steps = {
        "run": lambda: recorder.run(15, "me"),
        "stop": lambda: recorder.stop("me"),
        "snapshot": lambda: recorder.snapshot("me"),
        "pause": recorder.pause,
        "resume": recorder.resume,
    }
    for step in before:
        steps[step]()
    state = recorder.state, recorder.paused, recorder.mask
    with pytest.raises(StateError) as caught:
        steps[wrong]()
    assert message in str(caught.value)
    assert (recorder.state, recorder.paused, recorder.mask) == state


@pytest.mark.parametrize("verb", ["stop", "snapshot"])
def test_only_the_owner_takes_the_window(recorder, verb):
    recorder.run(15, "the fixture")
    with pytest.raises(StateError, match=r"for 'me'.*owner 'the fixture'; only its owner can"):
        getattr(recorder, verb)("me")
    assert recorder.stop("the fixture").events == ()


def test_a_run_with_an_unknown_mode_opens_nothing(recorder):
    with pytest.raises(ConfigError):
        recorder.run("symbollic", "test")
    assert recorder.state == "stop"


def test_nothing_is_recorded_while_stopped_or_paused(recorder, clock):
    slice_of(recorder, clock, "before", 1)
    recorder.run(15, "test")
    slice_of(recorder, clock, "first", 1)
    recorder.pause()
    paused = clock.now
    slice_of(recorder, clock, "paused", 10)
    recorder.instant("paused too", "api")
    recorder.resume()
    slice_of(recorder, clock, "second", 1)
    trace = recorder.stop("test")
    slice_of(recorder, clock, "after", 1)
    assert names(trace) == ["first", "second"]
    assert trace.pauses == ((paused, paused + 10),)
    assert trace.dropped == 0
    recorder.run(15, "test")
    assert recorder.stop("test").events == ()


def test_a_window_that_is_stopped_while_paused_says_so(recorder, clock):
    recorder.run(15, "test")
    recorder.pause()
    begin = clock.now
    clock.advance(30)
    trace = recorder.stop("test")
    assert trace.pauses == ((begin, begin + 30),)
    recorder.run(15, "test")
    assert recorder.recording
    assert recorder.stop("test").pauses == ()


def test_an_event_that_began_before_the_window_is_left_out(recorder, clock):
    early = recorder.clock()
    clock.advance(10)
    recorder.run(15, "test")
    clock.advance(10)
    recorder.complete("early", "api", early, recorder.clock())
    late = recorder.clock()
    recorder.complete("late", "api", late, clock.advance(1))
    assert names(recorder.stop("test")) == ["late"]


def test_an_event_that_reaches_over_a_pause_is_left_out_unless_it_may(recorder, clock):
    early = recorder.clock()
    clock.advance(1)
    recorder.run(15, "test")
    begin = recorder.clock()
    recorder.pause()
    clock.advance(10)
    recorder.resume()
    recorder.complete("operator", "imperative", begin, recorder.clock())
    recorder.complete("iteration 0", "iteration", begin, recorder.clock(), across_pauses=True)
    recorder.complete("iteration -1", "iteration", early, recorder.clock(), across_pauses=True)
    assert names(recorder.stop("test")) == ["iteration 0"]


def test_a_slice_that_ends_before_it_starts_is_refused(recorder):
    with pytest.raises(TraceError, match="'dot' ends 3 ns before it starts"):
        recorder.complete("dot", "imperative", 10, 7)


@pytest.mark.parametrize(("start", "end"), [(10.0, 12), (10, 12.5), (10, None), ("1", 2)])
def test_a_time_that_is_no_whole_number_is_refused(recorder, start, end):
    recorder.run(15, "test")
    with pytest.raises(TraceError, match=r"'dot' has the times .* take both times from"):
        recorder.complete("dot", "imperative", start, end)
    assert recorder.stop("test").events == ()


def test_times_of_any_integer_type_become_plain_integers(recorder):
    class Integer:
        def __init__(self, value):
            self.value = value

        def __index__(self):
            return self.value

    recorder.run(15, "test")
    recorder.complete("dot", "imperative", Integer(1_000_002), Integer(1_000_005))
    (event,) = recorder.stop("test").events
    assert (type(event.start_ns), event.start_ns, event.duration_ns) == (int, 1_000_002, 3)


def test_iterations_and_calls_find_room_in_a_full_buffer(clock, wall_clock):
    recorder = Profiler(clock, wall_clock, capacity=2)
    recorder.run(15, "test")
    begin = recorder.clock()
    for _ in range(5):
        slice_of(recorder, clock, "dot", 1)
    slice_of(recorder, clock, "f", 1, category="call")
    recorder.complete("iteration 0", "iteration", begin, recorder.clock(), across_pauses=True)
    trace = recorder.stop("test")
    assert names(trace) == ["iteration 0", "dot", "dot", "f"]
    assert trace.dropped == 3


def test_a_full_buffer_keeps_the_oldest_and_counts_the_rest(clock, wall_clock):
    recorder = Profiler(clock, wall_clock, capacity=3)
    recorder.run(15, "test")
    for number in range(5):
        slice_of(recorder, clock, str(number), 1)
    trace = recorder.stop("test")
    assert names(trace) == ["0", "1", "2"]
    assert trace.dropped == 2
    recorder.run(15, "test")
    assert recorder.stop("test").dropped == 0


def test_counter_values_that_are_no_finite_number_are_left_out_and_counted(recorder):
    class Scalar:
        def __index__(self):
            return 7

        def __float__(self):
            return 7.0

    nan, inf = float("nan"), float("inf")
    recorder.run(15, "test")
    recorder.counter("a", {"good": 1.5, "nan": nan})
    recorder.counter("b", {"inf": inf, "text": "3", "none": None, "huge": 10**400})
    recorder.counter("c", {"scalar": Scalar(), "true": True})
    trace = recorder.stop("test")
    assert [(event.name, event.args) for event in trace.events] == [
        ("a", {"good": 1.5}),
        ("c", {"scalar": 7, "true": 1}),
    ]
    assert trace.dropped == 5


def test_a_counter_keeps_the_values_of_its_moment(recorder):
    live = {"bytes": 1}
    recorder.run(15, "test")
    recorder.counter("live", live)
    live["bytes"] = 2
    recorder.counter("live", live)
    assert [event.args["bytes"] for event in recorder.stop("test").events] == [1, 2]


def test_events_come_in_order_of_time_and_parents_before_children(recorder, clock):
    recorder.run(15, "test")
    begin = recorder.clock()
    clock.advance(10)
    recorder.complete("grandchild", "c", begin, recorder.clock())
    recorder.complete("child", "c", begin, recorder.clock())
    recorder.complete("parent", "c", begin, clock.advance(5))
    assert names(recorder.stop("test")) == ["parent", "child", "grandchild"]


def test_every_transition_waits_for_pending_work_first(recorder):
    seen = []
    recorder.add_synchroniser(lambda: seen.append((recorder.state, recorder.recording)))
    recorder.run(15, "test")
    recorder.pause()
    recorder.resume()
    recorder.snapshot("test")
    recorder.stop("test")
    assert seen == [
        ("stop", False),
        ("run", True),
        ("run", False),
        ("run", True),
        ("run", True),
    ]


def test_work_pending_at_a_transition_counts_where_it_was_submitted(recorder, clock):
    pending = []

    def wait_all():
        while pending:
            slice_of(recorder, clock, pending.pop(0), 10)

    recorder.add_synchroniser(wait_all)
    pending.append("before run")
    recorder.run(15, "test")
    pending.append("in the window")
    recorder.pause()
    pending.append("in the pause")
    recorder.resume()
    pending.append("at the end")
    trace = recorder.stop("test")
    assert names(trace) == ["in the window", "at the end"]
    assert trace.windows[0][1] == trace.events[-1].end_ns


def test_an_interrupt_while_waiting_leaves_the_state_as_it_was(recorder):
    interrupts = []

    def interrupted():
        if interrupts:
            raise interrupts.pop()

    recorder.add_synchroniser(interrupted)
    recorder.run(15, "test")
    interrupts.append(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        recorder.stop("test")
    assert recorder.recording
    assert recorder.stop("test").windows == ((1_000_000, 1_000_000),)


class InterruptedLock:
    """The recorder's lock; a Ctrl-C comes right after it was released for the n-th time."""

    def __init__(self, lock, releases):
        self._lock = lock
        self._left = releases

    def __enter__(self):
        self._lock.acquire()

    def __exit__(self, *error):
        self._lock.release()
        self._left -= 1
        if self._left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("releases", [1, 2])
@pytest.mark.parametrize("verb", ["run", "pause", "resume", "snapshot", "stop"])
def test_an_interrupt_in_a_transition_leaves_the_next_one_possible(recorder, verb, releases):
    steps = {
        "run": lambda: recorder.run(15, "test"),
        "pause": recorder.pause,
        "resume": recorder.resume,
        "snapshot": lambda: recorder.snapshot("test"),
        "stop": lambda: recorder.stop("test"),
    }
    for step in {"run": [], "resume": ["run", "pause"]}.get(verb, ["run"]):
        steps[step]()
    lock = recorder._lock
    recorder._lock = InterruptedLock(lock, releases)
    with pytest.raises(KeyboardInterrupt):
        steps[verb]()
    recorder._lock = lock
    if recorder.state == "stop":
        recorder.run(15, "test")
    recorder.stop("test")
    assert recorder.state == "stop"


@pytest.mark.parametrize("paused", [False, True])
def test_an_interrupt_while_stop_freezes_keeps_the_window(recorder, clock, monkeypatch, paused):
    def interrupted(raw, pid, groups):
        raise KeyboardInterrupt

    recorder.run(15, "test")
    slice_of(recorder, clock, "dot", 10)
    if paused:
        recorder.pause()
        clock.advance(3)
    with monkeypatch.context() as patch:
        patch.setattr("opbench.profiler.profiler.build_events", interrupted)
        with pytest.raises(KeyboardInterrupt):
            recorder.stop("test")
    assert (recorder.state, recorder.recording, recorder.mask) == ("run", False, 0)
    clock.advance(20)
    recorder.instant("late", "api")
    trace = recorder.stop("test")
    assert names(trace) == ["dot"]
    assert trace.pauses == ((1_000_010, clock.now),)
    assert recorder.state == "stop"


def test_a_stop_that_need_not_wait_takes_what_is_there(recorder, clock):
    def broken():
        if recorder.state == "run":
            raise ZeroDivisionError

    recorder.add_synchroniser(broken)
    recorder.run(15, "test")
    slice_of(recorder, clock, "dot", 10)
    with pytest.raises(ZeroDivisionError):
        recorder.stop("test")
    assert names(recorder.stop("test", wait=False)) == ["dot"]


def test_a_second_transition_during_the_first_is_refused_and_does_not_hang(recorder):
    refused = []

    def meddle():
        with pytest.raises(StateError) as caught:
            recorder.run(15, "second")
        refused.append(str(caught.value))

    def from_another_thread():
        thread = threading.Thread(target=meddle)
        thread.start()
        thread.join(60)

    recorder.add_synchroniser(from_another_thread)
    recorder.run(15, "first")
    assert recorder.owner == "first"
    assert "a run() is under way" in refused[0]
    recorder._synchronisers.clear()
    recorder.stop("first")


def test_a_snapshot_shows_the_window_so_far_and_leaves_it_open(recorder, clock):
    recorder.run(15, "test")
    slice_of(recorder, clock, "first", 10)
    so_far = recorder.snapshot("test")
    slice_of(recorder, clock, "second", 10)
    trace = recorder.stop("test")
    assert names(so_far) == ["first"]
    assert so_far.windows == ((1_000_000, 1_000_010),)
    assert names(trace) == ["first", "second"]


def test_the_iteration_is_forgotten_between_windows(recorder):
    recorder.run(15, "test")
    assert recorder.iteration is None
    recorder.iteration = 3
    recorder.stop("test")
    assert recorder.iteration is None


def test_a_step_of_the_wall_clock_moves_no_event(recorder, clock, wall_clock):
    recorder.run(15, "test")
    wall_clock.advance(-3_600_000_000_000)
    slice_of(recorder, clock, "dot", 10)
    trace = recorder.stop("test")
    assert trace.events[0].start_ns == 1_000_000
    assert trace.anchor.wall_at(trace.events[0].end_ns) == 1_764_569_000_123_456_799


def test_threads_record_under_their_own_number_and_name(recorder):
    recorder.run(15, "test")
    seen = {}

    def work():
        recorder.instant(threading.current_thread().name, "api")
        seen[threading.current_thread().name] = threading.get_native_id()

    threads = [threading.Thread(target=work, name=f"worker {number}") for number in range(3)]
    barrier = threading.Barrier(3, timeout=60)
    for thread in threads:
        thread._target = lambda: (barrier.wait(), work(), barrier.wait())
        thread.start()
    for thread in threads:
        thread.join(60)
    trace = recorder.stop("test")
    assert {event.name: event.tid for event in trace.events} == seen
    assert {tid: name for (_, tid), name in trace.thread_names.items()} == {
        tid: name for name, tid in seen.items()
    }


def test_a_thread_number_used_again_shows_the_names_of_all_its_threads(recorder, monkeypatch):
    monkeypatch.setattr(threading, "get_native_id", lambda: 4711)
    recorder.run(15, "test")
    for name in ("a", "b", "b", "c", "d"):
        thread = threading.Thread(target=lambda: recorder.instant("x", "api"), name=name)
        thread.start()
        thread.join(60)
    assert recorder.stop("test").thread_names == {(os.getpid(), 4711): "a, b, c, …"}
    recorder.run(15, "test")
    recorder.stop("test")


@pytest.mark.parametrize(("given", "told"), [("", "thread {}"), (7, "7"), (None, "None")])
def test_a_thread_always_has_a_name_and_it_is_text(recorder, given, told):
    class Named(threading.Thread):
        name = given

    thread = Named(target=lambda: recorder.instant("x", "api"))
    recorder.run(15, "test")
    thread.start()
    thread.join(10)
    ((_, tid), name) = next(iter(recorder.stop("test").thread_names.items()))
    assert name == told.format(tid)


def test_a_thread_makes_itself_known_again_in_each_window(recorder):
    traces = []
    for _ in range(2):
        recorder.run(15, "test")
        recorder.instant("x", "api")
        traces.append(recorder.stop("test"))
    assert traces[0].thread_names == traces[1].thread_names != {}


def test_nothing_is_lost_when_threads_emit_while_another_stops():
    recorder = Profiler()
    recorder.run(15, "test")
    go = threading.Barrier(5, timeout=60)
    done = threading.Event()
    emitted = [0] * 4

    def emit(which):
        go.wait()
        while not done.is_set():
            start = recorder.clock()
            recorder.complete(str(which), "api", start, recorder.clock(), {"n": emitted[which]})
            emitted[which] += 1

    threads = [threading.Thread(target=emit, args=(which,)) for which in range(4)]
    for thread in threads:
        thread.start()
    go.wait()
    late = time.monotonic() + 60
    while min(emitted) < 20 and time.monotonic() < late:
        pass
    before = list(emitted)
    trace = recorder.stop("test")
    done.set()
    for thread in threads:
        thread.join(60)
    assert min(before) >= 20
    numbers = {str(which): [] for which in range(4)}
    for event in trace.events:
        numbers[event.name].append(event.args["n"])
    for which, found in enumerate(numbers.values()):
        assert sorted(found) == list(range(len(found)))  # no gap: what stop did not see came after
        assert len(found) >= before[which]
    assert trace.dropped == 0


def test_dropped_and_kept_add_up_when_many_threads_fill_the_buffer():
    recorder = Profiler(capacity=500)
    recorder.run(15, "test")

    def emit():
        for _ in range(200):
            recorder.instant("x", "api")

    threads = [threading.Thread(target=emit) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    trace = recorder.stop("test")
    assert (len(trace.events), trace.dropped) == (500, 700)


def test_a_finalizer_may_emit_in_the_middle_of_an_emit(recorder, monkeypatch):
    class Owned:
        pass

    recorder.run(15, "test")
    owned = Owned()
    weakref.finalize(owned, lambda: recorder.instant("free", "memory"))
    holder = [owned]
    del owned

    def number():
        holder.clear()  # the finalizer runs here, under the recorder's lock
        gc.collect()
        return 77

    monkeypatch.setattr(threading, "get_native_id", number)
    recorder.instant("alloc", "memory")
    assert sorted(names(recorder.stop("test"))) == ["alloc", "free"]


def test_a_collection_in_the_middle_of_a_snapshot_may_emit(recorder, monkeypatch):
    from opbench.profiler import profiler as module

    recorder.run(15, "test")
    for name in "ab":
        thread = threading.Thread(target=recorder.instant, args=(name, "api"))
        thread.start()
        thread.join(60)
    join_names = module.join_names

    def collecting(known):
        recorder.instant("from a finalizer", "api")  # makes the main thread known
        return join_names(known)

    monkeypatch.setattr(module, "join_names", collecting)
    assert sorted(names(recorder.snapshot("test")))[:2] == ["a", "b"]
    assert recorder.unsent(1).there > 2
    recorder.stop("test")


def test_a_detached_recorder_is_as_new_and_its_lock_is_free(recorder):
    recorder.run(15, "test")
    recorder.instant("x", "api")
    recorder._lock.acquire()
    recorder.detach()
    assert (recorder.state, recorder.owner, recorder.mask) == ("stop", None, 0)
    emitted = threading.Thread(target=lambda: recorder.run(15, "child"), daemon=True)
    emitted.start()
    emitted.join(10)
    assert recorder.owner == "child"
    assert recorder.stop("child").events == ()


def test_merge_puts_windows_in_order_and_adds_what_is_counted(clock, wall_clock):
    recorder = Profiler(clock, wall_clock, capacity=1)
    traces = []
    for mode, name in ((Mode.SYMBOLIC, "first"), (Mode.MEMORY, "second")):
        recorder.run(mode, "test")
        slice_of(recorder, clock, name, 10)
        slice_of(recorder, clock, "too much", 10)
        recorder.pause()
        traces.append(recorder.stop("test").with_metadata({"last": name, name: 1}))
        clock.advance(100)
    whole = merge(reversed(traces))
    assert names(whole) == ["first", "second"]
    assert whole.windows == traces[0].windows + traces[1].windows
    assert whole.pauses == traces[0].pauses + traces[1].pauses
    assert whole.modes == Mode.SYMBOLIC | Mode.MEMORY
    assert whole.dropped == 2
    assert whole.anchor == traces[0].anchor
    assert whole.metadata == {"last": "second", "first": 1, "second": 1}
    assert whole.thread_names == traces[0].thread_names
    assert merge([traces[0]]) == traces[0]


def test_merge_puts_the_events_of_all_traces_in_one_order(recorder, clock):
    recorder.run(15, "test")
    recorder.instant("first", "api")
    clock.advance(10)
    recorder.instant("third", "api")
    one = recorder.stop("test")
    begin = one.windows[0][0]
    event = one.events[0]
    other = one._replace(
        windows=((begin + 5, begin + 9),),
        events=(
            event._replace(name="parent", phase="X", start_ns=begin + 10, duration_ns=5),
            event._replace(name="second", start_ns=begin + 5),
        ),
    )
    assert names(merge([one, other])) == ["first", "second", "parent", "third"]


def test_merge_of_nothing_is_refused():
    with pytest.raises(TraceError, match="record at least one window"):
        merge([])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_detaches_the_process_recorder():
    from opbench.profiler import RECORDER

    RECORDER.run(15, "parent")
    RECORDER.instant("parent", "api")
    pid = os.fork()
    if pid == 0:
        os._exit(0 if (RECORDER.state, RECORDER.mask) == ("stop", 0) else 1)
    _, status = os.waitpid(pid, 0)
    events = RECORDER.stop("parent").events  # probes of other rooms may have some in it too
    assert [event.name for event in events if event.category == "api"] == ["parent"]
    assert os.waitstatus_to_exitcode(status) == 0
