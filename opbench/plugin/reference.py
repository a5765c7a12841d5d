"""The kernel beside NumPy: the same operands, the same statistic, timed last.

OpenBLAS workers spin for about 0.1 s after a call and slow whatever runs next, so a pause follows
(``ReferenceTimer.settle``), and it is taken only by the next first call, never by a timed round.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

from opbench.plugin.target import Target

__all__ = ["SETTLE_SECONDS", "ReferenceTimer", "compare", "operand_key"]

SETTLE_SECONDS = 0.2


class ReferenceTimer:
    """Times references, remembers them per input, and knows when the last one ended.

    Args:
        clock: seconds; replaced in tests.
        sleep: takes seconds; replaced in tests.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._medians: dict[Any, float] = {}
        self._ended: float | None = None

    def settle(self) -> None:
        """Idle until :data:`SETTLE_SECONDS` have passed since the last reference call."""
        if self._ended is None:
            return
        left = self._ended + SETTLE_SECONDS - self._clock()
        self._ended = None
        if left > 0:
            self._sleep(left)

    def median(
        self,
        key: Any,
        function: Callable[[], Any],
        rounds: int,
        iterations: int,
        budget: float = float("inf"),
    ) -> float:
        """Median seconds of one call over ``rounds`` of ``iterations`` calls, after one untimed.

        Args:
            key: what makes two measurements the same (operator, operands); hashable.
            function: one call of the reference.
            rounds: as many as the benchmark had, so that both medians mean the same.
            iterations: calls a round, fewer if a slow reference would exceed the budget.
            budget: seconds that the rounds may take together, as far as one call a round allows.
        """
        if key not in self._medians:
            self.settle()
            affordable = budget / rounds / max(self._timed(function, 1), 1e-9)
            iterations = max(1, int(min(iterations, affordable)))
            values = [self._timed(function, iterations) / iterations for _ in range(rounds)]
            self._medians[key] = statistics.median(values)
            self._ended = self._clock()
        return self._medians[key]

    def _timed(self, function: Callable[[], Any], calls: int) -> float:
        start = self._clock()
        for _ in range(calls):
            function()
        return self._clock() - start


def compare(
    timer: ReferenceTimer, operator: Any, target: Target, operands: int, stats: Any
) -> dict[str, Any]:
    """The operator's reference on a kernel's operands, for ``extra_info``; empty if unknown.

    Args:
        timer: remembers what it timed.
        operator: whose reference is called.
        target: the kernel and its arguments.
        operands: how many of the positional arguments are read; 0 if that is not known.
        stats: pytest-benchmark's of the kernel.
    """
    if not operands:
        return {}
    median = timer.median(
        (operator.name, operand_key(target.args, target.kwargs or {})),
        target.with_own_output(operator.reference, operands).call,
        rounds=len(stats.stats.data),
        iterations=stats.iterations,
        budget=2 * stats.iterations * stats.stats.total,
    )
    ratio = median / stats.stats.median
    return {"reference": {"name": "numpy", "median": median, "ratio": ratio}}


def operand_key(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    """What makes two inputs the same for a reference: shapes, strides and dtypes, not values."""

    def one(value: Any) -> Any:
        if hasattr(value, "strides"):
            return (tuple(value.shape), tuple(value.strides), str(value.dtype))
        return repr(value)

    return (*map(one, args), *((key, one(kwargs[key])) for key in sorted(kwargs)))
