"""``opbench run``, ``ab`` and ``self-check`` as they are typed."""

from __future__ import annotations

import io
import os
import signal
from pathlib import Path

import pytest

from opbench import launch, records, report
from opbench.cli import main
from opbench.cli.sessions import TerminalProgress
from opbench.errors import ConfigError
from opbench.records import Comparison, ComparisonSet, Verdict


def comparison(verdict, name="t.py::x"):
    side = records.summary_of([1.0] * 8)
    return Comparison(name, side, side, 1.0, 0.99, 1.01, verdict, detectable=0.03)


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """What ``measure_ab`` was asked for; ``verdicts`` is what it answers."""

    class Asked:
        verdicts = (Verdict.UNCHANGED,)
        check = None
        resumable = False

        def __call__(self, options, progress, resume=None):
            self.options, self.resume = options, resume
            made = tuple(comparison(v, f"t.py::{n}") for n, v in enumerate(self.verdicts))
            found = ComparisonSet("opbench ab", ("context",), made)
            return launch.AbResult(found, "a-session", self.check, self.resumable)

    fake = Asked()
    monkeypatch.setattr(launch, "measure_ab", fake)
    monkeypatch.chdir(tmp_path)
    return fake


def test_options_arrive_as_values(asked, tmp_path):
    words = (
        "ab --base main --head x --exact-base --budget 90s --floor 5% --seed 4 --threads 2"
        " --cpus 0-1 --timeout 2m --import-root lib --import-root src --elsewhere pkg --long"
        " --results out --setup make tests/a tests/b -- -k x --junit y"
    )
    assert main(words.split()) == 0
    assert asked.options == launch.AbOptions(
        folder=tmp_path,
        results=tmp_path / "out",
        base="main",
        head="x",
        exact_base=True,
        paths=("tests/a", "tests/b"),
        words=("-k", "x", "--junit", "y"),
        import_roots=("lib", "src"),
        elsewhere=("pkg",),
        setup="make",
        budget_s=90.0,
        timeout_s=120.0,
        threads=2,
        cpus=(0, 1),
        seed=4,
        floor=records.Floor(0.05),
        long=True,
    )
    assert asked.resume is None


def test_the_defaults_are_the_documented_ones(asked, tmp_path):
    (tmp_path / "pytest.ini").write_text("")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    os.chdir(below)
    assert main(["ab", "--base", "main"]) == 0
    options = asked.options
    assert (options.folder, options.results) == (below, tmp_path / "results")
    assert (options.budget_s, options.floor.relative, options.threads) == (600.0, 0.03, None)
    assert (options.head, options.exact_base, options.long) == (None, False, False)


@pytest.mark.parametrize(
    ("words", "resume"), [(["--resume"], ""), (["--resume", "x-1"], "x-1"), (["--base=a"], None)]
)
def test_a_session_is_resumed_by_name_or_the_newest(asked, words, resume):
    assert main(["ab", *words]) == 0
    assert asked.resume == resume


