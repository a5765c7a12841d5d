"""What differs between two traces: which times grew, and which are in one of them only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from opbench.profiler.events import Trace
from opbench.profiler.rows import AggregateStat, rows_of, times_by
from opbench.profiler.tally import Key, tally_of

__all__ = ["Difference", "differences"]


FEWEST = 5  # calls, of which a spread can be told


class Difference(NamedTuple):
    """One operator, or whatever else has a name, in two traces.

    Attributes:
        category: the events'.
        name: the operator's or the events'.
        shape: shapes and dtype when grouped by shape, else empty.
        before: its row in the first trace; None if it is not there.
        after: its row in the second.
        before_ns: the duration of each call in the first trace.
        after_ns: likewise in the second.
    """

    category: str
    name: str
    shape: str
    before: AggregateStat | None
    after: AggregateStat | None
    before_ns: Sequence[int] = ()
    after_ns: Sequence[int] = ()

    @property
    def comparable(self) -> bool:
        """Whether both traces hold calls enough to tell a spread."""
        return min(len(self.before_ns), len(self.after_ns)) >= FEWEST

    @property
    def growth_ns(self) -> int:
        """How much more time it takes in all."""
        before = self.before.total or 0 if self.before else 0
        after = self.after.total or 0 if self.after else 0
        return after - before

    @property
    def ratio(self) -> float | None:
        """The second median by the first; None where there is no first, or it is zero."""
        if self.before is None or self.after is None or not self.before.median:
            return None
        return self.after.median / self.before.median

    @property
    def verdict(self) -> str:
        """``added``, ``removed``, ``slower``, ``faster``, ``same`` or, of few calls, ``unclear``.

        The medians differ where they are further apart than three times what the spread within the
        two traces lets a median wander. A trace is one launch: of how launches differ it says
        nothing, so that this is where to look, and no judgement of a change.
        """
        if self.before is None or self.after is None:
            return "added" if self.before is None else "removed"
        if not self.comparable:
            return "unclear"
        apart = self.after.median - self.before.median
        if abs(apart) <= 3 * math.hypot(_wander(self.before), _wander(self.after)):
            return "same"
        return "slower" if apart > 0 else "faster"


def differences(before: Trace, after: Trace, by: str = "operator") -> list[Difference]:
    """One row per name in any of the two, the largest change of the total time first.

    Args:
        before: the first trace.
        after: the second.
        by: ``operator``, or ``shape`` to tell calls of different shapes apart.

    Raises:
        ConfigError: another grouping.
    """
    tallies = [tally_of(before), tally_of(after)]
    first, second = (
        {
            Key(row.category, row.name, row.shape, row.thread): row
            for row in rows_of(tally, by)
            if row.is_time
        }
        for tally in tallies
    )
    calls = [
        {key: times.durations for key, times in times_by(tally, by).items()} for tally in tallies
    ]
    found = [
        Difference(
            key.category,
            key.name,
            key.shape,
            first.get(key),
            second.get(key),
            calls[0].get(key, ()),
            calls[1].get(key, ()),
        )
        for key in first.keys() | second.keys()
    ]
    return sorted(found, key=lambda row: (-abs(row.growth_ns), row.category, row.name, row.shape))


def _wander(row: AggregateStat) -> float:
    """The standard error of a median, for a distribution of any width: 1.25 σ by √n."""
    # Of the spread above the median: a few calls that were disturbed widen the deviation at will.
    spread = min(row.std, (row.p90 - row.median) / 1.2816) if row.p90 > row.median else row.std
    return 1.2533 * spread / math.sqrt(row.count)
