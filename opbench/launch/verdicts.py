"""From the launches of a session to one comparison for each benchmark."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from opbench import records
from opbench.launch.controls import CONTROLS
from opbench.launch.journal import Journal
from opbench.launch.selection import Selection
from opbench.launch.side import SIDES
from opbench.launch.turn import CONFIRM, SCREEN, Turn

__all__ = ["BIMODAL_SHARE", "Evidence", "Group", "Verdicts"]

BIMODAL_SHARE = 0.25
"""Of the launches of a side, the share from which on a benchmark counts as bimodal."""
Group = tuple[int, Mapping[str, Sequence[str]]]
"""How many pairs in all are wanted, and by file the ids that want them."""
_Wanted = Callable[[Sequence[float], Sequence[float], records.Floor], int]
_CHANGED = (records.Verdict.REGRESSED, records.Verdict.IMPROVED)


class Evidence:
    """What a journal holds of one benchmark: the values of the pairs in which both sides have one.

    Attributes:
        base, head: by stage, the launches' values, pair by pair.
        pairs: by stage, the numbers of those pairs.
        bimodal: the larger share of a side's launches that ran at two speeds of their own.
        missing: by side, the launches without a value, although they were asked for one.
    """

    def __init__(self, journal: Journal, file: str, benchmark: str) -> None:
        self.base: dict[int, list[float]] = {SCREEN: [], CONFIRM: []}
        self.head: dict[int, list[float]] = {SCREEN: [], CONFIRM: []}
        self.pairs: dict[int, tuple[int, ...]] = {SCREEN: (), CONFIRM: ()}
        modes: dict[str, list[bool]] = {side: [] for side in SIDES}
        self.missing: dict[str, int] = dict.fromkeys(SIDES, 0)
        for stage in (SCREEN, CONFIRM):
            pairs = journal.pairs(stage, file)
            asked = (turn for sides in pairs.values() for turn in sides.values())
            if not any(benchmark in turn.values for turn in asked):
                continue  # it was no suspect, so nobody asked for it
            for number, sides in pairs.items():
                lacking = [side for side in SIDES if benchmark not in sides[side].values]
                if len(lacking) == len(SIDES):
                    continue  # decided already, so that this pair was for others
                for side in lacking:
                    self.missing[side] += 1
                if lacking:
                    continue
                self.pairs[stage] += (number,)
                self.base[stage].append(sides["base"].values[benchmark].quartile)
                self.head[stage].append(sides["head"].values[benchmark].quartile)
                for side in SIDES:
                    modes[side].append(sides[side].own_modes(benchmark))
        shares = [sum(seen) / len(seen) for seen in modes.values() if seen]
        self.bimodal = max(shares, default=0.0)

    def all(self, side: str) -> list[float]:
        """The values of both stages, those of screening first."""
        values = self.base if side == "base" else self.head
        return values[SCREEN] + values[CONFIRM]

    @property
    def screened(self) -> int:
        """Pairs of the first stage."""
        return len(self.base[SCREEN])

    @property
    def confirmed(self) -> int:
        """Pairs of the second stage."""
        return len(self.base[CONFIRM])


class Verdicts:
    """Judges what a journal holds.

    Attributes:
        selection: which benchmarks there are.
        left_out: files for which the budget had no room.
        floors: by test id, where the project says something else than the session's floor.
        explanations: by test id, what accounts for the change.
        refused: files that wanted pairs for which the budget had no room.
    """

    def __init__(self, journal: Journal, floor: records.Floor) -> None:
        """Judge by a floor."""
        self._journal, self._floor = journal, floor
        self.floors: dict[str, records.Floor] = {}
        self.refused: Collection[str] = ()
        self.selection = Selection()
        self.left_out: tuple[str, ...] = ()
        self.explanations: dict[str, tuple[records.Attribution, ...]] = {}

    def suspects(self) -> dict[str, list[str]]:
        """By file, what screening found to differ."""
        found: dict[str, list[str]] = {}
        for file, ids in self.selection.work.items():
            for name in ids:
                evidence = Evidence(self._journal, file, name)
                base, head = evidence.base[SCREEN], evidence.head[SCREEN]
                if base and records.screen(base, head, self._floor_of(name)):
                    found.setdefault(file, []).append(name)
        return found

    def to_screen(self) -> list[Group]:
        """What screening has no answer for yet."""
        work = {file: ids for file, ids in self.selection.work.items() if file not in self.left_out}
        return self._groups(SCREEN, work, records.pairs_to_screen, records.SCREEN_LOOKS[0])

    def to_confirm(self) -> list[Group]:
        """The suspects that fresh pairs have no answer for yet."""
        work = self.suspects()
        return self._groups(CONFIRM, work, records.pairs_to_confirm, records.CONFIRM_LOOKS[0])

    def _groups(
        self, stage: int, work: Mapping[str, Sequence[str]], wanted: _Wanted, first: int
    ) -> list[Group]:
        """What wants more pairs, the least first; together those that have the same ones.

        Of those with other pairs each would wait for the values that another one lacks.
        """
        found: dict[tuple[int, tuple[int, ...]], dict[str, list[str]]] = {}
        for file, ids in work.items():
            for name in ids:
                evidence = Evidence(self._journal, file, name)
                base, head = evidence.base[stage], evidence.head[stage]
                pairs = wanted(base, head, self._floor_of(name))
                # The first pairs may show that two modes were a passing thing.
                fit = evidence.bimodal < BIMODAL_SHARE or len(base) < first
                if pairs > len(base) and fit:
                    group = found.setdefault((pairs, evidence.pairs[stage]), {})
                    group.setdefault(file, []).append(name)
        return [(pairs, group) for (pairs, _), group in sorted(found.items(), key=lambda g: g[0])]

    def unfinished(self) -> tuple[str, ...]:
        """What the budget left undecided, in the order of the files: more of it would go on."""
        wanting = {
            name
            for _, work in (*self.to_screen(), *self.to_confirm())
            for file, ids in work.items()
            if file in self.refused
            for name in ids
        }
        return tuple(
            name
            for file, ids in self.selection.work.items()
            for name in ids
            if file in self.left_out or name in wanting
        )

    def unconfirmed(self) -> list[str]:
        """Suspects for which the budget had too little room, so that they may be anything."""
        return [
            name
            for file, ids in self.selection.work.items()
            for name in ids
            if self._unconfirmed(Evidence(self._journal, file, name), name)
        ]

    def pairs(self) -> tuple[list[int], list[int]]:
        """How many pairs there are to screen and to confirm, of each benchmark that has some."""
        found = [
            Evidence(self._journal, file, name)
            for file, ids in self.selection.work.items()
            for name in ids
        ]
        screened, confirmed = [one.screened for one in found], [one.confirmed for one in found]
        return [n for n in screened if n], [n for n in confirmed if n]

    def changed(self) -> dict[str, list[str]]:
        """By file, what is confirmed to differ."""
        found: dict[str, list[str]] = {}
        for comparison in self.comparisons():
            file = self.selection.file_of(comparison.id)
            if comparison.verdict in _CHANGED and file is not None:
                found.setdefault(file, []).append(comparison.id)
        return found

    def comparisons(self) -> tuple[records.Comparison, ...]:
        """One for each benchmark of either side."""
        moved, unfinished = self.machine_moved(), set(self.unfinished())
        judged = [
            self._judged(file, name, moved, cut=name in unfinished)
            for file, ids in self.selection.work.items()
            for name in ids
        ]
        verdict = records.Verdict
        judged += [
            records.without_values(name, verdict.INCOMPARABLE, reason)
            for name, reason in self.selection.problems.items()
        ]
        judged += [
            records.without_values(name, verdict.ADDED, "only on head")
            for name in self.selection.added
        ]
        judged += [
            records.without_values(name, verdict.REMOVED, "only on base")
            for name in self.selection.removed
        ]
        return tuple(judged)

    def machine_moved(self) -> str:
        """A sentence if a control kernel ran slower beside one side than beside the other.

        Over all pairs: one launch's control says little, and the turns cancel a drift.
        """
        pairs = [
            sides
            for file in self.selection.work
            for stage in (SCREEN, CONFIRM)
            for sides in self._journal.pairs(stage, file).values()
        ]
        for control in CONTROLS:
            base, head = (_controls(pairs, side, control) for side in SIDES)
            if len(base) == len(head) >= 6:  # noqa: PLR2004 - the least for a sign interval of 95 %
                ratio, moved = _moved(base, head, self._floor.relative / 2)
                if moved:
                    return (
                        f"machine moved: the {control} control, which no project changes, ran "
                        f"{ratio:.3f} times as long beside head as beside base"
                    )
        return ""

    # inside

    def _judged(self, file: str, name: str, moved: str, *, cut: bool) -> records.Comparison:
        evidence = Evidence(self._journal, file, name)
        cut_off = file in self.left_out and evidence.screened < records.LEAST_PAIRS
        if not evidence.screened or cut_off:
            reason = self._why_unmeasured(file)
            return records.without_values(name, records.Verdict.INCOMPARABLE, reason)
        comparison = records.judge_pairs(
            name,
            evidence.all("base"),
            evidence.all("head"),
            self._floor_of(name),
            evidence.screened,
        )
        warnings = [*comparison.warnings, *_lacks(evidence)]
        wanted = records.SCREEN_LOOKS[0]
        if evidence.screened < wanted:
            warnings.append(f"{evidence.screened} of {wanted} pairs were measured")
        verdict, detectable = comparison.verdict, comparison.detectable
        if cut:
            warnings.append("the budget ended before it was decided; give more with --budget")
        if self._unconfirmed(evidence, name):
            # It may be a regression of any size: to end with 0 would be a false all-clear.
            detectable = None
        if evidence.bimodal >= BIMODAL_SHARE:
            warnings.append(
                f"bimodal: in {evidence.bimodal:.0%} of its launches the rounds lie around two "
                "values; try --threads 1"
            )
            verdict = records.Verdict.INCONCLUSIVE
        if moved:
            warnings.append(moved)
            verdict, detectable = records.Verdict.INCONCLUSIVE, None
        return replace(
            comparison,
            verdict=verdict,
            detectable=detectable,
            warnings=tuple(warnings),
            attributions=self.explanations.get(name, comparison.attributions),
        )

    def _unconfirmed(self, evidence: Evidence, name: str) -> bool:
        """Whether a suspect has too few fresh pairs for any verdict."""
        floor = self._floor_of(name)
        base, head = evidence.base[SCREEN], evidence.head[SCREEN]
        if not base or not records.screen(base, head, floor):
            return False
        return records.confirm(evidence.base[CONFIRM], evidence.head[CONFIRM], floor) is None

    def _floor_of(self, name: str) -> records.Floor:
        return self.floors.get(name, self._floor)

    def _why_unmeasured(self, file: str) -> str:
        if file in self.left_out:
            return "the budget had no room for it; give more with --budget"
        problems = [
            f"{turn.side}: {turn.problem}"
            for turn in self._journal.turns
            if turn.file == file and turn.problem
        ]
        return problems[-1] if problems else "the budget was spent before both sides were measured"


def _lacks(evidence: Evidence) -> list[str]:
    """What the reader must know of launches that did not give a value."""
    return [
        f"{count} launches of {side} gave no value"
        for side, count in evidence.missing.items()
        if count
    ]


def _controls(pairs: Sequence[Mapping[str, Turn]], side: str, control: str) -> list[float]:
    values = [sides[side].controls.get(control) for sides in pairs]
    return [value for value in values if value]


def _moved(base: Sequence[float], head: Sequence[float], floor: float) -> tuple[float, bool]:
    """The median ratio of a control, and whether it surely lies beyond the floor."""
    logs = [math.log(after / before) for before, after in zip(base, head, strict=True)]
    interval = records.sign_interval(logs, 0.99)
    centre = records.median(logs)
    if interval is None:
        return math.exp(centre), False
    low, high = interval[0], interval[1]
    return math.exp(centre), (low > 0 or high < 0) and abs(centre) > math.log1p(floor)
