"""What ``import opbench`` offers, and what it does not load."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import opbench
from opbench import kernels, runtime
from opbench.version import __version__

ROOT = Path(__file__).parents[2]


def loaded_after(code):
    """Which heavy packages a fresh process has loaded after ``code``."""
    watch = "('numpy', 'numba', 'llvmlite', 'scipy', 'opbench.runtime', 'opbench.profiler')"
    code = f"{code}\nimport sys; print(*[name for name in {watch} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return done.stdout.split()


def test_the_names():
    assert opbench.__all__ == sorted(opbench.__all__)
    for name in opbench.__all__:
        assert getattr(opbench, name) is not None
    assert set(opbench.__all__) <= set(dir(opbench))
    assert opbench.__version__ == __version__
    assert opbench.nd is runtime.nd
    assert opbench.sym is runtime.sym
    assert opbench.random is runtime.random
    assert opbench.cpu is runtime.cpu
    assert opbench.gpu is runtime.gpu
    assert opbench.lane_begin is kernels.lane_begin
    assert opbench.lane_end is kernels.lane_end
    assert opbench.profiler is sys.modules["opbench.profiler"]


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="module 'opbench' has no attribute 'ndd'"):
        _ = opbench.ndd


@pytest.mark.parametrize(
    ("code", "loaded"),
    [
        ("import opbench; opbench.__version__; dir(opbench)", []),
        ("from opbench import profiler; profiler.RECORDER", ["opbench.profiler"]),
    ],
)
def test_what_is_loaded(code, loaded):
    assert loaded_after(code) == loaded


def test_the_runtime_loads_on_first_use():
    assert "opbench.runtime" in loaded_after("import opbench; opbench.cpu()")
