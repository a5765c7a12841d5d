"""``of peak``: from the stored roof, from one measured after the benchmarks, or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
FACTS = "import json; from opbench.runtime import roof; print(json.dumps([roof.facts(), 2]))"
PRODUCT = """
    import numpy as np
    from opbench import kernels

    def test_product(profiler):
        a = np.ones((64, 64), np.float32)
        profiler(kernels.dot, a, a)
"""
"""Two threads in every process here, so that the roof of two threads is the one that applies."""


@pytest.fixture(scope="module")
def facts():
    """What the roof of a process with two threads must be stored for."""
    done = subprocess.run(
        [sys.executable, "-c", FACTS],
        env={**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.fixture
def store(project, facts, monkeypatch):
    """Store a roof in the project, and read the stored ones back."""
    from opbench.records import Roof, load_roof, save_roof

    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    folder = project.path / "results" / "roof"

    class Store:
        path = folder

        def save(self, **peaks):
            return save_roof(folder, Roof(*facts, "2026-01-01", peaks, ((1 << 30, 1e18),)))

        def load(self):
            return load_roof(folder, *facts)

    project.file(test_it=PRODUCT)
    return Store()


def test_a_stored_roof_is_shown_and_saved_as_a_share(project, store):
    store.save(float32=1e15)
    benches, result = project.bench()
    (bench,) = benches.values()
    summary = bench["extra_info"]["opbench"]
    expected = 2 * 64**3 / bench["stats"]["median"] / 1e15
    assert summary["roof"] == {
        "share": pytest.approx(expected),
        "bound": "compute",
        "flops": 1e15,
        "threads": 2,
        "measured": "2026-01-01",
        "quiet": True,
    }
    result.stdout.re_match_lines([r"benchmark .* GFLOP/s   of peak", r"dot kernel 64² f32 .* <1 %"])
    assert store.load().measured == "2026-01-01"


def test_a_run_that_is_not_for_measuring_measures_no_roof(project, store):
    benches, result = project.bench()
    assert "roof" not in benches["test_product"]["extra_info"]["opbench"]
    result.stdout.no_fnmatch_line("*of peak*")
    assert not store.path.exists()


def test_benchmark_only_measures_it_once_and_keeps_it(project, store):
    benches, result = project.bench("--benchmark-only")
    assert benches["test_product"]["extra_info"]["opbench"]["roof"]["share"] > 0
    result.stdout.fnmatch_lines(["*measuring what this machine can do at most*", "*of peak*"])
    first = store.load()
    assert set(first.peaks) == {"float32"}
    assert (store.path / ".gitignore").read_text() == "*\n"
    store.save(float32=1e15)
    again, result = project.bench("--benchmark-only")
    result.stdout.no_fnmatch_line("*measuring what*")
    assert again["test_product"]["extra_info"]["opbench"]["roof"]["flops"] == 1e15


@pytest.mark.parametrize(
    "stored",
    [
        {"float32": 1e3},  # exceeded, as by a clock that had been slow
        {"float64": 1e15},  # of another dtype only
    ],
)
def test_a_roof_that_does_not_hold_is_measured_again_and_the_best_kept(project, store, stored):
    store.save(**stored)
    project.bench("--benchmark-only")
    peaks = store.load().peaks
    assert peaks["float32"] > 1e6
    assert peaks.get("float64", 1e15) == 1e15
    assert dict(store.load().bandwidth)[1 << 30] == 1e18


@pytest.mark.parametrize("where", ["option", "ini"])
def test_off_is_off(project, store, where):
    store.save(float32=1e15)
    if where == "ini":
        project.ini("opbench_roof = off")
    options = ["--opbench-roof=off"] if where == "option" else []
    benches, result = project.bench("--benchmark-only", *options)
    assert "roof" not in benches["test_product"]["extra_info"]["opbench"]
    result.stdout.no_fnmatch_line("*of peak*")


def test_another_word_is_refused_with_those_that_there_are(project, store):
    result = project.run("--opbench-roof=on", code=4)
    result.stderr.fnmatch_lines(["*--opbench-roof is 'on'* valid are auto, off"])


def test_a_damaged_roof_is_told_and_the_run_goes_on(project, store):
    path = store.save(float32=1e15)
    path.write_text("{")
    _, result = project.bench()
    result.stdout.fnmatch_lines([f"of peak: *{path.name} cannot be read*opbench roof --measure"])


def test_a_damaged_roof_is_replaced_where_one_is_measured_anyway(project, store):
    store.save(float32=1e15).write_text("{")
    _, result = project.bench("--benchmark-only")
    result.stdout.no_fnmatch_line("*cannot be read*")
    assert store.load().peaks["float32"] < 1e15


def test_a_function_without_known_work_has_a_dash_and_measures_nothing(project, store):
    project.file(test_it="def test_mine(profiler): profiler(sorted, [3, 1, 2])")
    _, result = project.bench("--benchmark-only")
    result.stdout.no_fnmatch_line("*measuring what*")
    assert not store.path.exists()


def test_a_roof_that_cannot_be_kept_is_still_shown(project, store):
    store.path.parent.mkdir()
    store.path.write_text("a file where the folder should be")
    benches, result = project.bench("--benchmark-only")
    assert benches["test_product"]["extra_info"]["opbench"]["roof"]["share"] > 0
    result.stdout.fnmatch_lines(["of peak: cannot save the roof as *"])
