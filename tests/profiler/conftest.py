"""A clock that the test moves, and a check that no test leaves the process's recorder running."""

from __future__ import annotations

import pytest

from opbench.profiler import RECORDER, Profiler


class FakeClock:
    """Stands still until it is moved: each figure in a test is exact."""

    def __init__(self, now=1_000_000):
        self.now = now

    def __call__(self):
        return self.now

    def advance(self, ns):
        self.now += ns
        return self.now


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def wall_clock():
    return FakeClock(1_764_569_000_123_456_789)


@pytest.fixture
def recorder(clock, wall_clock):
    return Profiler(clock, wall_clock)


@pytest.fixture(autouse=True)
def _recorder_is_left_alone():
    assert RECORDER.state == "stop"
    yield
    assert RECORDER.state == "stop"
