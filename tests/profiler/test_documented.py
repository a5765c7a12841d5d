"""docs/profiler.md: the tests that its tables name exist, and its examples run."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from opbench import profiler
from opbench.operators import registry

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "profiler.md").read_text("utf-8")
NAMED = re.compile(r"`(\w+/test_\w+)::(test_\w+)`")


def rows(text):
    """The rows of the tables that compare with MXNet, without their heads."""
    lines = text.partition("## Beside MXNet")[2].splitlines()
    for place, line in enumerate(lines):
        following = lines[place + 1] if place + 1 < len(lines) else ""
        if line.startswith("| ") and not following.startswith("|---"):
            yield line


def missing(text):
    """What is wrong with each row: it names no test, or one that does not exist."""
    found = []
    for row in rows(text):
        names = NAMED.findall(row.rstrip("| ").rpartition("|")[2])
        if not names:
            found.append(f"names no test: {row}")
        for file, test in names:
            path = ROOT / "tests" / f"{file}.py"
            if not path.exists() or test not in functions(path):
                found.append(f"{file}::{test}")
    return found


def functions(path):
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_test_that_the_table_names_exists():
    assert len(list(rows(TEXT))) > 80
    assert missing(TEXT) == []


def test_a_row_without_a_test_or_with_a_wrong_one_is_found():
    table = "## Beside MXNet\n| a | b | c |\n|---|---|---|\n| x | y | {} |\n"
    here = "`profiler/test_documented::test_every_test_that_the_table_names_exists`"
    assert missing(table.format(here)) == []
    assert missing(table.format("none")) == ["names no test: | x | y | none |"]
    gone = "profiler/test_documented::test_that_is_gone"
    assert missing(table.format(f"`{gone}`")) == [gone]


def test_every_config_key_and_every_name_of_the_door_that_users_call_is_described():
    from opbench.profiler.config import KEYS

    named = set(re.findall(r"`([a-z_]+)", TEXT))
    assert set(KEYS) <= named
    users = {"dump", "dumps", "pause", "resume", "set_config", "set_state", "state", "statistics"}
    users |= {"schedule", "profile", "scope", "current_scope", "aggregate"}
    assert users <= named
    assert users <= set(profiler.__all__)


EXAMPLES = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: text.split("\n")[0])
def test_an_example_runs(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_OPERATORS", dict(registry._OPERATORS))
    scope = {
        "RECORDER": profiler.RECORDER,
        "IterationWindow": profiler.IterationWindow,
        "work": lambda *_: None,
        "load": list,
        "set_up": lambda: (1, 2),
        "tear_down": lambda *_: None,
    }
    exec(compile(example.replace("cache=True", "cache=False"), "profiler.md", "exec"), scope)  # noqa: S102 - our own text
    assert profiler.RECORDER.state == "stop"
    profiler.set_config()
