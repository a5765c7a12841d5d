"""Two clocks: one that never steps for the events, one that tells the date for the anchor."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Clock", "ClockAnchor", "take_anchor"]

Clock = Callable[[], int]


class ClockAnchor(NamedTuple):
    """One instant on both clocks, so that a trace can be placed in the day.

    Attributes:
        monotonic_ns: the recorder's clock, ns; its zero has no meaning.
        wall_ns: the same instant since the Unix epoch, ns.
    """

    monotonic_ns: int
    wall_ns: int

    def wall_at(self, monotonic_ns: int) -> int:
        """The date, ns since the Unix epoch, of an instant of the recorder's clock.

        Only the anchor's own reading of the wall clock enters: a wall clock that is stepped
        during a window moves nothing.
        """
        return self.wall_ns + monotonic_ns - self.monotonic_ns


def take_anchor(clock: Clock, wall_clock: Clock) -> ClockAnchor:
    """Read both clocks, the wall clock in the middle of two readings of the other."""
    before = clock()
    wall = wall_clock()
    return ClockAnchor((before + clock()) // 2, wall)
