"""One fresh pytest process that measures, and what came of it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from opbench.errors import ConfigError
from opbench.launch.noise import Noise, noise_between, noise_reading
from opbench.probes import cpu_busy_elsewhere, cpu_reading

__all__ = ["Group", "Launch", "LaunchResult", "end_group", "run_launch"]

Group = Callable[[int], contextlib.AbstractContextManager[Any]]

NO_NOISE = Noise()
_TAIL_BYTES = 16_384
_KILL_POLLS, _KILL_POLL_S = 200, 0.005


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start."""

    arguments: tuple[str, ...]
    """For pytest: test files, and its own or pytest-benchmark's flags."""
    cwd: Path | str
    environment: Mapping[str, str] | None = None
    """The whole environment of the process; None passes on this one's, but for the variables by
    which pytest-xdist marks its workers: a launch is none, whoever starts it."""
    timeout_s: float = 600.0
    """More than 0."""
    python: str = sys.executable
    """The interpreter, which decides the installed packages."""
    scratch: Path | str | None = None
    """Where its temporary folder is made; None means the system's place for them."""


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """What came of it."""

    exit_code: int
    """pytest's, or minus the number of the signal that ended it."""
    timed_out: bool
    document: dict[str, Any] | None
    """pytest-benchmark's JSON document, every round kept; None if it wrote none that reads."""
    seconds: float
    """From start to end of the process, wall clock."""
    stdout: str
    """The last 16 KiB."""
    stderr: str
    """The last 16 KiB."""
    busy_elsewhere: float | None
    """Share of all CPUs, 0 to 1, that went to other processes meanwhile; None if not known."""
    noise: Noise = NO_NOISE
    """What else went on meanwhile."""


def run_launch(launch: Launch, group: Group | None = None) -> LaunchResult:
    """Starts a fresh pytest that runs benchmarks only, and waits for it.

    It is driven through pytest-benchmark's own flags and nothing else, so that every revision of
    the measured project understands them: the instrument is not what is measured. Its storage
    points into a folder that is thrown away, so a launch leaves no saved runs of its own.

    The process leads a new group. When it ends, by itself or at the timeout, the whole group is
    killed: a test's forgotten server would disturb the next launch. Only a child that leaves the
    group on purpose (``setsid``) escapes.

    Args:
        launch: what to start.
        group: is given the number of the process group, and makes the context in which it runs.

    Raises:
        ConfigError: the folder or the interpreter is not there, or an argument, a variable or the
            timeout is one that no process can be given.
    """
    _check(launch)
    with tempfile.TemporaryDirectory(
        prefix="opbench-launch-", dir=launch.scratch, ignore_cleanup_errors=True
    ) as name:
        folder = Path(name).resolve()
        ended = _run(launch, folder, group)
        return LaunchResult(
            exit_code=ended.exit_code,
            timed_out=ended.timed_out,
            document=_document(folder / "run.json"),
            seconds=ended.seconds,
            stdout=_tail(folder / "stdout"),
            stderr=_tail(folder / "stderr"),
            busy_elsewhere=ended.busy_elsewhere,
            noise=ended.noise,
        )


def _check(launch: Launch) -> None:
    """Raises unless the process can be asked for at all."""
    if not Path(launch.cwd).is_dir():
        msg = f"cannot launch pytest in {launch.cwd}: no such folder; name one that exists"
        raise ConfigError(msg)
    if not isinstance(launch.timeout_s, int | float) or not launch.timeout_s > 0:
        msg = f"cannot launch pytest with timeout_s {launch.timeout_s!r}: give more than 0 seconds"
        raise ConfigError(msg)
    for argument in launch.arguments:
        if not isinstance(argument, str) or "\0" in argument:
            msg = f"cannot launch pytest with the argument {argument!r}: give text without NUL"
            raise ConfigError(msg)
    for name, value in (launch.environment or {}).items():
        texts = isinstance(name, str) and isinstance(value, str)
        if not texts or not name or "=" in name or "\0" in name + value:
            msg = (
                f"cannot launch pytest with the variable {name!r} set to {value!r}: give texts "
                "without NUL, and a name that is neither empty nor has an equals sign"
            )
            raise ConfigError(msg)


class _Ended(NamedTuple):
    """What is known when the process has ended, before anything is cleared away."""

    exit_code: int
    timed_out: bool
    seconds: float
    busy_elsewhere: float | None
    noise: Noise


def _run(launch: Launch, folder: Path, group: Group | None) -> _Ended:
    """The process from start to end.

    Its output goes to files. A pipe stays open as long as any grandchild holds it, so reading
    one to its end would wait for exactly the processes that must not be waited for.
    """
    command = [
        launch.python,
        "-m",
        "pytest",
        "--benchmark-only",
        f"--benchmark-json={folder / 'run.json'}",
        f"--benchmark-storage=file://{folder / 'storage'}",
        *launch.arguments,
    ]
    with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
        noise = noise_reading()
        before, start = cpu_reading(), time.perf_counter()
        try:
            process = subprocess.Popen(  # noqa: S603 - the caller's own project and interpreter
                command,
                cwd=launch.cwd,
                env=_environment(launch),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # the second: a NUL in the interpreter's path
            reason = (isinstance(error, OSError) and error.strerror) or error
            msg = f"cannot launch {launch.python}: {reason}; name a Python interpreter"
            raise ConfigError(msg) from error
        try:
            with group(process.pid) if group else contextlib.nullcontext():
                exit_code, timed_out = _wait(process, launch.timeout_s)
            # At once: killing the group may take a second, which is not the launch's.
            seconds = time.perf_counter() - start
            busy = cpu_busy_elsewhere(before, cpu_reading())
            around = noise_between(noise, noise_reading())
            return _Ended(exit_code, timed_out, seconds, busy, around)
        finally:
            end_group(process)


def end_group(process: subprocess.Popen[Any]) -> None:
    """Ends a process that leads a group, and what it left in the group."""
    # The leader first, and collected: as a zombie it would keep its group alive.
    process.kill()
    process.wait()
    _kill_group(process.pid)


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> tuple[int, bool]:
    """The exit code, and whether the time was up."""
    try:
        return process.wait(timeout_s), False
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait(), True


def _environment(launch: Launch) -> dict[str, str]:
    if launch.environment is not None:
        return dict(launch.environment)
    return {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_XDIST_")}


def _kill_group(group: int) -> None:
    """Kills what is left of a process group, and waits until it is gone.

    The wait has an end: where nobody collects the dead (a container without an init), they stay
    in the group, but use nothing.
    """
    # PermissionError: macOS says so of a group in which only zombies are left.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        for _ in range(_KILL_POLLS):
            os.killpg(group, signal.SIGKILL)
            time.sleep(_KILL_POLL_S)


def _document(path: Path) -> dict[str, Any] | None:
    """The JSON document, unless it is missing, cut off or something else."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) and "benchmarks" in document else None


def _tail(path: Path) -> str:
    with path.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - _TAIL_BYTES))
        return stream.read().decode("utf-8", errors="replace")
