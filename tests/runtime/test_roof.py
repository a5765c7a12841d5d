"""The best of many bursts, and whether the machine was quiet: exact, on a clock that is ours."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from opbench.operators import roof as work
from opbench.probes import CpuReading
from opbench.runtime import roof


class Bench:
    """A machine of two CPUs whose clock moves when a burst runs, some passes disturbed."""

    def __init__(self, disturbed=(), tells=True):
        self.now, self.others, self.passes = 0.0, 0.0, 0
        self.disturbed, self.tells, self.log = disturbed, tells, []
        self.watch = roof.Stopwatch(lambda: self.now, self.reading)

    def reading(self):
        if not self.tells:
            return None
        return CpuReading(2 * self.now, self.now + self.others, self.now)

    def burst(self, key, *rates):
        """A function that takes 0.1 s a time and reaches these rates one after the other."""
        left = list(rates)

        def one():
            self.log.append(key)
            self.now += 0.1
            number = (len(self.log) - 1) // self.width
            self.others += 0.1 * (number in self.disturbed)
            rate = left.pop(0) if len(left) > 1 else left[0]
            return rate * 0.1, 0.1

        return key, one

    @property
    def width(self):
        """Bursts in a pass."""
        return self.kinds * roof.BURSTS

    kinds = 1


def test_all_that_is_measured_takes_turns_and_the_best_burst_counts():
    bench = Bench()
    bench.kinds = 2
    bursts = [bench.burst("f32", 5, 9, 7, 6), bench.burst("f64", 3, 3, 4, 1)]
    best, quiet = roof.best_rates(bursts, 0.75, 9, bench.watch)
    assert best == {"f32": pytest.approx(9), "f64": pytest.approx(4)}
    assert quiet
    assert bench.log == ["f32", "f32", "f64", "f64"] * 2


def test_of_several_ways_to_the_same_rate_the_fastest_counts():
    bench = Bench()
    bench.kinds = 2
    best, _ = roof.best_rates([bench.burst(64, 5), bench.burst(64, 8)], 0.1, 9, bench.watch)
    assert best == {64: pytest.approx(8)}


@pytest.mark.parametrize(
    ("disturbed", "passes", "quiet"),
    [
        ((), 5, True),  # as long as asked for
        ((0, 1, 2, 3), 6, True),  # longer, until two passes were quiet
        ((0, 1, 2, 3, 4, 5, 6, 7), 8, False),  # as long as there is patience
        ((1, 2, 3, 4, 5, 6, 7), 8, False),  # one quiet pass is not enough
    ],
)
def test_passes_go_on_until_the_machine_was_quiet_or_patience_ends(disturbed, passes, quiet):
    bench = Bench(disturbed)
    _, calm = roof.best_rates([bench.burst("x", 1)], 0.95, 1.55, bench.watch)
    assert (len(bench.log) // bench.width, calm) == (passes, quiet)


def test_a_disturbed_burst_can_be_the_best_one():
    bench = Bench(disturbed=(0,))
    best, _ = roof.best_rates([bench.burst("x", 7, 1)], 0.1, 9, bench.watch)
    assert best == {"x": pytest.approx(7)}


def test_where_the_system_does_not_tell_nothing_counts_as_disturbed():
    bench = Bench(disturbed=range(99), tells=False)
    assert roof.best_rates([bench.burst("x", 1)], 0.4, 9, bench.watch)[1]


def test_calibration_finds_repeats_that_fill_a_burst():
    asked = []

    def repeated(repeats):
        asked.append(repeats)
        return repeats * 10.0, repeats * 0.0005

    assert roof.calibrated(repeated)() == (400.0, pytest.approx(0.02))
    assert asked == [1, 1, 40, 40]


def test_calibration_leaves_a_long_repeat_alone():
    assert roof.calibrated(lambda repeats: (float(repeats), 0.5 * repeats))() == (1.0, 0.5)


def test_pieces_run_at_the_same_time_and_their_work_adds_up():
    times = iter(range(100))
    lock = threading.Lock()
    meet = threading.Barrier(2, timeout=30)  # breaks unless both pieces run at once

    def clock():
        with lock:
            return float(next(times))

    def piece(repeats):
        meet.wait()
        return 10 * repeats

    with ThreadPoolExecutor(2) as pool:
        burst = roof.together(work.Work("x", (piece, piece)), pool, roof.Stopwatch(clock))
        # Four looks at the clock: 0 and 1 at the starts, 2 and 3 at the ends.
        assert burst(3) == (60.0, 3.0)


def test_a_piece_that_fails_says_so():
    def piece(_):
        raise ZeroDivisionError("on purpose")

    with ThreadPoolExecutor(1) as pool:
        burst = roof.together(work.Work("x", (piece,)), pool, roof.Stopwatch())
        with pytest.raises(ZeroDivisionError, match="on purpose"):
            burst(1)


def test_a_real_measurement_has_what_was_asked_for(monkeypatch):
    monkeypatch.setattr(work, "working_sets", lambda threads: (threads << 16, threads << 18))
    found = roof.measure(2, ["float64"], seconds=0.01, patience=0.01)
    assert found.threads == 2
    assert list(found.peaks) == ["float64"]
    assert [size for size, _ in found.bandwidth] == [2 << 16, 2 << 18]
    assert all(rate > 1e6 for rate in (*found.peaks.values(), *dict(found.bandwidth).values()))
    assert roof.measure(1, [], bandwidth=False, seconds=0.01, patience=0.01).bandwidth == ()


def test_the_facts_are_those_of_machine_and_compiler():
    facts = roof.facts()
    assert set(facts) == {*roof.FACTS, "vector_bytes", "fused", "llvm"}
    assert facts["numba"]
    assert roof.pool_threads() >= 1
