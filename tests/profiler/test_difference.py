"""What differs between two traces."""

from __future__ import annotations

import pytest

from opbench.errors import ConfigError
from opbench.profiler import ClockAnchor, Mode, Trace, TraceEvent, differences


def trace_of(times):
    events = []
    at = 0
    for (name, shape), durations in times.items():
        for duration in durations:
            args = {"inputs": [shape], "dtype": "float32"} if shape else {}
            events.append(TraceEvent(name, "imperative", "X", at, duration, 1, 1, args))
            at += duration
    return Trace(
        tuple(events), Mode.ALL, ((0, at),), 0, ClockAnchor(0, 0), {1: "p"}, {(1, 1): "t"}, {}
    )


STEADY = [100, 101, 99, 100, 102, 98, 100, 101, 99, 100]


def verdicts(before, after, by="operator"):
    rows = differences(trace_of(before), trace_of(after), by)
    return {row.name + row.shape: row.verdict for row in rows}


def test_a_trace_beside_itself_has_no_change():
    times = {("dot", None): STEADY, ("add", None): [5, 5, 5, 5, 5, 5]}
    rows = differences(trace_of(times), trace_of(times))
    assert [(row.verdict, row.growth_ns, row.ratio) for row in rows] == [("same", 0, 1.0)] * 2


def test_exactly_the_slower_one_is_called_so():
    before = {("dot", None): STEADY, ("add", None): STEADY}
    after = {("dot", None): [t * 12 // 10 for t in STEADY], ("add", None): STEADY[::-1]}
    assert verdicts(before, after) == {"dot": "slower", "add": "same"}
    assert verdicts(after, before) == {"dot": "faster", "add": "same"}


def test_a_change_within_the_spread_is_none():
    wide = [50, 80, 100, 120, 150, 60, 140, 90, 110, 100]
    assert verdicts({("dot", None): wide}, {("dot", None): [t + 15 for t in wide]}) == {
        "dot": "same"
    }


def test_a_disturbed_call_widens_nothing():
    before = {("dot", None): [*STEADY * 3, 90_000]}
    after = {("dot", None): [*(t + 20 for t in STEADY * 3), 90_000]}
    assert verdicts(before, after) == {"dot": "slower"}


def test_too_few_calls_tell_nothing():
    assert verdicts({("dot", None): [100] * 4}, {("dot", None): [900] * 9}) == {"dot": "unclear"}


def test_what_is_in_one_of_them_only_is_said_so():
    rows = differences(trace_of({("old", None): [3]}), trace_of({("new", None): [500]}))
    assert [(row.name, row.verdict, row.growth_ns, row.ratio) for row in rows] == [
        ("new", "added", 500, None),
        ("old", "removed", -3, None),
    ]


def test_the_largest_change_of_the_total_comes_first():
    before = {("a", None): [10] * 5, ("b", None): [10] * 5, ("c", None): [10] * 5}
    after = {("a", None): [11] * 5, ("b", None): [2] * 5, ("c", None): [10] * 5}
    rows = differences(trace_of(before), trace_of(after))
    assert [(row.name, row.growth_ns) for row in rows] == [("b", -40), ("a", 5), ("c", 0)]


def test_shapes_can_be_told_apart():
    before = {("dot", (4, 4)): STEADY, ("dot", (8, 8)): STEADY}
    after = {("dot", (4, 4)): STEADY, ("dot", (8, 8)): [2 * t for t in STEADY]}
    assert verdicts(before, after, "shape") == {
        "dot4×4 float32": "same",
        "dot8×8 float32": "slower",
    }
    with pytest.raises(ConfigError):
        differences(trace_of(before), trace_of(after), "shapes")
