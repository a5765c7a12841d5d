"""Other targets, threading layers and thread counts, each in a process of its own."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PRODUCTS = """
import numpy as np
from opbench import kernels
rng = np.random.default_rng(0)
for dtype in ("float32",):
    for m, k, n in ((37, 41, 53), (150, 70, 160), (1, 300, 300), (300, 300, 1), (1, 99999, 1)):
        a = (9 * rng.uniform(-1, 1, (m, k))).astype(dtype)
        b = (9 * rng.uniform(-1, 1, (k, n))).astype(dtype)
        exact = a.astype("float64") @ b.astype("float64")
        bound = k * 1e-6 * (abs(a).astype("float64") @ abs(b).astype("float64"))
        for x, y in ((a, b), (np.asfortranarray(a), b[:, ::-1][:, ::-1])):
            assert np.all(abs(kernels.dot(x, y) - exact) <= bound), (dtype, m, k, n)
for dtype in ("float32", "float64"):  # the rows whose sums share vectors, down to two lanes
    for m, k in ((21, 3), (9, 15), (23, 300)):
        a, x = (rng.integers(-9, 10, shape).astype(dtype) for shape in ((m, k), k))
        assert np.array_equal(kernels.dot(a, x), a @ x), (dtype, m, k)
"""


def run(code, **environment):
    """Run code in a fresh process; its output, stripped."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=os.environ | {"PYTHONPATH": path} | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


