"""One test's windows: at most one open at a time, each giving one trace."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from opbench import profiler
from opbench.errors import OpbenchWarning, OperatorError, StateError
from opbench.plugin.growing import GrowingTrace
from opbench.plugin.lanes import Lanes
from opbench.plugin.settings import Settings
from opbench.plugin.target import Target, wait

__all__ = ["Prepared", "Windows", "mark_used", "waiting"]

IMPERATIVE = int(profiler.Mode.IMPERATIVE)

Prepared = Callable[[], AbstractContextManager[Target]]
"""Makes the target ready for one call, and tidies up behind it."""


def waiting(prepared: Prepared) -> Prepared:
    """The same targets, each waiting for whatever its one call leaves pending."""

    @contextmanager
    def waited_for() -> Iterator[Target]:
        with prepared() as target:
            yield replace(target, finish=wait)

    return waited_for


def mark_used(benchmark: Any) -> None:
    """Tell pytest-benchmark that its fixture was used: a trace is a use of it, and so is an error.

    A warning filter would do, but without pytest's warnings plugin it would outlive the test.
    """
    if getattr(benchmark, "_mode", "unknown") is None:
        benchmark._mode = "opbench"  # noqa: SLF001 - pytest-benchmark offers no other way


class Windows:
    """Opens and closes the windows of one test and keeps their traces.

    Args:
        origin: what the trace says of itself; its ``test`` is named in errors, and to whoever else
            wants the recorder.
        place: gives the trace's path, or None where none can be written.
        timed: whether the test's benchmark has run; asked when a window opens and closes.
        raise_failures: waits for pending work, and raises the first failure that no wait has.

    Attributes:
        traces: of the finished windows, in order.
        measured: that of the profiled pass, if there was one.
        profiled: whether the benchmark ran while a window was open.
        lanes: what the workers of kernels write to in the profiled pass.
        growing: the files of windows that grow.
    """

    def __init__(
        self,
        origin: Mapping[str, Any],
        place: Callable[[], Path | None],
        timed: Callable[[], bool],
        raise_failures: Callable[[], None],
    ) -> None:
        self.traces: list[profiler.Trace] = []
        self.measured: profiler.Trace | None = None
        self.profiled = False
        self.lanes = Lanes()
        self._nodeid = origin["test"]
        self._owner = f"the profiler fixture of {self._nodeid}"
        self.growing = GrowingTrace(self._owner, origin, place)
        self._timed = timed
        self._raise_failures = raise_failures
        self._timed_at_open = False
        self._window: profiler.IterationWindow | None = None

    @property
    def open(self) -> bool:
        """Whether a window is open, or drawn and waiting for its first iteration."""
        return self._window is not None

    def refuse_open(self, call: str) -> None:
        """Raise StateError if a window is open, naming the call that cannot be made."""
        if self.open:
            raise StateError(
                f"{call} in {self._nodeid}: a window of this test is open (state 'run'); "
                "close it with profiler.stop() first"
            )

    def refuse_others(self, call: str) -> None:
        """Raise StateError if somebody else's window is open, naming the call."""
        recorder = profiler.RECORDER
        if recorder.state != "stop":
            raise StateError(
                f"{call} in {self._nodeid}: the profiler is in state {recorder.state!r}, "
                f"driven by {recorder.owner}; timed rounds need it stopped"
            )

    def require_open(self, verb: str) -> profiler.IterationWindow:
        """The open window; raises StateError if there is none."""
        if self._window is None:
            raise StateError(
                f"profiler.{verb}() in {self._nodeid}: no window is open (state 'stop'); "
                "call profiler.run() before it"
            )
        return self._window

    def draw(
        self, settings: Settings, iterations: int, begin: int, end: int
    ) -> profiler.IterationWindow:
        """A window that opens the recorder when its iteration ``begin`` does.

        An operator that failed before, and whose result nobody read, is none of this window's; it
        is warned about here.
        """
        try:
            self._raise_failures()
        except OperatorError as error:
            warnings.warn(f"{self._nodeid}: {error}", OpbenchWarning, stacklevel=4)
        self._window = profiler.IterationWindow(
            profiler.RECORDER,
            iterations,
            begin,
            end,
            modes=settings.modes,
            owner=self._owner,
            source=settings.source,
        )
        self.growing.drawn(settings)
        self._timed_at_open = self._timed()
        return self._window

    def close(self) -> profiler.Trace | None:
        """Close the open window, if there is one, and keep its trace; raises no failure."""
        if self._window is None:
            return None
        window, self._window = self._window, None
        timed_meanwhile = self._timed() and not self._timed_at_open
        try:
            window.close()
        finally:
            trace = self.growing.ended(window.trace)
        if trace is not None:
            self.profiled = self.profiled or timed_meanwhile
            self.traces.append(trace)
        return trace

    def complaints(self, *, left_open: bool) -> list[str]:
        """What the end of the test has to say of its windows, a sentence each."""
        found = []
        if self.profiled:
            found.append(
                f"{self._nodeid}: benchmark(...) ran inside an open profiler window; its times are"
                " marked 'profiled' and left out of comparisons. Close the window before it."
            )
        if left_open:
            found.append(
                f"{self._nodeid}: the test ended with its profiler window open; it was closed at"
                " teardown. Call profiler.stop(), or use 'with profiler.window():'."
            )
        return found

    def loop(self, settings: Settings) -> Iterator[int]:
        """Yield every iteration; the whole body of the caller's loop is in the window.

        Raises:
            OperatorError: an operator failed inside the window, and no wait has said so.
        """
        window = self.draw(settings, settings.iterations, settings.begin, settings.end)
        try:
            index = -1
            for index in window:
                yield index
            # A stop() in the body ends the window, not the loop.
            yield from range(index + 1, settings.iterations)
        finally:
            # A break or an exception in the loop's body closes the generator, and so the window;
            # another window may stand there by then.
            if self._window is window:
                self.close()
        self._raise_failures()

    def record(self, settings: Settings, end: int, begin: int, prepared: Prepared) -> Any:
        """Run iterations ``0 .. end-1`` of a target, recording from ``begin``; the last result.

        What ``prepared`` does around a call is in no slice. Iterations after the window would cost
        time and show nothing, so the pass ends with it.
        """
        result = None
        window = self.draw(settings, end, begin, end)
        try:
            for index in range(end):
                with prepared() as target:
                    described, event = target.describe(), target.operator_event()
                    with self.lanes.attached(target) as attached, window.slice(index):
                        result = _call_slice(attached, described, event, self.lanes)
        finally:
            self.measured = self.close()
        return result


def _call_slice(
    target: Target,
    described: dict[str, Any],
    event: tuple[str, dict[str, Any]] | None,
    lanes: Lanes,
) -> Any:
    from opbench.probes import AROUND, INTERRUPTIONS

    recorder = profiler.RECORDER
    kernel = event if recorder.mask & IMPERATIVE else None
    entered = AROUND.enter(kernel[0]) if kernel and AROUND.hooks else []
    before = INTERRUPTIONS.so_far
    start = recorder.clock()
    try:
        result = target.call()
    finally:
        end = recorder.clock()
        interrupted = {**INTERRUPTIONS.since(before), "iteration": recorder.iteration}
        noticed = AROUND.leave(entered) if entered else {}
    if kernel is not None:
        name, args = kernel
        workers = lanes.taken(name, start, end)
        noticed |= {**args, **interrupted, **workers}
        recorder.complete(name, "imperative", start, end, noticed)
    if recorder.recording:
        workers = lanes.taken(target.name, start, end) if kernel is None else {}
        recorder.complete(target.name, "call", start, end, {**described, **interrupted, **workers})
    return result
