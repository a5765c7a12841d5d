"""Which record a word names, and how launches come together."""

from __future__ import annotations

import json
import os

import pytest

from opbench.errors import RecordError
from opbench.records import Library, launches, read_records, read_run, record
from opbench.records.find import in_order

T = "t.py::a"


@pytest.fixture
def library(saver):
    saver.folder = saver.folder / "runs" / "Linux"
    return Library(saver.folder.parents[1])


def ids(found):
    return found.id, len(found.launches)


# Launches of one record


def test_files_with_one_record_id_are_one_record_with_a_sample_per_launch(saver):
    one = saver.record("one", {T: [1e-3, 2e-3, 3e-3], "t.py::b": 1.0}, launches=3)
    assert ids(one) == ("one", 3)
    assert [sample.values[0] for sample in one.samples[T]] == [1e-3, 2e-3, 3e-3]
    assert [sample.launch for sample in one.samples[T]] == ["one-0", "one-1", "one-2"]
    assert list(one.samples) == [T, "t.py::b"]
    assert one.warnings == ()
    assert (one.commit, one.dirty, one.name) == ("one", False, "one")


def test_launches_are_in_the_order_of_time_whatever_the_order_of_files(saver):
    paths = [saver.launch("one", number, {T: 1e-3}) for number in (2, 0, 1)]
    paths = [path.rename(path.with_name(f"{i:04}_x.json")) for i, path in enumerate(paths, 1)]
    (found,) = read_records(paths)
    assert [launch.launch_id for launch in found.launches] == ["one-0", "one-1", "one-2"]


def test_records_come_apart_by_their_ids(saver):
    paths = [saver.launch(name, n, {T: 1e-3}, day=day) for n in (0, 1) for name, day in
             (("later", 2), ("early", 1))]  # fmt: skip
    assert [ids(one) for one in read_records(paths)] == [("early", 2), ("later", 2)]


def test_a_copy_of_a_launch_counts_once(saver):
    path = saver.launch("one", 0, {T: 1e-3})
    copy = path.with_name("0099_copy.json")
    copy.write_bytes(path.read_bytes())
    (found,) = read_records([path, copy])
    assert ids(found) == ("one", 1)
    assert "1 copies of launches are left out" in found.warnings


def test_what_some_launches_lack_or_have_otherwise_is_told(saver):
    one = saver.launch("one", 0, {T: 1e-3}, machine={"kernel": "6.1"})
    two = saver.launch("one", 1, {T: 1e-3}, machine={"kernel": "6.2"}, commit=None)
    (found,) = read_records([one, two])
    assert found.warnings == (
        "no commit: the run cannot be tied to a revision (in 1 of 2 launches)",
        "its launches differ in kernel",
        "its launches were not measured on one commit",
    )


def test_an_operators_fingerprint_counts_if_all_launches_agree(saver):
    paths = [saver.launch("one", n, {T: 1.0}, sources={"dot": "aa", "sum": f"{n}"}) for n in (0, 1)]
    assert read_records(paths)[0].sources == {"dot": "aa"}


def test_a_record_of_a_dirty_tree_says_so_in_its_name(saver):
    found = saver.record("c0ffee00c0ffee00", {T: 1.0}, launches=1, dirty=True)
    assert found.name == "c0ffee00c0+changes"


def test_no_launch_is_no_record():
    with pytest.raises(RecordError, match="at least one launch"):
        record.record_of([])


# What a word names


def test_every_way_to_name_a_record(saver, library, tmp_path, monkeypatch):
    saver.record("20261201T09-aa", {T: 1e-3})
    saver.record("20261202T09-bb", {T: 1e-3}, day=2)
    saver.record("kept", {T: 1e-3}, launches=2, folder=library.baselines / "main")
    monkeypatch.chdir(tmp_path)
    folder = saver.folder
    for word, expected in {
        "latest": ("20261202T09-bb", 5),
        "main": ("kept", 2),
        "20261201T09-aa": ("20261201T09-aa", 5),
        "20261201": ("20261201T09-aa", 5),
        "20261201T09-aa-3": ("20261201T09-aa", 5),
        "0101": ("20261201T09-aa", 5),
        "201": ("20261202T09-bb", 5),
        "0203_20261202T09-bb": ("20261202T09-bb", 5),
        str(folder / "0101_20261201T09-aa.json"): ("20261201T09-aa", 1),
        str(folder): ("20261202T09-bb", 5),
        str(folder.parent): ("20261202T09-bb", 5),
        str(folder / "01*.json"): ("20261201T09-aa", 5),
        str(folder.relative_to(tmp_path) / "*bb.json"): ("20261202T09-bb", 5),
    }.items():
        assert ids(library.find(word)) == expected, word


def test_a_word_that_names_nothing_says_where_it_looked_and_what_is_near(saver, library):
    saver.record("one", {T: 1e-3}, folder=library.baselines / "main")
    with pytest.raises(RecordError, match=r"'mian' is no record: .*; did you mean 'main'"):
        library.find("mian")
    with pytest.raises(RecordError, match=r"'x\*' matches no file"):
        library.find("x*")


def test_a_beginning_that_fits_two_records_names_their_files(saver, library):
    for name in ("2026-a", "2026-b"):
        saver.record(name, {T: 1e-3}, launches=1)
    with pytest.raises(RecordError, match=r"not one record but 2: 0100_2026-a.json, 0100_2026-b"):
        library.find("2026")


def test_the_newest_is_not_the_baseline_nor_a_copy_of_it(saver, library):
    saver.record("older", {T: 1e-3})
    newest = saver.record("newest", {T: 1e-3}, day=2)
    assert library.latest().id == "newest"
    assert library.latest(other_than=newest).id == "older"
    saver.record("newest", {T: 1e-3}, day=2, folder=library.baselines / "main")
    assert library.latest(other_than=library.find("main")).id == "older"


