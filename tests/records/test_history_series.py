"""From launches to series: records, environments, values."""

from __future__ import annotations

import pytest

from opbench.records import Floor, HistoryIndex, IndexedLaunch, history_of

FACTS = {"cpu_model": "Zen 4", "python": "3.11", "thread_settings": "none set"}


def launch(record, day, number=0, values=(1e-3,), names=("t.py::x",), **changed):
    return IndexedLaunch(
        path=f"{record}-{number}",
        record_id=record,
        launch_id=f"{record}-{number}",
        date=f"2026-12-{day:02}T09:{number:02}:00+00:00",
        commit=changed.get("commit", record * 10),
        dirty=changed.get("dirty", False),
        facts=changed.get("facts", FACTS),
        benchmarks=tuple(names),
        values=tuple(values),
        controls=changed.get("controls", {}),
        floors=changed.get("floors", {}),
    )


def index(*launches, names=None):
    known = {name: ("", None) for one in launches for name in one.benchmarks}
    return HistoryIndex(launches, known | (names or {}), (), 0)


def test_a_record_is_one_point_the_median_of_its_launches():
    found = history_of(
        index(
            launch("a", 1, 0, [3e-3]),
            launch("a", 1, 1, [1e-3]),
            launch("a", 1, 2, [2e-3]),
            launch("b", 2, 0, [5e-3]),
        )
    )
    (series,) = found.series
    assert [point.value for point in series.points] == [2e-3, 5e-3]
    assert [point.launches for point in series.points] == [3, 1]
    assert [point.position for point in series.points] == [0, 1]
    assert series.points[0].moment.name == "a" * 10
    assert series.floor == Floor(0.03)


def test_a_dirty_tree_and_a_run_without_commit_are_named_so():
    found = history_of(index(launch("a", 1, dirty=True), launch("b", 2, commit=None)))
    assert [one.name for one in found.epochs[0].moments] == ["a" * 10 + "+changes", "b"]


def test_records_of_two_machines_that_take_turns_are_two_series():
    other = {**FACTS, "cpu_model": "Skylake"}
    records = [launch(name, day + 1) for day, name in enumerate("abcd")]
    records[1] = launch("b", 2, facts=other)
    records[3] = launch("d", 4, facts=other)
    found = history_of(index(*records))
    assert [[m.record_id for m in one.moments] for one in found.epochs] == [["a", "c"], ["b", "d"]]
    assert [one.epoch for one in found.series] == [0, 1]
    assert found.current()["t.py::x"] is found.series[1]


def test_a_fact_that_is_not_known_keeps_no_record_apart_but_two_that_are_known_do():
    found = history_of(
        index(
            launch("a", 1, facts=FACTS),
            launch("b", 2, facts={**FACTS, "numpy": "2.4"}),
            launch("c", 3, facts=FACTS),
            launch("d", 4, facts={**FACTS, "numpy": "2.5"}),
        )
    )
    assert [[m.record_id for m in one.moments] for one in found.epochs] == [["a", "b", "c"], ["d"]]
    assert found.epochs[0].facts["numpy"] == "2.4"


def test_what_fits_two_environments_goes_to_the_one_that_was_used_last():
    found = history_of(
        index(
            launch("a", 1, facts={**FACTS, "numpy": "2.4"}),
            launch("b", 2, facts={**FACTS, "numpy": "2.5"}),
            launch("c", 3, facts=FACTS),
        )
    )
    assert [[m.record_id for m in one.moments] for one in found.epochs] == [["a"], ["b", "c"]]


def test_a_thread_setting_against_none_is_another_environment():
    limited = {**FACTS, "thread_settings": "OMP_NUM_THREADS=1"}
    found = history_of(index(launch("a", 1), launch("b", 2, facts=limited)))
    assert len(found.epochs) == 2


def test_selection_and_last_leave_out_and_the_order_is_that_of_time():
    records = [
        launch(name, day + 1, names=("x", "y"), values=(1.0, day + 1.0))
        for day, name in enumerate("cab")
    ]
    found = history_of(
        index(*reversed(records), names={"y": ("why", "g")}),
        selection=lambda name, label, group: (name, label, group) == ("y", "why", "g"),
        last=2,
    )
    (series,) = found.series
    assert [(p.moment.record_id, p.value) for p in series.points] == [("a", 2.0), ("b", 3.0)]
    assert (series.label, series.group) == ("why", "g")


def test_the_floor_is_that_of_the_newest_launch_and_gone_once_that_has_none():
    stored = {"t.py::x": {"relative": 0.2, "absolute": 0.0}}
    with_floor = history_of(index(launch("a", 1), launch("b", 2, floors=stored)))
    assert with_floor.series[0].floor == Floor(0.2, 0.0)
    without = history_of(index(launch("a", 1, floors=stored), launch("b", 2)), floor=Floor(0.01))
    assert without.series[0].floor == Floor(0.01)


def test_a_record_without_time_is_left_out_and_counted():
    found = history_of(index(launch("a", 1, values=[0.0]), launch("b", 2)))
    assert [point.moment.record_id for point in found.series[0].points] == ["b"]
    assert found.left_out == {"t.py::x": 1}


def test_controls_are_medians_and_none_where_not_timed():
    found = history_of(
        index(
            launch("a", 1, 0, controls={"compute": 1.0}),
            launch("a", 1, 1, controls={"compute": 3.0}),
            launch("b", 2),
        )
    )
    assert found.epochs[0].controls == {"compute": (2.0, None)}


def test_a_series_ends_with_its_benchmark():
    found = history_of(index(launch("a", 1, names=("x",)), launch("b", 2, names=("y",))))
    assert [(one.id, one.points[0].position) for one in found.series] == [("x", 0), ("y", 1)]


@pytest.mark.parametrize("count", [0, 1])
def test_few_launches_make_few_series(count):
    found = history_of(index(*[launch("a", 1)][:count]))
    assert (len(found.series), found.records) == (count, count)
