"""Compiled code on disk: found again, never stale, and no trouble where nothing can be written."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from opbench.kernels import cache

ROOT = Path(__file__).parents[2]
ROOM = ROOT / "opbench" / "kernels"
SOURCES = sorted(path.relative_to(ROOM) for path in ROOM.rglob("*.py"))


@pytest.fixture
def room(tmp_path, monkeypatch):
    """A copy of the kernels room, to be imported as `copied.kernels`."""
    package = tmp_path / "copied"
    shutil.copytree(ROOM, package / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__init__.py").touch()
    for path in package.rglob("*.py"):
        path.write_text(path.read_text().replace("opbench.kernels", "copied.kernels"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield package / "kernels"
    forget()


def forget():
    """Drop the copy's modules, as a new process would."""
    for name in [name for name in sys.modules if name.split(".")[0] == "copied"]:
        del sys.modules[name]
    importlib.invalidate_caches()


def compiled_or_loaded():
    """Import the copy afresh and use one of its small functions: (cache hits, cache misses)."""
    forget()
    loops = importlib.import_module("copied.kernels.dot.loops")
    assert loops.even(10, 4, 1) == 4
    stats = loops.even.stats
    return sum(stats.cache_hits.values()), sum(stats.cache_misses.values())


def test_a_second_import_loads_and_an_edit_to_any_file_compiles_again(room):
    assert compiled_or_loaded() == (0, 1)
    assert compiled_or_loaded() == (1, 0)
    for source in SOURCES:
        with (room / source).open("a") as file:
            file.write("\n# edited\n")
        assert compiled_or_loaded() == (0, 1), source
        assert compiled_or_loaded() == (1, 0), source


def test_a_new_file_compiles_again_and_old_code_is_removed(room):
    compiled_or_loaded()
    folder = room / "dot" / "__pycache__"
    before = {path.name for path in folder.glob("*.nbc")}
    (room / "dot" / "new.py").write_text("")
    assert compiled_or_loaded() == (0, 1)
    after = {path.name for path in folder.glob("*.nbc")}
    assert len(after) == len(before)
    assert not after & before


def test_an_edited_intrinsic_changes_the_result(room):
    ones = np.ones((1, 3), np.int64), np.ones(3, np.int64)
    for product, factor in (("mul(x, y)", 1), ("mul(y, y)", 1), ("add(x, y)", 2)):
        source = (room / "dot" / "emit.py").read_text()
        (room / "dot" / "emit.py").write_text(
            source.replace("self.b.mul(x, y)", f"self.b.{product}")
        )
        forget()
        copied = importlib.import_module("copied.kernels")
        assert copied.dot(*ones).tolist() == [3 * factor]
        (room / "dot" / "emit.py").write_text(source)


@pytest.mark.parametrize("damage", [b"", b"not a pickle", None])
def test_a_torn_file_counts_as_none(room, damage):
    compiled_or_loaded()
    for path in (room / "dot" / "__pycache__").glob("*.nbc"):
        path.write_bytes(path.read_bytes()[:100] if damage is None else damage)
    assert compiled_or_loaded() == (0, 1)
    assert compiled_or_loaded() == (1, 0)


def test_two_targets_keep_their_code_apart(tmp_path):
    files = cache.StampedFiles(str(tmp_path), "f", "stamp")
    files.save(("int64", "haswell"), "for haswell")
    files.save(("int64", "znver4"), "for znver4")
    assert files.load(("int64", "haswell")) == "for haswell"
    assert files.load(("int64", "znver4")) == "for znver4"
    assert files.load(("int64", "generic")) is None


def test_a_folder_that_vanished_costs_no_result(tmp_path):
    files = cache.StampedFiles(str(tmp_path / "gone"), "f", "stamp")
    files.save("key", "value")
    assert files.load("key") is None


COUNT = """
from copied.kernels.dot import loops
assert loops.even(10, 4, 1) == 4
print(sum(loops.even.stats.cache_hits.values()), type(loops.even._cache).__name__)
"""


def fresh_process(room, **environment):
    """Cache hits and the cache's type in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", COUNT],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{room.parents[1]}{os.pathsep}{ROOT}",
        }
        | {"PYTHONDONTWRITEBYTECODE": "1"}
        | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def block(room):
    """Make each `__pycache__` of the copy a plain file: not even root can write below it."""
    for folder in (room, room / "dot"):
        shutil.rmtree(folder / "__pycache__", ignore_errors=True)
        (folder / "__pycache__").touch()


def test_a_read_only_install_uses_numbas_folder_of_the_user(room, tmp_path):
    block(room)
    environment = {
        "HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": str(tmp_path / "home"),
    }
    assert fresh_process(room, **environment) == ["0", "FolderCache"]
    assert fresh_process(room, **environment) == ["1", "FolderCache"]


def test_numbas_cache_folder_setting_is_respected(room, tmp_path):
    environment = {"HOME": "/nonexistent", "NUMBA_CACHE_DIR": str(tmp_path / "chosen")}
    assert fresh_process(room, **environment) == ["0", "FolderCache"]
    assert list((tmp_path / "chosen").rglob("*.nbc"))


def test_nowhere_to_write_means_no_cache_and_no_error(room, tmp_path):
    block(room)
    (tmp_path / "file").touch()
    nowhere = str(tmp_path / "file" / "below")
    environment = {"HOME": nowhere, "XDG_CACHE_HOME": nowhere}
    assert fresh_process(room, **environment) == ["0", "NullCache"]


def test_without_the_compiler_the_import_works_and_a_call_says_why(room):
    code = """
import numpy as np
from opbench import kernels
from opbench.errors import ConfigError
try:
    kernels.dot(np.ones((2, 2)), np.ones((2, 2)))
except ConfigError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "NUMBA_DISABLE_JIT is set" in done.stdout, done.stderr
