"""A side of an A/B measurement: one checkout, its import roots, its environment."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opbench.errors import ConfigError
from opbench.launch.guard import Guard
from opbench.launch.launch import end_group
from opbench.launch.revision import without_git

__all__ = ["SIDES", "TIMING_ONLY", "Side", "SideOptions", "make_side", "selection"]

SIDES = ("base", "head")
THREAD_VARIABLES = (
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
)
TIMING_ONLY = "OPBENCH_TIMING_ONLY"
"""Tells opbench's own plugin to time and to do nothing else; any other reads no such variable."""

# What would make a launch something else than a measurement of this checkout.
_DROPPED = ("COVERAGE_PROCESS_START", "PYTHONDONTWRITEBYTECODE", "PYTHONHOME", TIMING_ONLY)
_SETUP_TIMEOUT_S = 3600.0
_TAIL = 2_000


@dataclass(frozen=True, slots=True)
class SideOptions:
    """How both sides are prepared."""

    prefix: Path = Path()
    """The folder to run in, relative to the checkout's root."""
    import_roots: tuple[str, ...] = ()
    """Relative to that folder; empty means ``src`` where there is one, and the folder itself."""
    setup: str = ""
    """A shell command that builds and installs the project into an environment of the side."""
    threads: int | None = None
    """What the four thread variables are set to; None leaves them alone."""
    python: str = sys.executable


@dataclass(frozen=True, slots=True)
class Side:
    """One side, ready to be launched."""

    name: str
    """``base`` or ``head``: of equal length, as are all paths made of it."""
    folder: Path
    """All that belongs to the side: the checkout, the environment, numba's cache."""
    tree: Path
    """The checkout."""
    cwd: Path
    commit: str
    roots: tuple[Path, ...]
    """Import roots, first on the path."""
    python: str
    environment: Mapping[str, str]


def make_side(
    name: str,
    commit: str,
    tree: Path,
    options: SideOptions,
    guard: Guard,
    inherited: Mapping[str, str],
) -> Side:
    """Prepare a side whose checkout stands.

    Args:
        name: ``base`` or ``head``.
        commit: what was checked out.
        tree: the checkout, in a folder of its own.
        options: the same for both sides.
        guard: told of the setup command's processes.
        inherited: the variables of this process.

    Raises:
        ConfigError: a folder is not in the checkout, or the setup command failed.
    """
    folder, cwd = tree.parent, tree / options.prefix
    if not cwd.is_dir():
        msg = f"{name} {commit[:9]} has no folder {options.prefix}; run it from one that both have"
        raise ConfigError(msg)
    python = options.python
    environment = _environment(inherited, folder, options.threads)
    if options.setup:
        python = _own_python(folder / "env", python, environment)
        _set_up(name, options.setup, cwd, environment, guard)
    roots = _import_roots(name, cwd, options)
    path = [str(root) for root in roots]
    path += [entry for entry in [inherited.get("PYTHONPATH", "")] if entry]
    if path:
        environment["PYTHONPATH"] = os.pathsep.join(path)
    return Side(name, folder, tree, cwd, commit, roots, python, environment)


def _import_roots(name: str, cwd: Path, options: SideOptions) -> tuple[Path, ...]:
    """What goes first on the path; nothing where a setup command has installed the project."""
    for given in options.import_roots:
        if not (cwd / given).is_dir():
            msg = f"--import-root {given!r}: {name} has no such folder; name one that both have"
            raise ConfigError(msg)
    if options.import_roots:
        return tuple((cwd / given).resolve() for given in options.import_roots)
    if options.setup:
        return ()
    return tuple(root for root in (cwd / "src", cwd) if root.is_dir())


def _environment(inherited: Mapping[str, str], folder: Path, threads: int | None) -> dict[str, str]:
    """The variables of a side, equal on both but for its name in paths."""
    kept = {
        name: text
        for name, text in without_git(inherited).items()
        if name not in _DROPPED and not name.startswith("PYTEST_XDIST_")
    }
    kept.pop("PYTHONPATH", None)
    kept["NUMBA_CACHE_DIR"] = str(folder / "numba")
    kept[TIMING_ONLY] = "1"
    if threads is not None:
        kept |= dict.fromkeys(THREAD_VARIABLES, str(threads))
    return kept


def _own_python(folder: Path, python: str, environment: dict[str, str]) -> str:
    """An environment of the side that also sees what the present one has; its interpreter.

    A virtual environment on top of a virtual one sees the system's packages only, so the present
    one's are added by a .pth file. They come after the side's own.
    """
    if os.path.realpath(python) != os.path.realpath(sys.executable):
        msg = f"--setup builds on the interpreter that runs opbench, not on {python}"
        raise ConfigError(msg)
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    scheme = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", "posix_prefix", vars=scheme))
    parents = [path for path in sys.path if Path(path).name in {"site-packages", "dist-packages"}]
    lines = [f"import site; site.addsitedir({parent!r})" for parent in parents]
    (site / "zz_opbench_parent.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
    own = folder / "bin" / "python"
    pip = folder / "bin" / "pip"
    pip.write_text(f'#!/bin/sh\nexec {shlex.quote(str(own))} -m pip "$@"\n', encoding="utf-8")
    pip.chmod(0o755)
    environment["VIRTUAL_ENV"] = str(folder)
    environment["PATH"] = os.pathsep.join([str(own.parent), environment.get("PATH", os.defpath)])
    return str(own)


def _set_up(
    name: str, command: str, cwd: Path, environment: Mapping[str, str], guard: Guard
) -> None:
    """Run the user's command for one side.

    Raises:
        ConfigError: it failed; with the end of what it printed.
    """
    log = guard.folder / f"setup-{name}.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(  # noqa: S602 - the user's own command, as they typed it
            command,
            shell=True,
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            with guard.group(process.pid):
                code = process.wait(_SETUP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            end_group(process)
    if code != 0:
        tail = log.read_text("utf-8", "replace")[-_TAIL:].strip()
        how = "ran longer than an hour" if code is None else f"ended with exit code {code}"
        msg = f"--setup {command!r} {how} for {name}; it said:\n{tail or '(nothing)'}"
        raise ConfigError(msg)


def selection(side: Side, root: Path, ids: Sequence[str]) -> tuple[str, ...]:
    """Test ids as arguments for pytest: relative to where it starts, not to its own root."""
    between = os.path.relpath(root, side.cwd)
    return tuple(ids) if between == "." else tuple(f"{between}{os.sep}{name}" for name in ids)
