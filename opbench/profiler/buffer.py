"""The events of one window while it is open: bounded, and filled without a lock."""

from __future__ import annotations

from typing import NamedTuple

from opbench.errors import ConfigError
from opbench.profiler.raw import RawEvent

__all__ = ["CAPACITY", "Bounds", "Buffer", "parse_bounds"]

CAPACITY = 1_000_000
KEEP = ("oldest", "newest")
# There are as many of these as the window has iterations, and they are what the others belong to.
PROTECTED = ("iteration", "call")
LEAST_SLACK = 64


class Bounds(NamedTuple):
    """How much one window holds.

    Attributes:
        capacity: events, not counting iterations and calls, which are always kept.
        keep: ``oldest`` or ``newest``: which events stay when there are more.
    """

    capacity: int = CAPACITY
    keep: str = "oldest"


def parse_bounds(capacity: object, keep: object) -> Bounds:
    """Check both.

    Raises:
        ConfigError: no whole number of at least 1, or an unknown word.
    """
    if isinstance(capacity, bool) or not isinstance(capacity, int) or capacity < 1:
        raise ConfigError(f"capacity must be a whole number of at least 1, not {capacity!r}")
    if keep not in KEEP:
        raise ConfigError(f"keep must be 'oldest' or 'newest', not {keep!r}")
    return Bounds(capacity, str(keep))


class Buffer:
    """A list that everybody appends to, and the rare steps when it is full.

    `list.append` is atomic with and without a global interpreter lock, so an emit point takes no
    lock: it appends to `events` while they are fewer than `limit`, and otherwise calls `overflow`
    under the recorder's lock, as all the other methods are called. Threads that meet at the limit
    may pass it by one event each; `taken` puts that right.

    Attributes:
        events: the raw events, in the order in which they arrived.
        limit: how many there may be before `overflow` has to be asked.
        sent: how many of them, from the front, a stream has in its file.
        gone: how many have left the front of the list.
        spilled: events that only the stream's file holds any more.
    """

    __slots__ = ("_bounds", "_dropped", "_protected", "events", "gone", "limit", "sent", "spilled")

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        # Room to let the newest in without shifting the list at each event.
        slack = max(LEAST_SLACK, bounds.capacity // 4) if bounds.keep == "newest" else 0
        self.limit = bounds.capacity + slack
        self.events: list[RawEvent] = []
        self.sent = 0
        self.gone = 0
        self.spilled = 0
        self._protected: list[RawEvent] = []  # of those that had to go
        self._dropped = 0

    def overflow(self, event: RawEvent, *, protected: bool) -> None:
        """Find room for one more event of a full buffer, or count it as dropped."""
        if len(self.events) >= self.limit and self.sent:
            self._spill()
        if len(self.events) >= self.limit and self._bounds.keep == "newest":
            self._forget(len(self.events) - self._bounds.capacity + 1)
        if len(self.events) < self.limit or protected or event[2] in PROTECTED:
            self.events.append(event)
        else:
            self._dropped += 1

    def unsent(self, most: int) -> tuple[list[RawEvent], int]:
        """Events that no stream has in its file, the first `most`, and what `mark_sent` takes."""
        fresh = self.events[self.sent : self.sent + most]
        return fresh, self.gone + self.sent + len(fresh)

    def mark_sent(self, up_to: int) -> None:
        """They are in the file, however many have left the list meanwhile."""
        self.sent = max(self.sent, up_to - self.gone)

    @property
    def dropped(self) -> int:
        """Events that found no room, so far."""
        return self._dropped

    def taken(self) -> tuple[list[RawEvent], int]:
        """A copy of what is kept, and how many events are lost."""
        events = self.events[:]
        capacity = self._bounds.capacity
        extra = len(events) - capacity
        if extra <= 0:
            return self._protected + events, self._dropped
        if self._bounds.keep == "newest":
            kept = [event for event in events[:extra] if event[2] in PROTECTED] + events[extra:]
        else:
            kept = events[:capacity]
            kept += [event for event in events[capacity:] if event[2] in PROTECTED]
        return self._protected + kept, self._dropped + len(events) - len(kept)

    def _spill(self) -> None:
        """Let go of what the stream has written: the file holds it."""
        del self.events[: self.sent]
        self.gone += self.sent
        self.spilled += self.sent
        self.sent = 0

    def _forget(self, count: int) -> None:
        """Drop the oldest events."""
        oldest = self.events[:count]
        del self.events[:count]
        kept = [event for event in oldest if event[2] in PROTECTED]
        self._protected += kept
        self._dropped += count - len(kept)
        self.gone += count
