"""The statistics of the doors: of every window since the last reset, whatever was dumped."""

from __future__ import annotations

from opbench.profiler.events import Trace
from opbench.profiler.tally import Tally, tally_of

__all__ = ["Figures"]


class Figures:
    """Adds up windows as they close, and can begin anew in the middle of one.

    A window's events are looked at when somebody asks, or when they are let go of and their figures
    are to outlive them; recording pays nothing for it.
    """

    def __init__(self) -> None:
        self._closed = Tally()
        self._unread: list[Trace] = []
        self._before: Tally | None = None  # of the window that was open at the last reset

    def window_closed(self, trace: Trace) -> None:
        """One more window is complete."""
        if self._before is None:
            self._unread.append(trace)
            return
        rest = tally_of(trace)
        rest.subtract(self._before)
        self._before = None
        self._closed.add(rest)

    def so_far(self, open_window: Trace | None) -> Tally:
        """The figures since the last reset.

        Args:
            open_window: what the window that is open has recorded, or None.
        """
        self._read()
        figures = Tally()
        figures.add(self._closed)
        if open_window is not None:
            figures.add(self._rest(open_window))
        return figures

    def reset(self, open_window: Trace | None) -> None:
        """Begin anew: what was recorded until now is in no figure any more."""
        self._closed = Tally()
        self._unread = []
        self._before = tally_of(open_window) if open_window is not None else None

    def events_let_go(self, *, keep: bool) -> None:
        """The closed windows' events are about to go, with their figures unless those are kept."""
        if keep:
            self._read()
        else:
            self._closed = Tally()
            self._unread = []

    def _read(self) -> None:
        while self._unread:
            self._closed.add(tally_of(self._unread[0]))
            del self._unread[0]

    def _rest(self, open_window: Trace) -> Tally:
        tally = tally_of(open_window)
        if self._before is not None:
            tally.subtract(self._before)
        return tally
