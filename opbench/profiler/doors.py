"""MXNet's calls as thin doors over the process's recorder."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import Any

from opbench.errors import ConfigError, StateError, nearest
from opbench.profiler.config import ProfilerConfig, parse_config, require_worker
from opbench.profiler.continuous import ContinuousDump
from opbench.profiler.events import Trace
from opbench.profiler.figures import Figures
from opbench.profiler.processes import withdraw
from opbench.profiler.profiler import RECORDER, Profiler
from opbench.profiler.rendering import FORMATS, render
from opbench.profiler.rows import AggregateStat, rows_of, sort_rows
from opbench.profiler.tally import Tally

__all__ = [
    "WindowStore",
    "dump",
    "dumps",
    "pause",
    "resume",
    "set_config",
    "set_state",
    "state",
    "statistics",
]

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
        self._continuous = ContinuousDump(recorder, OWNER)
        self.detach()

    def detach(self) -> None:
        """Forget everything: in a forked child the windows are the parent's to write."""
        # Made anew: in a child it may be held by a thread that only the parent has. Re-entrant, for
        # the handler of a signal that comes during a dump.
        self._lock = threading.RLock()
        self._continuous.detach()
        self._config: ProfilerConfig | None = None
        self._windows: list[Trace] = []
        self._figures = Figures()
        self._finished = False
        self._recorded = False  # whether there was any window at all
        self._written = True  # whether a file holds all the windows
        self._automatic = False  # whether what records is autostart's window, which gives way
        self._gave_way = 0

    def autostart(self, config: ProfilerConfig) -> None:
        """Open a window that nobody's code asked for: it gives way to all others.

        Raises:
            ConfigError: a configuration that cannot be run.
            StateError: a window is open already.
        """
        with self._lock:
            self._config = config
            self._run()
            self._automatic = True

    def give_way(self, recorder: Profiler) -> None:
        """Close autostart's window until as many calls of `go_on`; any other is left alone."""
        with self._lock:
            if self._automatic and recorder is self._recorder:
                if self._gave_way == 0 and self._ours():
                    self._stop()
                self._gave_way += 1

    def go_on(self, recorder: Profiler) -> None:
        """Open autostart's window again, unless somebody else has one by now."""
        with self._lock:
            if not self._gave_way or recorder is not self._recorder:
                return
            self._gave_way -= 1
            if not self._gave_way and self._automatic and recorder.state == "stop":
                self._run()

    def _take_over(self) -> None:
        """The program drives the profiler itself: autostart's window ends, its file is written."""
        self._automatic = False
        if not self._written:
            self.dump()

    def set_config(self, **keys: Any) -> None:
        """Replace the whole configuration; see `parse_config` for the keys and the errors."""
        with self._lock:
            if self._recorder.state == "run" and not (self._automatic and self._ours()):
                raise StateError(
                    "cannot set_config: the profiler's state is 'run', its owner "
                    f"{self._recorder.owner!r}; stop it first"
                )
            config = parse_config(keys)
            if self._automatic:
                self._take_over()
            self._config = config

    def set_state(self, wanted: str = "stop") -> None:
        """Open or close a window."""
        if not isinstance(wanted, str):
            raise ConfigError(f"the state must be 'run' or 'stop', not {wanted!r}")
        if wanted not in ("run", "stop"):
            raise ConfigError(f"unknown state {wanted!r}{nearest(wanted, ('run', 'stop'))}")
        with self._lock:
            if wanted == "stop":
                self._stop()
            elif not (self._automatic and self._ours()):
                self._run()
            self._automatic = False  # what records from now on is the program's own window

    def _run(self) -> None:
        config = self._config or ProfilerConfig().checked()
        require_worker(config.profile_process)
        if self._recorder.state == "stop":  # else run() says whose window is open
            self._recorder.python_memory = config.profile_memory_python
        self._recorder.run(config.modes, OWNER)
        self._config = config
        if self._finished:
            self._figures.events_let_go(keep=config.aggregate_stats)
            self._windows = []
            self._finished = False
        self._recorded = True
        self._written = False
        self._continuous.window_opened(config)
        if not self._exit_watched:
            self._exit_watched = True
            atexit.register(self.write_at_exit)

    def _stop(self, *, wait: bool = True) -> None:
        trace = self._recorder.stop(OWNER, wait=wait)
        self._recorder.python_memory = False
        self._windows.append(trace)
        self._continuous.window_closed()
        self._figures.window_closed(trace)

    def pause(self) -> None:
        """Suspend recording in a window that the doors opened."""
        with self._lock:
            self._require_ours("pause")
            self._recorder.pause()

    def resume(self) -> None:
        """Record again in a window that the doors opened."""
        with self._lock:
            self._require_ours("resume")
            self._recorder.resume()

    def dump(self, *, finished: bool = True) -> None:
        """Write all windows since the last finished dump as one complete file."""
        with self._lock:
            if not finished and self._continuous.update():
                return
            if finished and self._ours():
                self._automatic = False
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
            self._continuous.write(windows, config.filename)
            # A window that is still open will hold more than the file does, and the handler of a
            # signal may have recorded one meanwhile.
            self._written = not self._ours() and len(self._windows) == closed
            self._finished = finished and self._written

    def statistics(self, *, reset: bool = False) -> Tally:
        """The figures of all windows since the last reset, the open one included; no file is used.

        Raises:
            StateError: no window was recorded.
        """
        with self._lock:
            open_window = self._recorder.snapshot(OWNER) if self._ours() else None
            if open_window is None and not self._recorded:
                raise StateError(
                    "no statistics: no window was recorded; set_state('run') opens one"
                )
            tally = self._figures.so_far(open_window)
            if reset:
                self._figures.reset(open_window)
            return tally

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
    WINDOWS.detach()
    withdraw()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_detach_child)


