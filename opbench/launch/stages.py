"""Pairs of launches, taken in turns: all files to screen, then the suspects to confirm."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from opbench import records
from opbench.launch.journal import Journal
from opbench.launch.schedule import turns
from opbench.launch.turn import CONFIRM, SCREEN, Turn

__all__ = ["Budget", "Progress", "Stages", "Work"]

# A launch may fail now and then; a file whose launches fail twice in a row is given up.
SPARE_PAIRS, FAILURES = 2, 2
# What screening leaves of the budget until the suspects have had their turn.
RESERVED = 0.25

Work = Mapping[str, Sequence[str]]
"""By test file, the ids of the benchmarks to measure."""
Measure = Callable[[int, int, str, str, Sequence[str]], Turn]
"""Starts one launch: stage, pair, file, side, test ids."""


class Progress(Protocol):
    """Where a session tells how far it is."""

    def say(self, text: str) -> None:
        """A line that stays."""

    def step(self, done: int, planned: int, left_s: float | None, what: str) -> None:
        """Launches done and planned, and about how many seconds they will still take."""


class Budget:
    """How much time a session may take, from its beginning."""

    def __init__(self, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        """Start the time.

        Args:
            seconds: all of it; None has no end.
            clock: seconds from any fixed moment.
        """
        self.seconds, self._clock, self._start = seconds, clock, clock()

    @property
    def spent_s(self) -> float:
        """Seconds since the beginning."""
        return self._clock() - self._start

    @property
    def left_s(self) -> float:
        """Seconds that are left; infinity without a limit, and below 0 when it is overdrawn."""
        return float("inf") if self.seconds is None else self.seconds - self.spent_s

    @property
    def reserve_s(self) -> float:
        """What screening may not touch before the suspects have had their turn."""
        return 0.0 if self.seconds is None else RESERVED * self.seconds


@dataclass
class _File:
    """A file within one stage, as far as its pairs were for these very benchmarks."""

    name: str
    ids: Sequence[str]
    good: int = 0
    """Pairs in which both sides gave a value of each of them."""
    tried: set[int] = field(default_factory=set)
    """Numbers of all pairs of the file in this stage, whatever they were for."""
    for_others: int = 0
    failed_in_a_row: int = 0

    @property
    def attempts(self) -> int:
        return len(self.tried)

    @property
    def next(self) -> int:
        """The number of the next pair: the first that lacks, so that a lost one is measured."""
        return next(number for number in range(len(self.tried) + 1) if number not in self.tried)

    def finished(self, wanted: int) -> bool:
        return self.missing(wanted) == 0

    def missing(self, wanted: int) -> int:
        """How many pairs more it may take until there are so many good ones."""
        if self.failed_in_a_row >= FAILURES:
            return 0
        spare = wanted + SPARE_PAIRS - (self.attempts - self.for_others)
        return max(0, min(wanted - self.good, spare))


class Stages:
    """Runs the pairs of a session that the journal does not hold yet.

    Attributes:
        keeps_reserve: whether screening leaves a part of the budget to confirming.
        refused: files that wanted pairs for which the budget had no room, at least for a while.
    """

    def __init__(
        self,
        measure: Measure,
        journal: Journal,
        budget: Budget,
        progress: Progress,
        seed: int,
        costs: Mapping[str, float],
    ) -> None:
        """Get ready.

        Args:
            measure: starts one launch and waits for it.
            journal: holds what was measured, and is given what will be.
            budget: no pair is begun that would overdraw it.
            progress: is told after each launch.
            seed: draws the order within each pair.
            costs: seconds that a pair of launches of each file will take, as estimated.
        """
        self._measure, self._journal, self._budget = measure, journal, budget
        self._progress, self._seed = progress, seed
        self._costs = dict(costs)
        self.keeps_reserve = True
        self.refused: set[str] = set()

    def pair_cost(self, file: str, stage: int = SCREEN) -> float:
        """Seconds that a pair of a file takes: the mean of those measured, or the estimate."""
        pairs = self._journal.pairs(stage, file) or self._journal.pairs(SCREEN, file)
        seconds = [sum(turn.seconds for turn in sides.values()) for sides in pairs.values()]
        return sum(seconds) / len(seconds) if seconds else self._costs.get(file, 0.0)

    def screen(self, work: Work, pairs: int = records.SCREEN_LOOKS[0]) -> tuple[str, ...]:
        """Measure every file that the budget holds; the files that it does not.

        Whole files are left out, and not pairs of all of them: a benchmark with half of its pairs
        cannot be judged at all. The first pair of each tells what it really costs, without the
        compiling of its warm-up. What was left out by a wrong estimate gets its chance at the end.
        """
        possible = [name for name in work if self._fitting(work, [name], pairs)]
        self._run(SCREEN, {name: work[name] for name in possible}, pairs, attempts=1)
        waiting = list(work)
        while waiting:
            batch = self._fitting(work, waiting, pairs)
            if not batch:
                break
            self._run(SCREEN, {name: work[name] for name in batch}, pairs)
            waiting = [name for name in waiting if name not in batch]
        return tuple(waiting)

    def screen_again(self, work: Work, pairs: int) -> None:
        """Add to the pairs of screening until there are so many, for whole files as ``screen``."""
        batch = self._fitting(work, list(work), pairs)
        self._run(SCREEN, {name: work[name] for name in batch}, pairs)

    def confirm(self, work: Work, pairs: int = records.CONFIRM_LOOKS[0]) -> None:
        """Measure the suspects by fresh pairs, file by file, as far as the budget goes.

        Args:
            work: the suspects, of each file such as have their values of the very same pairs: a
                pair counts if it gave a value of all of them.
            pairs: how many each of them is to have in all.
        """
        for name, ids in work.items():
            self._run(CONFIRM, {name: ids}, pairs)

    # inside

    def _fitting(self, work: Work, names: Sequence[str], pairs: int) -> list[str]:
        """The files, in their order, for which the budget has room, or that need none."""
        room = self._budget.left_s - (self._budget.reserve_s if self.keeps_reserve else 0.0)
        batch = []
        for name in names:
            missing = self._resumed(SCREEN, name, work[name]).missing(pairs)
            cost = missing * self.pair_cost(name)
            if not missing or cost <= room:
                batch.append(name)
                room -= cost
            else:
                self.refused.add(name)
        return batch

    def _run(self, stage: int, work: Work, wanted: int, attempts: int | None = None) -> None:
        """Pair by pair through all files, so that both sides of a pair lie seconds apart.

        Args:
            stage: SCREEN or CONFIRM.
            work: what to measure.
            wanted: good pairs of each file.
            attempts: stop after so many pairs of each, good or not.
        """
        files = [self._resumed(stage, name, ids) for name, ids in work.items()]
        others = max((file.for_others for file in files), default=0)
        order = turns(wanted + SPARE_PAIRS + others, self._seed + stage)
        done = 2 * sum(file.good for file in files)
        planned = 2 * wanted * len(files)
        while True:
            open_files = [
                file
                for file in files
                if not file.finished(wanted) and (attempts is None or file.attempts < attempts)
            ]
            if not open_files:
                return
            least = min(file.attempts for file in open_files)
            for file in [file for file in open_files if file.attempts == least]:
                if self.pair_cost(file.name, stage) > self._budget.left_s:
                    self.refused.update(one.name for one in open_files)
                    return
                number, sides = file.next, {}
                for side in order[number]:
                    self._tell(stage, done, planned, files, wanted, f"{file.name} {side}")
                    sides[side] = self._measure(stage, number, file.name, side, file.ids)
                    self._journal.add(sides[side])
                    done += 1
                self._count(file, number, sides)

    def _resumed(self, stage: int, name: str, ids: Sequence[str]) -> _File:
        """A file with what the journal knows of it."""
        file = _File(name, ids)
        for number, sides in self._journal.pairs(stage, name).items():
            measured = {one for turn in sides.values() for one in turn.values}
            if measured and measured.isdisjoint(ids):
                file.tried.add(number)
                file.for_others += 1
            else:
                self._count(file, number, sides)
        return file

    def _count(self, file: _File, number: int, sides: Mapping[str, Turn]) -> None:
        file.tried.add(number)
        if any(turn.problem for turn in sides.values()):
            file.failed_in_a_row += 1
            return
        # One benchmark without a value is no reason to give up the file, and its pair no good one.
        file.failed_in_a_row = 0
        file.good += all(one in turn.values for turn in sides.values() for one in file.ids)

    def _tell(
        self, stage: int, done: int, planned: int, files: Sequence[_File], wanted: int, what: str
    ) -> None:
        left = sum(self.pair_cost(f.name, stage) * max(0, wanted - f.good) for f in files)
        verb = "screening" if stage == SCREEN else "confirming"
        self._progress.step(done, planned, left, f"{verb} {what}")
