"""The section under pytest-benchmark's table: exact text, at several widths."""

import pytest

from opbench.report import (
    BenchmarkRow,
    Column,
    Style,
    middle_cut,
    section_lines,
    section_title,
    table_lines,
)

FOLDER = "results/traces"
ROWS = [
    BenchmarkRow(
        "dot kernel 4096² f32", 0.742, 2 * 4096**3, ratio=1.01, trace=f"{FOLDER}/k.trace.json"
    ),
    BenchmarkRow(
        "dot imperative 4096² f32", 0.7421, 2 * 4096**3, overhead=1e-4, first_call=6.1, compiled=3
    ),
    BenchmarkRow("test_mine", None, trace=f"{FOLDER}/m.trace.json", notes=["something to know"]),
]


def test_the_title_counts_what_was_traced_and_what_was_timed():
    assert section_title(ROWS) == "opbench: 2 traced, 2 timed"


def test_wide_lines_are_exact():
    assert section_lines(ROWS, Style(width=100)) == [
        "benchmark                      median   GFLOP/s   vs NumPy   trace",
        "dot kernel 4096² f32           742 ms     185.2      1.01×   results/traces/k.trace.json",
        "dot imperative 4096² f32       742 ms     185.2    +100 µs   –",
        "test_mine                  trace only         –          –   results/traces/m.trace.json",
        "vs NumPy: × is NumPy's time over the kernel's; + or - is the time over the kernel's",
        "first call: dot imperative 4096² f32 6.1 s (compiled); never part of a timing",
        "test_mine: something to know",
    ]


def test_without_room_for_paths_the_file_names_stay_and_the_folder_is_named():
    lines = section_lines(ROWS, Style(width=80))
    assert lines[1].endswith("   k.trace.json")
    assert "traces in results/traces" in lines
    assert max(map(len, lines[:4])) <= 80


def test_without_room_for_file_names_the_numbers_stay():
    lines = section_lines(ROWS, Style(width=60))
    assert lines[0] == "benchmark                      median   GFLOP/s   vs NumPy"
    assert "traces in results/traces" in lines


def test_a_narrow_terminal_loses_columns_and_cuts_names_but_no_number():
    lines = section_lines(ROWS, Style(width=30))
    assert lines[0].split() == ["benchmark", "median"]
    assert lines[2] == "dot impe…096² f32       742 ms"
    assert max(map(len, lines[:4])) == 30


def test_a_column_without_any_value_is_left_out():
    lines = section_lines([BenchmarkRow("test_mine", 1e-6)], Style())
    assert lines == ["benchmark    median   trace", "test_mine   1.00 µs   –"]


def test_ascii_where_the_encoding_is_not_utf_8():
    lines = section_lines(ROWS, Style(width=100, unicode=False))
    assert all(line.isascii() for line in lines)
    assert lines[1].startswith("dot kernel 4096^2 f32 ")
    assert "1.01x" in lines[1]


def test_an_unknown_or_zero_quantity_is_a_dash_never_a_zero():
    row = BenchmarkRow("x", 0.0, 100)
    assert row.gflops == "–"
    assert BenchmarkRow("x", 1.0, None).gflops == "–"
    assert BenchmarkRow("x", 1.0).against_numpy == "–"


def test_a_faster_form_has_a_negative_overhead():
    assert BenchmarkRow("x", 1.0, overhead=-8.94e-4).against_numpy == "-894 µs"


def test_a_note_on_several_benchmarks_is_printed_once():
    rows = [BenchmarkRow(name, 1.0, notes=["slow"]) for name in "ab"]
    assert section_lines(rows, Style())[-1] == "2 benchmarks: slow"


@pytest.mark.parametrize(
    ("text", "width", "cut"),
    [
        ("abcdefgh", 8, "abcdefgh"),
        ("abcdefgh", 5, "ab…gh"),
        ("abcdefgh", 4, "ab…h"),
        ("abcdefgh", 1, "…"),
        ("abcdefgh", 0, ""),
        ("日本語日本語", 7, "日…語"),
    ],
)
def test_names_are_cut_in_the_middle_by_cells(text, width, cut):
    assert middle_cut(text, width) == cut


def test_wide_characters_count_as_two_cells():
    columns = [Column("name", ["日本", "ab"], name=True), Column("n", ["1", "22"])]
    assert table_lines(columns, Style()) == ["name    n", "日本    1", "ab     22"]
