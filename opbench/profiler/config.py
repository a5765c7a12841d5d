"""MXNet's configuration keys as one frozen, checked value."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from opbench.errors import ConfigError, nearest
from opbench.profiler.chrome import reason, temporary
from opbench.profiler.modes import Mode

__all__ = ["ProfilerConfig", "parse_config"]

MODE_KEYS = {
    "profile_all": Mode.ALL,
    "profile_symbolic": Mode.SYMBOLIC,
    "profile_imperative": Mode.IMPERATIVE,
    "profile_api": Mode.API,
    "profile_memory": Mode.MEMORY,
}
SHORT = {"profile_mem": "profile_memory"}
NOT_YET = {
    "continuous_dump": "call dump(finished=False) at the points that matter",
    "aggregate_stats": "operator_totals(trace) adds up a finished trace",
}
PROCESSES = ("server", "worker")
DEFAULT_PERIOD = 1.0
KEYS = (
    *MODE_KEYS,
    *SHORT,
    "filename",
    "continuous_dump",
    "dump_period",
    "aggregate_stats",
    "profile_process",
)


class ProfilerConfig(NamedTuple):
    """What `set_config` sets; the defaults hold while it was never called.

    Attributes:
        modes: what is recorded; MXNet's 13 (symbolic, api, memory) by default.
        filename: where `dump` writes; absolute once it was checked.
        dump_period: seconds between two continuous dumps; checked and kept, without effect yet.
        profile_process: ``worker``, or ``server``, which is refused when the recorder starts.
    """

    modes: Mode = Mode.SYMBOLIC | Mode.API | Mode.MEMORY
    filename: str = "profile.json"
    dump_period: float = DEFAULT_PERIOD
    profile_process: str = "worker"

    def checked(self) -> ProfilerConfig:
        """The same with an absolute filename in a folder that a file can be made in.

        The file itself is neither made nor changed; a temporary one beside it is made and removed,
        since the permission bits do not tell of read-only disks or full quotas.

        Raises:
            ConfigError: the folder is missing or closed, or the name is a folder's.
        """
        target = Path(self.filename).absolute()
        try:
            if target.is_dir():
                raise ConfigError(f"filename: {target} is a folder; name a file in it")
            target.lstat()
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            if isinstance(error, ConfigError):
                raise
            raise _unusable(target, error) from error
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
        ConfigError: an unknown key, a key given twice, a value of the wrong kind, a feature that is
            not there yet, or a file that could not be written.
    """
    given = _named(keys)
    modes = {key: _boolean(key, given[key]) for key in MODE_KEYS if key in given}
    for key, instead in NOT_YET.items():
        if key in given and _boolean(key, given[key]):
            raise ConfigError(f"{key} is not there yet in opbench; leave it out: {instead}")
    wanted = Mode(0)
    for key, on in modes.items():
        if on:
            wanted |= MODE_KEYS[key]
    return ProfilerConfig(
        modes=wanted if modes else Mode.ALL,
        filename=_filename(given.get("filename", "profile.json")),
        dump_period=_period(given.get("dump_period", DEFAULT_PERIOD)),
        profile_process=_process(given.get("profile_process", "worker")),
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
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(f"dump_period must be a number of seconds, not {value!r}")
    if not (math.isfinite(value) and value > 0):
        raise ConfigError(f"dump_period must be more than 0 seconds, not {value!r}")
    return float(value)


def _process(value: Any) -> str:
    if value not in PROCESSES:
        raise ConfigError(f"unknown profile_process {value!r}{nearest(str(value), PROCESSES)}")
    return str(value)


def _unusable(target: Path, error: Exception) -> ConfigError:
    return ConfigError(
        f"filename: no trace could be written to {target}: {reason(error)}; "
        "choose a folder that exists and can be written"
    )
