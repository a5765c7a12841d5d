"""What is left when a process ends: each test starts one and judges its file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from opbench.profiler import check

ROOT = Path(__file__).parents[2]
START = """
import os, sys, threading
from opbench import profiler
profiler.set_config(profile_api=True, filename="t.json")
profiler.set_state("run")
profiler.RECORDER.instant("first", "api")
"""


def run(program, folder, code=0, start=START):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", start + program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


def inside(folder):
    return sorted(path.name for path in folder.iterdir())


def names(folder):
    assert inside(folder) == ["t.json"]
    assert check(folder / "t.json") == []
    events = json.loads((folder / "t.json").read_text())["traceEvents"]
    return [event["name"] for event in events if event["ph"] != "M"]


ENDS = {
    "stopped": ('profiler.set_state("stop")', 0, ["first"]),
    "still running": ("", 0, ["first"]),
    "paused": ('profiler.pause(); profiler.RECORDER.instant("hidden", "api")', 0, ["first"]),
    "sys.exit": ("sys.exit(3)", 3, ["first"]),
    "after a dump that goes on": (
        'profiler.dump(False); profiler.RECORDER.instant("second", "api")',
        0,
        ["first", "second"],
    ),
    "two windows": (
        (
            'profiler.set_state("stop"); profiler.set_state("run"); '
            'profiler.RECORDER.instant("second", "api")'
        ),
        0,
        ["first", "second"],
    ),
    "a thread that outlives main": (
        (
            "def late():\n"
            "    threading.main_thread().join()\n"
            '    profiler.RECORDER.instant("late", "api")\n'
            "threading.Thread(target=late).start()"
        ),
        0,
        ["first", "late"],
    ),
    "a dump of its own at the end": (
        (
            "import atexit\n"
            "def late():\n"
            '    profiler.RECORDER.instant("late", "api"); profiler.dump()\n'
            "atexit.register(late)"
        ),
        0,
        ["first", "late"],
    ),
    "another folder by then": ("os.mkdir('d'); os.chdir('d'); os.rmdir('../d')", 0, ["first"]),
    "a forked child that ends on its own": (
        (
            "pid = os.fork()\n"
            "if pid == 0:\n    sys.exit()\n"
            "os.waitpid(pid, 0)\n"
            "assert os.listdir() == []"
        ),
        0,
        ["first"],
    ),
}


@pytest.mark.parametrize("case", ENDS)
def test_the_file_is_written_when_the_process_ends(case, tmp_path):
    program, code, wanted = ENDS[case]
    done = run(program, tmp_path, code)
    assert done.stderr == ""
    assert names(tmp_path) == wanted


def test_the_file_is_written_after_an_uncaught_exception(tmp_path):
    done = run('profiler.RECORDER.instant("last", "api"); raise ValueError("mine")', tmp_path, 1)
    assert done.stderr.strip().endswith("ValueError: mine")
    assert names(tmp_path) == ["first", "last"]


@pytest.mark.parametrize("continuous", [False, True])
def test_a_dump_while_modules_are_taken_down_writes_the_same_once_more(continuous, tmp_path):
    program = f"""
import os
from opbench import profiler
profiler.set_config(profile_api=True, filename="t.json", continuous_dump={continuous})
profiler.set_state("run")
profiler.RECORDER.instant("first", "api")
class Late:
    def __del__(self, dump=profiler.dump, rename=os.rename, write=os.write):
        rename("t.json", "before.json")
        dump()
        write(1, b"dumped")
late = Late()
"""
    done = run("", tmp_path, start=program)
    assert (done.stdout, done.stderr) == ("dumped", "")
    before = (tmp_path / "before.json").read_bytes()
    (tmp_path / "before.json").unlink()
    assert names(tmp_path) == ["first"]
    assert (tmp_path / "t.json").read_bytes() == before


def test_what_was_dumped_is_not_written_again(tmp_path):
    run('profiler.dump(); os.rename("t.json", "mine.json")', tmp_path)
    assert inside(tmp_path) == ["mine.json"]


def test_a_file_that_cannot_be_written_is_one_sentence_and_no_traceback(tmp_path):
    (tmp_path / "gone").mkdir()
    program = 'os.rename("gone", "elsewhere")\n'
    program = 'profiler.set_state("stop"); profiler.set_config(filename="gone/t.json")\n' + program
    done = run(program, tmp_path)
    assert done.stderr.startswith("opbench: the trace is lost: cannot write the trace to ")
    assert done.stderr.count("\n") == 1


WITHOUT_THE_DOORS = {
    "configured only": 'profiler.set_config(filename="t.json")',
    "refused": (
        'profiler.set_config(filename="t.json", profile_process="server")\n'
        'try: profiler.set_state("run")\nexcept ValueError: pass\nelse: sys.exit(9)'
    ),
    "somebody else's window": 'profiler.RECORDER.run(15, "me"); profiler.RECORDER.stop("me")',
    "somebody else's open window": (
        'profiler.set_config(filename="t.json")\n'
        'profiler.RECORDER.run(15, "me"); profiler.RECORDER.instant("x", "api")'
    ),
}


@pytest.mark.parametrize("case", WITHOUT_THE_DOORS)
def test_without_a_window_of_the_doors_nothing_is_written(case, tmp_path):
    done = run(
        WITHOUT_THE_DOORS[case], tmp_path, start="import sys\nfrom opbench import profiler\n"
    )
    assert (done.stderr, inside(tmp_path)) == ("", [])


def test_work_that_failed_at_the_end_does_not_cost_the_file(tmp_path):
    program = (
        'def gone(): raise RuntimeError("worker is gone")\nprofiler.RECORDER.add_synchroniser(gone)'
    )
    done = run(program, tmp_path)
    assert done.stderr == "opbench: pending work is not in the trace: worker is gone\n"
    assert names(tmp_path) == ["first"]
