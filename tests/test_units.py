"""Numbers with units: what is shown, and what is understood."""

import pytest

from opbench import units
from opbench.errors import ConfigError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.742, "742 ms"),
        (0.00120, "1.20 ms"),
        (9.996e-4, "1.00 ms"),  # carries into the next unit, and never reads "1000 µs"
        (9.994e-4, "999 µs"),
        (3.0e-7, "300 ns"),
        (1234.5, "1234 s"),
        (0.0, "0 s"),
        (5e-11, "0.0500 ns"),
        (-1.5e-3, "-1.50 ms"),
    ],
)
def test_seconds_take_the_unit_in_which_they_read_best(value, text):
    assert units.format_seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 B"), (999, "999 B"), (201326592, "201 MB"), (1e12, "1.00 TB")]
)
def test_bytes_use_powers_of_1000(value, text):
    assert units.format_bytes(value) == text


def test_flops_keep_four_digits():
    assert units.format_flops(1.852e11) == "185.2 GFLOP/s"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10m", 600), ("2 ms", 0.002), ("0.5", 0.5), ("1e3us", 0.001), ("3µs", 3e-6)],
)
def test_durations_are_read_with_their_unit(text, seconds):
    assert units.parse_seconds(text) == pytest.approx(seconds)


def test_sizes_tell_1000_from_1024():
    assert units.parse_bytes("8MB") == 8_000_000
    assert units.parse_bytes("32 KiB") == 32_768


def test_a_rate_is_read():
    assert units.parse_flops("185 GFLOP/s") == pytest.approx(1.85e11)


@pytest.mark.parametrize("text", ["", "fast", "10 parsecs", "1.2.3s"])
def test_a_wrong_duration_names_its_source_and_the_units(text):
    with pytest.raises(ConfigError, match=r"\(--budget\) is no duration; write .* one of ns, us"):
        units.parse_seconds(text, "--budget")
