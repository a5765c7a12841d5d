"""The side-by-side: its statistics, what it drops, what it asks for, and one real run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import dot_sides
import dot_vs_blas as tool
import mkl_blas

from opbench.probes import CpuReading


@pytest.mark.parametrize(
    ("count", "skipped"),
    # Order statistics of the median's sign interval with at least 95 %, from the binomial table.
    [(1, 0), (5, 0), (6, 0), (7, 0), (8, 0), (9, 1), (12, 2), (15, 3), (20, 5), (25, 7)],
)
def test_the_interval_is_the_sign_tests(count, skipped):
    values = list(range(count, 0, -1))
    assert tool.interval(values) == ((count + 1) / 2, skipped + 1, count - skipped)


def test_a_ratio_is_the_peers_time_over_ours_round_by_round():
    row = tool.Row(
        "float32", 1, "8", (10, 50, 1), {"ours": [1e-6, 2e-6, 1e-6], "numpy": [3e-6, 3e-6]}
    )
    assert row.ratios("numpy") == pytest.approx([3.0, 1.5])
    assert row.ratios("mkl") == []
    assert row.rate("ours") == pytest.approx(1.0)
    assert row.rate("mkl") is None


def test_a_line_shows_rates_share_and_ratios_and_a_dash_for_what_was_not_timed():
    timed = {"ours": [1e-4] * 3, "numpy": [2e-4] * 3}
    row = tool.Row("float64", 2, "8", (100, 100, 100), timed, 1)
    roof = tool.Roof({}, 2, "", {"float64": 100e9})
    assert tool.cells(row, roof, ["numpy", "mkl"]) == [
        *("float64", "2", "8", "20.0", "20 %", "10.0", "2.000 (2.00 to 2.00)", "–", "–"),
        *("3", "1"),
    ]
    assert len(tool.heading(["numpy", "mkl"])) == 11


def test_a_share_of_the_bandwidth_is_marked():
    row = tool.Row("float32", 1, "v", (1000, 1000, 1), {"ours": [1e-3]})
    roof = tool.Roof({}, 1, "", {"float32": 100e9}, ((1 << 20, 99e9), (1 << 30, 8e9)))
    assert row.nbytes == 4 * (1000 * 1000 + 1000 + 1000)
    # 4 MB in 1 ms, where memory (they are too many for the cache) gives 8 MB.
    assert tool.share(row, roof) == f"mem {100 * row.nbytes / 1e-3 / 8e9:.0f} %" == "mem 50 %"


def test_a_row_without_a_quiet_round_fills_the_table_and_no_mean(capsys):
    row = tool.Row("float64", 2, "8", (1, 1, 1), {}, 28)
    cells = tool.cells(row, tool.Roof({}, 2, "", {"float64": 1.0}), ["numpy"])
    assert cells[3] == "no quiet round, 28 dropped"
    assert len(cells) == len(tool.heading(["numpy"]))
    assert tool.closing([row], ["numpy"]) == []


def test_the_closing_lines_have_the_geometric_mean_and_name_the_lowest():
    rows = [
        tool.Row("float32", 1, "8", (1, 1, 1), {"ours": [1.0], "numpy": [4.0]}),
        tool.Row("float32", 1, "9", (1, 1, 1), {"ours": [1.0], "numpy": [0.25]}),
    ]
    assert tool.closing(rows, ["numpy"]) == [
        "numpy / ours: geometric mean 1.000 of 2, lowest 0.250 (float32 1 9)"
    ]


def test_markdown_has_its_rule_after_the_heading(capsys):
    tool.show([["a", "b"], ["1", "22"]], markdown=True)
    assert capsys.readouterr().out == "| a |  b |\n|---|---|\n| 1 | 22 |\n"


class Scripted(tool.Contest):
    """A contest whose workers answer at once, on a machine where others work when told to."""

    def __init__(self, options, others, monkeypatch):
        self.options, self.threads, self.dtype = options, 2, "float32"
        self.peak, self.last, self.hog, self.points = 0.0, "numpy", None, ()
        self.others, self.now, self.log = list(others), 0.0, []
        monkeypatch.setattr(tool.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(tool.probes, "cpu_reading", self.reading)
        self.readings, self.foreign = 0, 0.0

    def reading(self):
        self.readings += 1
        if self.readings % 2 == 0 and self.others:
            self.foreign += self.others.pop(0)
        return CpuReading(0.0, self.now + self.foreign, 0.0)

    def own_cpu(self):
        return self.now

    def prepare(self, shape, layout):
        return {"ours": self.options.rounds, "numpy": self.options.rounds, "naive": 1}

    def timed(self, side):
        self.log.append(side)
        self.now += 0.1
        return {"ours": 1.0, "numpy": 2.0, "naive": 8.0}[side]


def test_rounds_in_which_others_worked_are_repeated_and_the_order_turns(monkeypatch):
    options = tool.parse_options(["--rounds", "3", "--against", "numpy", "naive"])
    contest = Scripted(options, [0.0, 0.5, 0.0, 0.02], monkeypatch)
    row = contest.shape((8, 8, 8), "8", None)
    assert row.dropped == 1
    assert row.seconds == {"ours": [1.0] * 3, "numpy": [2.0] * 3, "naive": [8.0]}
    assert contest.log == [
        *("ours", "naive", "numpy"),
        *("numpy", "ours"),  # dropped
        *("ours", "numpy"),
        *("numpy", "ours"),
    ]


def test_a_machine_that_is_never_quiet_ends_without_a_row(monkeypatch):
    options = tool.parse_options(["--rounds", "2"])
    row = Scripted(options, [9.0] * 99, monkeypatch).shape((8, 8, 8), "8", None)
    assert row.seconds == {}
    assert row.dropped == 2 * tool.TRIES


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "odd", "--shapes", "8"], "give one"),
        (["--rounds", "0"], "1 or more"),
        (["--order", "CX"], "'CX'; give two of C and F"),
        (["--mkl", "/nowhere"], "no libmkl_rt there; pip install mkl"),
        (["--set", "even"], "invalid choice: 'even'"),
    ],
)
def test_a_mistake_is_one_sentence(arguments, words, capsys):
    with pytest.raises(SystemExit) as stop:
        tool.parse_options(arguments)
    assert stop.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "8x8", "axbxc", "0", "8x0x8"])
def test_a_shape_that_is_none_is_refused(text):
    with pytest.raises(SystemExit, match="--shapes"):
        tool.parse_shape(text)


def test_the_odd_set_is_twenty_shapes_that_are_not_square_multiples():
    shapes = [tool.parse_shape(text) for text in tool.SETS["odd"].split()]
    assert len(set(shapes)) == 20
    assert not any(m == k == n and n % 48 == 0 for m, k, n in shapes)
    assert {(1000, 37, 511), (64, 20000, 64), (4096, 4096, 8), (20000, 64, 64)} <= set(shapes)
    assert (17, 4096, 4096) in shapes


def test_mkl_is_found_in_an_environment_by_file_or_not(tmp_path):
    assert mkl_blas.find(str(tmp_path)) is None
    library = tmp_path / "lib" / "libmkl_rt.so.3"
    library.parent.mkdir()
    library.touch()
    assert mkl_blas.find(str(tmp_path)) == library
    assert mkl_blas.find(str(library)) == library
    assert mkl_blas.find(str(tmp_path / "none")) is None


@pytest.mark.parametrize("layout", dot_sides.LAYOUTS)
def test_every_layout_holds_the_same_numbers_and_lies_otherwise(layout):
    plain = dot_sides.operands("float32", (6, 4, 10))
    other = dot_sides.operands("float32", (6, 4, 10), layout=layout)
    for x, y, letter in zip(plain, other, "AB", strict=False):
        assert (x == y).all()
        assert (x.strides != y.strides) == (letter in layout.split("(")[0].split())


def test_a_vector_takes_the_place_of_a_dimension_of_one():
    a, b, c = dot_sides.operands("float64", (1, 5, 7))
    assert (a.shape, b.shape, c.shape) == ((5,), (5, 7), (7,))
    a, b, c = dot_sides.operands("float64", (1, 5, 1))
    assert (a.shape, b.shape, c.shape) == ((5,), (5,), ())


def test_a_side_that_computes_something_else_is_not_timed(monkeypatch):
    sides = dot_sides.Sides("float32", 1, None)
    monkeypatch.setattr(np, "dot", lambda a, b, out=None: a @ b + 1)
    with pytest.raises(SystemExit, match="ours computes something else than NumPy"):
        sides.prepare((8, 8, 8), "CC", None, naive=False)


def test_a_real_run_prints_a_table(tmp_path):
    done = subprocess.run(
        [
            *(sys.executable, tool.__file__, "--dtype", "float32", "--threads", "1"),
            *("--shapes", "9", "--rounds", "1", "--against", "numpy", "--markdown"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    heading, _, row, *rest = done.stdout.splitlines()
    assert [cell.strip() for cell in heading.strip("|").split("|")] == tool.heading(["numpy"])
    assert [cell.strip() for cell in row.strip("|").split("|")][:3] == ["float32", "1", "9"]
    assert rest[1].startswith("peak of multiply-adds, GFLOP/s: float32, 1 threads: ")
