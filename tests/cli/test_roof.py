"""``opbench roof``: what is stored is shown, what is not is measured, and on demand again."""

from __future__ import annotations

import pytest

from opbench import cli, records, runtime

PEAKS = {"float32": 2e11, "float64": 1e11}


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Replaces the measuring; the calls that were made, and what the next one finds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runtime.roof, "pool_threads", lambda: 2)

    class Measured:
        def __init__(self):
            self.calls = []

        peaks, quiet = PEAKS, True

        def __call__(self, threads, **settings):
            self.calls.append((threads, settings))
            return runtime.roof.Measured(threads, self.peaks, ((1 << 20, 4e10),), self.quiet)

    found = Measured()
    monkeypatch.setattr(runtime.roof, "measure", found)
    return found


def load(threads, folder="results"):
    return records.load_roof(f"{folder}/roof", runtime.roof.facts(), threads)


def test_one_thread_and_all_are_measured_once_and_then_shown(measured, capsys):
    assert cli.main(["roof"]) == 0
    assert [threads for threads, _ in measured.calls] == [1, 2]
    out = capsys.readouterr()
    assert [line.split()[0] for line in out.out.splitlines()] == ["threads", "1", "2"]
    assert out.err == "measuring 1 thread ...\nmeasuring 2 threads ...\n"
    assert cli.main(["roof"]) == 0
    assert len(measured.calls) == 2
    assert capsys.readouterr().err == ""


def test_measure_replaces_what_is_stored_even_by_less(measured):
    cli.main(["roof", "--threads", "3"])
    measured.peaks = {"float32": 1e11, "float64": 1e10}
    assert cli.main(["roof", "--threads", "3", "--measure", "--seconds", "0.5"]) == 0
    assert load(3).peaks == measured.peaks
    assert measured.calls[-1] == (3, {"seconds": 0.5, "patience": 2.0})


def test_a_disturbed_measurement_lowers_nothing(measured, capsys):
    cli.main(["roof", "--threads", "1"])
    measured.peaks, measured.quiet = {"float32": 1e11, "float64": 3e11}, False
    cli.main(["roof", "--threads", "1", "--measure"])
    assert load(1).peaks == {"float32": 2e11, "float64": 3e11}
    assert "1 threads: measured while other processes" in capsys.readouterr().out


def test_a_roof_of_one_dtype_only_is_completed(measured):
    facts = runtime.roof.facts()
    records.save_roof("results/roof", records.Roof(facts, 1, "then", {"float32": 5e11}))
    cli.main(["roof", "--threads", "1"])
    assert len(measured.calls) == 1
    assert set(load(1).peaks) == set(PEAKS)


def test_another_folder(measured):
    assert cli.main(["roof", "--results", "there", "--threads", "1"]) == 0
    assert load(1, "there") is not None


def test_a_damaged_file_is_a_mistake_until_it_is_measured_again(measured, capsys):
    facts = runtime.roof.facts()
    path = records.save_roof("results/roof", records.Roof(facts, 1, "then", PEAKS))
    path.write_text("{")
    assert cli.main(["roof", "--threads", "1"]) == 2
    assert "cannot be read" in capsys.readouterr().err
    assert cli.main(["roof", "--threads", "1", "--measure"]) == 0
    assert load(1).peaks == PEAKS


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--seconds", "0"], "--seconds is 0.0; give a time above 0"),
        (["--seconds", "nan"], "--seconds is nan"),
        (["--threads", "0"], "--threads is 0; give numbers from 1"),
        (["--threads", "2", "99999"], "--threads is 99999"),
    ],
)
def test_a_number_that_makes_no_sense_is_refused_before_anything_runs(
    measured, capsys, arguments, words
):
    assert cli.main(["roof", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert measured.calls == []
