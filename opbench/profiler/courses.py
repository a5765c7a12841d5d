"""Which steps of a long course are recorded, in torch's words; a window per cycle."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from operator import index
from types import TracebackType
from typing import NamedTuple

from opbench.errors import StateError, WindowError
from opbench.profiler.events import Trace
from opbench.profiler.modes import Mode, parse_modes
from opbench.profiler.profiler import RECORDER, Profiler
from opbench.profiler.window import Steps

__all__ = ["Action", "Schedule", "profile", "schedule"]

OWNER = "profile"


class Action(Enum):
    """What the recorder does during one step.

    Attributes:
        NONE: it is stopped.
        WARMUP: it records, and what it recorded is thrown away.
        RECORD: it records.
    """

    NONE = "none"
    WARMUP = "warmup"
    RECORD = "record"


class Schedule(NamedTuple):
    """After ``skip_first`` steps, cycles of ``wait``, ``warmup`` and ``active`` steps.

    Called with a step's number it gives the `Action`; `schedule` makes and checks one.
    """

    wait: int
    warmup: int
    active: int
    repeat: int = 0
    skip_first: int = 0

    @property
    def cycle(self) -> int:
        """The steps of one cycle."""
        return self.wait + self.warmup + self.active

    def __call__(self, step: int) -> Action:
        """What happens during the step of this number, from 0."""
        number = self.cycle_of(step)
        if number is None:
            return Action.NONE
        place = (step - self.skip_first) % self.cycle
        if place < self.wait:
            return Action.NONE
        return Action.WARMUP if place < self.wait + self.warmup else Action.RECORD

    def cycle_of(self, step: int) -> int | None:
        """The number, from 0, of the step's cycle; None before the first and after the last."""
        number = (step - self.skip_first) // self.cycle
        return number if number >= 0 and not 0 < self.repeat <= number else None


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Schedule:
    """Which steps are recorded. The first ``skip_first`` are not; then each cycle is a window.

    ``schedule(wait=0, warmup=0, active=end - begin, repeat=1, skip_first=begin)`` is the window
    from ``begin`` up to, not including, ``end``.

    Args:
        wait: steps at the start of each cycle in which the recorder is stopped.
        warmup: then, steps that are recorded and thrown away: what is slow for the first time, in
            the program and in the recorder, stands in no trace.
        active: then, steps that are recorded, 1 or more.
        repeat: how many cycles; 0 goes on for ever.
        skip_first: steps before the first cycle.

    Raises:
        WindowError: a number that is negative, fractional or none, or no active step.
    """
    given = Schedule(wait, warmup, active, repeat, skip_first)
    for name, value in given._asdict().items():
        least = 1 if name == "active" else 0
        if isinstance(value, bool) or not hasattr(value, "__index__") or index(value) < least:
            raise WindowError(
                f"schedule: {name} must be a whole number from {least} up, not {value!r}"
            )
    return Schedule(*map(index, given))


class profile:  # noqa: N801 - torch's word, used like a function
    """Records the active steps of a schedule, and hands over the trace of each cycle.

    ::

        with profile(schedule=schedule(wait=1, warmup=1, active=3), on_trace_ready=keep) as steps:
            for batch in batches:
                work(batch)
                steps.step()

    Everything between two calls of `step` is one step, and each recorded one is a slice of category
    ``iteration``. A window that is open when the block ends is handed over as far as it has come,
    also after an exception, which nothing that goes wrong then hides. Without a schedule the whole
    block is one window, and each of its steps is recorded.

    Attributes:
        trace: of the last complete cycle, or None.
        step_num: the number of the present step, from 0.
    """

    def __init__(
        self,
        *,
        schedule: Callable[[int], Action] | None = None,
        on_trace_ready: Callable[[Trace], object] | None = None,
        modes: str | int | Mode = Mode.ALL,
        recorder: Profiler = RECORDER,
    ) -> None:
        """Check what is asked for; nothing is opened yet.

        Args:
            schedule: from the number of a step to its `Action`.
            on_trace_ready: called with the trace of each cycle, the recorder stopped. What it
                raises is raised by `step`, or at the end of the block.
            modes: what to record, in any form that `parse_modes` takes.
            recorder: what records.

        Raises:
            ConfigError: an unknown mode.
        """
        self.trace: Trace | None = None
        self.step_num = 0
        self._schedule = schedule or _every_step
        self._ready = on_trace_ready
        self._modes = parse_modes(modes, "profile()")
        self._steps = Steps(recorder, OWNER)
        self._entered = False
        self._action = Action.NONE
        self._cycle: int | None = None

    def step(self) -> None:
        """The present step is over, and the next one begins.

        Raises:
            StateError: outside of the ``with`` block, or somebody else's window is open.
        """
        if not self._entered:
            raise StateError("profile: step() belongs inside its 'with' block")
        self._steps.end()
        self.step_num += 1
        self._enter_step()

    def __enter__(self) -> profile:  # noqa: PYI034 - Self needs Python 3.11
        if self._entered:
            raise StateError("profile: it is entered already; make another one")
        self._entered = True
        self.step_num = 0
        try:
            self._enter_step()
        except BaseException:
            self._entered = False
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._entered = False
        self._steps.end()
        if error is None:
            self._close()
            return
        with suppress(Exception):  # the user's own exception is the one to see
            self._close()

    def _enter_step(self) -> None:
        action = self._schedule(self.step_num)
        cycle = self._number_of_cycle()
        if action is not self._action or cycle != self._cycle:
            self._close()
            self._cycle = cycle
            if action is not Action.NONE:
                self._steps.open_window(self._modes)
            self._action = action
        if action is not Action.NONE:
            self._steps.begin(self.step_num)

    def _number_of_cycle(self) -> int | None:
        """Two cycles without a wait or a warm-up touch: only their number tells them apart."""
        schedule = self._schedule
        return schedule.cycle_of(self.step_num) if isinstance(schedule, Schedule) else None

    def _close(self) -> None:
        """Close the open window, if there is one, and hand it over unless it was a warm-up."""
        trace = self._steps.close_window()
        action, self._action = self._action, Action.NONE
        if trace is not None and action is Action.RECORD:
            cycle = {} if self._cycle is None else {"cycle": self._cycle}
            self.trace = trace.with_metadata(cycle)
            if self._ready is not None:
                self._ready(self.trace)


def _every_step(_step: int) -> Action:
    return Action.RECORD
