"""Where the probes read from; a test hands in its own."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["Source"]

try:
    import resource
except ImportError:  # Windows has none
    _usage: Callable[[bool], Any] | None = None
else:

    def _usage(of_children: bool) -> Any:
        return resource.getrusage(resource.RUSAGE_CHILDREN if of_children else resource.RUSAGE_SELF)


_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def _resident() -> int | None:
    """Bytes of memory that this process holds in RAM; Linux only, elsewhere psutil knows."""
    try:
        handle = os.open("/proc/self/statm", os.O_RDONLY)
    except OSError:
        return _resident_elsewhere()
    try:
        return int(os.read(handle, 100).split()[1]) * _PAGE
    finally:
        os.close(handle)


def _resident_elsewhere() -> int | None:
    try:
        import psutil
    except ImportError:
        return None
    return int(psutil.Process().memory_info().rss)


def _read_text(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _affinity() -> int | None:
    """Logical CPUs that this process may run on; macOS cannot tell."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return None


def _load() -> tuple[float, float, float] | None:
    try:
        return os.getloadavg()
    except (AttributeError, OSError):
        return None


def _ticks_per_second() -> int | None:
    try:
        return os.sysconf("SC_CLK_TCK")
    except (AttributeError, ValueError, OSError):
        return None


def _sysctl(name: str) -> str | None:
    """A kernel value by its name; only macOS has the program."""
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program, and a name from this package
            ["/usr/sbin/sysctl", "-n", name],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _python() -> str:
    """Minor version; a ``t`` marks a build without the global lock, which runs Python slower."""
    free_threaded = "t" if "t" in getattr(sys, "abiflags", "") else ""
    return f"{sys.version_info[0]}.{sys.version_info[1]}{free_threaded}"


@dataclass(frozen=True, slots=True)
class Source:
    """Everything that the probes read, as callables; the defaults read this process.

    None from any of them means that this platform does not tell.
    """

    read_text: Callable[[str], str | None] = _read_text
    sysctl: Callable[[str], str | None] = _sysctl
    cpu_count: Callable[[], int | None] = os.cpu_count
    affinity: Callable[[], int | None] = _affinity
    load: Callable[[], tuple[float, float, float] | None] = _load
    ticks_per_second: Callable[[], int | None] = _ticks_per_second
    resident: Callable[[], int | None] = _resident
    """Bytes, asked often: it must be cheap."""
    usage: Callable[[bool], Any] | None = _usage
    """``resource.getrusage`` of this process, or (True) of its children that were waited for."""
    machine: Callable[[], str] = platform.machine
    system: Callable[[], str] = platform.system
    implementation: Callable[[], str] = platform.python_implementation
    python: Callable[[], str] = _python
    clock: Callable[[], float] = time.perf_counter
    """Seconds from any fixed moment."""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    modules: Mapping[str, ModuleType] = field(default_factory=lambda: sys.modules)
    """What is loaded. Looking here, and not importing, is what keeps the probes light."""
