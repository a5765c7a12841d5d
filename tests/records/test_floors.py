from __future__ import annotations

import math

import pytest

from opbench.errors import ConfigError
from opbench.records import Floor, Floors, Rename, load_rename, parse_floor
from opbench.records.floors import DEFAULT_ABSOLUTE


@pytest.mark.parametrize(
    ("text", "relative", "absolute"),
    [
        ("5%", 0.05, DEFAULT_ABSOLUTE),
        ("0.5 %", 0.005, DEFAULT_ABSOLUTE),
        ("0.05", 0.05, DEFAULT_ABSOLUTE),
        ("5e-2", 0.05, DEFAULT_ABSOLUTE),
        ("100ns", 0.0, 100e-9),
        ("2% + 1us", 0.02, 1e-6),
        ("1 ms, 2.5%", 0.025, 1e-3),
        ("0%", 0.0, DEFAULT_ABSOLUTE),
    ],
)
def test_floors_from_text(text, relative, absolute):
    floor = parse_floor(text)
    assert (floor.relative, floor.absolute) == (pytest.approx(relative), pytest.approx(absolute))


@pytest.mark.parametrize(
    "text", ["", " ", "%", "five", "5%%", "5% 3%", "5%+3%", "-5%", "100%", "1.5", "nan", "5 parsec",
             "1ns+2ns", "inf", "-3ns", "5%+"]
)  # fmt: skip
def test_a_text_that_is_no_floor_is_refused_with_its_source(text):
    with pytest.raises(ConfigError, match=r"\(--floor\) is none; write a share such as"):
        parse_floor(text, "--floor")


def test_a_time_alone_takes_the_share_that_holds_anyway():
    assert parse_floor("1us", default=0.05) == Floor(0.05, 1e-6)


def test_the_larger_one_of_share_and_time_holds():
    floor = Floor(0.05, 1e-6)
    assert floor.share(1.0) == 0.05
    assert floor.share(10e-6) == pytest.approx(0.1)
    assert floor.share(0.0) == math.inf


def test_a_floor_survives_its_storage():
    assert Floor.from_dict(Floor(0.02, 3e-6).as_dict(), 0.5) == Floor(0.02, 3e-6)
    assert Floor.from_dict({"absolute": 1e-6}, 0.5) == Floor(0.5, 1e-6)


@pytest.mark.parametrize("stored", [{"relative": "5%"}, {"relative": True}, {"absolute": math.nan}])
def test_a_stored_floor_that_is_none_is_refused(stored):
    with pytest.raises(ConfigError, match=r"floor of .* is none"):
        Floor.from_dict(stored, 0.05)


def test_the_last_pattern_that_fits_comes_before_what_is_stored():
    a, b, c = Floor(0.1), Floor(0.2), Floor(0.3)
    floors = Floors(Floor(0.05), (("t.py::*", a), ("*::x", b), ("group", c)))
    assert floors.floor_of("t.py::x", None, {"relative": 0.9}) == b
    assert floors.floor_of("t.py::y", None) == a
    assert floors.floor_of("u.py::y", "group", {"relative": 0.9}) == c
    # A group is a name, and no pattern over ids.
    assert floors.floor_of("u.py::y", "other", None, {"relative": 0.9}) == Floor(0.9)
    assert floors.floor_of("u.py::y", None) == Floor(0.05)


def test_a_name_or_a_pattern_with_one_star_is_renamed():
    rename = Rename((("a.py::*", "b.py::*"), ("c", "d"), ("*[x]", "*[y]")))
    renamed = {"a.py::t[1]": "b.py::t[1]", "c": "d", "cc": "cc", "z[x]": "z[y]"}
    assert rename.applied(renamed) == renamed
    assert rename.unused(["a.py::t", "q"]) == ["c", "*[x]"]


def test_a_pattern_must_not_use_a_letter_twice():
    assert Rename((("ab*ba", "x*"),)).new_name("aba") == "aba"


@pytest.mark.parametrize("pair", [("*a*", "b"), ("a", "*"), ("a*", "b"), ("", "b"), ("a", "")])
def test_a_pair_that_is_no_renaming_is_refused(pair):
    with pytest.raises(ConfigError, match="is none: give two names, or two patterns with one"):
        Rename((pair,))


def test_two_benchmarks_must_not_get_one_name():
    with pytest.raises(ConfigError, match="gives 'a' and 'b' one name, 'c'"):
        Rename((("a", "c"), ("b", "c"))).applied(["a", "b"])


def test_a_rename_map_comes_from_a_file(tmp_path):
    path = tmp_path / "map.json"
    path.write_text('{"a": "b", "c*": "d*"}')
    assert load_rename(path).pairs == (("a", "b"), ("c*", "d*"))
    for content in ("[]", '{"a": 1}', "{", ""):
        path.write_text(content)
        with pytest.raises(ConfigError, match=r"rename map .*map\.json: .*write a JSON object"):
            load_rename(path)
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_rename(tmp_path / "none.json")
