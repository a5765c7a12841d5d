"""MXNet's old names. Each warns, and does what the new one does."""

from __future__ import annotations

import os
import warnings

from opbench.errors import ConfigError
from opbench.profiler import doors

__all__ = ["dump_profile", "profiler_set_config", "profiler_set_state"]

MODE_KEYS = {"symbolic": "profile_symbolic", "all": "profile_all"}


def profiler_set_config(
    mode: str = "symbolic", filename: str | os.PathLike[str] = "profile.json"
) -> None:
    """Deprecated: `set_config` with ``profile_symbolic`` or ``profile_all``.

    Args:
        mode: ``symbolic`` or ``all``.
        filename: where `dump` writes.

    Raises:
        ConfigError: another mode, or what `set_config` refuses.
        StateError: a window is open.
    """
    _warn("profiler_set_config(mode, filename)", "set_config(profile_all=True, filename=...)")
    if not isinstance(mode, str) or mode not in MODE_KEYS:
        raise ConfigError(
            f"profiler_set_config knows the modes 'symbolic' and 'all', not {mode!r}; "
            "set_config has a key for each of the four"
        )
    doors.set_config(**{MODE_KEYS[mode]: True}, filename=filename)


def profiler_set_state(state: str = "stop") -> None:
    """Deprecated: `set_state`, whose errors it raises."""
    _warn("profiler_set_state(state)", "set_state(state)")
    doors.set_state(state)


def dump_profile() -> None:
    """Deprecated: `dump`, whose errors it raises."""
    _warn("dump_profile()", "dump()")
    doors.dump()


def _warn(old: str, new: str) -> None:
    warnings.warn(
        f"opbench.profiler.{old} is deprecated; use opbench.profiler.{new}",
        DeprecationWarning,
        stacklevel=3,
    )
