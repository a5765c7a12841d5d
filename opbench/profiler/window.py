"""The iterations between run and stop."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from operator import index
from types import TracebackType

from opbench.errors import WindowError
from opbench.profiler.events import Trace
from opbench.profiler.modes import Mode, parse_modes
from opbench.profiler.profiler import Profiler

__all__ = ["IterationWindow"]


class IterationWindow:
    """Opens the recorder for iterations `begin` up to, not including, `end`.

    Two ways to drive it. As an iterable, the whole body of the loop is the iteration::

        with IterationWindow(recorder, 5, begin=1, end=3) as window:
            for i in window:
                call()
        window.trace

    By `slice`, only the body of the ``with`` is the iteration, and the recorder is paused between
    two of them, so that set-up and tear-down are in neither the trace nor the slice::

        with IterationWindow(recorder, 5, begin=1, end=3) as window:
            for i in range(window.iterations):
                arguments = setup()
                with window.slice(i):
                    call(*arguments)

    Each recorded iteration is one slice (category ``iteration``, name ``iteration 1``), in every
    mode. The slice begins after the recorder has opened and ends before it closes. Leaving the
    ``with`` closes the window, also after an exception, which nothing that goes wrong then hides;
    without the ``with``, call `close`. A forked child closes nothing and has no trace.

    Attributes:
        trace: the finished trace once the window has closed, or None.
    """

    def __init__(
        self,
        recorder: Profiler,
        iterations: int,
        begin: int = 0,
        end: int | None = None,
        modes: str | int | Mode = Mode.ALL,
        owner: str = "iteration window",
        source: str = "",
    ) -> None:
        """Check the window; nothing is opened yet.

        Args:
            recorder: what records.
            iterations: how many there are in all.
            begin: the first one to record.
            end: the first one after it that is not recorded; None means `iterations`.
            modes: what to record, in any form that `parse_modes` takes.
            owner: who is named while the window is open.
            source: where the three numbers came from, for the error.

        Raises:
            WindowError: the window is negative, reversed, empty or beyond the iterations.
            ConfigError: an unknown mode.
        """
        self.iterations, self.begin, self.end = _checked(
            iterations, begin, iterations if end is None else end, source
        )
        self.trace: Trace | None = None
        self._recorder = recorder
        self._modes = parse_modes(modes, source)
        self._owner = owner or "iteration window"
        self._reached = -1  # the last iteration that was begun
        self._start: int | None = None  # when the iteration's slice began, None outside of one
        self._open = False
        self._process = 0  # the one that opened the recorder
        self._closed = False

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        self._end_slice()
        following = self._reached + 1
        if following >= self.end:
            self._close_recorder()
        if self._closed or following >= self.iterations:
            raise StopIteration
        self._reached = following
        if following == self.begin:
            self._open_recorder()
        if self._open:
            self._begin_slice(following)
        return following

    @contextmanager
    def slice(self, iteration: int) -> Iterator[None]:
        """The iteration proper; what is done before and after it is not recorded.

        Args:
            iteration: its index. Indices rise; one that lies outside the window records nothing.

        Raises:
            WindowError: the index is not a following one, or beyond the iterations.
        """
        if (
            self._closed
            or self._start is not None
            or not self._reached < iteration < self.iterations
        ):
            state = (
                "one is open" if self._start is not None else f"the last one was {self._reached}"
            )
            raise WindowError(
                f"iteration {iteration} of {self.iterations} cannot begin: "
                f"{'the window is closed' if self._closed else state}; "
                "begin each once, in order, and none inside another"
            )
        self._reached = iteration
        if not self.begin <= iteration < self.end:
            yield
            return
        if not self._open:
            self._open_recorder()
        elif self._recorder.paused:
            self._recorder.resume()
        self._begin_slice(iteration)
        try:
            yield
        except BaseException:
            with suppress(Exception):  # the user's own exception is the one to see
                self._leave_slice(iteration)
            raise
        self._leave_slice(iteration)

    def close(self) -> None:
        """Close the window, early if need be, and end the iteration; harmless the second time."""
        self._closed = True
        self._close_recorder()

    def __enter__(self) -> IterationWindow:  # noqa: PYI034 - Self needs Python 3.11
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
            return
        with suppress(Exception):  # the user's own exception is the one to see
            self.close()

    def _open_recorder(self) -> None:
        self._recorder.run(self._modes, self._owner)
        self._process = os.getpid()
        self._open = True

    def _close_recorder(self) -> None:
        self._end_slice()
        if not self._open:
            return
        # In a forked child the recorder was detached; the window is its parent's to close.
        if self._process == os.getpid():
            self.trace = self._recorder.stop(self._owner)
        self._open = False

    def _leave_slice(self, iteration: int) -> None:
        self._end_slice()
        if iteration + 1 == self.end:
            self._close_recorder()
        elif self._open and self._recorder.recording:
            self._recorder.pause()

    def _begin_slice(self, iteration: int) -> None:
        self._recorder.iteration = iteration
        self._start = self._recorder.clock()

    def _end_slice(self) -> None:
        if self._start is None:
            return
        self._recorder.complete(
            f"iteration {self._reached}",
            "iteration",
            self._start,
            self._recorder.clock(),
            {"iteration": self._reached},
            across_pauses=True,
        )
        self._start = None


def _checked(iterations: int, begin: int, end: int, source: str) -> tuple[int, int, int]:
    place = f" ({source})" if source else ""
    for name, value in (("iterations", iterations), ("begin", begin), ("end", end)):
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise WindowError(f"{name}{place} must be a whole number, not {value!r}")
    iterations, begin, end = index(iterations), index(begin), index(end)
    if iterations < 1:
        raise WindowError(
            f"iterations{place} must be at least 1, not {iterations} (begin {begin}, end {end})"
        )
    if not 0 <= begin < end <= iterations:
        raise WindowError(
            f"the window{place} is impossible: begin {begin}, end {end}, iterations {iterations}; "
            "it must hold that 0 <= begin < end <= iterations"
        )
    return iterations, begin, end
