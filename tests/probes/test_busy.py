from __future__ import annotations

from types import SimpleNamespace

import pytest

from opbench.probes import CpuReading, Source, cpu_busy_elsewhere, cpu_reading

#             user nice system idle iowait irq softirq steal guest guest_nice
STAT = "cpu  1000 100 300 5000 600 10 20 70 500 50\ncpu0 1 1 1 1 1 1 1 1 1 1\n"


def source(stat=STAT, rate=100, own=(1.0, 0.5), children=(0.25, 0.125)):
    used = {
        False: SimpleNamespace(ru_utime=own[0], ru_stime=own[1]),
        True: SimpleNamespace(ru_utime=children[0], ru_stime=children[1]),
    }
    return Source(read_text={"/proc/stat": stat}.get, ticks_per_second=lambda: rate, usage=used.get)


def test_a_reading_is_in_seconds_and_counts_guests_once():
    # busy: 1000 + 100 + 300 + 10 + 20 + 70; the guest times are within user and nice.
    assert cpu_reading(source()) == CpuReading(total_s=71.0, busy_s=15.0, own_s=1.875)


def test_old_kernels_tell_fewer_times():
    assert cpu_reading(source("cpu 100 0 50 850\n")) == CpuReading(10.0, 1.5, 1.875)


@pytest.mark.parametrize(
    "stat", [None, "", "\n", "intr 1 2 3 4 5", "cpu 1 2", "cpu a b c d e", "cpux 1 2 3 4 5"]
)
def test_without_proc_stat_there_is_no_reading(stat):
    assert cpu_reading(source(stat)) is None


def test_without_clock_rate_or_own_usage_there_is_no_reading():
    assert cpu_reading(source(rate=None)) is None
    assert cpu_reading(Source(read_text={"/proc/stat": STAT}.get, usage=None)) is None


def test_others_get_what_is_busy_and_not_own():
    before = CpuReading(total_s=100.0, busy_s=40.0, own_s=10.0)
    after = CpuReading(total_s=120.0, busy_s=55.0, own_s=20.0)
    assert cpu_busy_elsewhere(before, after) == 0.25


def test_own_work_beyond_the_kernels_step_is_not_negative():
    before, after = CpuReading(100.0, 40.0, 10.0), CpuReading(101.0, 40.5, 10.75)
    assert cpu_busy_elsewhere(before, after) == 0.0


def test_a_share_is_at_most_one():
    assert cpu_busy_elsewhere(CpuReading(1.0, 0.0, 0.0), CpuReading(2.0, 1.5, 0.0)) == 1.0


def test_readings_within_one_step_tell_nothing():
    reading = CpuReading(1.0, 0.0, 0.0)
    assert cpu_busy_elsewhere(reading, reading) is None
    assert cpu_busy_elsewhere(CpuReading(2.0, 0.0, 0.0), reading) is None


def test_a_missing_reading_tells_nothing():
    reading = CpuReading(1.0, 0.0, 0.0)
    assert cpu_busy_elsewhere(None, reading) is None
    assert cpu_busy_elsewhere(reading, None) is None
