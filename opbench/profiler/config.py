"""MXNet's configuration keys as one frozen, checked value."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from opbench.errors import ConfigError, nearest
from opbench.profiler.chrome import reason, temporary
from opbench.profiler.modes import Mode

__all__ = ["ProfilerConfig", "parse_config", "require_worker"]

MODE_KEYS = {
    "profile_all": Mode.ALL,
    "profile_symbolic": Mode.SYMBOLIC,
    "profile_imperative": Mode.IMPERATIVE,
    "profile_api": Mode.API,
    "profile_memory": Mode.MEMORY,
}
SHORT = {"profile_mem": "profile_memory"}
PROCESSES = ("server", "worker")
DEFAULT_PERIOD = 1.0
LONGEST_PERIOD = 1e9  # seconds, some 30 years
STREAMS = ("/dev/fd/", "/dev/std", "/proc/")  # through them a file that somebody writes into
KEYS = (
    *MODE_KEYS,
    *SHORT,
    "filename",
    "continuous_dump",
    "dump_period",
    "aggregate_stats",
    "profile_memory_python",
    "profile_process",
)


class ProfilerConfig(NamedTuple):
    """What `set_config` sets; the defaults hold while it was never called.

    Attributes:
        modes: what is recorded; MXNet's 13 (symbolic, api, memory) by default.
        filename: where `dump` writes; absolute once it was checked.
        profile_process: ``worker``, or ``server``, which is refused when the recorder starts.
        aggregate_stats: whether statistics outlive the events that a finished dump lets go of.
        continuous_dump: whether the file grows while a window is open.
        dump_period: seconds from an event to its line in the growing file, at most.
        profile_memory_python: whether mode memory also counts what Python, NumPy and compiled code
            allocate.
    """

    modes: Mode = Mode.SYMBOLIC | Mode.API | Mode.MEMORY
    filename: str = "profile.json"
    profile_process: str = "worker"
    aggregate_stats: bool = False
    continuous_dump: bool = False
    dump_period: float = DEFAULT_PERIOD
    profile_memory_python: bool = False

    def checked(self) -> ProfilerConfig:
        """The same with an absolute filename in a folder that a file can be made in.

        The file itself is neither made nor changed; a temporary one beside it is made and removed,
        since the permission bits do not tell of read-only disks or full quotas.

        Raises:
            ConfigError: the folder is missing or closed, or the name is that of a folder, of a
                device or of a stream.
        """
        target = Path(self.filename).absolute()
        try:
            kind = target.stat().st_mode
        except FileNotFoundError:
            kind = stat.S_IFREG
        except (OSError, ValueError) as error:
            raise _unusable(target, error) from error
        if stat.S_ISDIR(kind) or self.filename.endswith(os.sep):
            raise ConfigError(f"filename: {target} is a folder; name a file in it")
        if not stat.S_ISREG(kind) or str(target).startswith(STREAMS):
            raise ConfigError(f"filename: {target} is no regular file; choose another name")
        try:
            handle, probe = temporary(os.path.realpath(target))
        except OSError as error:
            raise _unusable(target, error) from error
        os.close(handle)
        Path(probe).unlink()
        return self._replace(filename=str(target))


def parse_config(keys: Mapping[str, Any]) -> ProfilerConfig:
    """Check the keys of one `set_config` call, in snake or kebab spelling.

    With no mode key all four modes are on; with any, exactly those that are true.

    Raises:
        ConfigError: an unknown key, a key given twice, a value of the wrong kind, or a file
            that could not be written.
    """
    given = _named(keys)
    period = _period(given.get("dump_period", DEFAULT_PERIOD))
    modes = {key: _boolean(key, given[key]) for key in MODE_KEYS if key in given}
    wanted = Mode(0)
    for key, on in modes.items():
        if on:
            wanted |= MODE_KEYS[key]
    wanted = wanted if modes else Mode.ALL
    python = _boolean("profile_memory_python", given.get("profile_memory_python", False))
    if python and not wanted & Mode.MEMORY:
        raise ConfigError(
            "profile_memory_python=True counts in mode memory, which is off; "
            "set profile_memory=True too"
        )
    return ProfilerConfig(
        modes=wanted,
        filename=_filename(given.get("filename", "profile.json")),
        profile_process=_process(given.get("profile_process", "worker")),
        continuous_dump=_boolean("continuous_dump", given.get("continuous_dump", False)),
        dump_period=period,
        aggregate_stats=_boolean("aggregate_stats", given.get("aggregate_stats", False)),
        profile_memory_python=python,
    ).checked()


def _named(keys: Mapping[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for spelled, value in keys.items():
        key = spelled.replace("-", "_")
        if key not in KEYS:
            raise ConfigError(f"unknown key {spelled!r}{nearest(key, KEYS)}")
        key = SHORT.get(key, key)
        if key in given:
            raise ConfigError(f"key {key!r} is given twice, the second time as {spelled!r}")
        given[key] = value
    return given


def _boolean(key: str, value: Any) -> bool:
    if value is True or value is False:
        return value
    if type(value) is int and value in (0, 1):  # as MXNet's own examples write it
        return bool(value)
    raise ConfigError(f"{key} must be True or False, not {value!r}")


def _filename(value: Any) -> str:
    try:
        name = os.fspath(value)
    except TypeError:
        name = None
    if not isinstance(name, str) or not name:
        raise ConfigError(f"filename must be the path of a file, not {value!r}")
    return name


def _period(value: Any) -> float:
    """Seconds between two continuous dumps."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(f"dump_period must be a number of seconds, not {value!r}")
    if not 0 < value < LONGEST_PERIOD:
        told = "that much" if value >= LONGEST_PERIOD else repr(value)
        raise ConfigError(f"dump_period must be more than 0 seconds and under 1e9, not {told}")
    return float(value)


def _process(value: Any) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"profile_process must be 'worker' or 'server', not {value!r}")
    if value not in PROCESSES:
        raise ConfigError(f"unknown profile_process {value!r}{nearest(value, PROCESSES)}")
    return value


def require_worker(profile_process: Any) -> None:
    """Require that this process's profiler is meant.

    Raises:
        ConfigError: a server's, or another word.
    """
    if _process(profile_process) == "server":
        raise ConfigError(
            "profile_process='server' needs a distributed engine, which opbench does not have "
            "yet; set profile_process='worker'"
        )


def _unusable(target: Path, error: Exception) -> ConfigError:
    return ConfigError(
        f"filename: no trace could be written to {target}: {reason(error)}; "
        "choose a folder that exists and can be written, and a name that it takes"
    )
