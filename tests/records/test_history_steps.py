"""Steps in series of known truth, with ruptures and without; events of the machine."""

from __future__ import annotations

import math
import random
import statistics
import sys

import pytest

from opbench.records import Epoch, Floor, History, Moment, Point, Series, find_steps
from opbench.records.history_steps import _deviation, search, steps_of

LAYERS = ["slow", "fast"]


@pytest.fixture(params=LAYERS)
def layer(request, monkeypatch):
    """Either with ruptures, or as if it was not installed."""
    if request.param == "slow":
        return pytest.importorskip("ruptures")
    monkeypatch.setitem(sys.modules, "ruptures", None)
    return search()


@pytest.fixture
def without_ruptures(monkeypatch):
    monkeypatch.setitem(sys.modules, "ruptures", None)


def moment(position):
    return Moment(f"r{position}", f"2026-01-01T00:{position:05}", f"{position:010x}", False)


def series(values, launches=5, floor=0.03, name="t.py::x", epoch=0, start=0):
    points = tuple(
        Point(moment(start + at), start + at, value, (value,) * launches)
        for at, value in enumerate(values)
    )
    return Series(name, "", None, epoch, points, Floor(floor))


def noisy(draw, count, step=None, size=1.0, launches=5):
    """Medians of launches with heavy tails (t with 3 df, 1.5 %) and 5 % of them slowed."""
    values = []
    for at in range(count):
        level = 1e-3 * (size if step is not None and at >= step else 1.0)
        drawn = []
        for _ in range(launches):
            tail = draw.gauss(0, 1) / math.sqrt(draw.gammavariate(1.5, 2) / 3) * 0.015
            slowed = 0.2 * draw.random() if draw.random() < 0.05 else 0.0
            drawn.append(level * math.exp(tail + slowed))
        values.append(statistics.median(drawn))
    return values


def test_a_step_is_found_where_it_is_with_both_levels(layer):
    draw = random.Random(3)  # noqa: S311 - no secret
    steps, waiting = steps_of(series(noisy(draw, 60, step=40, size=1.1)), layer)
    (step,) = steps
    assert abs(step.index - 40) <= 1
    assert step.before == pytest.approx(1e-3, rel=0.01)
    assert step.after == pytest.approx(1.1e-3, rel=0.01)
    assert step.ratio == pytest.approx(1.1, rel=0.015)
    assert step.lasted == 60 - step.index
    assert step.tentative is (layer is None)
    assert not waiting


def test_a_step_down_and_back_are_two(layer):
    values = [1.0] * 12 + [0.8] * 12 + [1.0] * 12
    draw = random.Random(7)  # noqa: S311 - no secret
    steps, _ = steps_of(series([v * draw.uniform(0.995, 1.005) for v in values]), layer)
    assert [(step.index, round(step.ratio, 2), step.lasted) for step in steps] == [
        (12, 0.8, 12),
        (24, 1.25, 12),
    ]


def test_false_steps_and_missed_ones_on_generated_launches_without_a_change_and_with(layer):
    """120 records of 5 launches, 300 series: the rules were frozen before (regression.md, 3c)."""
    draw = random.Random(20261201)  # noqa: S311 - no secret
    false = sum(len(steps_of(series(noisy(draw, 120)), layer)[0]) for _ in range(300))
    assert false <= 3
    found = 0
    for _ in range(100):
        steps, _ = steps_of(series(noisy(draw, 120, step=80, size=1.1)), layer)
        found += any(abs(step.index - 80) <= 2 and step.ratio > 1 for step in steps)
    assert found >= 95


def test_the_slow_layer_finds_5_percent_also_with_one_launch_a_record():
    ruptures = pytest.importorskip("ruptures")
    draw = random.Random(5)  # noqa: S311 - no secret
    found = 0
    for _ in range(100):
        values = noisy(draw, 120, step=80, size=1.05, launches=1)
        steps, _ = steps_of(series(values, launches=1), ruptures)
        found += any(abs(step.index - 80) <= 3 and step.ratio > 1 for step in steps)
    assert found >= 80


def test_one_record_outside_is_no_step_but_waits_while_it_is_the_newest(layer):
    flat = [1.0, 1.001, 0.999] * 4
    assert steps_of(series([*flat, 1.3]), layer) == ([], True)
    assert steps_of(series([*flat, 1.3, *flat]), layer) == ([], False)


def test_two_records_on_opposite_sides_are_no_step(layer):
    flat = [1.0, 1.001, 0.999] * 4
    assert steps_of(series([*flat, 1.3, 0.7]), layer) == ([], True)


def test_two_new_records_outside_are_a_tentative_step(layer):
    flat = [1.0, 1.001, 0.999] * 4
    (step,), waiting = steps_of(series([*flat, 1.3, 1.31]), layer)
    assert (step.index, step.tentative, step.lasted, waiting) == (12, True, 2, False)
    assert step.ratio == pytest.approx(1.305, rel=0.01)


def test_two_records_outside_that_went_away_are_no_step(layer):
    flat = [1.0, 1.001, 0.999] * 4
    assert steps_of(series([*flat, 1.2, 1.2, *flat]), layer) == ([], False)
    assert steps_of(series([*flat, 1.2, 1.2, *flat[:3]]), layer) == ([], False)


def test_a_large_step_that_ranks_cannot_tell_in_a_short_series_is_found_all_the_same(layer):
    (step,) = steps_of(stepping(0, at=5, count=24), layer)[0]
    assert (step.index, step.tentative) == (5, True)


class _Bounds:
    """Stands in for ruptures: finds what it is told."""

    def __init__(self, *ends):
        self.KernelCPD = lambda **_settings: self
        self.ends = ends

    def fit(self, _signal):
        return self

    def predict(self, pen):
        assert pen > 0
        return self.ends


