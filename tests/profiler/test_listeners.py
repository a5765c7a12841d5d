"""Who is told of transitions, when, and what their errors do."""

from __future__ import annotations

import threading

import pytest

from opbench.profiler import Mode


class Log:
    def __init__(self, recorder):
        self.recorder = recorder
        self.calls = []

    def note(self, what):
        free = []  # another thread can take the lock, so that nobody waits for a listener

        def take():
            free.append(self.recorder._lock.acquire(timeout=5))
            self.recorder._lock.release()

        thread = threading.Thread(target=take)
        thread.start()
        thread.join(10)
        self.calls.append((what, self.recorder.recording, bool(self.recorder.mask), free))

    def opened(self, modes):
        self.note(("opened", modes))

    def closed(self):
        self.note("closed")

    def paused(self):
        self.note("paused")

    def resumed(self):
        self.note("resumed")


class Broken(Log):
    def note(self, what):
        raise ZeroDivisionError(str(what))


def test_each_transition_is_told_after_it_took_effect_and_without_the_lock(recorder):
    log = Log(recorder)
    recorder.add_listener(log)
    recorder.run("api+memory", "test")
    recorder.pause()
    recorder.resume()
    recorder.snapshot("test")
    recorder.stop("test")
    assert log.calls == [
        (("opened", Mode.API | Mode.MEMORY), True, True, [True]),
        ("paused", False, False, [True]),
        ("resumed", True, True, [True]),
        ("closed", False, False, [True]),
    ]
    recorder.remove_listener(log)
    recorder.run("api", "test")
    recorder.stop("test")
    assert len(log.calls) == 4


def test_what_a_listener_emits_when_it_is_told_is_in_the_window(recorder):
    class Emits(Log):
        def opened(self, modes):
            self.recorder.instant("from a listener", "api")

    recorder.add_listener(Emits(recorder))
    recorder.run("api", "test")
    assert [event.name for event in recorder.stop("test").events] == ["from a listener"]


def test_a_broken_listener_is_told_of_once_and_stops_nothing(recorder):
    log = Log(recorder)
    recorder.add_listener(Broken(recorder))
    recorder.add_listener(log)
    with pytest.warns(RuntimeWarning, match=r"Broken failed at run\(\) of the profiler"):
        recorder.run("api", "test")
    recorder.instant("x", "api")
    recorder.pause()  # a second warning would be an error here
    recorder.resume()
    trace = recorder.stop("test")
    assert [event.name for event in trace.events] == ["x"]
    assert [call[0] for call in log.calls] == [("opened", Mode.API), "paused", "resumed", "closed"]


@pytest.mark.filterwarnings("error")
def test_where_warnings_are_errors_it_is_said_on_standard_error(recorder, capsys):
    recorder.add_listener(Broken(recorder))
    recorder.run("api", "test")
    recorder.stop("test")
    assert capsys.readouterr().err.startswith("opbench: Broken failed at run()")


def test_an_interrupt_in_a_listener_keeps_the_trace(recorder):
    class Interrupted(Log):
        def closed(self):
            if "once" not in self.calls:
                self.calls.append("once")
                raise KeyboardInterrupt

    recorder.add_listener(Interrupted(recorder))
    recorder.run("api", "test")
    recorder.instant("x", "api")
    with pytest.raises(KeyboardInterrupt):
        recorder.stop("test")
    assert (recorder.state, recorder.recording) == ("run", False)
    assert [event.name for event in recorder.stop("test").events] == ["x"]
