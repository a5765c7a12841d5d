from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from opbench.probes import Source, facts, usage
from opbench.records import Environment

ROOT = Path(__file__).resolve().parents[2]
X86 = "processor\t: 0\nmodel name\t: Zen 4: fast\ncpu MHz\t\t: 2596.1\n\nmodel name\t: second\n"
ARM = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\nCPU part\t: 0xd4f\n"


def source(**changed):
    """A machine without anything, but for what a test gives it."""
    nothing = {
        "read_text": {}.get,
        "sysctl": {}.get,
        "cpu_count": lambda: None,
        "affinity": lambda: None,
        "load": lambda: None,
        "ticks_per_second": lambda: None,
        "usage": None,
        "machine": lambda: "",
        "system": lambda: "Linux",
        "implementation": lambda: "CPython",
        "python": lambda: "3.11",
        "environ": {},
        "modules": {},
    }
    return Source(**{**nothing, **changed})


def numpy_like(**blas):
    tables = {"Build Dependencies": {"blas": blas}}
    return SimpleNamespace(__version__="2.4.6", show_config=lambda mode: {"dicts": tables}[mode])


def numba_like(layer=None):
    def threading_layer():
        if layer is None:
            raise ValueError("Threading layer is not initialized.")
        return layer

    config = SimpleNamespace(THREADING_LAYER="default", NUMBA_NUM_THREADS=8)
    return SimpleNamespace(__version__="0.68.1", config=config, threading_layer=threading_layer)


def test_the_facts_are_those_of_the_environment():
    assert set(facts(source())) == {field.name for field in dataclasses.fields(Environment)}
    assert Environment.from_facts(facts()) == Environment.from_facts(facts())


def test_a_machine_that_tells_nothing_gives_unknowns_and_no_error():
    known = {name: fact for name, fact in facts(source()).items() if fact}
    assert known == {"system": "Linux", "implementation": "CPython", "python": "3.11"}


def test_every_fact_comes_from_its_source():
    found = facts(
        source(
            read_text={"/proc/cpuinfo": X86}.get,
            cpu_count=lambda: 16,
            affinity=lambda: 4,
            machine=lambda: "x86_64",
            environ={"OMP_NUM_THREADS": "2", "HOSTNAME": "runner", "MKL_NUM_THREADS": ""},
            modules={
                "numpy": numpy_like(name="scipy-openblas", version="0.3.31", found=True),
                "numba": numba_like("workqueue"),
            },
        )
    )
    assert found == {
        "cpu_model": "Zen 4: fast",
        "cpu_count": 16,
        "usable_cpus": 4,
        "machine": "x86_64",
        "system": "Linux",
        "python": "3.11",
        "implementation": "CPython",
        "thread_settings": {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": ""},
        "numpy": "2.4.6",
        "blas_name": "scipy-openblas",
        "blas_version": "0.3.31",
        "numba": "0.68.1",
        "threading_layer": "workqueue",
        "numba_threads": 8,
    }


def test_arm_processors_are_told_apart_by_number():
    found = facts(source(read_text={"/proc/cpuinfo": ARM}.get))
    assert found["cpu_model"] == "implementer 0x41 part 0xd0c"


def test_macos_is_asked_through_its_own_tool():
    found = facts(
        source(system=lambda: "Darwin", sysctl={"machdep.cpu.brand_string": "Apple M3"}.get)
    )
    assert found["cpu_model"] == "Apple M3"


def test_the_configured_layer_is_given_until_one_runs():
    assert facts(source(modules={"numba": numba_like()}))["threading_layer"] == "default"


@pytest.mark.parametrize(
    "half_loaded",
    [
        SimpleNamespace(),
        SimpleNamespace(__version__="1.25", show_config=lambda: None),
        SimpleNamespace(__version__="2.0", show_config=lambda mode: {}),
        SimpleNamespace(show_config=lambda mode: {"Build Dependencies": {"blas": None}}),
    ],
)
def test_libraries_that_do_not_tell_are_tolerated(half_loaded):
    found = facts(source(modules={"numpy": half_loaded, "numba": half_loaded}))
    assert (found["blas_name"], found["blas_version"]) == (None, None)
    assert (found["threading_layer"], found["numba_threads"]) == (None, None)


def test_this_numpy_is_recognised():
    assert "numpy" in sys.modules
    found = facts()
    assert found["numpy"] == np.__version__
    assert found["blas_name"]
    assert found["python"].startswith(f"3.{sys.version_info[1]}")


def test_asking_loads_neither_numpy_nor_numba():
    program = (
        "import sys\nfrom opbench import probes\n"
        "found = probes.facts(); probes.usage(); probes.cpu_reading()\n"
        "with probes.CompileWatch() as watch: pass\n"
        "print(found['numpy'], found['numba'], watch.watching)\n"
        "print(sorted({'numpy', 'numba', 'psutil', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout == "None None False\n[]\n"


def test_usage_names_each_reading():
    used = SimpleNamespace(
        ru_utime=1.5, ru_stime=0.25, ru_nvcsw=10, ru_nivcsw=3, ru_minflt=700, ru_majflt=2
    )
    children = SimpleNamespace()
    asked = source(load=lambda: (0.5, 1.0, 2.0), usage={False: used, True: children}.get)
    assert usage(asked) == {
        "load_1min": 0.5,
        "load_5min": 1.0,
        "load_15min": 2.0,
        "user_s": 1.5,
        "system_s": 0.25,
        "voluntary_switches": 10,
        "involuntary_switches": 3,
        "minor_faults": 700,
        "major_faults": 2,
    }


def test_usage_without_any_source_is_all_unknown():
    assert set(usage(source()).values()) == {None}


def test_usage_of_this_process_is_plain_numbers():
    assert all(type(value) in {int, float, type(None)} for value in usage().values())
    assert usage()["user_s"] is not None
