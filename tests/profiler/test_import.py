from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import opbench.profiler

HEAVY = ("asyncio", "concurrent", "dataclasses", "decimal", "http", "inspect", "logging", "random")
HEAVY += ("numba", "numpy", "scipy", "sqlite3", "statistics", "subprocess", "tempfile", "unittest")


def test_importing_the_room_loads_nothing_heavy():
    program = f"import sys, opbench.profiler; print(*(set(sys.modules) & set({HEAVY!r})))"
    done = subprocess.run(
        [sys.executable, "-I", "-B", "-c", f"import sys; sys.path.insert(0, '.'); {program}"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == []


def test_the_door_is_sorted_and_complete():
    names = opbench.profiler.__all__
    assert names == sorted(names, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert all(hasattr(opbench.profiler, name) for name in names)
