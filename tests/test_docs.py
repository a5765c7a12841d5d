"""What the documents promise is there: links, commands, examples, options."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from opbench import profiler

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
PROSE = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "results" / "README.md"])


def blocks(text, language):
    """The fenced blocks of one language; "" for those without one."""
    found, inside = [], None
    for line in text.splitlines():
        if not line.startswith("```"):
            if inside is not None:
                inside[1].append(line)
        elif inside is None:
            inside = (line[3:], [])
        else:
            found.append(inside)
            inside = None
    return ["\n".join(lines) for tag, lines in found if tag == language]


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.name)
def test_every_relative_link_leads_somewhere(path):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text("utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_the_readmes_example_runs_in_a_strangers_project(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (example,) = (b for b in blocks(README, "python") if "def test_total" in b)
    pytester.makepyfile(test_mine=example)
    result = pytester.runpytest_subprocess(
        "-p", "opbench.plugin", "--benchmark-only", "--benchmark-max-time=0.05", timeout=120
    )
    assert result.ret == 0, result.stdout.str()
    (trace,) = (pytester.path / "results" / "traces").glob("test_total-*.trace.json")
    assert profiler.check(trace) == []


def test_the_readmes_runtime_example_runs():
    (example,) = (b for b in blocks(README, "python") if "executor.forward" in b)
    done = subprocess.run(
        [sys.executable, "-c", example], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "(512, 512)\n"


def test_the_readmes_commands_are_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^make (\w+)", "\n".join(blocks(README, "sh")), re.MULTILINE))
    assert {"bench", "test"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_gate_calls_the_readmes_test_command():
    assert "make test" in (ROOT / ".ci" / "run").read_text("utf-8")


def test_every_opbench_option_named_in_a_document_exists(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    named = {
        option
        for path in PROSE
        for option in re.findall(r"--opbench-[a-z-]+[a-z]", path.read_text("utf-8"))
    }
    assert "--opbench-mode" in named
    shown = pytester.runpytest_subprocess("-p", "opbench.plugin", "--help").stdout.str()
    assert sorted(option for option in named if option not in shown) == []


def test_the_readmes_rooms_are_the_packages_rooms():
    named = set(re.findall(r"`opbench\.([a-z]+)`", README.partition("## Rooms")[2]))
    rooms = {path.parent.name for path in (ROOT / "opbench").glob("*/__init__.py")} | {"cli"}
    assert named == rooms


def test_the_terminal_output_in_the_readme_is_a_real_one():
    (output,) = (b for b in blocks(README, "") if "benchmark" in b)
    assert re.search(r"^-+ opbench: \d+ traced, \d+ timed -+$", output, re.MULTILINE)
    assert "https://ui.perfetto.dev or chrome://tracing" in output


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.name)
def test_no_path_or_host_of_a_machine_stands_in_a_document(path):
    text = path.read_text("utf-8")
    assert not re.search(r"(?<![\w.])/(work|root|home|tmp)/\w", text)
