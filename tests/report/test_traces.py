"""The table and JSON of two traces beside each other: the interval of a ratio."""

from __future__ import annotations

import json
import random

import pytest

from opbench import records
from opbench.profiler import ClockAnchor, Mode, Trace, TraceEvent, differences
from opbench.report import Style, difference_lines, differences_json

BEFORE = [100, 104, 98, 110, 101, 99, 130]
AFTER = [150, 149, 153, 190, 151]


def trace_of(durations):
    events, at = [], 0
    for duration in durations:
        events.append(TraceEvent("dot", "imperative", "X", at, duration, 1, 1, {}))
        at += duration
    return Trace(tuple(events), Mode.ALL, ((0, at + 1),), 0, ClockAnchor(0, 0), {}, {}, {})


def interval(before, after):
    (row,) = json.loads(differences_json(differences(trace_of(before), trace_of(after))))
    return row["interval"]


def test_it_is_the_bootstrap_of_the_calls_in_both_traces():
    expected = records.bootstrap_ratio_interval(BEFORE, AFTER, 0.95)
    assert interval(BEFORE, AFTER) == expected._asdict()
    _, line, meaning = difference_lines(
        differences(trace_of(BEFORE), trace_of(AFTER)), Style(width=200)
    )
    assert f"1.495 {expected.low:.3f} to {expected.high:.3f} slower" in " ".join(line.split())
    assert "these two launches" in meaning
    assert "judges no change" in meaning


@pytest.mark.parametrize(
    ("before", "after"),
    [(BEFORE, AFTER[:4]), (BEFORE[:4], AFTER), (BEFORE, [0, *AFTER]), ([0, *BEFORE], AFTER)],
)
def test_few_calls_and_calls_of_no_time_have_none(before, after):
    assert interval(before, after) is None
    (_, line) = difference_lines(differences(trace_of(before), trace_of(after)), Style(width=200))
    assert " – " in line


def test_what_is_in_one_trace_only_has_none():
    assert interval(BEFORE, []) is None
    assert interval([], AFTER) is None


def test_of_many_calls_it_is_as_wide_as_the_bootstrap_says():
    draw = random.Random(1)  # noqa: S311 - a simulation
    before = [round(draw.lognormvariate(10, 0.3)) for _ in range(101)]
    after = [round(1.2 * draw.lognormvariate(10, 0.3)) for _ in range(101)]
    found = interval(before, after)
    expected = records.bootstrap_ratio_interval(before, after, 0.95)
    assert found["low"] == pytest.approx(expected.low, rel=0.03)
    assert found["high"] == pytest.approx(expected.high, rel=0.03)


def test_of_many_calls_it_holds_the_truth_as_often_as_it_says():
    draw = random.Random(2)  # noqa: S311 - a simulation
    held = 0
    for _ in range(200):
        before = [round(draw.lognormvariate(10, 0.3)) for _ in range(150)]
        after = [round(1.2 * draw.lognormvariate(10, 0.3)) for _ in range(110)]
        found = interval(before, after)
        held += found["low"] <= 1.2 <= found["high"]
    assert 181 <= held <= 199  # of 95 % these are 3 standard deviations


def test_a_million_calls_take_no_resampling(monkeypatch):
    def never(*_):
        raise AssertionError("it takes minutes")

    monkeypatch.setattr("opbench.report.traces.bootstrap_ratio_interval", never)
    found = interval([1000, 1001] * 5000, [2000] * 10_000)
    assert found["low"] <= 2000 / 1000.5 <= found["high"] <= 2.0
