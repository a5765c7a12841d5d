"""The index of saved launches: equal to the files, and never in their way."""

from __future__ import annotations

import json

import pytest

from opbench.errors import ConfigError
from opbench.records import INDEX_NAME, Library, history_of, index_launches, launch_value


@pytest.fixture
def library(tmp_path, saver):
    library = Library(tmp_path / "results")
    for day in (1, 2, 3):
        rounds = [day * 1e-3 + 1e-6 * index for index in range(20)]
        extra = {"t.py::x": {"floor": {"relative": 0.1, "absolute": 0.0}}}
        saver.launch(
            "abc"[day - 1],
            1,
            {"t.py::x": rounds, "t.py::y": 2e-3},
            day=day,
            folder=library.runs / "machine",
            extra=extra,
            groups={"t.py::y": "g"},
            machine={"kernel": "6.1"},
        )
    return library


def place(library):
    return library.runs / INDEX_NAME


def test_the_second_time_no_file_is_read_and_all_is_equal(library):
    first = index_launches(library)
    second = index_launches(library)
    assert (first.read, second.read) == (3, 0)
    assert second.launches == first.launches
    assert second.names == first.names == {"t.py::x": ("", None), "t.py::y": ("", "g")}
    one = second.launches[0]
    assert one.benchmarks == ("t.py::x", "t.py::y")
    rounds = [1e-3 + 1e-6 * index for index in range(20)]
    assert one.values == (launch_value(rounds), 2e-3)
    assert (one.record_id, one.launch_id, one.commit, one.dirty) == ("a", "a-1", "a", False)
    assert one.date == "2026-12-01T09:01:00+00:00"
    assert one.facts["numpy"] == "2.4.6"
    assert one.facts["kernel"] == "6.1"
    assert one.facts["thread_settings"] == "none set"
    assert "numba" not in one.facts
    assert one.controls == {"compute": 1e-3, "memory": 2e-3}
    assert one.floors == {"t.py::x": {"relative": 0.1, "absolute": 0.0}}


def test_a_new_file_alone_is_read_and_a_removed_one_is_forgotten(library, saver):
    index_launches(library)
    saver.launch("d", 1, {"t.py::x": 1e-3}, day=4, folder=library.runs / "machine")
    (library.runs / "machine" / "0101_a.json").unlink()
    found = index_launches(library)
    assert found.read == 1
    assert [one.record_id for one in found.launches] == ["b", "c", "d"]
    assert "0101_a" not in place(library).read_text()


def test_a_removed_file_leaves_the_index_also_where_nothing_is_new(library):
    index_launches(library)
    (library.runs / "machine" / "0201_b.json").unlink()
    assert [one.record_id for one in index_launches(library).launches] == ["a", "c"]
    assert "0201_b" not in place(library).read_text()


def test_a_file_that_changed_is_read_again(library):
    index_launches(library)
    path = library.runs / "machine" / "0101_a.json"
    path.write_text(path.read_text().replace('"a-1"', '"other"'))
    found = index_launches(library)
    assert found.read == 1
    assert found.launches[0].launch_id == "other"


def _changed(change):
    def apply(text):
        document = json.loads(text)
        change(document)
        return json.dumps(document)

    return apply


def _first(document):
    return next(iter(document["files"].values()))


@pytest.mark.parametrize(
    "damage",
    [
        lambda _text: "",
        lambda text: text[: len(text) // 2],
        lambda _text: "[]",
        lambda _text: "\x00\xff",
        lambda _text: "[" * 100_000,
        _changed(lambda d: d["versions"].__setitem__(0, 99)),
        _changed(lambda d: d["versions"].__setitem__(1, 0)),
        _changed(lambda d: d.pop("suites")),
        _changed(lambda d: _first(d)[9].append(1.0)),
        _changed(lambda d: _first(d)[9].__setitem__(0, "1")),
        _changed(lambda d: _first(d).__setitem__(8, 7)),
        _changed(lambda d: _first(d).__setitem__(2, None)),
        _changed(lambda d: _first(d)[11]["t.py::x"].__setitem__("relative", 7)),
    ],
)
def test_whatever_is_wrong_with_the_index_it_is_built_anew(library, damage):
    before = index_launches(library)
    text = place(library).read_text()
    place(library).write_text(damage(text))
    found = index_launches(library)
    assert found.read == 3
    assert found.launches == before.launches
    assert place(library).read_text() == text


def test_rebuild_reads_every_file(library):
    index_launches(library)
    assert index_launches(library, rebuild=True).read == 3
    assert index_launches(library).read == 0


def test_a_run_that_cannot_be_read_is_named_each_time_and_the_others_stay(library):
    (library.runs / "machine" / "0500_x.json").write_text("{")
    for _ in range(2):
        found = index_launches(library)
        (problem,) = found.problems
        assert "0500_x.json: is not strict JSON" in problem
        assert len(found.launches) == 3
    assert found.read == 0


def test_an_index_that_cannot_be_kept_is_said_and_costs_nothing_else(library):
    place(library).mkdir()
    found = index_launches(library)
    assert len(found.launches) == 3
    assert "cannot be kept" in found.unkept
    assert [one.name for one in library.runs.iterdir() if one.name.startswith(".")] == [INDEX_NAME]


def test_what_was_read_before_an_interrupt_is_kept(library):
    def interrupt(done, total):
        assert total == 3
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index_launches(library, progress=interrupt)
    assert index_launches(library).read == 1


def test_a_copy_of_a_launch_counts_once(library):
    path = library.runs / "machine" / "0101_a.json"
    (library.runs / "0001_copy.json").write_bytes(path.read_bytes())
    assert [one.launch_id for one in index_launches(library).launches] == ["a-1", "b-1", "c-1"]


def test_no_folder_is_no_launch_and_no_index(tmp_path):
    library = Library(tmp_path / "nothing")
    assert index_launches(library).launches == ()
    assert not library.runs.exists()


def test_the_value_of_a_launch_is_the_one_that_this_version_of_the_index_stands_for():
    # If this fails raise INDEX_VERSION with it: old indexes hold values of another meaning.
    rounds = [7.0, 5.0, 9.0, 1.0, 3.0, 4.0, 8.0, 2.0, 6.0, 10.0, 12.0, 11.0]
    assert launch_value(rounds) == 3.5


def test_a_number_of_records_below_one_is_refused(library):
    with pytest.raises(ConfigError, match="--last is 0"):
        history_of(index_launches(library), last=0)
