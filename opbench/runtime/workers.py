"""What the workers inside an operator did, recorded whenever the operator's own event is."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from opbench.operators import lanes
from opbench.profiler import record_lanes
from opbench.runtime.recording import RECORDER

__all__ = ["READY", "Recorded", "recorded"]


class Recorded(NamedTuple):
    """A kernel for one call, and the buffer that its workers write to; None if they do not."""

    kernel: Callable[..., Any]
    buffer: lanes.Array | None

    def figures(self, operator: str, start: int, end: int) -> dict[str, Any]:
        """Put the workers' records into the trace; what the operator's event says of them.

        Args:
            operator: its name.
            start: of the call, by the recorder's clock.
            end: likewise.
        """
        if self.buffer is None:
            return {}
        rows, lost = lanes.taken(self.buffer)
        asked = lanes.asked()
        return record_lanes(RECORDER, rows, operator, start, end, asked, lost=lost).args()


def recorded(kernel: Callable[..., Any], count: Callable[[], int] | None) -> Recorded:
    """The kernel with a fresh buffer, where its workers write records.

    Args:
        kernel: the operator's.
        count: tells the most records of one call; None for an operator without workers.
    """
    most = count() if count is not None else 0
    if most == 0 or lanes.available():
        return Recorded(kernel, None)
    buffer = lanes.buffer(most)
    return Recorded(functools.partial(kernel, lanes=buffer), buffer)


class Readiness:
    """What is done before the first window, so that it is not in one.

    Attributes:
        count: the latest operator's, which loads compiled code the first time; None once it has.
    """

    def __init__(self) -> None:
        self.count: Callable[[], int] | None = None

    def __call__(self) -> None:
        """Let the recorder know what a worker's record costs, and have records counted once."""
        if RECORDER.state != "stop":
            return
        count, self.count = self.count, None
        # What goes wrong here goes wrong again where the operator runs, and is said there.
        with contextlib.suppress(Exception):
            if count is not None and count() and RECORDER.worker_record_ns is None:
                RECORDER.worker_record_ns = lanes.record_ns()


READY = Readiness()
RECORDER.add_synchroniser(READY)