def test_a_base_beside_resume_is_not_silently_dropped(asked, capsys):
    assert main(["ab", "--resume"]) == 0
    assert "not looked at" not in capsys.readouterr().err
    assert main(["ab", "--base", "main", "--resume"]) == 0
    assert "--base and --head are not looked at" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("", "--base is missing; name what to compare against"),
        ("--base x --budget 0", "--budget '0' is no time to measure in"),
        ("--base x --budget fast", "'fast' (--budget) is no duration"),
        ("--base x --timeout -3s", "--timeout"),
        ("--base x --threads 0", "--threads '0' is no number of threads"),
        ("--base x --threads two", "--threads 'two' is no number of threads"),
        ("--base x --floor much", "floor 'much' (--floor)"),
        ("--base x --cpus a-b", "--cpus 'a-b' is no list of CPUs"),
        ("--base x --seed y", "argument --seed: invalid int value: 'y'"),
        ("--base x --markdown no/such/folder.md", "--markdown no/such/folder.md cannot be written"),
        ("--base x --colour", "unrecognized arguments: --colour"),
    ],
)
def test_a_mistake_is_told_in_a_line_and_is_exit_code_2(asked, capsys, words, reason, tmp_path):
    (tmp_path / "no").write_text("a file, and no folder")
    assert main(["ab", *words.split()]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert reason in told.err
    assert told.err.count("\n") == 1


@pytest.mark.parametrize(
    ("verdicts", "strict", "code"),
    [
        ((Verdict.UNCHANGED, Verdict.IMPROVED), False, 0),
        ((Verdict.UNCHANGED, Verdict.INCONCLUSIVE), False, 0),
        ((Verdict.UNCHANGED, Verdict.INCONCLUSIVE), True, 3),
        ((Verdict.UNCHANGED, Verdict.REGRESSED), False, 1),
        ((), False, 3),
    ],
)
def test_the_exit_code_is_the_verdict(asked, verdicts, strict, code):
    asked.verdicts = verdicts
    assert main(["ab", "--base", "x", *(["--strict"] if strict else [])]) == code


def test_each_form_is_written_where_it_was_asked_for(asked, tmp_path, capsys):
    asked.verdicts = (Verdict.REGRESSED,)
    words = [f"--{form}={form}.out" for form in ("markdown", "json", "csv", "junit")]
    assert main(["ab", "--base", "x", *words]) == 1
    found = asked(asked.options, None).comparisons
    for form in ("markdown", "json", "csv", "junit"):
        written = (tmp_path / f"{form}.out").read_text()
        assert written == getattr(report, f"comparison_{form}")(found)
    assert "1 slower" in capsys.readouterr().out


def test_a_session_that_was_interrupted_says_how_to_go_on(asked, monkeypatch, capsys):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(launch, "measure_ab", interrupted)
    assert main(["ab", "--base", "x"]) == 130
    assert "go on with: opbench ab --resume\n" in capsys.readouterr().err
    assert main(["self-check", "--results", "my out"]) == 130
    assert "go on with: opbench self-check --resume --results 'my out'\n" in capsys.readouterr().err
    assert main(["self-check", "--resume", "x-1"]) == 130
    assert "go on with: opbench self-check --resume x-1\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "go on with: opbench ab --resume a-session --budget 20m\n"),
        (["--budget", "50s"], "go on with: opbench ab --resume a-session --budget 100s\n"),
        (
            ["--budget", "90s", "--results", "my out"],
            "go on with: opbench ab --resume a-session --budget 3m --results 'my out'\n",
        ),
    ],
)
def test_a_spent_budget_ends_with_the_command_that_goes_on(asked, capsys, words, told):
    assert main(["ab", "--base", "x", *words]) == 0
    assert "go on" not in capsys.readouterr().err
    asked.resumable = True
    assert main(["ab", "--base", "x", *words]) == 0
    assert capsys.readouterr().err == told
    assert main(["ab", *told.split("opbench ab ")[1].split("'")[0].split()[:4]]) == 0
    assert asked.resume == "a-session"
    assert asked.options.budget_s == 2 * {"50s": 50, "90s": 90}.get("".join(words[1:2]), 600)


def test_a_polite_end_from_outside_is_an_interrupt(asked, monkeypatch, capsys):
    before = signal.getsignal(signal.SIGTERM)

    def ended(*arguments):
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(launch, "measure_ab", ended)
    assert main(["ab", "--base", "x"]) == 130
    assert signal.getsignal(signal.SIGTERM) == before


def test_code_from_elsewhere_is_exit_code_2(asked, monkeypatch, capsys):
    def elsewhere(*arguments):
        raise ConfigError("base imported package pkg from /x")

    monkeypatch.setattr(launch, "measure_ab", elsewhere)
    assert main(["ab", "--base", "x"]) == 2
    assert capsys.readouterr().err == "opbench ab: base imported package pkg from /x\n"


# self-check


def spread(name, **changed):
    return launch.Spread(name, 8, 0.012, 0.02, 0.034, 0.0, **changed)


def test_a_self_check_tells_alarms_spread_and_what_disturbs(asked, capsys):
    asked.check = launch.SelfCheck(
        2, ("t.py::x",), (), (spread("t.py::x"), spread("t.py::y")), ("steal: much of it",)
    )
    assert main(["self-check", "--threads", "1"]) == 0
    out = capsys.readouterr().out
    assert "0 false alarms in 2 benchmarks of equal code (1 suspected by screening)" in out
    row = next(line for line in out.splitlines() if line.startswith("t.py::y"))
    assert row.split() == ["t.py::y", "8", "1.2", "%", "2.0", "%", "3.4", "%"]
    assert "could have seen 3.4 % (median), 3.4 % (worst: t.py::x)" in out
    assert "disturbed by steal: much of it" in out
    assert asked.options.self_check
    assert asked.options.base == "HEAD"


def test_a_false_alarm_is_exit_code_1(asked, capsys):
    asked.check = launch.SelfCheck(1, ("t.py::x",), ("t.py::x",), (spread("t.py::x"),), ())
    assert main(["self-check"]) == 1
    out = capsys.readouterr().out
    assert "1 false alarm in 1 benchmarks" in out
    assert "  false alarm: t.py::x" in out
    assert "nothing that disturbs was seen" in out


def test_a_self_check_that_measured_nothing_is_exit_code_3(asked):
    asked.verdicts = ()
    assert main(["self-check"]) == 3


# run


