from __future__ import annotations

import threading
from collections import defaultdict
from types import SimpleNamespace

import numba
import pytest
from numba.core import event as numba_event

from opbench.probes import CompileWatch, Source


class Events:
    """Numba's event module, with the compilations under the test's control."""

    class Listener:
        pass

    def __init__(self):
        self.listeners = defaultdict(list)

    def register(self, kind, listener):
        assert isinstance(listener, self.Listener)
        self.listeners[kind].append(listener)

    def unregister(self, kind, listener):
        self.listeners[kind].remove(listener)

    def start(self):
        for listener in self.listeners["numba:compile"]:
            listener.on_start(SimpleNamespace())

    def end(self):
        for listener in self.listeners["numba:compile"]:
            listener.on_end(SimpleNamespace())


@pytest.fixture
def events():
    return Events()


def watch_of(events, *times):
    ticks = iter(times)
    return CompileWatch(
        Source(clock=lambda: next(ticks), modules={"numba.core.event": events} if events else {})
    )


def test_each_compilation_is_counted_and_timed(events):
    with watch_of(events, 1.0, 3.0, 10.0, 15.0) as watch:
        events.start()
        events.end()
        events.start()
        events.end()
    assert (watch.count, watch.seconds) == (2, 7.0)


def test_nested_compilations_are_counted_and_their_time_is_not_doubled(events):
    # The clock holds one time for each start, and one for the end of the outermost.
    with watch_of(events, 1.0, 2.0, 3.0, 8.0) as watch:
        events.start()
        events.start()
        events.end()
        events.start()
        events.end()
        events.end()
    assert (watch.count, watch.seconds) == (3, 7.0)


def test_the_time_of_two_threads_is_kept_apart(events):
    with watch_of(events, 1.0, 2.0, 5.0, 9.0) as watch:
        events.start()
        other = threading.Thread(target=events.start)
        other.start()
        other.join()
        events.end()
    assert (watch.count, watch.seconds) == (2, 4.0)


def test_a_compilation_under_way_at_the_beginning_is_not_seen(events):
    with watch_of(events) as watch:
        events.end()
    assert (watch.count, watch.seconds) == (0, 0.0)


def test_after_the_block_nothing_is_counted_and_no_listener_is_left(events):
    with watch_of(events, 1.0, 2.0) as watch:
        events.start()
        events.end()
    events.start()
    assert (watch.count, watch.seconds, watch.watching) == (1, 1.0, True)
    assert events.listeners["numba:compile"] == []


def test_an_exception_in_the_block_leaves_no_listener_and_passes(events):
    with pytest.raises(KeyError), watch_of(events):
        raise KeyError
    assert events.listeners["numba:compile"] == []


def test_a_cleared_list_of_listeners_is_no_error(events):
    with watch_of(events):
        events.listeners.clear()


def test_a_second_block_starts_from_zero(events):
    watch = watch_of(events, 1.0, 4.0, 9.0)
    with watch:
        events.start()
    with watch:
        events.start()
        events.end()
    assert (watch.count, watch.seconds) == (1, 5.0)


def test_without_numba_it_watches_nothing():
    with watch_of(None) as watch:
        pass
    assert (watch.count, watch.seconds, watch.watching) == (0, 0.0, False)


def test_this_numba_is_heard():
    @numba.njit
    def inner(x):
        return x + 1

    @numba.njit
    def outer(x):
        return inner(x) * 2

    registered = len(numba_event._registered["numba:compile"])
    with CompileWatch() as first:
        assert outer(3) == 8
    with CompileWatch() as second:
        assert outer(3) == 8
    assert first.watching
    assert first.count == 2
    assert first.seconds > 0
    assert (second.count, second.seconds) == (0, 0.0)
    assert len(numba_event._registered["numba:compile"]) == registered
