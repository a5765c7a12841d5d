from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

import opbench.profiler
from opbench.profiler import programs, reading

ROOT = Path(__file__).parents[2]
ROOM = Path(opbench.profiler.__file__).parent
HEAVY = {"asyncio", "concurrent", "dataclasses", "decimal", "http", "inspect", "logging", "random"}
HEAVY |= {"numba", "numpy", "scipy", "sqlite3", "statistics", "subprocess", "tempfile", "unittest"}
# What every pytest pays for: the recorder, and what it cannot be without.
AT_ONCE = {
    "bounds",
    "buffer",
    "clock",
    "cost",
    "emit",
    "events",
    "listeners",
    "modes",
    "price",
    "profiler",
}
AT_ONCE |= {"raw"}
# What only files need, which a program that records must not load either.
FOR_FILES = {"checking", "convert", "difference", "foreign", "joining", "loading", "overview"}
FOR_FILES |= {"reading", "rules", "scan"}


def output_of(program, **environment):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("OPBENCH")}
    done = subprocess.run(
        [sys.executable, "-B", "-c", program],
        cwd=ROOT,
        env={**kept, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout.split()


def loaded_after(program):
    return set(output_of(f"{program}\nimport sys\nprint(*sys.modules)"))


def ours(modules):
    prefix = "opbench.profiler."
    return {name.removeprefix(prefix) for name in modules if name.startswith(prefix)}


def test_importing_the_room_loads_nothing_heavy():
    assert loaded_after("import opbench.profiler") & HEAVY == set()


def test_the_plugin_loads_the_recorder_and_nothing_for_programs_or_files():
    assert ours(loaded_after("import opbench.plugin")) == AT_ONCE


@pytest.mark.parametrize("options", [["--collect-only"], [], ["--benchmark-only"]])
def test_a_pytest_without_benchmarks_loads_what_importing_the_plugin_does(tmp_path, options):
    # What a real run comes by: the settings' check, collection, each hook, the closing section.
    (tmp_path / "test_it.py").write_text("def test_it(): pass")
    (tmp_path / "conftest.py").write_text(
        "import sys\ndef pytest_unconfigure(): print('loaded', *sys.modules)"
    )
    program = f"""
import pytest
options = ["-p", "opbench.plugin", "-p", "no:cacheprovider", *{options!r}]
print(int(pytest.main([*options, {str(tmp_path)!r}])))
"""
    printed = output_of(program, PYTEST_ADDOPTS="")
    assert printed[-1] == "0"
    run = {name for name in printed[printed.index("loaded") :] if name.startswith("opbench")}
    imported = {
        name for name in loaded_after("import opbench.plugin") if name.startswith("opbench")
    }
    assert run == imported
    assert ours(run) == AT_ONCE


def test_a_program_that_records_loads_nothing_for_files():
    recorded = ours(loaded_after("from opbench import nd; nd.ones(3).wait_to_read()"))
    assert recorded & FOR_FILES == set()
    assert {"entries", "scopes", "lanes"} <= recorded


def test_a_question_about_a_file_loads_what_it_needs():
    assert ours(loaded_after("from opbench.profiler import check")) >= FOR_FILES


def test_the_door_is_sorted_and_complete():
    names = opbench.profiler.__all__
    assert names == sorted(names, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert not any(isinstance(getattr(opbench.profiler, name), types.ModuleType) for name in names)
    assert set(names) <= set(dir(opbench.profiler))


def test_each_name_behind_the_door_is_in_one_group():
    assert set(reading.__all__) == opbench.profiler._OF_FILES
    assert not set(reading.__all__) & set(programs.__all__)
    later = {*reading.__all__, *programs.__all__}
    assert later < set(opbench.profiler.__all__)
    at_once = output_of("import opbench.profiler as p; print(*(set(p.__all__) & set(vars(p))))")
    assert set(at_once) == set(opbench.profiler.__all__) - later


def test_no_module_can_take_the_place_of_a_name():
    assert {path.stem for path in ROOM.glob("*.py")} & set(opbench.profiler.__all__) == set()


def test_what_is_not_there_is_said_by_its_name():
    with pytest.raises(AttributeError, match=r"'opbench\.profiler' has no attribute 'chek'"):
        opbench.profiler.chek  # noqa: B018 - the access is what is tested
    with pytest.raises(ImportError, match="cannot import name 'chek'"):
        from opbench.profiler import chek  # noqa: F401 - likewise


def test_a_forked_child_is_not_recording_though_only_the_recorder_was_loaded():
    program = """
import os
from opbench.profiler import RECORDER
RECORDER.run("none", "test")
child = os.fork()
if not child:
    print("child", RECORDER.state, flush=True)
    os._exit(0)
os.waitpid(child, 0)
print("parent", RECORDER.state)
"""
    assert output_of(program) == ["child", "stop", "parent", "run"]


def test_calls_are_counted_from_the_window_on_though_the_marks_were_loaded_in_it():
    program = """
from opbench.profiler import RECORDER, Profiler
now = [1000]
RECORDER.clock = lambda: now[0]
RECORDER.run("api", "test")
now[0] = 2000
from opbench.profiler import traced
@traced
def call():
    now[0] += 500
call()
for event in RECORDER.stop("test").events:
    if event.name == "api calls in flight":
        print(event.start_ns, *event.args.values())
"""
    assert output_of(program) == ["1000", "0", "2000", "1", "2500", "0"]
