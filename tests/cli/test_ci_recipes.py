"""The files in docs/ci.md: YAML that parses, shell that parses, and commands that opbench takes."""

import re
import shlex
import subprocess
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