TARGETS = {
    "SSE2": ({"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}, 16),
    "AVX2": (
        {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma"},
        32,
    ),
}


@pytest.mark.parametrize("target", TARGETS)
def test_another_instruction_set(target):
    environment, width = TARGETS[target]
    if target == "AVX2" and "avx2" not in cpu_flags():
        pytest.skip("this machine has no AVX2")
    code = f"{PRODUCTS}\nfrom opbench.kernels.dot import microkernel as m\nprint(m.TILE.vector)"
    assert run(code, **environment) == str(width)


def cpu_flags():
    from llvmlite import binding

    return {name for name, have in binding.get_host_cpu_features().items() if have}


INNER_LOOP = """
import numpy as np
from numba import njit, types
from opbench.kernels.dot import microkernel as m

matrix, panels = (types.Array(types.float32, n, "A", readonly=True) for n in (2, 3))
def call(A, B, q, C, i, j, rows, columns, add):
    m.micro_kernel(A, B, q, C, i, j, rows, columns, add)
function = njit((matrix, panels, types.int64, types.Array(types.float32, 2, "A"),
    *[types.int64] * 4, types.boolean))(call)
text, = function.inspect_asm().values()
blocks = text.replace("\\n.LBB", "\\0.LBB").split("\\0")
loop = max(blocks, key=lambda block: block.count(MULTIPLY)).split("\\tj")[0]
print(loop.count(MULTIPLY), loop.count("(%rsp"), m.MR * m.TILE.vectors)
"""


@pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="reads x86's assembly")
@pytest.mark.parametrize(
    ("name", "features", "multiply"),
    [
        ("generic", "", "mulps"),
        ("haswell", "+avx,+avx2,+fma", "vfmadd"),
        ("skylake-avx512", "+avx,+avx2,+fma,+avx512f,+avx512vl,+avx512dq,+avx512bw", "vfmadd"),
    ],
)
def test_the_inner_loop_keeps_all_accumulators_in_registers(name, features, multiply):
    code = INNER_LOOP.replace("MULTIPLY", repr(multiply))
    found, spilled, wanted = run(code, NUMBA_CPU_NAME=name, NUMBA_CPU_FEATURES=features).split()
    assert int(found) in {int(wanted), 2 * int(wanted)}  # LLVM may unroll it once
    assert int(spilled) == 0


# Numba compiles for the host's architecture only. Its unoptimised code holds nothing of the host's,
# and LLVM takes it from there to a machine that is not here.
FOR_ARM = """
import re
from llvmlite import binding
binding.initialize_all_targets()
binding.initialize_all_asmprinters()
text, = function.inspect_llvm().values()
triple = "aarch64-unknown-linux-gnu"
try:
    target = binding.Target.from_triple(triple)
except RuntimeError:
    print("none")
    raise SystemExit(0)
machine = target.create_target_machine(cpu="generic", features="+neon", opt=3)
for key, value in (("triple", triple), ("datalayout", str(machine.target_data))):
    text = re.sub(f'target {key} = ".*"', f'target {key} = "{value}"', text)
module = binding.parse_assembly(text)
tuning = binding.create_pipeline_tuning_options(speed_level=3)
builder = binding.create_pass_builder(machine, tuning)
builder.getModulePassManager().run(module, builder)
blocks = re.split(r"\\n(?=\\.LBB)", machine.emit_assembly(module))
loop = max(blocks, key=lambda block: block.count("fmla")).split("\\tb.")[0]
print(loop.count("fmla"), loop.count("[sp"), loop.count("\\n") - 1, m.MR * m.TILE.vectors)
"""


def test_the_inner_loop_for_neon_keeps_all_accumulators_in_registers():
    code = INNER_LOOP.partition("text, =")[0] + FOR_ARM
    environment = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "+neon", "NUMBA_OPT": "0"}
    said = run(code, **environment)
    if said == "none":
        pytest.skip("this llvmlite has no ARM target")
    found, spilled, instructions, wanted = map(int, said.split())
    assert found == wanted == 24
    assert spilled == 0
    # Broadcasts, a row of B, prefetches of one, pointers and counter.
    assert instructions <= wanted + 6 + 4 + 4 + 5


@pytest.mark.parametrize("layer", ["omp", "workqueue"])
def test_a_threading_layer(layer):
    code = f"{PRODUCTS}\nimport numba\nprint(numba.threading_layer())"
    assert run(code, NUMBA_THREADING_LAYER=layer) == layer


def test_one_thread_never_starts_the_parallel_kernels():
    code = f"""{PRODUCTS}
from opbench.kernels.dot import parallel, gemv
print(len(parallel.gemm_parallel.overloads), len(gemv.gemv_parallel.overloads))"""
    assert run(code, NUMBA_NUM_THREADS="1") == "0 0"


def test_more_threads_than_cores():
    assert run(f"{PRODUCTS}\nprint('right')", NUMBA_NUM_THREADS="5") == "right"


CONCURRENT = """
import threading, numpy as np
from opbench import kernels
rng = np.random.default_rng(0)
pairs = [(rng.uniform(-1, 1, (90 + i, 120)), rng.uniform(-1, 1, (120, 100))) for i in range(4)]
wrong = []
def work(a, b):
    expected = kernels.dot(a, b)
    for _ in range(60):
        if not (kernels.dot(a, b) == expected).all():
            wrong.append(a.shape)
    if not np.allclose(expected, a @ b):
        wrong.append(a.shape)
threads = [threading.Thread(target=work, args=pair) for pair in pairs]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(wrong)
"""


@pytest.mark.parametrize("layer", ["omp", "workqueue"])
def test_concurrent_calls_from_python_threads(layer):
    assert run(CONCURRENT, NUMBA_THREADING_LAYER=layer) == "[]"


FORK = """
import os, numpy as np
from opbench import kernels
from opbench.errors import ForkError
a = np.ones((200, 200), "float32")
if {before}:
    kernels.dot(a, a)
pid = os.fork()
if pid == 0:
    small = kernels.dot(a[:2, :2], a[:2, :2])[0, 0] == 2
    try:
        kernels.dot(a, a)
        status = 10
    except ForkError as error:
        status = 20 if "spawn" in str(error) else 30
    os._exit(status + small)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.parametrize("layer", ["omp", "workqueue"])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(("before", "status"), [(True, "21"), (False, "11")])
def test_a_forked_child_has_threads_only_if_the_parent_had_not_started_them(layer, before, status):
    code = f"import warnings; warnings.simplefilter('ignore')\n{FORK.format(before=before)}"
    assert run(code, NUMBA_THREADING_LAYER=layer) == status


def test_importing_the_room_compiles_and_loads_nothing():
    code = """
import numba
from numba.core import event
with event.install_recorder("numba:compile") as recorder:
    from opbench import kernels
print(len(recorder.buffer))
"""
    assert run(code) == "0"
