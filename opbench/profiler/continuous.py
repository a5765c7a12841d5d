"""What the doors need of a continuous dump: one file for the windows of one session."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from opbench.errors import TraceWriteError
from opbench.profiler.chrome import write, write_text
from opbench.profiler.config import ProfilerConfig
from opbench.profiler.events import Trace, merge
from opbench.profiler.processes import announce, rank, withdraw
from opbench.profiler.profiler import RECORDER, Profiler
from opbench.profiler.stream import Stream

__all__ = ["ContinuousDump"]


class ContinuousDump:
    """Writes windows to their file, whether it has grown with them or not."""

    def __init__(self, recorder: Profiler, owner: str) -> None:
        self._recorder = recorder
        self._owner = owner
        self._stream: Stream | None = None
        self._asked = ""  # the name that the stream was to have
        self._complete = ""  # a finished file with events that memory does not hold any more

    def window_opened(self, config: ProfilerConfig) -> None:
        """Let the configured file grow from now on, or let none grow; tell child processes."""
        if self._recorder is RECORDER:
            announce(config)
        if self._stream is not None and self._asked != config.filename:
            self._stream.end()
            self._stream = None
        if config.continuous_dump and self._stream is None:
            self._asked = config.filename
            self._stream = Stream(
                self._recorder,
                config.filename,
                config.dump_period,
                self._owner,
                {"rank": rank(os.environ)} if rank(os.environ) else {},
            )
            self._stream.start()

    def window_closed(self) -> None:
        """Processes that are started from now on are none of the window's."""
        if self._recorder is RECORDER:
            withdraw()

    def update(self) -> bool:
        """Bring the growing file up to date; whether there is one.

        Raises:
            TraceWriteError: it could not be written.
        """
        if self._stream is None:
            return False
        problem = self._stream.flush()
        if problem:
            raise TraceWriteError(problem)
        return True

    def write(self, windows: Sequence[Trace], filename: str) -> None:
        """Write the windows; a growing file is finished with them.

        Args:
            windows: all of the session.
            filename: the configured one.

        Raises:
            TraceWriteError: the file could not be written.
        """
        trace = merge(windows)
        stream = self._stream
        if stream is None:
            self._write_again(trace, filename)
        else:
            path = stream.path if filename == self._asked else filename
            stream.finish(trace, path)
            self._complete = path if trace.spilled else ""
            self._stream = None

    def _write_again(self, trace: Trace, filename: str) -> None:
        if not (trace.spilled and self._complete):
            write(trace, filename)
        elif Path(filename) != Path(self._complete):
            with Path(self._complete).open(encoding="ascii") as file:
                write_text(iter(lambda: file.read(1 << 20), ""), filename)

    def detach(self) -> None:
        """Let go of the file in a forked child: it is the parent's."""
        if self._stream is not None:
            self._stream.abandon()
        self._stream = None
