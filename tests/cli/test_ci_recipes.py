"""The files in docs/ci.md: YAML that parses, shell that parses, and commands that opbench takes."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from opbench.cli import _parser

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "ci.md").read_text("utf-8")
GITHUB, GITLAB = (
    yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
)


def github_scripts(job):
    return [step["run"] for step in GITHUB["jobs"][job]["steps"] if "run" in step]


SCRIPTS = {
    "github ab": github_scripts("ab"),
    "github history": github_scripts("history"),
    "gitlab ab": GITLAB["benchmarks ab"]["script"],
    "gitlab history": GITLAB["benchmarks history"]["script"],
}


def parsed(name):
    """The options of each opbench command of a recipe, by command."""
    lines = [line for script in SCRIPTS[name] for line in script.splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("opbench ")]
    found = [_parser().parse_args(words) for words in commands]
    return {options.command: options for options in found}


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_is_shell(name):
    for script in SCRIPTS[name]:
        assert "${{" not in script, "an expression in a script lets a branch's name run code"
        done = subprocess.run(["bash", "-n"], input=script, text=True, check=False)
        assert done.returncode == 0, script


@pytest.mark.parametrize("name", ["github ab", "gitlab ab"])
def test_a_pull_request_is_judged_on_one_thread_and_reported(name):
    options = parsed(name)["ab"]
    assert options.threads == "1"
    assert options.base.startswith("$")
    assert (options.markdown, options.junit) == (Path("ab.md"), Path("ab.xml"))


@pytest.mark.parametrize("name", ["github history", "gitlab history"])
def test_main_is_recorded_with_enough_launches_for_a_verdict_and_looked_at(name):
    found = parsed(name)
    assert list(found) == ["run", "history"]
    assert (found["run"].launches, found["run"].threads) == (5, "1")
    assert found["history"].markdown == Path("history.md")


@pytest.mark.parametrize(("job", "file"), [("ab", "ab.md"), ("history", "history.md")])
def test_github_always_shows_what_the_command_wrote(job, file):
    (step,) = (
        step
        for step in GITHUB["jobs"][job]["steps"]
        if "GITHUB_STEP_SUMMARY" in step.get("run", "")
    )
    assert step["if"] == "always()"
    assert f'cat {file} >> "$GITHUB_STEP_SUMMARY"' in step["run"]


def test_both_sides_have_all_commits():
    checkout = GITHUB["jobs"]["ab"]["steps"][0]
    assert checkout["with"]["fetch-depth"] == 0
    assert GITLAB["benchmarks ab"]["variables"]["GIT_DEPTH"] == 0


def test_records_outlive_the_job_that_made_them():
    steps = [step for step in GITHUB["jobs"]["history"]["steps"] if "cache" in step.get("uses", "")]
    assert [step["uses"].partition("@")[0] for step in steps] == [
        "actions/cache/restore",
        "actions/cache/save",
    ]
    assert {step["with"]["path"] for step in steps} == {"results/runs"}
    assert steps[0]["with"]["restore-keys"] == "opbench-runs-"
    assert GITLAB["benchmarks history"]["cache"]["paths"] == ["results/runs"]


def test_every_extra_that_the_recipes_install_is_one_of_ours():
    wanted = set(re.findall(r"opbench\[(\w+)\]", TEXT))
    listed = (ROOT / "pyproject.toml").read_text("utf-8").partition("[project.optional-dep")[2]
    assert wanted == {"history"}
    assert wanted <= set(re.findall(r"^(\w+) = \[", listed.partition("\n[")[0], re.MULTILINE))


# The jobs as they are written, in a stranger's repository

GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main")
# A package whose clock ticks as it is called: what is measured is exact, on any machine.
PACKAGE = """
now = 0.0

def timer():
    global now
    now += 2**-20
    return now

def work():
    global now
    now += {seconds}
"""
TESTS = """
import pytest
from strange import timer, work

@pytest.mark.benchmark(timer=timer)
def test_work(benchmark):
    benchmark(work)