def test_a_trusted_step_is_not_split_by_a_tentative_one_just_before_it():
    values = [1.0, 1.001, 0.999] * 4 + [1.3] * 12
    (step,) = steps_of(series(values), _Bounds(14, 24))[0]
    assert (step.index, step.tentative) == (14, False)


@pytest.mark.parametrize(("floor", "count"), [(0.03, 1), (0.2, 0)])
def test_a_benchmarks_floor_decides_what_counts(layer, floor, count):
    values = [1.0, 1.001, 0.999] * 6 + [1.1, 1.101, 1.099] * 6
    assert len(steps_of(series(values, floor=floor), layer)[0]) == count


def test_an_absolute_floor_of_20_ns_hides_the_step_of_a_tiny_benchmark(layer):
    values = [1e-8 * v for v in [1.0, 1.001, 0.999] * 6 + [1.5, 1.501, 1.499] * 6]
    assert steps_of(series(values), layer)[0] == []


def test_equal_values_are_no_step_and_a_clock_of_coarse_ticks_shows_one(layer):
    assert steps_of(series([1.0] * 30), layer) == ([], False)
    (step,) = steps_of(series([1.0] * 15 + [2.0] * 15), layer)[0]
    assert step.index == 15


@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_short_series_has_no_step(layer, count):
    assert steps_of(series([1.0, 2.0, 4.0, 4.0, 4.0, 4.0, 4.0][:count]), layer)[0] == []


def test_the_fast_layer_looks_at_no_record_of_few_launches(without_ruptures):
    values = [1.0] * 12 + [2.0] * 12
    assert steps_of(series(values, launches=2), None) == ([], False)
    found = find_steps(history(series(values, launches=2)))
    assert (found.thin, found.trusted) == (1, False)


def test_the_deviation_is_the_median_of_the_distances():
    draw = random.Random(1)  # noqa: S311 - no secret
    for _ in range(300):
        values = sorted(draw.choice([draw.random(), 0.5]) for _ in range(draw.randrange(1, 30)))
        middle = statistics.median(values)
        distances = sorted(abs(value - middle) for value in values)
        assert _deviation(values, middle) == distances[len(values) // 2]


# all series together


def history(*series_, controls=None):
    count = max(one.points[-1].position for one in series_) + 1
    epoch = Epoch(0, {}, tuple(map(moment, range(count))), controls or {})
    return History((epoch,), series_)


def stepping(number, at=12, ratio=1.2, count=24):
    values = [
        (1.0 + 0.001 * ((step + number) % 3)) * (ratio if step >= at else 1.0)
        for step in range(count)
    ]
    return series(values, name=f"t.py::b{number}")


def control(at=12, ratio=1.2, count=24):
    return {"memory": tuple(1e-3 * (ratio if step >= at else 1.0) for step in range(count))}


def test_most_series_stepping_with_a_control_are_one_event(layer):
    del layer
    own = [stepping(number) for number in range(4)] + [stepping(9, ratio=1.0)]
    found = find_steps(history(*own, controls=control()))
    (event,) = found.events
    assert found.steps == ()
    assert (len(event.steps), event.of, event.position) == (4, 5, 12)
    assert (event.before.record_id, event.after.record_id) == ("r11", "r12")
    assert event.ratio == pytest.approx(1.2, rel=0.01)
    assert event.control == "the memory control took 1.200 times as long"


def test_where_the_controls_stood_still_it_is_the_code(layer):
    del layer
    own = [stepping(number) for number in range(8)]
    found = find_steps(history(*own, controls=control(ratio=1.0)))
    assert found.events == ()
    assert len(found.steps) == 8
    assert found.steps[0].control == ""


@pytest.mark.parametrize(("count", "events"), [(5, 0), (6, 1)])
def test_without_controls_it_takes_six(layer, count, events):
    del layer
    found = find_steps(history(*[stepping(number) for number in range(count)]))
    assert len(found.events) == events
    assert len(found.steps) == (0 if events else count)


def test_half_of_the_series_are_not_most(layer):
    del layer
    flat = [stepping(number + 10, ratio=1.0) for number in range(6)]
    found = find_steps(history(*[stepping(number) for number in range(6)], *flat))
    assert (len(found.events), len(found.steps)) == (0, 6)


def test_a_place_that_is_one_record_off_belongs_to_the_event_and_other_steps_do_not(layer):
    del layer
    own = [stepping(number) for number in range(6)]
    late, early = stepping(7, at=13), stepping(8, at=5)
    found = find_steps(history(*own, late, early))
    (event,) = found.events
    assert {step.series.id for step in event.steps} == {f"t.py::b{n}" for n in (*range(6), 7)}
    assert [(step.series.id, step.index) for step in found.steps] == [("t.py::b8", 5)]


def test_a_step_beside_a_control_that_moved_says_so(layer):
    del layer
    flat = [stepping(number + 10, ratio=1.0) for number in range(3)]
    found = find_steps(history(stepping(0), *flat, controls=control(ratio=1.15)))
    (step,) = found.steps
    assert step.control == "the memory control took 1.150 times as long"


def test_series_that_began_later_do_not_count(layer):
    del layer
    own = [stepping(number) for number in range(6)]
    young = [series([1.0] * 4, name=f"t.py::young{n}", start=20) for n in range(10)]
    (event,) = find_steps(history(*own, *young)).events
    assert event.of == 6


def test_ruptures_is_loaded_only_where_a_series_is_long_enough(without_ruptures):
    assert find_steps(history(series([1.0] * 7))).trusted
    assert not find_steps(history(series([1.0] * 8))).trusted
