from __future__ import annotations

import pytest

from opbench.errors import ConfigError
from opbench.profiler import Mode, mode_names, parse_modes


@pytest.mark.parametrize(
    ("asked", "bits"),
    [
        ("symbolic", 1),
        ("imperative", 2),
        ("api", 4),
        ("memory", 8),
        ("mem", 8),
        ("all", 15),
        ("none", 0),
        ("symbolic+mem", 9),
        (" Symbolic, API ", 5),
        ("symbolic|imperative", 3),
        ("13", 13),
        (0, 0),
        (13, 13),
        (Mode.API | Mode.MEMORY, 12),
        (["symbolic", "api"], 5),
        ((Mode.SYMBOLIC, 8), 9),
    ],
)
def test_a_mode_asked_for_gives_exactly_that_mode(asked, bits):
    modes = parse_modes(asked)
    assert isinstance(modes, Mode)
    assert int(modes) == bits


def test_an_unknown_mode_is_refused_with_source_and_suggestion():
    with pytest.raises(ConfigError) as caught:
        parse_modes("symbollic", "--opbench-mode")
    assert str(caught.value).startswith(
        "unknown mode 'symbollic' in --opbench-mode; did you mean 'symbolic'? valid are all, api,"
    )


@pytest.mark.parametrize(
    "bits",
    [16, -1, "16", 10**5000, "9" * 5000, ["9" * 5000]],
    ids=["16", "-1", "text", "long", "long text", "list"],
)
def test_bits_beyond_the_four_are_refused(bits):
    with pytest.raises(ConfigError, match="between 0 and 15") as caught:
        parse_modes(bits)
    assert len(str(caught.value)) < 120


def test_an_integer_of_numpys_is_a_bit_sum():
    numpy = pytest.importorskip("numpy")
    assert parse_modes(numpy.int64(13)) == 13
    assert parse_modes(numpy.array([1, 8])) == 9


@pytest.mark.parametrize(
    "nothing", ["", " , ", [], True, None, 2.0, b"api", {"symbolic": False}, {"api": True}]
)
def test_what_is_no_mode_at_all_is_refused(nothing):
    with pytest.raises(ConfigError):
        parse_modes(nothing, "ini")


@pytest.mark.parametrize("bits", range(16))
def test_names_lead_back_to_the_mode(bits):
    assert int(parse_modes(mode_names(bits))) == bits


def test_names_read_in_bit_order():
    assert mode_names(Mode.MEMORY | Mode.SYMBOLIC) == "symbolic + memory"
    assert mode_names(15) == "symbolic + imperative + api + memory"
    assert mode_names(0) == "none"