def set_config(**keys: Any) -> None:
    """Set what is recorded and where it goes; each call replaces the whole configuration.

    Keys in snake or kebab spelling (``**{"profile-symbolic": True}``): `profile_all`,
    `profile_symbolic`, `profile_imperative`, `profile_api`, `profile_memory` or `profile_mem`,
    `filename`, `continuous_dump`, `dump_period`, `aggregate_stats`, `profile_process`,
    `profile_memory_python`. With no mode key all four modes are on; with any, exactly those that
    are true.

    Raises:
        ConfigError: an unknown key, a wrong value, a folder that cannot be written.
        StateError: a window is open.
    """
    WINDOWS.set_config(**keys)


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """Open a window with ``"run"``, close it with ``"stop"``.

    ``profile_process`` is MXNet's word here and in the calls below: whose profiler is meant. Only
    ``worker``, this process's, can be.

    Raises:
        ConfigError: any other word, or a configuration that cannot be run.
        StateError: run while running, stop while stopped, or somebody else's window is open.
    """
    require_worker(profile_process)
    WINDOWS.set_state(state)


def pause(profile_process: str = "worker") -> None:
    """Suspend recording; StateError unless the doors' window is open and recording."""
    require_worker(profile_process)
    WINDOWS.pause()


def resume(profile_process: str = "worker") -> None:
    """Record again after `pause`; StateError unless the doors' window is paused."""
    require_worker(profile_process)
    WINDOWS.resume()


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Write all windows since the last finished dump, as one complete file.

    An open window is closed first; with ``finished=False`` it stays open, and the file holds what
    it has recorded so far. Repeated, it writes the same again. What was not dumped is written at
    exit, also after an uncaught exception.

    Raises:
        ConfigError: another ``profile_process``.
        StateError: no window was recorded.
        TraceWriteError: the file could not be written; the windows are kept for another try.
    """
    require_worker(profile_process)
    WINDOWS.dump(finished=finished)


def dumps(
    reset: bool = False,
    format: str = "table",  # noqa: A002 - MXNet's word
    sort_by: str = "total",
    ascending: bool = False,
    by: str = "operator",
) -> str:
    """The statistics of all windows since the last reset, as text; no file is touched.

    A window that is open is included as far as it has come, and stays open. The figures of windows
    whose events a finished `dump` has let go of are kept with ``aggregate_stats=True`` only.

    Args:
        reset: begin anew afterwards: what was counted now is counted in no later call.
        format: ``table``, or ``json`` with all digits.
        sort_by: the order of the rows in each category: ``total``, ``count``, ``avg``, ``min``,
            ``max``, ``median``, ``p90``, ``p99``, ``std``, ``share``, ``self`` or ``name``.
        ascending: the smallest first.
        by: one row per ``operator``, per operator and ``shape``, or per operator and ``thread``.

    Raises:
        ConfigError: an unknown word; nothing was reset.
        StateError: no window was recorded.
    """
    if format not in FORMATS:
        raise ConfigError(f"unknown format={format!r}{nearest(str(format), FORMATS)}")
    rows, tally = _rows(by, sort_by, ascending=ascending, reset=reset)
    return render(rows, tally, format)


def statistics(
    reset: bool = False, sort_by: str = "total", ascending: bool = False, by: str = "operator"
) -> list[AggregateStat]:
    """What `dumps` prints, as values: times, then counters; arguments and errors are the same."""
    return _rows(by, sort_by, ascending=ascending, reset=reset)[0]


def _rows(
    by: str, sort_by: str, *, ascending: bool, reset: bool
) -> tuple[list[AggregateStat], Tally]:
    # With nothing in hand first, so that a wrong word is refused before anything is reset.
    sort_rows(rows_of(Tally(), by), sort_by, ascending=ascending)
    tally = WINDOWS.statistics(reset=reset)
    return sort_rows(rows_of(tally, by), sort_by, ascending=ascending), tally


def state() -> str:
    """``"run"`` while any window is open in this process, whoever owns it, else ``"stop"``."""
    return RECORDER.state
