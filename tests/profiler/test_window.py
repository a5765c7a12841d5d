from __future__ import annotations

import contextlib
import os

import pytest

from opbench.errors import ConfigError, StateError, WindowError
from opbench.profiler import RECORDER, IterationWindow, Mode


def operator(recorder, clock, ns=10, name="dot"):
    """An operator as the runtime emits it."""
    start = recorder.clock()
    clock.advance(ns)
    if recorder.mask & 2:
        args = {"operator": name, "iteration": recorder.iteration}
        recorder.complete(name, "imperative", start, recorder.clock(), args)


def test_the_window_is_exact(recorder, clock):
    window = IterationWindow(recorder, 5, begin=1, end=3)
    seen = []
    for i in window:
        seen.append((i, recorder.recording))
        operator(recorder, clock)
        clock.advance(2)
    assert seen == [(0, False), (1, True), (2, True), (3, False), (4, False)]
    assert [
        (event.name, event.category, event.start_ns - 1_000_000, event.duration_ns, event.args)
        for event in window.trace.events
    ] == [
        ("iteration 1", "iteration", 12, 12, {"iteration": 1}),
        ("dot", "imperative", 12, 10, {"operator": "dot", "iteration": 1}),
        ("iteration 2", "iteration", 24, 12, {"iteration": 2}),
        ("dot", "imperative", 24, 10, {"operator": "dot", "iteration": 2}),
    ]
    assert window.trace.windows == ((1_000_012, 1_000_036),)
    assert recorder.state == "stop"


def test_without_numbers_the_window_is_the_whole_loop(recorder, clock):
    window = IterationWindow(recorder, 3, modes="memory", owner="me")
    for _ in window:
        assert (recorder.owner, recorder.mask) == ("me", 8)
        clock.advance(1)
    assert [event.name for event in window.trace.events] == [
        "iteration 0",
        "iteration 1",
        "iteration 2",
    ]
    assert window.trace.modes == Mode.MEMORY
    assert recorder.state == "stop"


def test_iterations_are_slices_even_when_no_mode_is_on(recorder):
    window = IterationWindow(recorder, 1, modes="none")
    list(window)
    assert [event.name for event in window.trace.events] == ["iteration 0"]


def test_pending_work_of_earlier_iterations_stays_outside(recorder, clock):
    pending = []

    def wait_all():
        while pending:
            operator(recorder, clock, name=pending.pop(0))

    recorder.add_synchroniser(wait_all)
    window = IterationWindow(recorder, 4, begin=1, end=3)
    submit = pending.append
    for i in window:
        submit(f"dot {i}")
    assert [event.name for event in window.trace.events if event.category != "iteration"] == [
        "dot 1",
        "dot 2",
    ]


@pytest.mark.parametrize(
    ("iterations", "begin", "end"),
    [(5, -1, 3), (5, 3, 1), (5, 2, 2), (5, 0, 6), (5, 5, None), (0, 0, None), (-2, 0, 0)],
)
def test_an_impossible_window_names_its_source_and_its_values(recorder, iterations, begin, end):
    with pytest.raises(WindowError) as caught:
        IterationWindow(recorder, iterations, begin, end, source="--opbench-begin")
    message = str(caught.value)
    assert "--opbench-begin" in message
    for value in (iterations, begin, end):
        assert value is None or str(value) in message


@pytest.mark.parametrize("wrong", [2.0, "2", True, None])
def test_what_is_no_whole_number_is_refused_by_name(recorder, wrong):
    with pytest.raises(WindowError, match=r"begin \(ini\) must be a whole number"):
        IterationWindow(recorder, 5, begin=wrong, source="ini")


def test_an_unknown_mode_is_refused_before_the_loop(recorder):
    with pytest.raises(ConfigError, match="marker"):
        IterationWindow(recorder, 5, modes="symbollic", source="marker")


def test_set_up_and_tear_down_are_in_neither_slice_nor_trace(recorder, clock):
    with IterationWindow(recorder, 4, begin=1, end=3) as window:
        for i in range(window.iterations):
            operator(recorder, clock, 1000, "set-up")
            with window.slice(i):
                clock.advance(1)
                operator(recorder, clock, 10)
            operator(recorder, clock, 500, "tear-down")
    assert [(event.name, event.duration_ns) for event in window.trace.events] == [
        ("iteration 1", 11),
        ("dot", 10),
        ("iteration 2", 11),
        ("dot", 10),
    ]
    assert [event.args["iteration"] for event in window.trace.events] == [1, 1, 2, 2]
    (begin, end) = window.trace.windows[0]
    assert (begin, end) == (window.trace.events[0].start_ns, window.trace.events[-1].end_ns)
    assert window.trace.pauses == ((begin + 11, begin + 11 + 1500),)


