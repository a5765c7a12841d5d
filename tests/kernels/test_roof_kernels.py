"""Multiply-adds and sweeps do the work that they report, and nothing else in their inner loops."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from opbench.errors import DTypeError
from opbench.kernels import roof

ROOT = Path(__file__).parents[2]
X86 = platform.machine() in {"x86_64", "AMD64"}


@pytest.mark.parametrize(("dtype", "itemsize"), [("float32", 4), ("float64", 8)])
def test_flop_is_two_for_each_lane_of_each_chain_and_step(dtype, itemsize):
    lanes = roof.TILE.vector // itemsize
    assert roof.multiply_adds(dtype, 7) == 7 * roof.CHAINS * lanes * 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_chain_makes_every_step(dtype):
    cells = np.full(roof.TILE.vector, 0.7, dtype)
    cells[1] = 0.3
    roof.chain_function(dtype)(cells, 10)
    one = 0.0
    for _ in range(10):
        one = one + 0.7 * 0.3 if roof.FUSED else one * 0.7 + 0.3
    lanes = roof.TILE.vector // cells.itemsize
    assert cells[:lanes] == pytest.approx([roof.CHAINS * one] * lanes, rel=1e-5)
    assert cells[lanes] == dtype_value(dtype, 0.7)  # nothing is written past one vector


def dtype_value(dtype, value):
    return np.array(value, dtype)[()]


def test_another_dtype_is_refused_with_those_that_there_are():
    with pytest.raises(DTypeError, match="float32 and float64, not for int32"):
        roof.multiply_adds("int32", 1)


@pytest.mark.parametrize("past_caches", [False, True])
def test_the_triad_writes_all_of_a_and_counts_as_stream_does(past_caches):
    a, b, c = (roof.buffer(10_000) for _ in range(3))
    a[:], b[:], c[:] = np.nan, np.arange(b.size), 2 * np.arange(c.size) + 1
    moved = roof.triad(a, b, c, 3, past_caches=past_caches)
    assert moved == 3 * 3 * 8 * a.size
    assert (a == 2 * np.arange(a.size) + 0.5).all()


def test_the_read_adds_up_every_element():
    b = roof.buffer(10_000)
    b[:] = np.arange(b.size)
    cells = np.empty(roof.TILE.vector)
    roof.sweep_function(roof.read_loop, 2)(b, cells, 1)
    assert cells[: roof.TILE.vector // 8].sum() == b.size * (b.size - 1) / 2
    assert roof.read(b, 5) == 5 * 8 * b.size


@pytest.mark.parametrize("nbytes", [1, 8, 4095, 4096, 100_000])
def test_a_buffer_lies_on_a_page_and_is_whole_blocks(nbytes):
    x = roof.buffer(nbytes)
    assert x.ctypes.data % 4096 == 0
    assert x.size % roof.BLOCK == 0
    assert x.dtype == np.float64
    assert x.nbytes <= max(nbytes, 8 * roof.BLOCK)


def test_the_last_cache_is_no_smaller_than_a_cores_own(monkeypatch):
    sizes = {2: 1 << 20}
    monkeypatch.setattr(roof, "cache_bytes", sizes.get)
    assert roof.caches() == (1 << 20, 1 << 20)
    sizes[3] = 32 << 20
    assert roof.caches() == (1 << 20, 32 << 20)
    sizes[3] = 1 << 10
    assert roof.caches() == (1 << 20, 1 << 20)


LOOPS = """
import re
from numba import njit, types
from opbench.kernels import roof
def text_of(loop, *argument_types):
    text, = njit(argument_types)(loop.py_func).inspect_asm().values()
    return text
def inner(text, mnemonic):
    blocks = text.replace("\\n.LBB", "\\0.LBB").split("\\0")
    return max(blocks, key=lambda block: block.count(mnemonic)).split("\\tj")[0]
cells = types.Array(types.float32, 1, "C")
chain = inner(text_of(roof.chain_loop, cells, types.int64), MULTIPLY)
array = types.Array(types.float64, 1, "C")
far = text_of(roof.far_loop, *[array] * 4, types.int64)
print(chain.count(MULTIPLY), chain.count("("), roof.CHAINS, far.count("movnt"))
"""


@pytest.mark.skipif(not X86, reason="reads x86's assembly")
@pytest.mark.parametrize(
    ("name", "features", "multiply"),
    [
        ("generic", "", "mulps"),
        ("haswell", "+avx,+avx2,+fma", "vfmadd"),
        ("skylake-avx512", "+avx,+avx2,+fma,+avx512f,+avx512vl,+avx512dq,+avx512bw", "vfmadd"),
    ],
)
def test_the_inner_loop_is_multiply_adds_on_registers_alone(name, features, multiply):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LOOPS.replace("MULTIPLY", repr(multiply))],
        env=os.environ
        | {"PYTHONPATH": str(ROOT), "NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found, in_memory, chains, past_caches = map(int, done.stdout.split())
    assert found % chains == 0  # LLVM may unroll the loop
    assert found > 0
    assert in_memory == 0
    assert past_caches >= 4
