"""What recording workers costs: a record, a product whose tiles are recorded, a kernel that is off.

Run by hand: ``python tests/peers/lanes_cost.py --markdown``; parts of it by ``--only record off
tiles head``.

``record``: one worker record beside two readings of the same clock, both in compiled code.
``off``: a parallel kernel with `lane_begin` and `lane_end` around pieces of 3 µs, given an
empty buffer and one that is switched off, beside the same kernel without them.
``tiles``: dot 4096², all tiles recorded, beside the same call without.
``head``: dot with recording compiled in and off, beside that of the checkout given by ``--head``.

All quantities are timed in turns in one process. A ratio compares two moments that lie together;
printed are the median of the rounds' ratios and its order-statistic interval of about 95 %.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import math
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - run by path

from opbench import kernels  # noqa: E402

CLOCK = time.perf_counter_ns
LOOPS = 256
PIECES, ITEMS = 64, 4096
Row = tuple[str, str, str]  # what, figure, bar


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Median, and the two values between which it lies in about 95 % of all cases."""
    ordered, count = sorted(values), len(values)
    total, below = 0.0, 0
    while total + math.comb(count, below) / 2**count <= 0.025:
        total += math.comb(count, below) / 2**count
        below += 1
    low = max(below - 1, 0)
    return statistics.median(ordered), ordered[low], ordered[count - 1 - low]


def ratios(calls: Sequence[Callable[[], object]], rounds: int) -> list[tuple[float, float, float]]:
    """Of each call but the first, its time by that of the first, the order changing each round."""
    found: list[list[float]] = [[] for _ in calls[1:]]
    for call in calls:
        call()
    for number in range(rounds):
        times = [0.0] * len(calls)
        for place in range(len(calls)):
            at = (place + number) % len(calls)
            begin = CLOCK()
            calls[at]()
            times[at] = CLOCK() - begin
        for at, time_ns in enumerate(times[1:]):
            found[at].append(time_ns / times[0])
    return [interval(values) for values in found]


def shown(found: tuple[float, float, float]) -> str:
    """``1.083 (1.081–1.086)``."""
    return f"{found[0]:.3f} ({found[1]:.3f}–{found[2]:.3f})"


def record(rounds: int) -> list[Row]:
    """A record by two readings of the clock."""
    from numba import njit, types
    from numba.extending import intrinsic

    from opbench.kernels import lane_calls, lanes

    @intrinsic
    def clock(_):
        def codegen(context, builder, signature, arguments):
            return lane_calls.now(builder, sys.platform)

        return types.int64(), codegen

    @njit
    def clocks(buffer, count):
        last = buffer.shape[0] - 1
        for _ in range(count):
            buffer[last].start = clock()
            buffer[last].end = clock()

    @njit
    def records(buffer, count):
        for index in range(count):
            kernels.lane_begin(buffer, index)
            kernels.lane_end(buffer, index, index, index)

    pair, buffer = lanes.buffer(1), lanes.buffer(LOOPS)

    def timed() -> float:
        lanes.switch_on(buffer)
        begin = CLOCK()
        records(buffer, LOOPS)
        middle = CLOCK()
        clocks(pair, LOOPS)
        return (middle - begin) / (CLOCK() - middle)

    timed()
    found = interval([timed() for _ in range(40 * rounds)])
    price = lanes.record_ns() or math.nan
    return [
        ("a worker record, by two clock readings", shown(found), "≤ 1.4"),
        ("a worker record", f"{price:.0f} ns", "–"),
    ]


def off(rounds: int) -> list[Row]:
    """A kernel whose lanes are off by the same kernel without."""
    from numba import njit, prange

    from opbench.kernels import lane_begin, lane_end, lanes

    @njit(parallel=True)
    def bare(x):
        total = 0.0
        for piece in prange(PIECES):
            part = 0.0
            for i in range(piece * ITEMS, (piece + 1) * ITEMS):
                part += x[i]
            total += part
        return total

    @njit(parallel=True)
    def recorded(x, buffer):
        total = 0.0
        for piece in prange(PIECES):
            lane_begin(buffer, piece)
            part = 0.0
            for i in range(piece * ITEMS, (piece + 1) * ITEMS):
                part += x[i]
            total += part
            lane_end(buffer, piece, ITEMS, 8 * ITEMS)
        return total

    x = np.ones(PIECES * ITEMS)
    switched, on = lanes.buffer(PIECES), lanes.buffer(PIECES)
    lanes.switch_off(switched)
    calls = [
        lambda: bare(x),
        lambda: recorded(x, lanes.OFF),
        lambda: recorded(x, switched),
        lambda: recorded(x, on),
    ]
    names = ["an empty buffer", "a buffer switched off", "recording"]
    return [
        (f"a kernel of {PIECES} pieces of {ITEMS} sums with {name}", shown(found), "–")
        for name, found in zip(names, ratios(calls, 20 * rounds), strict=True)
    ]


def tiles(rounds: int) -> list[Row]:
    """Dot 4096² with its tiles recorded by the same without."""
    from opbench.kernels import lanes

    rows = []
    for dtype in ("float32", "float64"):
        a, b = (np.random.default_rng(n).random((4096, 4096)).astype(dtype) for n in (0, 1))
        c = np.empty_like(a)
        count = kernels.dot_records((a.shape, b.shape), dtype)
        buffer = lanes.buffer(count)

        def bare(a=a, b=b, c=c) -> None:
            kernels.dot(a, b, out=c)

        def with_lanes(a=a, b=b, c=c, buffer=buffer) -> None:
            lanes.switch_on(buffer)
            kernels.dot(a, b, out=c, lanes=buffer)

        (found,) = ratios([bare, with_lanes], max(rounds // 2, 6))
        rows.append((f"dot 4096² {dtype}, every tile recorded", shown(found), "≤ 1.01"))
    return rows


def head(rounds: int, other: str) -> list[Row]:
    """Dot with recording off by another checkout's, call by call in turns, in one process."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "other_opbench"
        shutil.copytree(Path(other) / "opbench", package)
        for path in package.rglob("*.py"):
            path.write_text(re.sub(r"\bopbench\b", package.name, path.read_text("utf-8")), "utf-8")
        sys.path.insert(0, folder)
        theirs = importlib.import_module(f"{package.name}.kernels").dot
        rows = []
        for n, times in ((16, 1000), (256, 20), (512, 4), (1024, 1), (2048, 1)):
            a = np.random.default_rng(0).random((n, n), np.float32)
            c = np.empty_like(a)

            def calls(dot, times=times, a=a, c=c) -> None:
                for _ in range(times):
                    dot(a, a, out=c)

            both = [functools.partial(calls, dot) for dot in (theirs, kernels.dot)]
            (found,) = ratios(both, rounds * (10 if n <= 1024 else 2))
            rows.append((f"dot {n}² float32, off, by {Path(other).name}", shown(found), "–"))
        return rows


def main() -> None:
    """Measure what is asked for and print a table."""
    parts = ("record", "off", "tiles", "head")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--rounds", type=int, default=20, help="more for narrower intervals")
    parser.add_argument("--head", help="another checkout of opbench, for head")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    rows: list[Row] = []
    for part in options.only:
        if part == "head":
            rows += head(options.rounds, options.head) if options.head else []
        else:
            rows += {"record": record, "off": off, "tiles": tiles}[part](options.rounds)
    if options.markdown:
        print("| What | Ratio (interval) | Bar |\n|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |" if options.markdown else "   ".join(row))


if __name__ == "__main__":
    main()
