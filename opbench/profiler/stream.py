"""Continuous dump: the windows of a recorder go into a file while they are open.

The file can be read at every moment, also after the process was killed; what it holds is at most
one period old, and shows what was open. `finish` puts the complete trace in its place.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from opbench.profiler.chrome import reason, write, write_text
from opbench.profiler.clock import ClockAnchor
from opbench.profiler.emit import Mark
from opbench.profiler.events import Trace, TraceEvent
from opbench.profiler.lines import (
    FACTS,
    OWN,
    EventLines,
    begin_line,
    head_lines,
    other_data,
    process_line,
    thread_line,
)
from opbench.profiler.modes import Mode
from opbench.profiler.profiler import PROCESS_NAME, Profiler, Unsent
from opbench.profiler.raw import build_events
from opbench.profiler.streamfile import StreamFile

__all__ = ["Stream"]

BATCH = 4096
# How often the buffer is looked at: a full one is emptied before its time.
LOOK_S = 0.25
THREAD = "opbench continuous dump"
# Told to end, the thread has nothing left to do but wake up. Only where the caller is a signal
# handler that came while its thread held a lock of the recorder can it not do so, and then waiting
# for ever would be a deadlock.
LONGEST_WAIT_S = 5.0


class Stream:
    """Writes what a recorder's windows of one owner hold, each period and when one closes.

    What cannot be written stays with the recorder, whose buffer counts what it has no room for; the
    reason is said once. Its methods may be called from any thread and from signal handlers.
    """

    def __init__(
        self,
        recorder: Profiler,
        path: str,
        period_s: float,
        owner: str,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Nothing is written before `start`.

        Args:
            recorder: whose windows; the first one must be open.
            path: of the file, absolute.
            period_s: the most seconds between an event and its line.
            owner: of the windows; others' are left alone.
            metadata: facts for the file's reader, such as the test id; JSON values.
        """
        self.path = path
        self._recorder = recorder
        self._period_s = period_s
        self._owner = owner
        self._metadata = dict(metadata or {})
        self._lock = threading.RLock()  # re-entrant for signal handlers, which find it busy
        self._depth = 0  # how many frames of the thread that holds the lock hold it
        self._busy = False
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._file: StreamFile | None = None
        self._lines = EventLines(0)
        self._origin = 0
        self._names: set[tuple[int, int, str]] = set()
        self._closed: list[Unsent] = []  # the windows that are over, without their events
        self._written = 0
        self._lost = 0
        self._complained = False

    def start(self) -> None:
        """Make the file and begin to fill it."""
        self.flush()
        self._recorder.add_listener(self)
        self._thread = threading.Thread(target=self._keep, name=THREAD, daemon=True)
        self._thread.start()

    def flush(self) -> str:
        """Write everything that was recorded until now.

        In a signal handler that came into the middle of a flush of its thread it does nothing: what
        that flush does not write is in the file within the period.

        Returns:
            Why it could not be written; empty when all is in the file.
        """
        with self._held():
            if self._busy:
                return ""
            self._busy = True
            try:
                self._flush()
            except Exception as error:  # noqa: BLE001 - whatever it is, the run goes on
                # A signal handler may have finished the file in the middle of this.
                return "" if self._ended.is_set() else self._complain(error)
            finally:
                self._busy = False
        return ""

    def finish(self, trace: Trace, path: str) -> None:
        """Write the complete trace, as a rule in the place of the growing file, and end.

        Args:
            trace: the windows, as the recorder gave them.
            path: where to.

        Raises:
            TraceWriteError: the file could not be written; the stream goes on.
        """
        with self._held():
            trace = trace.with_metadata({**self._metadata, **trace.metadata})
            busy, self._busy = self._busy, True
            try:
                if trace.spilled and self._file is not None:
                    write_text(self._rewritten(trace, self._file), path)
                else:
                    write(trace, path)
            finally:
                self._busy = busy
            self.end()

    def end(self) -> None:
        """Write no more; the file stays as it is. Harmless the second time.

        When it returns the writing thread is gone, so that nothing of it runs beside what is timed
        next. In a signal handler that came into the middle of a flush or `finish`, which holds what
        the thread waits for, it is gone when those return.
        """
        with self._held():
            self._recorder.remove_listener(self)
            self._ended.set()
            if self._file is not None:
                self._file.close()
            self._file = None

    def abandon(self) -> None:
        """In a forked child: the file is the parent's, and so may be the locks; the thread is."""
        self._lock, self._depth = threading.RLock(), 0
        self._ended = threading.Event()
        self._thread = None
        self.end()

    # as a listener of the recorder

    def opened(self, modes: Mode) -> None:
        """A further window; its events come with the next period."""

    def closed(self) -> None:
        """The window's last events, before the recorder forgets them."""
        with self._held():
            self.flush()
            last = self._recorder.unsent(0)
            if last is None or last.owner != self._owner:
                return
            self._closed.append(last)
            if self._file is not None and not self._busy:
                with contextlib.suppress(OSError):  # the flush has said it
                    self._file.append([], [self._facts()])  # nothing is open any more

    def paused(self) -> None:
        """Nothing to do: the next period shows it."""

    def resumed(self) -> None:
        """Nothing to do: the next period shows it."""

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        """Hold the lock, and after the last of an ended stream's frames see its thread off."""
        with self._lock:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                over = not self._depth and self._ended.is_set()
        thread = self._thread
        if over and thread is not None and thread is not threading.current_thread():
            thread.join(LONGEST_WAIT_S)
            self._thread = None

    def _keep(self) -> None:
        due = time.monotonic() + self._period_s
        while not self._ended.wait(max(0.0, min(LOOK_S, due - time.monotonic()))):
            if time.monotonic() >= due or self._recorder.half_full:
                self.flush()
                due = time.monotonic() + self._period_s

    def _flush(self) -> None:
        if self._ended.is_set():
            return
        until = None  # what comes while this goes on is the next flush's, or it might never end
        while True:
            fresh = self._recorder.unsent(BATCH)
            if fresh is None or fresh.owner != self._owner:
                return
            until = fresh.there if until is None else until
            if self._file is None:
                self._open(fresh)
            self._write(fresh)
            if fresh.up_to >= until:
                return

    def _open(self, fresh: Unsent) -> None:
        self._origin = (self._closed or [fresh])[0].window[0]
        self._lines = EventLines(self._origin)
        first = [self._facts(fresh), process_line(os.getpid(), PROCESS_NAME)]
        self._file = StreamFile.open_at(self.path, first)
        if self._file.detail:
            _tell(f"{self._file.detail}; this one's continuous dump goes to {self._file.path}")
        self.path = self._file.path

    def _write(self, fresh: Unsent) -> None:
        file = self._file
        if file is None:
            return
        if file.displaced:
            raise FileNotFoundError(2, "the file was removed or replaced while it was written")
        pid = os.getpid()
        built = build_events(fresh.raw, pid, fresh.groups)
        named = {(pid, tid, name) for tid, name in fresh.names.items()}
        groups = {(process, 0, lane.group) for (process, _), lane in built.lanes.items()}
        named |= groups | {(process, n, lane.name) for (process, n), lane in built.lanes.items()}
        lines = [_name_line(*name) for name in sorted(named - self._names)]
        for event in built.events:
            self._lines.add(event, lines)
        before = self._written, self._lost
        self._written += len(built.events)
        self._lost += built.lost
        try:
            file.append(lines, self._tail(fresh, pid))
        except OSError:
            self._written, self._lost = before
            raise
        self._names |= named
        self._recorder.mark_sent(fresh.up_to)

    def _tail(self, fresh: Unsent, pid: int) -> Iterator[str]:
        """What holds for now: the facts, and the spans that are open, outermost first."""
        yield self._facts(fresh)
        window = Mark(f"window of {self._owner}", OWN, fresh.window[0], pid, self._metadata)
        for mark in [window, *sorted(fresh.marks, key=lambda mark: mark.start_ns)]:
            if mark.start_ns >= self._origin:
                event = TraceEvent(
                    mark.name, mark.category, "B", mark.start_ns, 0, pid, mark.tid, mark.args
                )
                yield begin_line(event, self._origin)

    def _facts(self, *fresh: Unsent) -> str:
        """An instant whose arguments are what the finished file has in `otherData`."""
        trace = self._as_trace([*self._closed, *fresh])
        facts = other_data(trace, self._origin)
        end, pid = trace.windows[-1][1], os.getpid()
        event = TraceEvent(FACTS, OWN, "i", end, 0, pid, pid, facts, scope="p")
        lines: list[str] = []
        EventLines(self._origin).add(event, lines)
        return lines[0]

    def _as_trace(self, windows: list[Unsent]) -> Trace:
        """The windows without their events, which count as those of the file."""
        modes = Mode(0)
        for window in windows:
            modes |= window.modes
        anchor: ClockAnchor = windows[0].anchor
        return Trace(
            events=(),
            modes=modes,
            windows=tuple(window.window for window in windows),
            dropped=self._lost + sum(window.dropped for window in windows),
            anchor=anchor,
            process_names={},
            thread_names={},
            metadata=self._metadata,
            pauses=tuple(pause for window in windows for pause in window.pauses),
            spilled=self._written,
            cost=windows[-1].cost,
        )

    def _rewritten(self, trace: Trace, file: StreamFile) -> Iterator[str]:
        """The finished file's text, from the lines of the growing one: memory holds only some."""
        yield from head_lines(trace, self._origin)
        body = (piece.decode("ascii") for piece in file.lines())
        facts_gone = False
        held = ""
        for piece in body:
            if facts_gone:
                yield piece
                continue
            held += piece
            _, comma, rest = held.partition(",\n")  # the first line is the facts'
            if comma:
                facts_gone = True
                yield rest
        yield "\n]}\n"

    def _complain(self, error: Exception) -> str:
        told = (
            f"continuous dump to {self.path} does not get on: {reason(error)}; the run goes on, "
            "events are kept in memory while there is room, and dump() tries again"
        )
        if not self._complained:
            self._complained = True
            _tell(told)
        return told


def _name_line(pid: int, tid: int, name: str) -> str:
    return thread_line(pid, tid, name) if tid else process_line(pid, name)


def _tell(sentence: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"opbench: {sentence}\n")
