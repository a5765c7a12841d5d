"""The continuous dump of a test: what its windows record is in a file while they are open.

A test that kills the process then leaves a trace. When a window closes its file stops growing, so
that nothing runs beside times that are taken afterwards, NumPy's among them; a further window of
the test grows in a file of its own, as the first one's shall not be lost to it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from opbench import profiler
from opbench.errors import TraceError, TraceWriteError
from opbench.plugin.settings import Settings

__all__ = ["GrowingTrace"]

ENDING = ".trace.json"

_GROWING: set[profiler.Stream] = set()


class GrowingTrace:
    """Lets the windows of one test grow, each in a file, until the whole trace is written.

    It listens to the recorder, which a drawn window opens at its first iteration only.

    Args:
        owner: of the test's windows.
        metadata: what the finished trace says of its origin.
        place: gives the finished trace's path, or None where none can be written.

    Attributes:
        notes: what could not be had, a sentence each.
    """

    def __init__(
        self, owner: str, metadata: Mapping[str, Any], place: Callable[[], Path | None]
    ) -> None:
        self.notes: list[str] = []
        self._owner = owner
        self._metadata = metadata
        self._place = place
        self._period_s = 0.0
        self._stream: profiler.Stream | None = None
        self._files: list[str] = []

    def drawn(self, settings: Settings) -> None:
        """A window will open; from then on it grows, if that was asked for."""
        if settings.continuous_dump:
            self._period_s = settings.dump_period
            profiler.RECORDER.add_listener(self)

    # as a listener of the recorder

    def opened(self, modes: profiler.Mode) -> None:  # noqa: ARG002 - a listener is told
        """Make the file, if it is the test's window that has opened."""
        path = self._place() if profiler.RECORDER.owner == self._owner else None
        if path is None:
            return
        if self._files:
            path = _of_window(len(self._files) + 1, path)
        self._stream = profiler.Stream(
            profiler.RECORDER, str(path), self._period_s, self._owner, self._metadata
        )
        _GROWING.add(self._stream)
        self._stream.start()

    def closed(self) -> None:
        """Nothing to do: `ended` follows, when the file has been told too."""

    def paused(self) -> None:
        """Nothing to do: the next period shows it."""

    def resumed(self) -> None:
        """Nothing to do: the next period shows it."""

    # the end

    def ended(self, trace: profiler.Trace | None) -> profiler.Trace | None:
        """The window is over: its whole trace, also of what only the file holds."""
        profiler.RECORDER.remove_listener(self)
        stream, self._stream = self._stream, None
        if stream is None:
            return trace
        try:
            if trace is not None and trace.spilled:
                stream.finish(trace, stream.path)
                trace = profiler.load(stream.path)
        except (TraceError, TraceWriteError) as error:
            self.notes.append(f"{trace.spilled if trace else 0} events are lost: {error}")
        finally:
            stream.end()
            _GROWING.discard(stream)
            self._files.append(stream.path)
        return trace

    def replaced_by(self, path: Path) -> None:
        """The whole trace is written; the files that grew hold nothing more.

        Those of further windows in a run of this test that did not come to its end are as old as
        the trace that was just replaced, and go too.
        """
        whole = path.resolve()
        for file in self._files:
            # A stream that could not make its file has its path as it was asked for.
            if Path(file).resolve() != whole:
                Path(file).unlink(missing_ok=True)
        self._files = []
        before, _, after = _of_window("*", path).name.partition("*")
        for left in path.parent.glob(f"{before}*{after}"):
            number = left.name.removeprefix(before).removesuffix(after)
            if number.isdecimal() and not profiler.being_written(left):
                left.unlink(missing_ok=True)


def _of_window(number: int | str, path: Path) -> Path:
    """Where a further window grows: beside the finished trace's path."""
    return path.with_name(f"{path.name.removesuffix(ENDING)}-window{number}{ENDING}")


def _leave_to_parent() -> None:
    for stream in _GROWING:
        stream.abandon()
    _GROWING.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
