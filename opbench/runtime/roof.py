"""How fast this machine is at most: the best of many bursts, some of them in quiet moments.

All that is measured takes turns, pass after pass, since a machine has slow moments of a tenth of
a second and more (its clock, its other tenants), which would otherwise fall on one of the rates.
What others do can only lower a rate, so the best burst counts, disturbed or not; but a best of
disturbed bursts alone is no roof, so passes go on until some were quiet, for as long as there is
patience. A roof says which of the two it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

from opbench import probes
from opbench.operators import roof

__all__ = [
    "DTYPES",
    "Measured",
    "Stopwatch",
    "best_rates",
    "calibrated",
    "facts",
    "measure",
    "pool_threads",
    "together",
]

DTYPES = roof.DTYPES
BURST_SECONDS = 0.02
BURSTS = 2  # of each kind in a pass
QUIET_PASSES = 2
DISTURBED = 0.1  # share of all CPUs; the same by which the plugin calls a run disturbed
FACTS = ("cpu_model", "cpu_count", "usable_cpus", "machine", "system", "numba")

Burst: TypeAlias = Callable[[], "tuple[float, float]"]


@dataclass(frozen=True, slots=True)
class Measured:
    """What so many threads reach together.

    Attributes:
        threads: how many ran at the same time.
        peaks: FLOP/s by dtype.
        bandwidth: (bytes of the working set, bytes/s), ascending in the working set.
        quiet: whether other processes left the machine alone for a while, so that the rates are
            not too low.
    """

    threads: int
    peaks: dict[str, float]
    bandwidth: tuple[tuple[int, float], ...]
    quiet: bool


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """The clock, in seconds, and the reading of CPU time; replaced in tests."""

    clock: Callable[[], float] = time.perf_counter
    reading: Callable[[], probes.CpuReading | None] = probes.cpu_reading


def measure(
    threads: int,
    dtypes: Sequence[str] = DTYPES,
    *,
    bandwidth: bool = True,
    seconds: float = 1.5,
    patience: float = 3.0,
    watch: Stopwatch | None = None,
) -> Measured:
    """Measure the peak of each dtype, and the bandwidth of caches and memory.

    Args:
        threads: how many Python threads work, each on a core of its own if there are as many.
        dtypes: float32, float64.
        bandwidth: whether the sweeps are among it.
        seconds: how long to measure; at least one pass is made, which takes about half a second.
        patience: how long to go on if the machine is not quiet.
        watch: a clock; the process's own if None.

    Raises:
        DTypeError: a dtype whose peak is not measured.
        ConfigError: NUMBA_DISABLE_JIT is set.
    """
    watch = watch or Stopwatch()
    sizes = roof.working_sets(threads) if bandwidth else ()
    works: list[tuple[str | int, roof.Work]]
    works = [(dtype, roof.peak_work(dtype, threads)) for dtype in dtypes]
    works += [(size, work) for size in sizes for work in roof.bandwidth_work(size, threads)]
    with ThreadPoolExecutor(threads) as pool:
        bursts = [(key, calibrated(together(work, pool, watch))) for key, work in works]
        best, quiet = best_rates(bursts, seconds, patience, watch)
    return Measured(
        threads,
        {dtype: best[dtype] for dtype in dtypes},
        tuple((size, best[size]) for size in sizes),
        quiet,
    )


def best_rates(
    bursts: Sequence[tuple[Any, Burst]], seconds: float, patience: float, watch: Stopwatch
) -> tuple[dict[Any, float], bool]:
    """The best rate by key, of all bursts with that key, and whether enough passes were quiet.

    Args:
        bursts: a key, and a function without arguments to the work done and the seconds it took.
        seconds: how long to measure.
        patience: how long to go on until QUIET_PASSES were quiet.
        watch: the clock and the reading of CPU time.
    """
    start, quiet_passes = watch.clock(), 0
    best: dict[Any, float] = {}
    while True:
        before = watch.reading()
        for key, burst in bursts:
            for _ in range(BURSTS):
                work, taken = burst()
                best[key] = max(best.get(key, 0.0), work / taken)
        # Where the system does not tell what others used, nothing is known to have disturbed.
        others = probes.cpu_busy_elsewhere(before, watch.reading()) or 0.0
        quiet_passes += others <= DISTURBED
        passed, quiet = watch.clock() - start, quiet_passes >= QUIET_PASSES
        if passed >= (seconds if quiet else patience):
            return best, quiet


def calibrated(repeated: Callable[[int], tuple[float, float]]) -> Burst:
    """A burst of as many repeats as take about BURST_SECONDS."""
    repeated(1)  # compiles, and touches the memory
    repeats = 1
    while (taken := repeated(repeats)[1]) < BURST_SECONDS / 2:
        repeats = max(2 * repeats, int(repeats * BURST_SECONDS / max(taken, 1e-6)))
    return lambda: repeated(repeats)


def together(
    work: roof.Work, pool: ThreadPoolExecutor, watch: Stopwatch
) -> Callable[[int], tuple[float, float]]:
    """A burst of all pieces at once: repeats to the work done, and seconds from first to last."""
    barrier = threading.Barrier(len(work.pieces))

    def one(piece: Callable[[int], int], repeats: int) -> tuple[int, float, float]:
        barrier.wait()
        start = watch.clock()
        done = piece(repeats)
        return done, start, watch.clock()

    def burst(repeats: int) -> tuple[float, float]:
        futures = [pool.submit(one, piece, repeats) for piece in work.pieces]
        parts = [future.result() for future in futures]
        start, end = min(part[1] for part in parts), max(part[2] for part in parts)
        return float(sum(part[0] for part in parts)), end - start

    return burst


def facts() -> dict[str, Any]:
    """What must be equal for a stored roof to hold: machine and compiler, in plain values."""
    known = probes.facts()
    return {name: known[name] for name in FACTS} | roof.target()


def pool_threads() -> int:
    """Threads that a kernel may use here: the size of Numba's pool."""
    return probes.facts()["numba_threads"] or 1
