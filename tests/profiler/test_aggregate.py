from __future__ import annotations

import pytest

from opbench.profiler import OperatorTotal, aggregate, operator_totals


@pytest.fixture
def emit(recorder, clock):
    recorder.run(15, "test")

    def record(ns, name="dot", category="imperative", **args):
        start = recorder.clock()
        recorder.complete(name, category, start, clock.advance(ns), {"operator": name, **args})

    yield record
    if recorder.state == "run":
        recorder.stop("test")


def test_one_row_per_category_and_operator_by_falling_total(recorder, emit):
    for ns in (10, 40, 20, 30):
        emit(ns, flop=100, bytes=8)
    emit(500, category="symbolic", flop=1, bytes=2)
    emit(70, name="add", flop=3, bytes=4)
    assert operator_totals(recorder.stop("test")) == [
        OperatorTotal("symbolic", "dot", 1, 500, 500, 500, 500.0, 500.0, 1, 2),
        OperatorTotal("imperative", "dot", 4, 100, 10, 40, 25.0, 25.0, 400, 32),
        OperatorTotal("imperative", "add", 1, 70, 70, 70, 70.0, 70.0, 3, 4),
    ]


def test_the_median_of_an_odd_count_is_the_middle_one(recorder, emit):
    for ns in (10, 1000, 20):
        emit(ns)
    (row,) = operator_totals(recorder.stop("test"))
    assert (row.median_ns, row.mean_ns) == (20.0, 1030 / 3)


def test_only_operators_are_counted(recorder, emit):
    emit(10, category="api")
    emit(10, category="iteration")
    emit(10, category="call")
    recorder.instant("dot", "imperative")
    assert operator_totals(recorder.stop("test")) == []


def test_work_that_one_call_did_not_state_is_unknown_and_not_zero(recorder, emit):
    emit(10, flop=100, bytes=8)
    emit(10, bytes=8)
    (row,) = operator_totals(recorder.stop("test"))
    assert (row.count, row.flop, row.bytes) == (2, None, 16)


def test_an_instance_name_counts_under_its_operator(recorder, clock):
    recorder.run(15, "test")
    for layer in ("layer1", "layer2"):
        start = recorder.clock()
        recorder.complete(layer, "symbolic", start, clock.advance(5), {"operator": "dot"})
    (row,) = operator_totals(recorder.stop("test"))
    assert (row.name, row.count) == ("dot", 2)


def test_a_slice_that_crosses_its_parent_covers_the_one_outside_too(recorder):
    recorder.run(15, "test")
    at = recorder.clock()
    for name, start, end in (("outer", 0, 20), ("inner", 5, 15), ("crossing", 10, 18)):
        recorder.complete(name, "event", at + start, at + end)
    recorder.complete("last", "event", at + 18, at + 19)
    found = {row.name: row.self_total for row in aggregate(recorder.stop("test"))}
    assert found == {"outer": 6, "inner": 5, "crossing": 8, "last": 1}
