"""Who wants to know when recording begins and ends."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Protocol

from opbench.profiler.modes import Mode

__all__ = ["Listener", "Listeners"]


class Listener(Protocol):
    """Told of each transition after it took effect, with no lock held; it may emit events."""

    def opened(self, modes: Mode) -> None:
        """A window has opened."""

    def closed(self) -> None:
        """Nothing more is recorded in the window; also of one that was paused."""

    def paused(self) -> None:
        """Recording is suspended."""

    def resumed(self) -> None:
        """Recording goes on."""


class Listeners:
    """Calls them in turn; what one of them raises is told once and stops neither the others."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._complained: set[int] = set()

    def add(self, listener: Listener) -> None:
        """Tell this one too, from the next transition on."""
        self._listeners.append(listener)

    def remove(self, listener: Listener) -> None:
        """Tell this one no more; harmless if it was not told anyway."""
        self._listeners = [other for other in self._listeners if other is not listener]

    def tell(self, verb: str, modes: Mode) -> None:
        """Call what belongs to the transition."""
        calls: dict[str, Callable[[Listener], None]] = {
            "run": lambda listener: listener.opened(modes),
            "stop": lambda listener: listener.closed(),
            "pause": lambda listener: listener.paused(),
            "resume": lambda listener: listener.resumed(),
        }
        for listener in list(self._listeners):
            self._call(listener, verb, calls[verb])

    def _call(self, listener: Listener, verb: str, call: Callable[[Listener], None]) -> None:
        try:
            call(listener)
        except Exception as error:  # noqa: BLE001 - a probe must not cost the trace
            self._complain(listener, verb, error)

    def _complain(self, listener: Listener, verb: str, error: Exception) -> None:
        if id(listener) in self._complained:
            return
        self._complained.add(id(listener))
        sentence = (
            f"{type(listener).__name__} failed at {verb}() of the profiler, which goes on: "
            f"{type(error).__name__}: {error}"
        )
        try:
            warnings.warn(sentence, RuntimeWarning, stacklevel=2)
        except RuntimeWarning:  # made an error, which would stop the transition after all
            if sys.stderr is not None:
                sys.stderr.write(f"opbench: {sentence}\n")