"""


@pytest.fixture
def runner(tmp_path):
    """A clone with a pull request that makes its one benchmark twice as slow; runs its scripts."""
    origin, clone, shims = (tmp_path / name for name in ("origin", "clone", "bin"))

    def git(folder, *words):
        return subprocess.run(
            [*GIT, *words], cwd=folder, check=True, capture_output=True, text=True
        ).stdout.strip()

    (origin / "src" / "strange").mkdir(parents=True)
    (origin / "tests").mkdir()
    (origin / "tests" / "test_strange.py").write_text(TESTS)
    (origin / "pytest.ini").write_text("[pytest]\n")
    package = origin / "src" / "strange" / "__init__.py"
    git(origin, "init", "--quiet")
    for branch, seconds in (("main", 1.0), ("change", 2.0)):
        git(origin, "checkout", "--quiet", "-B", branch)
        package.write_text(PACKAGE.format(seconds=seconds))
        git(origin, "add", "--all")
        git(origin, "commit", "--quiet", "-m", branch)
    git(tmp_path, "clone", "--quiet", "--branch", "change", str(origin), str(clone))
    shims.mkdir()
    for name, line in (
        ("pip", f'echo "$@" >> {shims}/asked'),
        ("opbench", f'exec {sys.executable} -m opbench "$@"'),
    ):
        (shims / name).write_text(f"#!/bin/sh\n{line}\n")
        (shims / name).chmod(0o755)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "PYTEST_", "COV_"))}
    environment = {
        **kept,
        "PATH": f"{shims}{os.pathsep}{os.environ['PATH']}",
        # What pip install would have given: this opbench, and the project as it was cloned.
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(clone / "src")]),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "BASE": "origin/main",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": git(clone, "rev-parse", "origin/main"),
    }

    def run(script):
        # As both services run it: a line that fails ends the script.
        words = ["bash", "-eo", "pipefail", "-c", script]
        return subprocess.run(
            words, cwd=clone, env=environment, capture_output=True, text=True, check=False
        )

    run.folder, run.asked, run.environment = clone, shims / "asked", environment
    run.summary = tmp_path / "summary.md"
    return run


def github(runner, job):
    """The exit codes of a job's shell steps; after a failure only what is always run."""
    codes = {}
    for step in GITHUB["jobs"][job]["steps"]:
        if "run" in step and (not any(codes.values()) or step.get("if") == "always()"):
            done = runner(step["run"])
            codes[step.get("name", "install")] = done.returncode
            assert done.returncode in {0, 1, 3}, done.stdout + done.stderr
    return codes


def test_githubs_pull_request_job_fails_for_a_slower_head_and_still_shows_the_verdicts(runner):
    assert github(runner, "ab") == {
        "install": 0,
        "Measure base and head in turns": 1,
        "Show the verdicts": 0,
    }
    assert runner.asked.read_text() == "install opbench .\n"
    shown = runner.summary.read_text().splitlines()
    assert shown[0] == "### 1 of 1 slower, the worst by 100 %"
    assert 'failures="1"' in (runner.folder / "ab.xml").read_text()


def test_gitlabs_merge_request_job_passes_where_nothing_is_slower(runner):
    package = runner.folder / "src" / "strange" / "__init__.py"
    package.write_text(PACKAGE.format(seconds=1.0))
    *before, gate = (runner(line) for line in GITLAB["benchmarks ab"]["script"])
    assert [done.returncode for done in before] == [0]
    assert gate.returncode == 0, gate.stdout + gate.stderr
    assert (runner.folder / "ab.md").read_text().startswith("### None of 1 slower")
    (report,) = GITLAB["benchmarks ab"]["artifacts"]["reports"].values()
    assert 'failures="0"' in (runner.folder / report).read_text()


def test_the_job_on_main_keeps_a_record_and_shows_the_history(runner):
    assert set(github(runner, "history").values()) == {0}
    saved = list((runner.folder / "results" / "runs").glob("*/*.json"))
    assert len(saved) == 5
    assert runner.summary.read_text().startswith("### ")
    assert (runner.folder / "history.csv").read_text().count("test_work") == 1


def test_a_job_that_gave_no_verdicts_says_so_in_its_summary(runner):
    runner.folder.joinpath("tests", "test_strange.py").write_text("def (:\n")
    codes = github(runner, "ab")
    assert codes["Measure base and head in turns"] == 3
    assert codes["Show the verdicts"] == 0
    assert runner.summary.read_text().startswith("### Nothing could be compared")


def test_a_job_that_ended_by_a_mistake_says_so_in_its_summary(runner):
    runner.environment["BASE"] = "origin/gone"
    codes = {}
    for step in GITHUB["jobs"]["ab"]["steps"]:
        if "run" in step:
            codes[step.get("name", "install")] = runner(step["run"]).returncode
    assert codes["Measure base and head in turns"] == 2
    assert runner.summary.read_text() == "opbench ab gave no verdicts; its log says why.\n"
