"""Facts about the machine that a record keeps beside those of the process."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from opbench.errors import ConfigError

__all__ = ["machine_facts", "on_cpus", "parse_cpus"]

_CPU0 = "sys/devices/system/cpu/cpu0"
_CGROUP_WORDS = ("docker", "kubepods", "containerd", "lxc", "podman", "garden")


def machine_facts(root: Path | str = "/") -> dict[str, Any]:
    """What does not change between two runs on one machine; None for what cannot be read.

    Never a measured frequency, and never the host's name.

    Args:
        root: below which the kernel's files are looked for.

    Returns:
        kernel: release, such as ``6.1.0-18-amd64``.
        caches: size of each level, such as ``{"L1d": "32K", "L2": "1024K", "L3": "35840K"}``.
        container: ``docker``, ``podman``, ``kubernetes`` or the like; None outside of one.
        virtual_machine: the hypervisor's product; None on a machine of its own.
        governor: of the frequency, such as ``performance``.
        turbo: whether the CPU may clock higher than its base.
    """
    root = Path(root)
    return {
        "kernel": platform.release() or None,
        "caches": _caches(root),
        "container": _container(root),
        "virtual_machine": _virtual(root),
        "governor": _read(root / _CPU0 / "cpufreq/scaling_governor"),
        "turbo": _turbo(root),
    }


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8", "replace").strip() or None
    except OSError:
        return None


def _caches(root: Path) -> dict[str, str] | None:
    found = {}
    for folder in sorted((root / _CPU0 / "cache").glob("index*")):
        level, kind, size = (_read(folder / name) for name in ("level", "type", "size"))
        if level and size:
            letter = {"Data": "d", "Instruction": "i"}.get(kind or "", "")
            found[f"L{level}{letter}"] = size
    return found or None


def _container(root: Path) -> str | None:
    if (root / ".dockerenv").exists():
        return "docker"
    if (root / "run/.containerenv").exists():
        return "podman"
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return "kubernetes"
    groups = _read(root / "proc/1/cgroup") or ""
    return next((word for word in _CGROUP_WORDS if word in groups), None)


def _virtual(root: Path) -> str | None:
    """The hypervisor; x86 says so in the CPU's flags, and firmware names the product."""
    flags = "hypervisor" in (_read(root / "proc/cpuinfo") or "").split()
    kind = _read(root / "sys/hypervisor/type")
    product = _read(root / "sys/class/dmi/id/product_name")
    if not flags and not kind:
        return None
    return kind or product or "unknown"


def _turbo(root: Path) -> bool | None:
    off = _read(root / "sys/devices/system/cpu/intel_pstate/no_turbo")
    if off in {"0", "1"}:
        return off == "0"
    boost = _read(root / "sys/devices/system/cpu/cpufreq/boost")
    return boost == "1" if boost in {"0", "1"} else None


def parse_cpus(text: str) -> tuple[int, ...]:
    """CPU numbers from a list such as ``0-3,6``, as taskset takes it.

    Raises:
        ConfigError: it is no such list.
    """
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        digits = (first, last) if dash else (first, first)
        if not all(word.isascii() and word.isdigit() for word in digits):
            msg = f"--cpus {text!r} is no list of CPUs; write one such as 0,2 or 0-3"
            raise ConfigError(msg)
        start, end = map(int, digits)
        if end < start or end > 1 << 16:
            msg = f"--cpus {text!r}: {part.strip()!r} is no range of CPUs; write one such as 0-3"
            raise ConfigError(msg)
        numbers.update(range(start, end + 1))
    return tuple(sorted(numbers))


@contextlib.contextmanager
def on_cpus(cpus: Sequence[int] | None) -> Iterator[None]:
    """Keep this process, and all that it starts inside the block, on these CPUs; None on all.

    Raises:
        ConfigError: this process may not run there, or the system cannot do it.
    """
    if cpus is None:
        yield
        return
    if not hasattr(os, "sched_setaffinity"):
        msg = "--cpus needs Linux, which alone can keep a process on some CPUs; leave it away"
        raise ConfigError(msg)
    before = os.sched_getaffinity(0)
    if not set(cpus) <= before:
        given, allowed = (",".join(map(str, sorted(numbers))) for numbers in (cpus, before))
        msg = f"--cpus {given}: this process may only run on {allowed}; choose among those"
        raise ConfigError(msg)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
