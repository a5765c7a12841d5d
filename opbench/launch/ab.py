"""Base and head of a project, measured in turns in one session."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from opbench import records
from opbench.errors import ConfigError
from opbench.launch import wording
from opbench.launch.collected import NothingToCompare, usable
from opbench.launch.controls import Controls
from opbench.launch.floors import keep_floors, kept_floors
from opbench.launch.guard import Guard
from opbench.launch.journal import Journal, clear_stale, locked
from opbench.launch.launch import run_launch
from opbench.launch.launcher import Judges, Launcher, Run, WarmUp
from opbench.launch.machine import machine_facts, on_cpus
from opbench.launch.plan import AbOptions, Plan, new_plan, resumed_plan
from opbench.launch.revision import Repository
from opbench.launch.selection import Selection, after_warm_up, places_of, select
from opbench.launch.selfcheck import SelfCheck, crowded, self_check
from opbench.launch.side import SIDES, Side, SideOptions, make_side
from opbench.launch.stages import Budget, Progress, Stages, Work
from opbench.launch.survey import Survey, misplaced
from opbench.launch.turn import SCREEN
from opbench.launch.verdicts import Group, Verdicts

__all__ = ["AbResult", "measure_ab"]

SESSIONS = "ab"
"""The folder of the sessions, below that of the results."""

# A launch may take this many times what its warm-up took, which compiled as well.
_PATIENCE, _LEAST_TIMEOUT_S, _FIRST_TIMEOUT_S = 5.0, 60.0, 600.0
_CONTROLS_S = 0.03  # before each launch
# Of the timed rounds' seconds, what calibrating and warming up take once more.
_UNTIMED = 1.5
_SCREENED = "{} without an answer yet, screened until there are {} pairs"
_CONFIRMED = "{} suspected, to be confirmed by fresh pairs, {} in all"


@dataclass(frozen=True, slots=True)
class AbResult:
    """What a session found."""

    comparisons: records.ComparisonSet
    session: str
    """The session's id."""
    check: SelfCheck | None = None
    """Of a self-check that came to an end."""
    resumable: bool = False
    """Whether the budget left something undecided, so that the session goes on with more."""

    def exit_code(self, *, strict: bool = False) -> int:
        """0 nothing confirmed, 1 a regression is, 3 nothing was judged.

        Args:
            strict: whether an undecided benchmark counts as not judged.
        """
        return int(self.comparisons.exit_code(strict=strict))


def measure_ab(
    options: AbOptions,
    progress: Progress,
    resume: str | None = None,
    run: Run = run_launch,
    clock: Callable[[], float] = time.monotonic,
) -> AbResult:
    """Measure base and head in turns and judge each benchmark.

    Args:
        options: what is asked for.
        progress: is told how far it is.
        resume: a session's id, or an empty text for the newest unfinished one; its plan, and not
            ``options``, then says what is measured. None starts a new one.
        run: starts one process.
        clock: seconds from any fixed moment.

    Raises:
        ConfigError: something asked for is not there, another session runs, or code was imported
            from somewhere else than its checkout.
        RecordError: the session to be resumed cannot be read.
    """
    budget = Budget(options.budget_s, clock)
    repository = Repository(options.folder)
    parent = options.results / SESSIONS
    with locked(parent):
        for folder in clear_stale(parent):
            progress.say(f"removed {folder}, which a session that was killed had left")
        repository.prune()
        journal, plan = (
            new_plan(options, repository, parent)
            if resume is None
            else resumed_plan(options, repository, parent, resume, progress)
        )
        with Guard() as guard, on_cpus(plan.options.cpus):
            journal.plan["folder"] = str(guard.folder)
            journal.save_plan()
            session = _Session(plan, journal, guard, progress, budget, run)
            comparisons = session.measure()
            check = session.check(comparisons) if plan.options.self_check else None
        if not session.cut_short:
            journal.finish(f"{len(comparisons.comparisons)} benchmarks\n")
    return AbResult(comparisons, journal.id, check, session.cut_short)