def test_a_torn_file_is_not_passed_over_in_search_of_the_newest(saver, library):
    saver.record("whole", {T: 1e-3})
    torn = saver.launch("torn", 0, {T: 1e-3}, day=2)
    torn.write_bytes(torn.read_bytes()[:100])
    with pytest.raises(RecordError, match=r"0200_torn\.json: is not strict JSON"):
        library.latest()
    assert library.find("whole").id == "whole"


def test_an_empty_store_says_how_to_fill_it(library):
    with pytest.raises(RecordError, match=r"no saved run in .*; make one with 'opbench run'"):
        library.find("latest")
    with pytest.raises(RecordError, match="there is no baseline yet"):
        library.find("main")


def test_an_empty_folder_is_refused(tmp_path, library):
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecordError, match="no saved run in this folder"):
        library.find(str(tmp_path / "empty"))


# Plain files of pytest-benchmark, which name no record


def plain(saver, commits, **changed):
    return [
        saver.launch(f"plain{number}", number, {T: 1e-3}, plain=True, commit=commit, **changed)
        for number, commit in enumerate(commits)
    ]


def test_plain_files_of_one_commit_named_together_are_launches_of_one_record(saver, library):
    plain(saver, ["aa"] * 5)
    found = library.find(str(saver.folder / "*.json"))
    assert len(found.launches) == 5
    assert len(found.samples[T]) == 5
    assert any(warning.startswith("5 records taken together: ") for warning in found.warnings)
    assert any(warning.startswith("no environment: ") for warning in found.warnings)


def test_files_of_different_commits_named_together_are_refused(saver, library):
    plain(saver, ["aa", "aa", "bb"])
    with pytest.raises(RecordError, match=r"no repetitions of each other: .*differ in commit"):
        library.find(str(saver.folder / "*.json"))


def test_of_a_folder_of_plain_files_those_of_the_newest_commit_are_taken(saver, library):
    plain(saver, ["aa", "bb", "bb"])
    found = library.find(str(saver.folder))
    assert (found.commit, len(found.launches)) == ("bb", 2)


def test_a_plain_file_alone_is_a_record(saver, library):
    (path,) = plain(saver, ["aa"])
    assert len(library.find(str(path)).launches) == 1


# Looking without reading all


def test_ids_and_date_are_read_from_the_end_of_a_large_file(saver, monkeypatch):
    path = saver.launch("one", 3, {f"t.py::{n}": 1e-3 for n in range(500)})
    document = json.loads(path.read_text())
    document["benchmarks"][-1]["extra_info"] = {"record_id": "a liar"}
    path.write_text(json.dumps(document, indent=1))
    assert path.stat().st_size > 1 << 16
    (found,) = in_order([path])
    assert (found.record_id, found.launch_id) == ("one", "one-3")
    assert found.moment == "2026-12-01T09:03:00+00:00"


def test_ids_that_stand_elsewhere_are_found_as_well(saver):
    path = saver.launch("one", 3, {f"t.py::{n}": 1e-3 for n in range(500)})
    document = json.loads(path.read_text())
    path.write_text(json.dumps(dict(reversed(document.items())), indent=1))
    assert in_order([path])[0].record_id == "one"


# Files that are no record


def test_a_huge_file_is_refused_without_being_read(tmp_path, monkeypatch):
    path = tmp_path / "0001_huge.json"
    with path.open("wb") as stream:
        stream.truncate(1_000_000_000)
    monkeypatch.setattr(launches, "MOST_BYTES", 1000)
    with pytest.raises(RecordError, match=r"has 1.00 GB, more than the 1.00 kB of any saved run"):
        read_run(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a device without a size")
def test_a_device_without_an_end_is_refused():
    with pytest.raises(RecordError, match="/dev/zero: "):
        read_run("/dev/zero")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"\x00\xff\xfe binary", "is not strict JSON"),
        (b'{"benchmarks": [{"fullname": "t"', "is not strict JSON"),
        (b'{"traceEvents": []}', "is no saved run"),
        (b'{"benchmarks": [], "opbench": {"schema_version": 9}}', "has schema version 9, newer"),
    ],
)
def test_one_file_that_cannot_be_read_spoils_the_record_and_is_named(
    saver, library, content, reason
):
    saver.record("one", {T: 1e-3}, launches=2)
    path = saver.folder / "0300_bad.json"
    path.write_bytes(content)
    with pytest.raises(RecordError, match=rf"0300_bad\.json: {reason}"):
        library.find(str(saver.folder / "*.json"))


def test_nan_and_infinite_rounds_exclude_a_benchmark_and_negative_ones_too(saver):
    values = {"t.py::neg": (1.0, -1.0), "t.py::zero": (0.0, 0.0), "t.py::good": (1.0, 1.0)}
    path = saver.launch("one", 0, values)
    text = path.read_text().replace("-1.0", "1e999")
    path.write_text(text)
    (found,) = read_records([path])
    assert found.excluded == {"t.py::neg": "round 1 is inf, no duration"}
    assert set(found.samples) == {"t.py::zero", "t.py::good"}
    path.write_text(text.replace("1e999", "NaN"))
    with pytest.raises(RecordError, match="NaN is not a JSON number"):
        read_records([path])


def test_a_benchmark_that_only_some_launches_lost_keeps_its_other_samples(saver):
    paths = [saver.launch("one", 0, {T: 1.0}), saver.launch("one", 1, {T: (-1.0,)})]
    (found,) = read_records(paths)
    assert len(found.samples[T]) == 1
    assert found.excluded == {}
