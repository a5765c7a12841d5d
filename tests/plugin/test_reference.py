"""NumPy beside the kernel, by a fake clock."""

import numpy as np
import pytest

from opbench.plugin.reference import SETTLE_SECONDS, ReferenceTimer, operand_key


class FakeTime:
    """A clock that only moves when something is called or slept."""

    def __init__(self):
        self.now = 0.0
        self.slept = []
        self.calls = 0

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds

    def takes(self, *durations):
        queue = list(durations)

        def call():
            self.calls += 1
            self.now += queue.pop(0) if len(queue) > 1 else queue[0]

        return call


def timer():
    time = FakeTime()
    return time, ReferenceTimer(time.clock, time.sleep)


def test_the_median_is_per_call_and_leaves_out_the_untimed_one():
    time, reference = timer()
    # one untimed, then rounds of 2 calls: 1+1, 3+3, 8+8
    median = reference.median("k", time.takes(100, 1, 1, 3, 3, 8, 8), rounds=3, iterations=2)
    assert median == 3
    assert time.calls == 7


def test_a_second_request_for_the_same_input_calls_nothing():
    time, reference = timer()
    reference.median("k", time.takes(1), rounds=3, iterations=1)
    before = time.calls
    assert reference.median("k", time.takes(9), rounds=3, iterations=1) == 1
    assert time.calls == before


def test_a_slow_reference_gets_fewer_calls_a_round_but_all_its_rounds():
    time, reference = timer()
    reference.median("k", time.takes(1), rounds=5, iterations=1000, budget=10)
    assert time.calls == 1 + 5 * 2
    reference.median("slow", time.takes(100), rounds=5, iterations=1000, budget=10)
    assert time.calls == 11 + 1 + 5


def test_settling_sleeps_what_is_left_once():
    time, reference = timer()
    reference.settle()
    assert time.slept == []
    reference.median("k", time.takes(1), rounds=1, iterations=1)
    time.now += SETTLE_SECONDS / 4
    reference.settle()
    assert time.slept == [pytest.approx(SETTLE_SECONDS * 3 / 4)]
    reference.settle()
    assert len(time.slept) == 1


def test_settling_does_not_sleep_when_the_time_has_passed():
    time, reference = timer()
    reference.median("k", time.takes(1), rounds=1, iterations=1)
    time.now += 1
    reference.settle()
    assert time.slept == []


def test_inputs_are_the_same_by_shape_strides_and_dtype():
    a = np.zeros((3, 4))
    assert operand_key((a,), {}) == operand_key((np.ones((3, 4)),), {})
    assert operand_key((a,), {}) != operand_key((np.zeros((4, 3)).T,), {})
    assert operand_key((a,), {}) != operand_key((a.astype("f4"),), {})
    assert operand_key((a,), {"out": a}) != operand_key((a,), {})
    assert operand_key((a, 2), {}) != operand_key((a, 3), {})