class _Session:
    """One session's way from two commits to verdicts."""

    def __init__(
        self,
        plan: Plan,
        journal: Journal,
        guard: Guard,
        progress: Progress,
        budget: Budget,
        run: Run,
    ) -> None:
        self.plan, self.options, self.journal = plan, plan.options, journal
        self.guard, self.progress, self.budget = guard, progress, budget
        self.launcher = Launcher(
            guard,
            Judges(records.launch_value, records.bimodal),
            self.options.words,
            self.options.timeout_s or _FIRST_TIMEOUT_S,
            run,
            Controls().measure,
            lambda: budget.left_s,
        )
        self.verdicts = Verdicts(journal, self.options.floor)
        self.verdicts.floors = kept_floors(journal, self.options.floor)
        self.cut_short, self.told = False, ""
        self.notes = list(plan.notes)
        self.startup_s: dict[str, float] = {}

    def measure(self) -> records.ComparisonSet:
        """Everything, in order."""
        try:
            sides = self._sides()
            selection = self._collected(sides)
            selection, costs = self._warmed_up(sides, selection)
        except NothingToCompare as end:
            return self._ended(str(end))
        stages = Stages(
            lambda stage, pair, file, side, ids: self.launcher.measure(
                stage, pair, file, sides[side], ids
            ),
            self.journal,
            self.budget,
            self.progress,
            self.plan.seed,
            costs,
        )
        self._say_plan(selection, stages)
        for keeps_reserve in (True, False):
            # What the suspects leave of the budget goes to what screening had no room for.
            stages.keeps_reserve = keeps_reserve
            self.verdicts.left_out = stages.screen(selection.work)
            self._until_answered(self.verdicts.to_screen, stages.screen_again, _SCREENED)
            self._until_answered(self.verdicts.to_confirm, stages.confirm, _CONFIRMED)
        self.verdicts.refused = frozenset(stages.refused)
        self.cut_short = bool(self.verdicts.unfinished())
        self._explain(sides, stages)
        return self._set()

    def _until_answered(
        self,
        wanting: Callable[[], Sequence[Group]],
        measure: Callable[[Work, int], None],
        words: str,
    ) -> None:
        """More pairs for what asks for them, as long as any are measured: the budget may end."""
        while groups := wanting():
            before = len(self.journal.turns)
            count = sum(len(ids) for _, work in groups for ids in work.values())
            told = words.format(wording.counted(count, "benchmark"), groups[0][0])
            if told != self.told:  # what had no room at first is taken up again later
                self.progress.say(told)
            self.told = told
            for pairs, work in groups:
                measure(work, pairs)
            if len(self.journal.turns) == before:
                return

    def _ended(self, why: str) -> records.ComparisonSet:
        """The end before anything was measured this time: what the journal holds is judged."""
        self.cut_short = self.cut_short or self.budget.left_s <= 0
        work = self.verdicts.selection.work
        pairs = {file: len(self.journal.pairs(SCREEN, file)) for file in work}
        if not any(pairs.values()):
            return self._set(why)
        self.notes.append(why)
        self.verdicts.refused = frozenset(work)
        self.verdicts.left_out = tuple(n for n in work if pairs[n] < records.SCREEN_LOOKS[0])
        return self._set()

    def check(self, comparisons: records.ComparisonSet) -> SelfCheck:
        """What equal sides tell of the machine."""
        detectable = {one.id: one.detectable for one in comparisons.comparisons}
        selection, threads = self.verdicts.selection, self.options.threads
        return self_check(self.journal, selection, self.verdicts, detectable, threads)

    def _explain(self, sides: Mapping[str, Side], stages: Stages) -> None:
        """One profiled launch of each side for what is confirmed to have changed."""
        for file, ids in self.verdicts.changed().items():
            if stages.pair_cost(file) > self.budget.left_s:
                self.notes.append(f"the budget had no room to profile {file}, so no why is told")
                self.cut_short = True
                continue
            self.progress.step(0, 0, None, f"profiling {file}")
            documents = {name: self.launcher.profile(side, ids) for name, side in sides.items()}
            self.verdicts.explanations |= records.explain_launches(documents, ids)

    def _set(self, reason: str = "") -> records.ComparisonSet:
        """What the reports are made of.

        Args:
            reason: why nothing could be measured; empty if something was.
        """
        labels, options = self.plan.labels, self.options
        names = labels["base"] if options.self_check else f"{labels['base']} -> {labels['head']}"
        title = f"opbench {'self-check' if options.self_check else 'ab'}   {names}"
        threads = "as configured" if options.threads is None else str(options.threads)
        cpus = "all" if options.cpus is None else ",".join(map(str, options.cpus))
        facts = (
            wording.pairs_used(*self.verdicts.pairs()),
            f"floor {options.floor}",
            f"threads {threads}",
            f"cpus {cpus}",
            f"seed {self.plan.seed}",
            wording.duration(self.budget.spent_s),
        )
        return records.ComparisonSet(
            title=title,
            context=("   ".join(facts), *self._told(), *self.notes),
            comparisons=self.verdicts.comparisons(),
            reproduce=wording.command_line(options, self.plan.commits, self.plan.seed),
            reason=reason or self.verdicts.machine_moved(),
            unfinished=self.verdicts.unfinished(),
            facts={
                "session": self.journal.id,
                "seed": str(self.plan.seed),
                "base": self.plan.commits["base"],
                "head": self.plan.commits["head"],
                "threads": threads,
                "cpus": cpus,
                "python": platform.python_version(),
                **{name: str(fact) for name, fact in machine_facts().items() if fact is not None},
            },
        )

    def _told(self) -> list[str]:
        """What a reader must know beside the verdicts."""
        selection = self.verdicts.selection
        told = []
        if selection.long:
            told.append(f"{len(selection.long)} marked long were not named, and so not measured")
        if self.verdicts.left_out:
            left = ", ".join(self.verdicts.left_out)
            told.append(
                f"the budget of {wording.duration(self.budget.seconds or 0)} had no room for {left}"
            )
        if self.plan.commits["base"] == self.plan.commits["head"] and not self.options.self_check:
            told.append("base and head are the same commit: whatever is found is noise")
        told += [line for line in (crowded(self.journal.turns),) if line]
        if open_ones := self.verdicts.unconfirmed():
            told.append(
                f"suspected, and not confirmed for want of time: {', '.join(open_ones)}; give more "
                "with --budget, or name fewer tests"
            )
        return told

    # the steps before anything counts

    def _sides(self) -> dict[str, Side]:
        options = SideOptions(
            prefix=self.plan.repository.prefix,
            import_roots=self.options.import_roots,
            setup=self.options.setup,
            threads=self.options.threads,
        )
        sides = {}
        for name in SIDES:
            commit = self.plan.commits[name]
            self.progress.step(0, 0, None, f"checking out {name} {self.plan.labels[name]}")
            tree = self.guard.folder / name / "tree"
            self.guard.worktree(self.plan.repository, tree, commit)
            if options.setup:
                self.progress.step(0, 0, None, f"setting up {name}")
            sides[name] = make_side(name, commit, tree, options, self.guard, os.environ)
        return sides

    def _collected(self, sides: Mapping[str, Side]) -> Selection:
        surveys = {}
        places = places_of(self.options.paths, sides)
        for name, side in sides.items():
            self.progress.step(0, 0, None, f"collecting {name}")
            if self.options.paths and not places[name]:
                raise NothingToCompare(f"{name} has none of {', '.join(self.options.paths)}")
            survey, result = self.launcher.collect(side, places[name])
            surveys[name] = usable(name, survey, result, self.launcher.allowed_s)
            self.startup_s[name] = result.seconds
            self._check_imports(side, surveys[name])
            for where, text in surveys[name].errors:
                first = text.strip().splitlines()[-1:] or ["no reason given"]
                self.notes.append(f"{name}: {where} could not be collected: {first[0]}")
        cwd = {name: side.cwd for name, side in sides.items()}
        selection = select(surveys, cwd, self.options.paths, long=self.options.long)
        self.verdicts.selection = selection
        if not selection.work:
            raise NothingToCompare(wording.no_work(selection))
        return selection

    def _warmed_up(
        self, sides: Mapping[str, Side], selection: Selection
    ) -> tuple[Selection, dict[str, float]]:
        """One uncounted launch of each file on each side; what a pair of it will cost."""
        warm: dict[str, dict[str, WarmUp]] = {}
        for number, (file, ids) in enumerate(selection.work.items()):
            self._check_budget()
            warm[file] = {}
            for name, side in sides.items():
                what = f"warming up {file} {name}"
                self.progress.step(number, len(selection.work), None, what)
                warm[file][name] = self.launcher.warm_up(side, ids)
                survey = warm[file][name].survey
                if survey is not None:
                    self._check_imports(side, survey)
                if warm[file][name].problem:  # which may be that no time was left for it
                    self._check_budget()
            keep_floors(self.journal, self.options.floor, warm[file])
        self.verdicts.floors = kept_floors(self.journal, self.options.floor)
        costs = {file: self._pair_cost(both) for file, both in warm.items()}
        selection = self.verdicts.selection = after_warm_up(selection, warm)
        if not selection.work:
            raise NothingToCompare(wording.no_work(selection))
        if self.options.timeout_s is None:
            slowest = max(one.seconds for both in warm.values() for one in both.values())
            self.launcher.timeout_s = max(_LEAST_TIMEOUT_S, _PATIENCE * slowest)
        return selection, costs

    def _pair_cost(self, warm: Mapping[str, WarmUp]) -> float:
        """Seconds that a pair of a file will take: its warm-up, without what was compiled."""
        counted = {
            name: self.startup_s[name] + _UNTIMED * one.measuring_s for name, one in warm.items()
        }
        return sum(min(one.seconds, counted[name]) + _CONTROLS_S for name, one in warm.items())

    def _check_budget(self) -> None:
        """End the warming up where no time is left for it."""
        if self.budget.left_s <= 0:
            spent = wording.duration(self.budget.spent_s)
            msg = f"the budget was spent while warming up ({spent}); give more with --budget"
            raise NothingToCompare(msg)

    def _check_imports(self, side: Side, survey: Survey) -> None:
        """End the session if it would measure something else than the checkout."""
        found = misplaced(
            survey,
            side.tree,
            side.roots or (side.cwd,),
            side.folder,
            self.plan.repository.root,
            self.options.elsewhere,
        )
        if found:
            raise ConfigError(wording.wrong_place(side, found, self.options.setup))

    def _say_plan(self, selection: Selection, stages: Stages) -> None:
        """The planned cost, before any of it is spent."""
        pairs = records.SCREEN_LOOKS[0]
        missing = {
            file: max(0, pairs - len(self.journal.pairs(SCREEN, file))) for file in selection.work
        }
        seconds = sum(count * stages.pair_cost(file) for file, count in missing.items())
        self.progress.say(wording.planned(selection, seconds, self.budget.seconds, self.plan.seed))
        if selection.long:
            self.progress.say(
                f"{len(selection.long)} marked long are left out; name one by its id or give --long"
            )
