"""The verdict "fewer workers than asked": where a worker had the time to come, and was missed."""

from __future__ import annotations

import pytest

from opbench.profiler import record_lanes

START = 1_000_000  # where the fake clock stands
VERDICT = "fewer workers than asked"


def pieces(worker, first, length, count=8):
    """``count`` pieces of a worker on a CPU of its own, from ``first`` on, ``length`` ns in all."""
    each = length // count
    starts = [START + first + n * each for n in range(count)]
    return [[worker, 100 + worker, worker, worker, at, at + each, 0, 1, 8] for at in starts]


@pytest.fixture
def verdict(recorder, clock):
    """The verdict on one call of so many ns."""

    def judge(rows, length, asked):
        recorder.run("none", "test")
        clock.advance(length)
        found = record_lanes(recorder, rows, "dot", START, clock.now, asked)
        recorder.stop("test")
        return found.verdict

    return judge


def test_a_call_that_is_over_before_a_worker_could_come_misses_none(verdict):
    assert verdict(pieces(0, 0, 960_000), 999_999, 2) == ""


def test_a_call_of_a_millisecond_misses_one(verdict):
    assert verdict(pieces(0, 0, 960_000), 1_000_000, 2) == VERDICT


@pytest.mark.parametrize(("length", "word"), [(4_999_999, ""), (5_000_000, VERDICT)])
def test_a_worker_has_ten_times_as_long_as_the_last_one_that_came(verdict, length, word):
    # The second worker came after 500 µs, its later pieces much later.
    rows = pieces(0, 10_000, 4_000_000) + pieces(1, 500_000, 4_000_000)
    assert verdict(rows, length, 3) == word


# Ten workers have 0.9 ms each, and with an eleventh 0.82, which is 8 % of the call less; seven with
# an eighth had 0.79, 11 % less.
@pytest.mark.parametrize(("came", "word"), [(10, ""), (7, VERDICT)])
def test_one_that_would_have_spared_little_is_not_missed(verdict, came, word):
    rows = [row for worker in range(came) for row in pieces(worker, 0, 900_000)]
    assert verdict(rows, 1_000_000, came + 1) == word


def test_of_a_short_call_the_other_verdicts_are_given_all_the_same(verdict):
    # Two of three came and lay on one CPU, which is no matter of who came when.
    both = [[row[0], row[1], 0, 0, *row[4:]] for n in range(2) for row in pieces(n, 0, 800_000)]
    assert verdict(both, 900_000, 3) == "workers shared a CPU"


def test_who_was_not_asked_is_not_missed(verdict):
    assert verdict(pieces(0, 0, 9_600_000), 10_000_000, 1) == ""
    assert verdict(pieces(0, 0, 9_600_000), 10_000_000, None) == ""
