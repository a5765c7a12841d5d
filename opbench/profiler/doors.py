"""MXNet's calls as thin doors over the process's recorder."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import Any

from opbench.errors import ConfigError, StateError, nearest
from opbench.profiler.chrome import write
from opbench.profiler.config import ProfilerConfig, parse_config
from opbench.profiler.events import Trace, merge
from opbench.profiler.profiler import RECORDER, Profiler

__all__ = ["WindowStore", "dump", "pause", "resume", "set_config", "set_state", "state"]

OWNER = "set_state"


class WindowStore:
    """The windows recorded through the doors, and where they go.

    They are kept until the first window after a finished `dump`, so that a `dump` can be repeated.
    Its methods may be called from any thread: each waits for the others, so that no window opens or
    closes while a file is being written.
    """

    def __init__(self, recorder: Profiler) -> None:
        self._recorder = recorder
        self._exit_watched = False
        self.detach()

    def detach(self) -> None:
        """Forget everything: in a forked child the windows are the parent's to write."""
        # Made anew: in a child it may be held by a thread that only the parent has. Re-entrant, for
        # the handler of a signal that comes during a dump.
        self._lock = threading.RLock()
        self._config: ProfilerConfig | None = None
        self._windows: list[Trace] = []
        self._finished = False
        self._written = True  # whether a file holds all the windows

    def set_config(self, **keys: Any) -> None:
        """Replace the whole configuration; see `parse_config` for the keys and the errors."""
        with self._lock:
            if self._recorder.state == "run":
                raise StateError(
                    "cannot set_config: the profiler's state is 'run', its owner "
                    f"{self._recorder.owner!r}; stop it first"
                )
            self._config = parse_config(keys)

    def set_state(self, wanted: str = "stop") -> None:
        """Open or close a window."""
        if not isinstance(wanted, str):
            raise ConfigError(f"the state must be 'run' or 'stop', not {wanted!r}")
        if wanted not in ("run", "stop"):
            raise ConfigError(f"unknown state {wanted!r}{nearest(wanted, ('run', 'stop'))}")
        with self._lock:
            if wanted == "run":
                self._run()
            else:
                self._stop()

    def _run(self) -> None:
        config = self._config or ProfilerConfig().checked()
        if config.profile_process == "server":
            raise ConfigError(
                "profile_process='server' needs a distributed engine, which opbench does not have "
                "yet; set profile_process='worker'"
            )
        self._recorder.run(config.modes, OWNER)
        self._config = config
        if self._finished:
            self._windows = []
            self._finished = False
        self._written = False
        if not self._exit_watched:
            self._exit_watched = True
            atexit.register(self.write_at_exit)

    def _stop(self, *, wait: bool = True) -> None:
        self._windows.append(self._recorder.stop(OWNER, wait=wait))

    def pause(self) -> None:
        """Suspend recording in a window that the doors opened."""
        self._require_ours("pause")
        self._recorder.pause()

    def resume(self) -> None:
        """Record again in a window that the doors opened."""
        self._require_ours("resume")
        self._recorder.resume()

    def dump(self, *, finished: bool = True) -> None:
        """Write all windows since the last finished dump as one complete file."""
        with self._lock:
            if finished and self._ours():
                self._stop()
            windows = list(self._windows)
            closed = len(windows)
            if self._ours():
                windows.append(self._recorder.snapshot(OWNER))
            if not windows:
                raise StateError(
                    "nothing to dump: no window was recorded; set_state('run') opens one"
                )
            config = self._config or ProfilerConfig()
            write(merge(windows), config.filename)
            # A window that is still open will hold more than the file does, and the handler of a
            # signal may have recorded one meanwhile.
            self._written = not self._ours() and len(self._windows) == closed
            self._finished = finished and self._written

    def write_at_exit(self) -> None:
        """Write what no dump has written; at this point an error can only be told, not raised."""
        if self._written:
            return
        try:
            self._close_at_exit()
            self.dump()
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody can catch it any more
            _tell(f"the trace is lost: {error or type(error).__name__}")

    def _close_at_exit(self) -> None:
        """Close an open window, if need be without the work that is pending."""
        with self._lock:
            if not self._ours():
                return
            try:
                self._stop()
            except Exception as error:  # noqa: BLE001 - the runtime may be gone by now
                _tell(f"pending work is not in the trace: {error or type(error).__name__}")
                self._stop(wait=False)

    def _ours(self) -> bool:
        return self._recorder.state == "run" and self._recorder.owner == OWNER

    def _require_ours(self, verb: str) -> None:
        if self._recorder.state == "run" and not self._ours():
            raise StateError(
                f"cannot {verb}: the profiler's state is 'run', its owner "
                f"{self._recorder.owner!r}; only its owner can {verb} it"
            )


def _tell(sentence: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"opbench: {sentence}\n")


WINDOWS = WindowStore(RECORDER)


def _detach_child() -> None:
    RECORDER.detach()
    WINDOWS.detach()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_detach_child)


def set_config(**keys: Any) -> None:
    """Set what is recorded and where it goes; each call replaces the whole configuration.

    Keys in snake or kebab spelling (``**{"profile-symbolic": True}``): `profile_all`,
    `profile_symbolic`, `profile_imperative`, `profile_api`, `profile_memory` or `profile_mem`,
    `filename`, `continuous_dump`, `dump_period`, `aggregate_stats`, `profile_process`. With no mode
    key all four modes are on; with any, exactly those that are true.

    Raises:
        ConfigError: an unknown key, a wrong value, a folder that cannot be written.
        StateError: a window is open.
    """
    WINDOWS.set_config(**keys)


def set_state(state: str = "stop") -> None:
    """Open a window with ``"run"``, close it with ``"stop"``.

    Raises:
        ConfigError: any other word, or a configuration that cannot be run.
        StateError: run while running, stop while stopped, or somebody else's window is open.
    """
    WINDOWS.set_state(state)


def pause() -> None:
    """Suspend recording; StateError unless the doors' window is open and recording."""
    WINDOWS.pause()


def resume() -> None:
    """Record again after `pause`; StateError unless the doors' window is paused."""
    WINDOWS.resume()


def dump(finished: bool = True) -> None:
    """Write all windows since the last finished dump, as one complete file.

    An open window is closed first; with ``finished=False`` it stays open, and the file holds what
    it has recorded so far. Repeated, it writes the same again. What was not dumped is written at
    exit, also after an uncaught exception.

    Raises:
        StateError: no window was recorded.
        TraceWriteError: the file could not be written; the windows are kept for another try.
    """
    WINDOWS.dump(finished=finished)


def state() -> str:
    """``"run"`` while any window is open in this process, whoever owns it, else ``"stop"``."""
    return RECORDER.state
