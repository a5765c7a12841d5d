"""The iterations between run and stop, and what drives the recorder through such steps."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType

from opbench.errors import WindowError
from opbench.profiler.bounds import window_bounds
from opbench.profiler.doors import WINDOWS
from opbench.profiler.events import Trace
from opbench.profiler.modes import Mode, parse_modes
from opbench.profiler.profiler import Profiler

__all__ = ["IterationWindow", "Steps"]


class Steps:
    """Windows of a recorder one after the other, with a slice for each step in them.

    Autostart's window gives way to each. A forked child has none of it: what its parent opened is
    its parent's to close.
    """

    def __init__(self, recorder: Profiler, owner: str) -> None:
        self._recorder = recorder
        self._owner = owner
        self._process = 0  # the one whose window is open, or 0
        self._step = 0
        self._start: int | None = None  # when the step's slice began, None outside of one
        self._mark = 0  # what tells a growing file that the slice is open

    @property
    def open(self) -> bool:
        """Whether there is a window; a child has its parent's, and cannot close it."""
        return self._process != 0

    @property
    def inside(self) -> bool:
        """Whether a step is under way."""
        return self._start is not None

    def open_window(self, modes: Mode) -> None:
        """Open one; errors as those of `Profiler.run`."""
        WINDOWS.give_way(self._recorder)
        try:
            self._recorder.run(modes, self._owner)
        except BaseException:
            WINDOWS.go_on(self._recorder)
            raise
        self._process = os.getpid()

    def close_window(self) -> Trace | None:
        """Close it, if there is one; its trace, None in a forked child.

        An interrupt leaves it open, so that another try can close it.
        """
        trace = None
        if self._process == os.getpid():
            trace = self._recorder.stop(self._owner)
            WINDOWS.go_on(self._recorder)
        self._process = 0
        return trace

    def begin(self, step: int) -> None:
        """The step begins; what is recorded from now on carries its number."""
        self._step = self._recorder.iteration = step
        self._start = self._recorder.clock()
        self._mark = self._recorder.mark_open(f"iteration {step}", "iteration", self._start)

    def end(self) -> None:
        """Record the slice of the step that is under way, if there is one."""
        if self._start is None:
            return
        start, self._start = self._start, None
        self._recorder.mark_closed(self._mark)
        self._recorder.complete(
            f"iteration {self._step}",
            "iteration",
            start,
            self._recorder.clock(),
            {"iteration": self._step},
            across_pauses=True,
        )


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
        self.iterations, self.begin, self.end = window_bounds(iterations, begin, end, source)
        self.trace: Trace | None = None
        self._recorder = recorder
        self._modes = parse_modes(modes, source)
        self._steps = Steps(recorder, owner or "iteration window")
        self._reached = -1  # the last iteration that was begun
        self._closed = False

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        self._steps.end()
        following = self._reached + 1
        if following >= self.end:
            self._close_recorder()
        if self._closed or following >= self.iterations:
            raise StopIteration
        self._reached = following
        if following == self.begin:
            self._steps.open_window(self._modes)
        if self._steps.open:
            self._steps.begin(following)
        return following

    @contextmanager
    def slice(self, iteration: int) -> Iterator[None]:
        """The iteration proper; what is done before and after it is not recorded.

        Args:
            iteration: its index. Indices rise; one that lies outside the window records nothing.

        Raises:
            WindowError: the index is not a following one, or beyond the iterations.
        """
        if self._closed or self._steps.inside or not self._reached < iteration < self.iterations:
            state = "one is open" if self._steps.inside else f"the last one was {self._reached}"
            raise WindowError(
                f"iteration {iteration} of {self.iterations} cannot begin: "
                f"{'the window is closed' if self._closed else state}; "
                "begin each once, in order, and none inside another"
            )
        self._reached = iteration
        if not self.begin <= iteration < self.end:
            yield
            return
        if not self._steps.open:
            self._steps.open_window(self._modes)
        elif self._recorder.paused:
            self._recorder.resume()
        self._steps.begin(iteration)
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

    def _close_recorder(self) -> None:
        self._steps.end()
        if self._steps.open:
            self.trace = self._steps.close_window()

    def _leave_slice(self, iteration: int) -> None:
        self._steps.end()
        if iteration + 1 == self.end:
            self._close_recorder()
        elif self._steps.open and self._recorder.recording:
            self._recorder.pause()
