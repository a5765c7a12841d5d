"""What listens to a recorder's windows."""

from __future__ import annotations

from opbench.profiler import Mode

__all__ = ["Probe"]


class Probe:
    """A listener of the recorder that does nothing yet; a subclass says at which transition.

    Each is told after the transition took effect. An event emitted in `closed` or `paused` is lost;
    one emitted in `opened` or `resumed` stands at the beginning of what is recorded.
    """

    def opened(self, modes: Mode) -> None:
        """A window has opened."""

    def closed(self) -> None:
        """It has closed, perhaps from a pause."""

    def paused(self) -> None:
        """Recording is suspended."""

    def resumed(self) -> None:
        """Recording goes on."""
