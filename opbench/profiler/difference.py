"""What differs between two traces: which times grew, and which are in one of them only."""

from __future__ import annotations

import math
from typing import NamedTuple

from opbench.profiler.events import Trace
from opbench.profiler.rows import AggregateStat, aggregate

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
    """

    category: str
    name: str
    shape: str
    before: AggregateStat | None
    after: AggregateStat | None

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
        if min(self.before.count, self.after.count) < FEWEST:
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
    rows = [
        {
            (row.category, row.name, row.shape, row.thread): row
            for row in aggregate(trace, by)
            if row.is_time
        }
        for trace in (before, after)
    ]
    found = [
        Difference(key[0], key[1], key[2], rows[0].get(key), rows[1].get(key))
        for key in rows[0].keys() | rows[1].keys()
    ]
    return sorted(found, key=lambda row: (-abs(row.growth_ns), row.category, row.name, row.shape))


def _wander(row: AggregateStat) -> float:
    """The standard error of a median, for a distribution of any width: 1.25 σ by √n."""
    # Of the spread above the median: a few calls that were disturbed widen the deviation at will.
    spread = min(row.std, (row.p90 - row.median) / 1.2816) if row.p90 > row.median else row.std
    return 1.2533 * spread / math.sqrt(row.count)
