"""Two kernels that no project can change: if they move, it was the machine."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

__all__ = ["CONTROLS", "Controls"]

CONTROLS = ("compute", "memory")
_NUMBERS = 20_000
_BYTES = 4 << 20
_ROUNDS = 12


class Controls:
    """Times both kernels in this process, one thread each; their arrays are made once.

    A sort lives in the first two caches and counts what a core can do; a copy of 4 MiB lives on
    the way to memory. Neither asks BLAS, whose workers would spin into the launch that follows.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._numbers = np.random.default_rng(20_260).permutation(_NUMBERS)
        self._source = np.ones(_BYTES, np.uint8)
        self._target = np.empty_like(self._source)

    def measure(self) -> dict[str, float]:
        """Seconds a call of each, the lower quartile of 12 rounds."""
        return {
            "compute": self._timed(lambda: np.sort(self._numbers)),
            "memory": self._timed(lambda: np.copyto(self._target, self._source)),
        }

    def _timed(self, kernel: Callable[[], object]) -> float:
        seconds = []
        for _ in range(_ROUNDS):
            start = self._clock()
            kernel()
            seconds.append(self._clock() - start)
        return float(np.quantile(seconds, 0.25))
