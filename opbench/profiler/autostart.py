"""Recording from the moment opbench is loaded, by environment variables alone.

``OPBENCH_PROFILER_AUTOSTART=1`` opens a window, ``OPBENCH_PROFILER_MODE`` says what it records, and
the trace is written to ``profile.json`` in the working directory when the program ends.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opbench.errors import ConfigError, OpbenchError, nearest
from opbench.profiler.config import ProfilerConfig
from opbench.profiler.doors import WINDOWS, WindowStore
from opbench.profiler.modes import Mode, parse_modes
from opbench.profiler.processes import inherited, ranked
from opbench.profiler.profiler import RECORDER

__all__ = ["autostart", "autostart_suspended"]

AUTOSTART = "OPBENCH_PROFILER_AUTOSTART"
MODE = "OPBENCH_PROFILER_MODE"
SWITCH = {
    "1": True,
    "true": True,
    "on": True,
    "yes": True,
    "0": False,
    "false": False,
    "off": False,
    "no": False,
    "": False,
}


def autostart(environment: Mapping[str, str], windows: WindowStore = WINDOWS) -> bool:
    """Open the window that the environment asks for; whether there is one now.

    A mistake in a variable, or a working directory that takes no file, is said on standard error in
    one line, and nothing is recorded: whatever loads opbench must still load.
    """
    try:
        config = inherited(environment)
        if config is None and not _asked(environment):
            return False
        windows.autostart(config or _config(environment))
    except OpbenchError as error:
        if sys.stderr is not None:
            sys.stderr.write(f"opbench: the profiler was not started: {error}\n")
        return False
    return True


def _asked(environment: Mapping[str, str]) -> bool:
    word = environment.get(AUTOSTART, "").strip().lower()
    if word not in SWITCH:
        raise ConfigError(
            f"{AUTOSTART}={word!r} in the environment{nearest(word, filter(None, SWITCH))}"
        )
    return SWITCH[word]


def _config(environment: Mapping[str, str]) -> ProfilerConfig:
    # All modes by default: MXNet's default, 13, leaves out imperative operators, and users who
    # started it by the variable alone found none in their trace.
    given = environment.get(MODE, "").strip()
    modes = parse_modes(given, f"{MODE} in the environment") if given else Mode.ALL
    return ranked(ProfilerConfig(modes=modes), environment).checked()


@contextmanager
def autostart_suspended() -> Iterator[None]:
    """No window of autostart's inside this block: what is timed in it is not recorded."""
    WINDOWS.give_way(RECORDER)
    try:
        yield
    finally:
        WINDOWS.go_on(RECORDER)
