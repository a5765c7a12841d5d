"""Python's garbage collections as slices of their own."""

from __future__ import annotations

import gc
from typing import Any

from opbench.probes.interruptions import INTERRUPTIONS, So
from opbench.probes.probe import Probe
from opbench.profiler import Mode, Profiler

__all__ = ["CollectorSlices"]


class CollectorSlices(Probe):
    """Records each collection, of any mode's window, on the thread that it held up.

    What a pause contains is dropped by the recorder. It stands in ``gc.callbacks`` only while a
    window is open.
    """

    def __init__(self, recorder: Profiler) -> None:
        self._recorder = recorder
        self._hook = self._hear
        # One slot is enough: the interpreter never runs two collections at a time.
        self._begun: tuple[int, So] | None = None

    def opened(self, modes: Mode) -> None:  # noqa: ARG002 - the modes make no difference
        """Listen."""
        self._begun = None
        if self._hook not in gc.callbacks:
            gc.callbacks.append(self._hook)

    def closed(self) -> None:
        """Listen no more."""
        if self._hook in gc.callbacks:
            gc.callbacks.remove(self._hook)

    def _hear(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            self._begun = (self._recorder.clock(), INTERRUPTIONS.so_far)
            return
        begun, self._begun = self._begun, None
        if begun is None:  # it was under way when the window opened
            return
        start, before = begun
        end = self._recorder.clock()
        INTERRUPTIONS.collected(end - start, before)
        args = {**info, "iteration": self._recorder.iteration}
        self._recorder.complete(f"gc generation {info['generation']}", "gc", start, end, args)
