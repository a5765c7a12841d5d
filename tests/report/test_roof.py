"""The share of the roof in the section, and the table of the roof itself: exact text."""

from __future__ import annotations

import pytest

from opbench.records import Roof
from opbench.report import BenchmarkRow, Style, roof_lines, section_lines

FOLDER = "results/traces"
ROWS = [
    BenchmarkRow("dot kernel 4096² f32", 0.742, 2 * 4096**3, of_peak=0.917, bound="compute"),
    BenchmarkRow(
        "dot kernel 4096×4096 · vector f32", 2e-3, 2 * 4096**2, of_peak=1.034, bound="memory"
    ),
    BenchmarkRow("dot kernel 1² f64", 8e-7, 2, of_peak=0.002, bound="memory", ratio=0.66),
    BenchmarkRow("test_mine", 1e-3),
]


def test_the_share_stands_behind_the_rate_and_the_memorys_is_marked():
    assert section_lines(ROWS, Style(width=100)) == [
        "benchmark                            median   GFLOP/s     of peak   vs NumPy   trace",
        "dot kernel 4096² f32                 742 ms     185.2        92 %          –   –",
        "dot kernel 4096×4096 · vector f32   2.00 ms     16.78   mem 103 %          –   –",
        "dot kernel 1² f64                    800 ns    0.0025    mem <1 %      0.66×   –",
        "test_mine                           1.00 ms         –           –          –   –",
        "of peak: of the multiply-adds; mem: of the bandwidth, the bound there",
    ]


def test_without_a_roof_there_is_no_column():
    lines = section_lines([BenchmarkRow("x", 1.0, 100), BenchmarkRow("y", 1.0)], Style())
    assert lines[0].split() == ["benchmark", "median", "GFLOP/s", "trace"]


def test_an_unknown_share_is_a_dash():
    assert BenchmarkRow("x", 1.0).peak_share == "–"
    assert BenchmarkRow("x", 1.0, of_peak=0.0099).peak_share == "<1 %"
    assert BenchmarkRow("x", 1.0, of_peak=0.01).peak_share == "1 %"


@pytest.mark.parametrize(
    ("width", "heading"),
    [
        (55, ["benchmark", "median", "GFLOP/s", "of", "peak", "vs", "NumPy"]),
        (54, ["benchmark", "median", "GFLOP/s", "vs", "NumPy"]),
        (42, ["benchmark", "median", "GFLOP/s"]),
    ],
)
def test_the_share_is_the_first_column_to_fall_off(width, heading):
    assert section_lines(ROWS, Style(width=width))[0].split() == heading


POINTS = ((786_432, 108e9), (25_165_824, 81.8e9), (402_653_184, 42.3e9))


def test_the_roof_is_a_row_for_each_number_of_threads():
    one = Roof({}, 1, "2026-12-01T12:00:00+00:00", {"float32": 116e9, "float64": 58e9}, POINTS)
    two = Roof({}, 2, "2026-12-02T12:00:00+00:00", {"float32": 233e9}, POINTS[1:], quiet=False)
    lines = roof_lines([one, two], Style(width=120))
    assert lines[0].split() == [
        *("threads", "float32", "float64", "own", "cache", "last", "cache", "memory", "measured"),
    ]
    assert "116.0 GFLOP/s   58.00 GFLOP/s   108 GB/s in 786 kB   81.8 GB/s in 25.2 MB" in lines[1]
    # A machine with one level of cache less: what it has stands under its name.
    assert lines[2].split()[:5] == ["2", "233.0", "GFLOP/s", "–", "–"]
    assert lines[2].endswith("81.8 GB/s in 25.2 MB   42.3 GB/s in 403 MB   2026-12-02")
    assert lines[3].startswith("2 threads: measured while other processes used the CPUs")
    assert len(lines) == 4


def test_one_level_of_cache_is_called_cache():
    roof = Roof({}, 1, "2026-12-01", {"float32": 1e9}, POINTS[1:])
    assert roof_lines([roof], Style(width=120))[0].split() == [
        *("threads", "float32", "cache", "memory", "measured"),
    ]