def test_the_recorder_is_closed_as_soon_as_the_last_slice_ends(recorder):
    window = IterationWindow(recorder, 3, begin=0, end=1)
    with window.slice(0):
        assert recorder.recording
    assert recorder.state == "stop"
    assert window.trace is not None
    with window.slice(1):
        assert recorder.state == "stop"


@pytest.mark.parametrize("order", [[1, 0], [0, 0], [3], [-1]])
def test_slices_out_of_order_are_refused(recorder, order):
    with IterationWindow(recorder, 3) as window:
        for i in order[:-1]:
            with window.slice(i):
                pass
        with (
            pytest.raises(WindowError, match=f"iteration {order[-1]} of 3"),
            window.slice(order[-1]),
        ):
            pass


def test_a_slice_inside_another_iteration_is_refused(recorder):
    with (
        IterationWindow(recorder, 3) as window,
        window.slice(0),
        pytest.raises(WindowError, match="one is open"),
        window.slice(1),
    ):
        pass
    with IterationWindow(recorder, 3) as window:
        for i in window:
            with pytest.raises(WindowError), window.slice(i):
                pass


def test_an_exception_in_the_body_closes_the_window_and_keeps_its_trace(recorder, clock):
    window = IterationWindow(recorder, 5, begin=1, end=4)

    def fail_in_the_third():
        with window:
            for i in window:
                operator(recorder, clock)
                if i == 2:
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_in_the_third()
    assert recorder.state == "stop"
    assert [event.name for event in window.trace.events] == [
        "iteration 1",
        "dot",
        "iteration 2",
        "dot",
    ]


def test_an_exception_in_a_slice_ends_the_slice_and_the_window(recorder, clock):
    window = IterationWindow(recorder, 5)

    def fail():
        with window, window.slice(0):
            clock.advance(7)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [(event.name, event.duration_ns) for event in window.trace.events] == [
        ("iteration 0", 7)
    ]
    assert recorder.state == "stop"


def test_what_goes_wrong_at_the_end_does_not_hide_the_users_exception(recorder):
    def loop():
        with IterationWindow(recorder, 5, owner="me") as window:
            for _ in window:
                recorder.stop("me")
                raise ZeroDivisionError

    def slices():
        with IterationWindow(recorder, 1, owner="me") as window, window.slice(0):
            recorder.stop("me")
            raise ZeroDivisionError

    for fail in (loop, slices):
        with pytest.raises(ZeroDivisionError) as caught:
            fail()
        assert caught.value.__context__ is None
        assert recorder.state == "stop"


def test_without_an_exception_of_the_users_what_goes_wrong_at_the_end_is_raised(recorder):
    def fail():
        with IterationWindow(recorder, 5, owner="me") as window:
            next(window)
            recorder.stop("me")

    with pytest.raises(StateError, match="its state is 'stop'"):
        fail()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("by", ["loop", "slice"])
def test_a_forked_child_leaves_the_window_to_its_parent(by):
    window = IterationWindow(RECORDER, 1, owner="parent")
    with window, contextlib.ExitStack() as slices:
        if by == "loop":
            next(window)
        else:
            slices.enter_context(window.slice(0))
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                slices.close()
                window.close()
                status = 0 if window.trace is None else 2
            finally:
                os._exit(status)
        _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_close_is_idempotent_and_ends_the_loop(recorder):
    window = IterationWindow(recorder, 5, begin=1)
    seen = []
    for i in window:
        seen.append(i)
        if i == 2:
            window.close()
            window.close()
    assert seen == [0, 1, 2]
    assert [event.name for event in window.trace.events] == ["iteration 1", "iteration 2"]
    with pytest.raises(WindowError, match="the window is closed"), window.slice(3):
        pass


def test_a_window_closed_before_it_opened_has_no_trace(recorder):
    window = IterationWindow(recorder, 5, begin=3)
    next(window)
    window.close()
    assert window.trace is None
    assert list(window) == []


def test_a_user_who_pauses_inside_an_iteration_still_gets_its_slice(recorder, clock):
    window = IterationWindow(recorder, 2)
    for _ in window:
        operator(recorder, clock)
        recorder.pause()
        operator(recorder, clock, name="hidden")
        recorder.resume()
    assert [(event.name, event.duration_ns) for event in window.trace.events] == [
        ("iteration 0", 20),
        ("dot", 10),
        ("iteration 1", 20),
        ("dot", 10),
    ]


def test_a_window_cannot_open_over_somebody_elses(recorder):
    recorder.run(15, "somebody")
    with pytest.raises(StateError, match="owner 'somebody'"):
        list(IterationWindow(recorder, 2, owner="me"))
    assert recorder.stop("somebody").events == ()
