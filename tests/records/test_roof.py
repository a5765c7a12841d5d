"""The roofline's height, and its file: one for each environment, whole or not at all."""

from __future__ import annotations

import json

import pytest

from opbench.errors import RecordError
from opbench.records import Ceiling, Roof, load_roof, save_roof

MACHINE = {"cpu_model": "Z80", "cpu_count": 2, "fused": True}
ROOF = Roof(
    MACHINE,
    2,
    "2026-12-01T12:00:00+00:00",
    peaks={"float32": 200e9, "float64": 100e9},
    bandwidth=((1_000, 80e9), (10_000, 50e9), (1_000_000, 20e9)),
)


@pytest.mark.parametrize(
    ("flop", "nbytes", "dtype", "expected"),
    [
        (1e6, 500, "float32", Ceiling(200e9, "compute")),
        (2e3, 2e3, "float32", Ceiling(50e9, "memory")),  # fits the second cache
        (1e3, 1e3, "float32", Ceiling(80e9, "memory")),  # just fits the first one
        (1e5, 1e5, "float64", Ceiling(20e9, "memory")),  # only memory
        (1e7, 1e8, "float64", Ceiling(2e9, "memory")),  # larger than anything measured
        (5e5, 1e5, "float64", Ceiling(100e9, "compute")),  # at the ridge: 20e9 times 5
        (1e3, 0, "float64", Ceiling(100e9, "compute")),  # nothing is moved
        (0, 1e3, "float64", None),
        (1e3, 1e3, "int32", None),
    ],
)
def test_the_ceiling_is_the_lower_of_peak_and_bandwidth_times_intensity(
    flop, nbytes, dtype, expected
):
    assert ROOF.ceiling(flop, nbytes, dtype) == expected


def test_a_larger_working_set_that_is_faster_counts_for_a_smaller_one():
    odd = Roof(MACHINE, 1, "", {"float32": 1e12}, ((1_000, 10e9), (10_000, 30e9)))
    assert odd.ceiling(1e3, 500, "float32") == Ceiling(60e9, "memory")


def test_without_bandwidth_the_peak_is_the_ceiling():
    assert Roof(MACHINE, 1, "", {"float32": 5.0}).ceiling(1, 9e9, "float32").flops == 5.0


def test_what_was_stored_is_what_is_loaded(tmp_path):
    save_roof(tmp_path / "roof", ROOF)
    assert load_roof(tmp_path / "roof", MACHINE, 2) == ROOF
    assert (tmp_path / "roof" / ".gitignore").read_text() == "*\n"


def test_another_environment_or_number_of_threads_has_a_file_of_its_own(tmp_path):
    save_roof(tmp_path, ROOF)
    assert load_roof(tmp_path, MACHINE, 1) is None
    assert load_roof(tmp_path, {**MACHINE, "fused": False}, 2) is None
    other = Roof({**MACHINE, "cpu_model": "6502"}, 2, "later", {"float32": 1.0})
    save_roof(tmp_path, other)
    assert load_roof(tmp_path, MACHINE, 2) == ROOF
    assert load_roof(tmp_path, other.environment, 2) == other


def test_a_folder_of_the_users_gets_no_ignore_file(tmp_path):
    path = save_roof(tmp_path, ROOF)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_roof_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = save_roof(tmp_path, ROOF)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(path), "replace", full)
    with pytest.raises(RecordError, match=r"cannot save the roof as .*No space left on device"):
        save_roof(tmp_path, Roof(MACHINE, 2, "", {"float32": 1.0}))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_is_strict_json_even_for_a_rate_that_is_none(tmp_path):
    path = save_roof(tmp_path, Roof(MACHINE, 2, "", {"float32": float("nan")}))
    document = json.loads(path.read_text("ascii"), parse_constant=pytest.fail)
    assert document["peaks"] == {"float32": None}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema_version": 2}, "is no roof of schema 1"),
        ({"environment": {}}, "another environment"),
        ({"threads": 3}, "another environment"),
        ({"peaks": []}, "lacks its peaks"),
        ({"bandwidth": None}, "lacks its peaks or its bandwidth"),
        ({"peaks": {"float32": "fast"}}, "'fast' where a rate stands"),
        ({"peaks": {"float32": True}}, "True where a rate stands"),
        ({"peaks": {"float32": -1}}, "-1 where a positive rate stands"),
        ({"bandwidth": [[1000]]}, "where a working set and its bandwidth stand"),
        ({"bandwidth": [[1000, 0]]}, "0 where a positive rate stands"),
    ],
)
def test_a_damaged_file_is_refused_with_its_path_and_what_to_do(tmp_path, change, words):
    path = save_roof(tmp_path, ROOF)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(RecordError, match=words) as caught:
        load_roof(tmp_path, MACHINE, 2)
    assert str(path) in str(caught.value)
    assert "opbench roof --measure" in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "\xff"])
def test_a_file_that_is_no_roof_is_refused(tmp_path, text):
    save_roof(tmp_path, ROOF).write_text(text, encoding="latin-1")
    with pytest.raises(RecordError, match="measure the roof again"):
        load_roof(tmp_path, MACHINE, 2)


def test_the_best_of_two_has_each_rates_higher_one_and_the_newer_date():
    newer = Roof(MACHINE, 2, "later", {"float32": 250e9}, ((1_000, 70e9), (10_000, 60e9)))
    both = ROOF.best_of(newer)
    assert both.peaks == {"float32": 250e9, "float64": 100e9}
    assert both.bandwidth == ((1_000, 80e9), (10_000, 60e9), (1_000_000, 20e9))
    assert both.measured == "later"


@pytest.mark.parametrize(
    ("old", "new", "peaks", "quiet"),
    [
        (True, True, {"float32": 1.0}, True),
        (True, False, {"float32": 1.0}, False),
        (False, True, {"float32": 1.0, "float64": 1.0}, True),  # all measured anew, in quiet
        (False, True, {"float32": 1.0}, False),  # one rate is still a disturbed one
    ],
)
def test_a_best_of_is_quiet_if_each_of_its_rates_was_taken_in_quiet(old, new, peaks, quiet):
    points = ROOF.bandwidth
    before = Roof(MACHINE, 2, "", ROOF.peaks, points, quiet=old)
    assert before.best_of(Roof(MACHINE, 2, "", peaks, points, quiet=new)).quiet is quiet
