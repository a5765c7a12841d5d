"""Which steps of a course are recorded, as windows with a fake clock."""

from __future__ import annotations

import pytest

from opbench.errors import ConfigError, StateError, WindowError
from opbench.profiler import Action, IterationWindow, profile, schedule


def letters(made, steps):
    """One letter a step: - nothing, w warm-up, R recorded."""
    return "".join(
        {Action.NONE: "-", Action.WARMUP: "w", Action.RECORD: "R"}[made(step)]
        for step in range(steps)
    )


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({"wait": 1, "warmup": 1, "active": 2}, "-wRR-wRR-wRR"),
        ({"wait": 1, "warmup": 1, "active": 2, "repeat": 2}, "-wRR-wRR----"),
        ({"wait": 0, "warmup": 1, "active": 1, "repeat": 1, "skip_first": 3}, "---wR-------"),
        ({"wait": 0, "warmup": 0, "active": 3}, "RRRRRRRRRRRR"),
        ({"wait": 2, "warmup": 0, "active": 1, "skip_first": 1}, "---R--R--R--"),
        ({"wait": 0, "warmup": 0, "active": 2, "repeat": 1, "skip_first": 5}, "-----RR-----"),
    ],
)
def test_the_words_mean_what_they_mean_in_torch(numbers, expected):
    assert letters(schedule(**numbers), 12) == expected


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"active": 0}, "active must be a whole number from 1 up, not 0"),
        ({"wait": -1}, "wait must be a whole number from 0 up, not -1"),
        ({"warmup": 1.5}, "warmup must be a whole number from 0 up, not 1.5"),
        ({"repeat": True}, "repeat must be a whole number from 0 up, not True"),
        ({"skip_first": "2"}, "skip_first must be a whole number from 0 up, not '2'"),
    ],
)
def test_a_wrong_number_is_told(numbers, message):
    with pytest.raises(WindowError) as caught:
        schedule(**{"wait": 0, "warmup": 0, "active": 1, **numbers})
    assert message in str(caught.value)


def run(recorder, clock, steps, **options):
    """Steps of 10 ns, each emitting one event; the traces that were handed over."""
    traces = []
    with profile(recorder=recorder, on_trace_ready=traces.append, **options) as course:
        for number in range(steps):
            if number:
                course.step()
            start = clock.now
            recorder.complete(f"work {number}", "api", start, clock.advance(10))
    return traces


def names(trace, category):
    return [event.name for event in trace.events if event.category == category]


def test_each_cycle_is_a_window_of_its_active_steps(recorder, clock):
    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    first, second = run(recorder, clock, 12, schedule=plan)
    assert names(first, "api") == ["work 3", "work 4"]
    assert names(second, "api") == ["work 7", "work 8"]
    assert names(first, "iteration") == ["iteration 3", "iteration 4"]
    assert [event.args for event in second.events if event.category == "iteration"] == [
        {"iteration": 7},
        {"iteration": 8},
    ]
    assert [event.duration_ns for event in first.events] == [10, 10, 10, 10]
    assert (first.metadata, second.metadata) == ({"cycle": 0}, {"cycle": 1})
    assert recorder.state == "stop"


def test_a_warm_up_is_recorded_and_thrown_away(recorder, clock):
    states, handed_over = [], []
    course = profile(
        recorder=recorder,
        schedule=schedule(wait=1, warmup=1, active=1, repeat=1),
        on_trace_ready=handed_over.append,
    )
    with course:
        for _ in range(4):
            states.append((recorder.recording, recorder.iteration))
            course.step()
    assert states == [(False, None), (True, 1), (True, 2), (False, None)]
    assert [names(trace, "iteration") for trace in handed_over] == [["iteration 2"]]
    assert course.trace == handed_over[0]


def test_cycles_that_touch_are_windows_of_their_own(recorder, clock):
    traces = run(recorder, clock, 5, schedule=schedule(wait=0, warmup=0, active=2))
    assert [names(trace, "api") for trace in traces] == [
        ["work 0", "work 1"],
        ["work 2", "work 3"],
        ["work 4"],
    ]


def test_it_is_the_general_form_of_begin_and_end(recorder, clock):
    plan = schedule(wait=0, warmup=0, active=2, repeat=1, skip_first=1)
    (by_schedule,) = run(recorder, clock, 5, schedule=plan)
    with IterationWindow(recorder, 5, begin=1, end=3) as window:
        for number in window:
            start = clock.now
            recorder.complete(f"work {number}", "api", start, clock.advance(10))

    def shape(trace):
        origin = trace.windows[0][0]
        return [
            (event.name, event.category, event.start_ns - origin, event.duration_ns, event.args)
            for event in trace.events
        ]

    assert shape(by_schedule) == shape(window.trace)


def test_without_a_schedule_the_block_is_one_window(recorder, clock):
    (trace,) = run(recorder, clock, 2, modes="api")
    assert names(trace, "api") == ["work 0", "work 1"]
    assert trace.modes == 4


def test_the_callback_finds_the_recorder_stopped_and_its_error_is_raised(recorder, clock):
    def fail(trace):
        assert recorder.state == "stop"
        raise KeyError(len(trace.events))

    course = profile(
        recorder=recorder,
        schedule=schedule(wait=0, warmup=0, active=1, repeat=1),
        on_trace_ready=fail,
    )
    with pytest.raises(KeyError), course:
        course.step()
    assert recorder.state == "stop"


def fail_after(recorder):
    recorder.instant("before", "api")
    raise KeyError("mine")


def test_an_exception_in_the_block_closes_the_window_and_hands_it_over(recorder, clock):
    traces = []

    def keep(trace):
        traces.append(trace)
        raise ValueError("hides the user's own")

    with (
        pytest.raises(KeyError, match="mine"),
        profile(recorder=recorder, on_trace_ready=keep),
    ):
        fail_after(recorder)
    assert recorder.state == "stop"
    assert names(traces[0], "api") == ["before"]


def test_a_window_that_is_open_is_somebody_elses(recorder):
    recorder.run("all", "the fixture")
    course = profile(recorder=recorder)
    with pytest.raises(StateError, match="its owner 'the fixture'"), course:
        pass
    recorder.stop("the fixture")
    with course:
        assert recorder.owner == "profile"


def test_step_belongs_into_the_block_and_the_block_is_entered_once(recorder):
    course = profile(recorder=recorder)
    with pytest.raises(StateError, match=r"step\(\) belongs inside its 'with' block"):
        course.step()
    with course, pytest.raises(StateError, match="it is entered already"):
        course.__enter__()


def test_a_wrong_mode_is_told_before_anything_is_opened(recorder):
    with pytest.raises(ConfigError, match=r"unknown mode 'symbollic' in profile\(\)"):
        profile(recorder=recorder, modes="symbollic")


def run_to_its_end(course, clock):
    clock.advance(10)
    course.step()


def test_an_interrupt_while_a_cycle_closes_leaves_nobodys_window_open(recorder, clock):
    interrupts = [KeyboardInterrupt]

    def wait():
        if recorder.recording and recorder.clock() > 1_000_000 and interrupts:
            raise interrupts.pop()

    recorder.add_synchroniser(wait)
    course = profile(recorder=recorder, schedule=schedule(wait=0, warmup=0, active=1, repeat=1))
    with pytest.raises(KeyboardInterrupt), course:
        run_to_its_end(course, clock)
    assert recorder.state == "stop"
    assert names(course.trace, "iteration") == ["iteration 0"]
