"""Steps of all series together: those of the code, and those of the machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from opbench.records.comparable import controls_moved
from opbench.records.history_series import Epoch, History, Moment
from opbench.records.history_steps import LEAST_RECORDS, LEAST_STEP_LAUNCHES, Step, search, steps_of
from opbench.records.statistics import median

__all__ = ["Findings", "MachineEvent", "find_steps"]

TOGETHER = 0.5
"""Share of the series that step at one record, above which it is the machine."""
LEAST_TOGETHER = 6
"""So many it takes where no control kernel vouches for the machine."""
NEARBY = 1
"""Records by which the place of a step can be wrong."""
WINDOW = 8
"""Records on either side that say where a control stood."""


@dataclass(frozen=True, slots=True)
class MachineEvent:
    """Most series stepped at once: something that no benchmark's code explains."""

    epoch: int
    position: int
    """Of the record among those of its environment."""
    before: Moment
    after: Moment
    steps: tuple[Step, ...]
    """One for each benchmark that took part."""
    of: int
    """How many series there were at that record."""
    control: str
    """What the control kernels say; empty where there are none."""

    @property
    def ratio(self) -> float:
        """The typical one: median over the steps."""
        return median([step.ratio for step in self.steps])


@dataclass(frozen=True, slots=True)
class Findings:
    """All that a report of history shows."""

    history: History
    steps: tuple[Step, ...]
    """Of the code: none of an event. By benchmark, then in the order of time."""
    events: tuple[MachineEvent, ...]
    """In the order of time."""
    waiting: tuple[str, ...]
    """Benchmarks whose newest record lies outside, for the first time: measure again."""
    trusted: bool
    """Whether the slow layer took part, wherever there are records enough for it."""
    thin: int
    """Series whose newest record has too few launches for the fast layer."""


def find_steps(
    history: History, progress: Callable[[int, int], None] = lambda _done, _total: None
) -> Findings:
    """Look at every series, and then at what steps together.

    Args:
        history: the series.
        progress: is told how many of the series are done.
    """
    # Loading it takes seconds, so not where no series is long enough.
    long_enough = any(len(one.points) >= 2 * LEAST_RECORDS for one in history.series)
    ruptures = search() if long_enough else None
    found: list[Step] = []
    waiting: list[str] = []
    thin = 0
    current = history.current()
    for number, series in enumerate(history.series):
        progress(number, len(history.series))
        steps, open_end = steps_of(series, ruptures)
        found += steps
        if current[series.id] is series:
            waiting += [series.id] if open_end else []
            thin += series.points[-1].launches < LEAST_STEP_LAUNCHES
    steps, events = [], []
    for epoch in history.epochs:
        own, together = _apart(epoch, history, [s for s in found if s.series.epoch == epoch.number])
        steps += own
        events += together
    order = {name: position for position, name in enumerate(history.benchmarks)}
    steps.sort(key=lambda one: (order[one.series.id], one.series.epoch, one.index))
    events.sort(key=lambda one: (one.after.date, one.epoch))
    return Findings(
        history=history,
        steps=tuple(steps),
        events=tuple(events),
        waiting=tuple(waiting),
        trusted=ruptures is not None or not long_enough,
        thin=thin,
    )


def _apart(
    epoch: Epoch, history: History, steps: list[Step]
) -> tuple[list[Step], list[MachineEvent]]:
    """Steps of their own, and those that are events of the machine, of one environment."""
    events = []
    left = list(steps)
    for position in _by_size(steps):
        near = _nearest(left, position)
        there = sum(
            one.epoch == epoch.number
            and one.points[0].position < position <= one.points[-1].position
            for one in history.series
        )
        if len(near) <= TOGETHER * there:
            continue
        moved, told = _controls(epoch, position, median([_share(step) for step in near]))
        if moved is False or (moved is None and len(near) < LEAST_TOGETHER):
            continue
        before, after = epoch.moments[position - 1], epoch.moments[position]
        events.append(MachineEvent(epoch.number, position, before, after, tuple(near), there, told))
        left = [step for step in left if step not in near]
    return [_with_control(step, epoch) for step in left], events


def _by_size(steps: Sequence[Step]) -> list[int]:
    """Records at which anything steps, those with the most first."""
    counts: dict[int, int] = {}
    for step in steps:
        counts[step.position] = counts.get(step.position, 0) + 1
    return sorted(counts, key=lambda position: (-counts[position], position))


def _nearest(steps: Sequence[Step], position: int) -> list[Step]:
    """Of each benchmark the step that is nearest to a record, where one is near enough."""
    best: dict[str, Step] = {}
    for step in steps:
        distance = abs(step.position - position)
        other = best.get(step.series.id)
        if distance <= NEARBY and (other is None or distance < abs(other.position - position)):
            best[step.series.id] = step
    return list(best.values())


def _share(step: Step) -> float:
    """The size of a step whichever way it goes, as a share from 0."""
    return max(step.ratio, 1 / step.ratio) - 1


def _controls(epoch: Epoch, position: int, share: float) -> tuple[bool | None, str]:
    """Whether a control kernel moved by more than half of a step; None where none was timed."""
    told = []
    known = False
    for name, values in epoch.controls.items():
        before = [v for v in values[max(0, position - WINDOW) : position] if v is not None]
        after = [v for v in values[position : position + WINDOW] if v is not None]
        if not before or not after:
            continue
        known = True
        if controls_moved(before, after, share):
            ratio = median(after) / median(before)
            told.append(f"the {name} control took {ratio:.3f} times as long")
    return (bool(told) if known else None), "; ".join(told)


def _with_control(step: Step, epoch: Epoch) -> Step:
    _, told = _controls(epoch, step.position, _share(step))
    return replace(step, control=told) if told else step
