"""Verdicts as values: they exist before, and without, any rendering."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

__all__ = [
    "Attribution",
    "Comparison",
    "ComparisonSet",
    "Summary",
    "Verdict",
]

CONFIRMED, NOTHING_JUDGED = 1, 3


class Verdict(str, Enum):
    """What was decided about one benchmark."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    """The whole interval lies within the floor."""
    INCONCLUSIVE = "inconclusive"
    """Measured, and neither a change nor its absence is shown."""
    INCOMPARABLE = "incomparable"
    """The two sides must not be related: another machine, no values."""
    ADDED = "added"
    REMOVED = "removed"


CHANGED = (Verdict.REGRESSED, Verdict.IMPROVED)
DECIDED = (*CHANGED, Verdict.UNCHANGED)


@dataclass(frozen=True, slots=True)
class Summary:
    """One side of a comparison."""

    centre: float
    """Median over launches of the launch's lower quartile, seconds per call."""
    low: float
    high: float
    confidence: float
    """Of the interval: what it really is, not what was asked for."""
    n: int
    """Launches."""
    warnings: tuple[str, ...] = ()
    spread: float = 0.0
    """Robust standard deviation between launches, as a share."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """One part of a benchmark and what it contributes to a change."""

    side: str
    """``operator``, ``api``, ``memory``, ``compile``, ``imbalance`` or ``rest``."""
    name: str
    before: float
    after: float
    unit: str = "s"
    """``s`` per iteration; empty for a ratio such as an imbalance."""

    @property
    def change(self) -> float:
        """After less before."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is known of one benchmark on both sides."""

    id: str
    baseline: Summary | None
    candidate: Summary | None
    ratio: float | None
    """Candidate over baseline: above 1 is slower."""
    low: float | None
    high: float | None
    verdict: Verdict
    warnings: tuple[str, ...] = ()
    """Whole sentences' worth of what its reader must know; the first is the verdict's reason."""
    attributions: tuple[Attribution, ...] = ()
    """What accounts for the change, the largest part first."""
    detectable: float | None = None
    """Smallest slowdown that these data could have shown, as a share; None if none could."""
    floor: float | None = None
    """The share that a change had to reach."""
    confidence: float | None = None
    """Of low and high."""
    label: str = ""
    """What a report calls it; the id if empty."""
    group: str | None = None
    least_ratio: float | None = None
    """Ratio of the fastest rounds, where a side has a single launch."""
    tripped: bool = False
    """Whether that ratio is beyond the tripwire: worth a look, and no evidence."""

    @property
    def judged(self) -> bool:
        """Whether the data could have shown a change."""
        return self.verdict in DECIDED or (
            self.verdict is Verdict.INCONCLUSIVE and self.detectable is not None
        )


@dataclass(frozen=True, slots=True)
class ComparisonSet:
    """All that a report shows of two sides."""

    title: str
    context: tuple[str, ...]
    """How it was measured, one line; then what the reader must know, a line each."""
    comparisons: tuple[Comparison, ...]
    sides: tuple[str, str] = ("base", "head")
    """What the columns are called."""
    differences: tuple[tuple[str, str, str], ...] = ()
    """Facts of the environment that are not equal: what, before, after."""
    reproduce: str = ""
    """The command that does it again."""
    reason: str = ""
    """Why nothing could be compared, where one reason holds for everything."""
    order: str = "change"
    """How reports sort: ``change`` (the worst first), ``name``, or ``file`` as it is here."""
    unfinished: tuple[str, ...] = ()
    """Ids of what a budget left undecided, so that more time would go on with it."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Whatever else a machine may want to read, such as the ids of both records."""

    def having(self, *verdicts: Verdict) -> tuple[Comparison, ...]:
        """Those with one of these verdicts, in the order of the set."""
        return tuple(one for one in self.comparisons if one.verdict in verdicts)

    def count(self, verdict: Verdict) -> int:
        """How many have it."""
        return sum(one.verdict is verdict for one in self.comparisons)

    def exit_code(self, *, strict: bool = False) -> int:
        """0 no confirmed regression, 1 a confirmed one, 3 nothing was judged.

        Args:
            strict: also 3 where anything is undecided, incomparable or gone.
        """
        if self.count(Verdict.REGRESSED):
            return CONFIRMED
        if not any(one.judged for one in self.comparisons):
            return NOTHING_JUDGED
        undecided = (Verdict.INCONCLUSIVE, Verdict.INCOMPARABLE, Verdict.REMOVED)
        return NOTHING_JUDGED if strict and self.having(*undecided) else 0
