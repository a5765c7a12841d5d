"""The worker lanes of a test: the buffers that it passes to kernels, and what they recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from opbench import profiler
from opbench.plugin.target import Target

__all__ = ["Lanes"]

LANES = "lanes"


class Lanes:
    """Makes the buffers of one test, and switches them on for the calls of its profiled pass.

    A buffer is one array in both passes, so that a kernel is compiled once and gets it however the
    test passes it on. In the timed pass it is off: a kernel tests that and records nothing.
    """

    def __init__(self) -> None:
        self._buffers: list[Any] = []
        self._silent: set[int] = set()  # places of those that no kernel has written to yet
        self._calls = 0
        self._passed: Any = None  # the one that the measured kernel itself takes

    def __call__(self, count: int) -> Any:
        """A buffer for a kernel that calls ``lane_begin`` and ``lane_end``, in compiled code.

        The profiled pass shows what each worker did in each call, and the ``call`` slice (or that
        of the user's operator) says how they shared the work. Of a kernel that is called several
        times in one call of the measured function, only the first writes records.

        Args:
            count: the most pieces that one call of the kernel begins; more are counted as lost.

        Returns:
            What to pass to the kernel, in any way; an empty one where workers cannot be recorded
            (without the compiler, or where compiled code lacks the profiler's clock).

        Raises:
            ConfigError: no whole number of 0 or more.
        """
        from opbench.operators import lanes

        if lanes.available():
            return lanes.OFF
        recorder = profiler.RECORDER
        if recorder.worker_record_ns is None:
            recorder.worker_record_ns = lanes.record_ns()
        buffer = lanes.buffer(count)
        lanes.switch_off(buffer)
        self._silent.add(len(self._buffers))
        self._buffers.append(buffer)
        return buffer

    def prepare(self, operator: Any, summary: Mapping[str, Any]) -> None:
        """Have a buffer for an operator's own kernel, if that is what is measured.

        Args:
            operator: whose kernel it is, or None.
            summary: its ``shapes`` and ``dtype``, if they are known.
        """
        if operator is None or operator.lanes is None or "shapes" not in summary:
            return
        if self._buffers:  # the test has made one, and passes it on itself
            return
        shapes = [tuple(shape) for shape in summary["shapes"]]
        self._passed = self(operator.lanes(shapes, summary["dtype"]))

    @contextmanager
    def attached(self, target: Target) -> Iterator[Target]:
        """The target with the buffer that was prepared for it, all buffers on within the block."""
        if self._passed is not None and LANES not in (target.kwargs or {}):
            target = replace(target, kwargs={**(target.kwargs or {}), LANES: self._passed})
        if not self._buffers:
            yield target
            return
        from opbench.operators import lanes

        for buffer in self._buffers:
            lanes.switch_on(buffer)
        try:
            yield target
        finally:
            for buffer in self._buffers:
                lanes.switch_off(buffer)

    def taken(self, name: str, start: int, end: int) -> dict[str, Any]:
        """Put what the workers did into the trace; what the call's own event says of it.

        Args:
            name: of the call.
            start: of the call, by the recorder's clock.
            end: likewise.
        """
        if not self._buffers:
            return {}
        from opbench.operators import lanes

        found = [lanes.taken(buffer) for buffer in self._buffers]
        rows = [row for taken in found for row in taken.rows]
        lost = sum(taken.lost for taken in found)
        self._silent = {n for n in self._silent if found[n] == ([], 0)}
        self._calls += 1
        recorder, asked = profiler.RECORDER, lanes.asked()
        return profiler.record_lanes(recorder, rows, name, start, end, asked, lost=lost).args()

    def notes(self) -> list[str]:
        """A sentence for the end of the session, if a kernel got a buffer and never used it."""
        silent = [n for n in self._silent if self._buffers[n] is not self._passed]
        if not self._calls or not silent:
            return []
        return [
            "no worker wrote to profiler.lanes(...): does the kernel call lane_begin and lane_end?"
        ]
