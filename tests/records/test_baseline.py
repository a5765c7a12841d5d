"""Baselines: full copies, moved by a command alone."""

from __future__ import annotations

import shutil
from datetime import datetime, timedelta, timezone

import pytest

from opbench.errors import ConfigError, RecordError
from opbench.records import Library, baseline, baselines, prune_baselines, set_baseline

T = "t.py::a"


@pytest.fixture
def library(tmp_path):
    return Library(tmp_path / "results")


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_baseline_is_a_full_copy_that_outlives_its_record(saver, library):
    record = saver.record("one", {T: 1e-3})
    folder = set_baseline(library, "main", record)
    assert folder == library.baselines / "main"
    assert [content for _, content in sorted(contents(folder).items())] == [
        launch.path.read_bytes() for launch in record.launches
    ]
    shutil.rmtree(saver.folder)
    again = library.find("main")
    assert (again.id, len(again.launches), again.samples) == ("one", 5, record.samples)


def test_launches_of_several_folders_with_one_number_are_all_kept(saver, library):
    from opbench.records import read_records

    paths = [
        saver.launch("one", number, {T: 1e-3}, folder=saver.folder / str(number))
        for number in (0, 1)
    ]
    for path in paths:
        path.rename(path.with_name("0001_same.json"))
    (record,) = read_records(path.with_name("0001_same.json") for path in paths)
    folder = set_baseline(library, "main", record)
    assert sorted(contents(folder)) == ["0001_same.json", "0002_same.json"]
    assert len(library.find("main").launches) == 2


def test_a_taken_name_is_refused_and_what_was_there_stays(saver, library):
    folder = set_baseline(library, "main", saver.record("one", {T: 1e-3}))
    before = contents(folder)
    with pytest.raises(ConfigError, match=r"already \(5 launches of record one\); give --replace"):
        set_baseline(library, "main", saver.record("two", {T: 1e-3}))
    assert contents(folder) == before


def test_a_baseline_that_is_asked_to_move_is_replaced_whole(saver, library):
    set_baseline(library, "main", saver.record("one", {T: 1e-3}, launches=7))
    set_baseline(library, "main", saver.record("two", {T: 1e-3}), replace=True)
    assert library.find("main").id == "two"
    assert [path.name for path in library.baselines.iterdir()] == ["main"]
    assert len(contents(library.baselines / "main")) == 5


def test_a_copy_that_fails_leaves_the_old_baseline_and_no_rest(saver, library, monkeypatch):
    folder = set_baseline(library, "main", saver.record("one", {T: 1e-3}))
    before = contents(folder)
    record, copied = saver.record("two", {T: 1e-3}), []

    def full(source, target):
        copied.append(target)
        if len(copied) == 3:
            raise OSError(28, "No space left on device")
        target.write_bytes(source.read_bytes())

    monkeypatch.setattr(baseline.shutil, "copyfile", full)
    with pytest.raises(RecordError, match="No space left on device; nothing was changed"):
        set_baseline(library, "main", record, replace=True)
    assert contents(folder) == before
    assert [path.name for path in library.baselines.iterdir()] == ["main"]


def test_a_move_that_fails_in_the_middle_brings_the_old_baseline_back(saver, library, monkeypatch):
    folder = set_baseline(library, "main", saver.record("one", {T: 1e-3}))
    before, rename = contents(folder), type(folder).rename

    def fragile(path, target):
        if path.name.endswith(".new"):
            raise OSError(5, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(type(folder), "rename", fragile)
    with pytest.raises(RecordError, match="Input/output error; nothing was changed"):
        set_baseline(library, "main", saver.record("two", {T: 1e-3}), replace=True)
    assert contents(folder) == before
    assert [path.name for path in library.baselines.iterdir()] == ["main"]


def test_a_folder_that_cannot_be_made_is_an_error(saver, tmp_path):
    (tmp_path / "results").write_text("a file")
    with pytest.raises(RecordError, match=r"cannot set the baseline 'main' in .*nothing was chang"):
        set_baseline(Library(tmp_path / "results"), "main", saver.record("one", {T: 1e-3}))


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "-x", "a b", "ä", "a" * 101])
def test_a_name_that_no_folder_should_have_is_refused(saver, library, name):
    with pytest.raises(ConfigError, match="cannot name a baseline"):
        set_baseline(library, name, saver.record("one", {T: 1e-3}))
    assert not library.baselines.exists()


def test_the_list_has_name_size_and_date_and_says_what_cannot_be_read(saver, library):
    assert baselines(library) == []
    set_baseline(library, "main", saver.record("one", {T: 1e-3}, day=3))
    set_baseline(library, "bad", saver.record("two", {T: 1e-3}, launches=1))
    (file,) = (library.baselines / "bad").iterdir()
    file.write_bytes(b"{")
    (library.baselines / "none").mkdir()
    (library.baselines / ".x.new").mkdir()
    bad, main, none = baselines(library)
    assert (main.name, main.record_id, main.launches) == ("main", "one", 5)
    assert main.date == "2026-12-03T09:00:00+00:00"
    assert "is not strict JSON" in bad.problem
    assert none.problem == "it holds no saved run"


NOW = datetime(2026, 12, 20, 9, 30, tzinfo=timezone.utc)


@pytest.fixture
def three(saver, library):
    for name, day in (("old", 1), ("mid", 10), ("new", 19)):
        set_baseline(library, name, saver.record(f"r{day}", {T: 1e-3}, day=day))
    return library


def test_pruning_takes_what_is_named_or_old_and_nothing_else(three):
    assert prune_baselines(three) == []
    assert prune_baselines(three, ["mid"], dry_run=True) == ["mid"]
    assert three.names() == ("mid", "new", "old")
    assert prune_baselines(three, older_than=timedelta(days=15), now=NOW) == ["old"]
    assert prune_baselines(three, ["new", "new"]) == ["new"]
    assert three.names() == ("mid",)


def test_an_unknown_name_prunes_nothing_at_all(three):
    with pytest.raises(ConfigError, match=r"no baseline 'mod' in .*; there is mid, new, old"):
        prune_baselines(three, ["old", "mod"])
    assert three.names() == ("mid", "new", "old")