@pytest.fixture
def recorded(monkeypatch, tmp_path):
    class Recorded:
        saved, failed, problems, usage = 3, {}, [], ""

        def __call__(self, options, progress, result):
            self.options = options
            result.record_id, result.launches = "R1", options.launches
            folder = options.runs / "Linux"
            result.saved += [folder / f"000{n}_R1.json" for n in range(1, self.saved + 1)]
            result.benchmarks |= {"t.py::x"}
            result.failed |= self.failed
            result.problems += self.problems
            result.usage_error = self.usage
            return result

    fake = Recorded()
    monkeypatch.setattr(launch, "measure_record", fake)
    monkeypatch.chdir(tmp_path)
    return fake


def test_a_run_tells_its_record(recorded, capsys, tmp_path):
    words = "run --launches 3 --threads 2 --timeout 9s tests/bench -- -k dot -p no:x"
    assert main(words.split()) == 0
    assert capsys.readouterr().out == (
        "record R1: 1 benchmarks, 3 of 3 launches, saved as 0001 to 0003 in results/runs/Linux\n"
    )
    assert recorded.options == launch.RunOptions(
        folder=tmp_path,
        runs=tmp_path / "results" / "runs",
        launches=3,
        words=("-k", "dot", "-p", "no:x", "tests/bench"),
        timeout_s=9.0,
        threads=2,
    )


def test_a_run_whose_test_failed_is_exit_code_1(recorded, capsys):
    recorded.failed = {f"t.py::{n}": "assert 1 == 2" for n in range(7)}
    assert main(["run", "--launches", "3"]) == 1
    told = capsys.readouterr()
    assert told.err.count("left out, since it failed: t.py::") == 5
    assert "and 2 more that failed" in told.err
    assert "3 of 3 launches" in told.out


def test_a_run_of_nothing_is_exit_code_3(recorded, capsys):
    recorded.saved, recorded.problems = 0, ["launch 1 of 5: pytest ended with exit code 5"]
    assert main(["run"]) == 3
    told = capsys.readouterr()
    assert told.out == ""
    assert "launch 1 of 5: pytest ended with exit code 5" in told.err
    assert "nothing was measured, so nothing is saved" in told.err


def test_words_that_pytest_does_not_know_are_exit_code_2(recorded, capsys):
    recorded.usage = "unrecognized arguments: --x"
    assert main(["run", "--", "--x"]) == 2
    assert "pytest does not understand this: unrecognized arguments: --x" in capsys.readouterr().err


def test_a_run_that_was_interrupted_says_what_is_saved(recorded, monkeypatch, capsys):
    def interrupted(options, progress, result):
        result.launches = options.launches
        result.saved.append(Path("x"))
        raise KeyboardInterrupt

    monkeypatch.setattr(launch, "measure_record", interrupted)
    assert main(["run"]) == 130
    assert "1 of 5 launches are saved" in capsys.readouterr().err


# progress


class Terminal(io.StringIO):
    encoding = "utf-8"

    def __init__(self, live):
        super().__init__()
        self.live = live

    def isatty(self):
        return self.live


def test_on_a_terminal_one_line_is_rewritten_and_goes_away():
    stream = Terminal(live=True)
    progress = TerminalProgress(stream, lambda: 0.0, lambda: 40)
    progress.step(3, 32, 250.0, "screening t.py base " + "x" * 100)
    progress.say("a line that stays")
    progress.step(4, 32, 45.0, "screening")
    progress.clear()
    first, rest = stream.getvalue().split("a line that stays\n")
    assert first == "\r\x1b[K" + ("3/32 · screening t.py base " + "x" * 100)[:39] + "\r\x1b[K"
    assert rest == "\r\x1b[K4/32 · screening · about 45 s left\r\x1b[K"


def test_elsewhere_a_line_comes_every_30_seconds():
    now = [0.0]
    stream = Terminal(live=False)
    progress = TerminalProgress(stream, lambda: now[0], lambda: 40)
    for second in range(0, 100, 10):
        now[0] = float(second)
        progress.step(second, 100, 300.0, "screening")
    progress.clear()
    assert stream.getvalue() == "".join(
        f"{done}/100 · screening · about 5 min left\n" for done in (30, 60, 90)
    )


def test_a_terminal_that_takes_ascii_only_gets_it():
    stream = Terminal(live=False)
    stream.encoding = "ascii"
    progress = TerminalProgress(stream, lambda: 0.0)
    progress.say("1/2 · µ")
    assert stream.getvalue() == "1/2 ? ?\n"


def test_without_a_stream_progress_is_silent():
    progress = TerminalProgress(None, lambda: 0.0)
    progress._stream = None
    progress.say("x")
    progress.step(1, 2, 3.0, "y")
    progress.clear()
