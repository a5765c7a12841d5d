"""Facts about the machine and the libraries, for ``records.Environment``."""

from __future__ import annotations

import contextlib
from typing import Any

from opbench.probes.source import Source

__all__ = ["facts"]

_THREAD_VARIABLES = (
    "BLIS_NUM_THREADS",
    "GOTO_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMBA_THREADING_LAYER",
    "OMP_DYNAMIC",
    "OMP_NUM_THREADS",
    "OMP_PROC_BIND",
    "OPENBLAS_CORETYPE",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def facts(source: Source | None = None) -> dict[str, Any]:
    """What this process runs on, in plain values: the names are those of ``Environment``.

    A fact that is not known is None. NumPy's and Numba's are known only once they are loaded, so
    ask at the end of a session. Nothing here changes their state: Numba's threads are not
    started by asking for their layer.
    """
    source = source or Source()
    return {
        "cpu_model": _cpu_model(source),
        "cpu_count": source.cpu_count(),
        "usable_cpus": source.affinity(),
        "machine": source.machine() or None,
        "system": source.system() or None,
        "python": source.python(),
        "implementation": source.implementation() or None,
        "thread_settings": {
            name: source.environ[name] for name in _THREAD_VARIABLES if name in source.environ
        },
        **_numpy_facts(source),
        **_numba_facts(source),
    }


def _cpu_model(source: Source) -> str | None:
    """The processor's name: Linux in a text file (not on Arm), macOS through its own tool."""
    if source.system() == "Darwin":
        return source.sysctl("machdep.cpu.brand_string")
    lines = (source.read_text("/proc/cpuinfo") or "").splitlines()
    pairs = [(key.strip(), text.strip()) for key, _, text in (row.partition(":") for row in lines)]
    # Arm has no name, only two numbers; keeping them tells two of its processors apart.
    first = dict(reversed(pairs))
    if first.get("model name"):
        return first["model name"]
    if "CPU implementer" in first:
        return f"implementer {first['CPU implementer']} part {first.get('CPU part', 'unknown')}"
    return None


def _numpy_facts(source: Source) -> dict[str, str | None]:
    numpy = source.modules.get("numpy")
    blas: dict[str, Any] = {}
    # Not loaded, loaded half-way, or a build without this table: then BLAS is not known.
    with contextlib.suppress(AttributeError, KeyError, TypeError):
        blas = dict(numpy.show_config(mode="dicts")["Build Dependencies"]["blas"])  # type: ignore[union-attr]
    return {
        "numpy": _text(getattr(numpy, "__version__", None)),
        "blas_name": _text(blas.get("name")),
        "blas_version": _text(blas.get("version")),
    }


def _numba_facts(source: Source) -> dict[str, Any]:
    numba = source.modules.get("numba")
    config = getattr(numba, "config", None)
    threads = getattr(config, "NUMBA_NUM_THREADS", None)
    try:
        layer = numba.threading_layer()  # type: ignore[union-attr]
    except (AttributeError, ValueError):
        # ValueError: no parallel function ran yet. Then it is what Numba will choose from.
        layer = getattr(config, "THREADING_LAYER", None)
    return {
        "numba": _text(getattr(numba, "__version__", None)),
        "threading_layer": _text(layer),
        # The pool's size. get_num_threads() would start the threads, and is masked per thread.
        "numba_threads": threads if isinstance(threads, int) else None,
    }


def _text(value: object) -> str | None:
    return str(value) if value else None
