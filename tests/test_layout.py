"""The rooms keep to the import table in docs/architecture.md, and to the house rules on names."""

import ast
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "opbench"
FRONT_DOOR = {"__init__", "__main__"}
BANNED = {"utils", "helpers", "common", "misc", "manager", "util", "helper"}
DYNAMIC = ("import_module", "__import__")
MODULE_LINES = 400
FUNCTION_LINES = 80


@dataclass(frozen=True)
class Allowed:
    """What one room may import, at the top of a module and inside functions."""

    ours: frozenset
    ours_lazy: frozenset
    outside: frozenset
    outside_lazy: frozenset


def import_table(text):
    """Room to Allowed, from the Markdown table that follows the marker comment."""
    table = text.partition("<!-- test_layout.py reads this table")[2]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    found = {}
    for row in rows:
        room, *cells = (cell.strip() for cell in row.strip("|").split("|"))
        words = [frozenset(re.findall(r"[a-z_]+", cell)) for cell in cells]
        found[room.strip("`")] = Allowed(
            words[0], words[0] | words[1], words[2], words[2] | words[3]
        )
    return found


TABLE = import_table((ROOT / "docs" / "architecture.md").read_text("utf-8"))


def type_checking_only(tree):
    """The nodes below ``if TYPE_CHECKING:``, which run for no interpreter."""
    blocks = (n for n in ast.walk(tree) if isinstance(n, ast.If))
    guarded = (b for b in blocks if isinstance(b.test, ast.Name) and b.test.id == "TYPE_CHECKING")
    return {id(node) for block in guarded for part in block.body for node in ast.walk(part)}


def imports(tree):
    """(line, lazy, dotted module, name or None) of each import statement that runs."""
    skipped = type_checking_only(tree)
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, id(node) in inside, alias.name, None
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import hides its room"
            for alias in node.names:
                yield node.lineno, id(node) in inside, node.module, alias.name


def room_of(relative):
    return relative.parts[1] if len(relative.parts) > 2 else relative.stem


def behind_the_door(room, name):
    """Whether ``from opbench.room import name`` names a module of the room, not a name it gives."""
    return (PACKAGE / room / f"{name}.py").exists() and name not in door(room)


def door(room):
    """The names that a room gives: its ``__all__``."""
    tree = ast.parse((PACKAGE / room / "__init__.py").read_text("utf-8"))
    values = [
        node.value
        for node in tree.body
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        and "__all__" in ast.unparse(node).partition("=")[0]
    ]
    (names,) = map(ast.literal_eval, values)
    return names


def violations(source, room, table=TABLE):
    """One sentence per import that the table forbids; the room is the one of the source."""
    if room in FRONT_DOOR:
        return []
    if room not in table:
        return [f"room {room!r} is not in the import table of docs/architecture.md"]
    allowed = table[room]
    found = [
        f"line {node.lineno}: {room} imports by a call, which this table cannot see"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(DYNAMIC)
    ]
    for line, lazy, module, name in imports(ast.parse(source)):
        top, *rest = module.split(".")
        if top == "opbench":
            target = rest[0] if rest else name
            if target == room:
                continue
            if target not in (allowed.ours_lazy if lazy else allowed.ours):
                found.append(f"line {line}: {room} may not import opbench.{target}")
            elif len(rest) > 1 or (rest and behind_the_door(target, name)):
                found.append(
                    f"line {line}: {module} is inside the room {target}; knock at its door"
                )
        elif top in sys.stdlib_module_names or top == "__future__":
            continue
        elif top not in (allowed.outside_lazy if lazy else allowed.outside):
            found.append(f"line {line}: {room} may not import {top}{'' if lazy else ' here'}")
    return found


MODULES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_what_its_room_may(path):
    relative = path.relative_to(ROOT)
    assert violations(path.read_text("utf-8"), room_of(relative)) == []


@pytest.mark.parametrize(
    ("room", "source", "words"),
    [
        ("kernels", "from opbench import profiler", "kernels may not import opbench.profiler"),
        ("kernels", "from opbench.profiler import Mode", "kernels may not import opbench.profiler"),
        ("profiler", "import numpy as np", "profiler may not import numpy here"),
        ("profiler", "def f():\n    import numba", "profiler may not import numba"),
        ("plugin", "from opbench import runtime", "plugin may not import opbench.runtime"),
        ("operators", "import numba", "operators may not import numba"),
        ("runtime", "from opbench.profiler.events import Trace", "knock at its door"),
        ("runtime", "from opbench.profiler import chrome", "knock at its door"),
        ("profiler", "import importlib\nimportlib.import_module('numba')", "imports by a call"),
        ("records", "import scipy.stats", "records may not import scipy"),
        ("cellar", "import os", "room 'cellar' is not in the import table"),
    ],
)
def test_a_forbidden_import_is_found(room, source, words):
    (found,) = violations(source, room)
    assert words in found


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("plugin", "def hook():\n    from opbench import runtime"),
        ("probes", "def f():\n    import numba"),
        ("kernels", "import numba.core.caching\nfrom opbench.errors import ShapeError"),
        ("profiler", "import json\nfrom opbench.units import format_seconds"),
        ("plugin", "if TYPE_CHECKING:\n    from opbench.report import BenchmarkRow"),
    ],
)
def test_an_allowed_import_is_let_through(room, source):
    assert violations(source, room) == []


def test_every_room_of_the_table_exists_and_every_room_is_in_it():
    there = {room_of(path.relative_to(ROOT)) for path in MODULES} - FRONT_DOOR
    assert there == set(TABLE)


def test_no_module_is_a_drawer_for_everything():
    assert not {path.stem for path in MODULES} & BANNED


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_and_functions_stay_readable(path):
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= MODULE_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < FUNCTION_LINES, node.name


@pytest.mark.parametrize("room", sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py")))
def test_a_rooms_door_is_a_docstring_and_a_sorted_list_of_names(room):
    assert ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text("utf-8")))
    names = door(room)
    # Constants, classes, then the rest, as ruff sorts them.
    assert names == sorted(names, key=lambda n: (not n.isupper(), not n[0].isupper(), n))
