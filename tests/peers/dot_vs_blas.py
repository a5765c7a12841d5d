"""dot against NumPy's BLAS, side by side:  python tests/peers/dot_vs_blas.py --help.

For each thread count a fresh process measures the shapes in turn: NumPy, then ours, then again.
Three things would spoil it, and are kept out:
- OpenBLAS workers spin for 0.1 s after a call: 0.2 s of idling and one untimed call stand before
  every timing;
- other processes use the CPU now and then: a round in which they did (/proc/stat) is repeated;
- the clock changes with the load: the peak is measured between the rounds, and its best counts.

A line shows both rates (GFLOP/s), ours as a share of the peak, and time(NumPy) / time(ours): the
median over rounds with its 95 % sign interval. Above 1 ours is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
SQUARE = "32 64 96 128 192 256 384 512 768 1024 1536 2048 3072 4096"
ODD = (
    "1000x37x511 64x20000x64 4096x4096x8 20000x64x64 17x4096x4096 4096x4096x1 1x4096x4096 "
    "1x1000000x1 300x300x1 64x64x20000 5x5000x5000 5000x5000x5 100x100x100 333x777x555 "
    "2047x2049x2051 1x64x64 2000x1x2000 50x10000x50 10000x10x10000 1025x1025x1025"
)
IDLE = 0.2  # seconds; OpenBLAS workers spin for 0.1
ROUND = 0.15  # seconds of calls in one timing, at least one call
FOREIGN = 0.04  # share of one CPU that others may use in a round
TRIES = 3  # times the wanted number of rounds


def busy_ticks() -> int:
    """Clock ticks that all CPUs have worked so far, or 0 where the system does not tell."""
    try:
        ticks = [int(n) for n in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    except OSError:
        return 0
    return sum(ticks[:3]) + sum(ticks[5:7])


def own_ticks() -> float:
    """Clock ticks that this process has worked so far."""
    used = os.times()
    return (used.user + used.system) * os.sysconf("SC_CLK_TCK")


def timed(call, repeats: int) -> tuple[float, float]:
    """Seconds a call, and the CPUs that other processes used meanwhile."""
    time.sleep(IDLE)
    call()
    before, own, start = busy_ticks(), own_ticks(), time.perf_counter()
    for _ in range(repeats):
        call()
    seconds = time.perf_counter() - start
    foreign = (busy_ticks() - before) - (own_ticks() - own)
    return seconds / repeats, foreign / os.sysconf("SC_CLK_TCK") / max(seconds, 0.05)


def interval(values: list[float]) -> tuple[float, float, float]:
    """Median, and the order statistics of its 95 % sign interval (the extremes below 6 values)."""
    ordered, n, tail, skip = sorted(values), len(values), 0.5 ** len(values), 0
    total = tail
    while skip < n // 2 - 1:
        tail = tail * (n - skip) / (skip + 1)
        if 2 * (total + tail) > 0.05:
            break
        total, skip = total + tail, skip + 1
    middle = ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2
    return middle, ordered[skip], ordered[n - 1 - skip]


def peak_kernel(dtype: str):
    """A function of a thread count that runs chains of multiply-adds and returns FLOP/s."""
    import numpy as np
    from numba import njit, prange, types

    from opbench.kernels.dot.emit import I64, intrinsic
    from opbench.kernels.dot.microkernel import TILE, emitter

    chains = 12 if TILE.vectors < 4 else 24

    @intrinsic
    def multiply_adds(_, x, count):
        def codegen(context, b, signature, arguments):
            e = emitter(context, b, signature.args[0])
            cell = e.pointer(signature.args[0], arguments[0], 0)
            one, entry = e.splat(cell), b.block
            loop, done = b.append_basic_block(), b.append_basic_block()
            b.branch(loop)
            b.position_at_end(loop)
            k, sums = b.phi(I64), [b.phi(e.vector(e.width)) for _ in range(chains)]
            steps = [b.add(k, e.index(1)), *(e.multiply_add(s, one, one) for s in sums)]
            starts = [e.index(0), *[e.zero()] * chains]
            for phi, start, step in zip([k, *sums], starts, steps, strict=True):
                phi.add_incoming(start, entry)
                phi.add_incoming(step, loop)
            b.cbranch(b.icmp_signed("<", steps[0], arguments[1]), loop, done)
            b.position_at_end(done)
            total = steps[1]
            for step in steps[2:]:
                total = e.add(total, step)
            e.store(total, cell)
            return context.get_dummy_value()

        return types.void(x, types.int64), codegen

    @njit(parallel=True)
    def on_threads(x, count, threads):
        for t in prange(threads):
            multiply_adds(x[t], count)

    @njit
    def on_one(x, count):
        multiply_adds(x, count)

    def peak(threads: int, count: int = 400_000) -> float:
        x = np.zeros((threads, 512), dtype)
        start = time.perf_counter()
        on_one(x[0], count) if threads == 1 else on_threads(x, count, threads)
        lanes = TILE.vector // x.itemsize
        return 2 * chains * lanes * count * threads / (time.perf_counter() - start)

    peak(threads=1, count=1)
    return peak


def measure(dtype: str, shapes: list[str], threads: int, rounds: int, order: str) -> None:
    """Print one JSON object for each shape."""
    import numpy as np

    from opbench import kernels

    peak, best = peak_kernel(dtype), 0.0
    rng = np.random.default_rng(0)
    for text in shapes:
        m, k, n = [int(x) for x in text.split("x")] if "x" in text else [int(text)] * 3
        a = np.asarray(rng.uniform(-1, 1, (m, k)).astype(dtype), order=order[0])
        b = np.asarray(rng.uniform(-1, 1, (k, n)).astype(dtype), order=order[1])
        a, b = (a[0] if m == 1 else a), (b[:, 0].copy() if n == 1 else b)
        c = np.empty(a.shape[:-1] + b.shape[1:], dtype)
        calls = {
            "numpy": lambda a=a, b=b, c=c: np.dot(a, b, out=c),
            "ours": lambda a=a, b=b, c=c: kernels.dot(a, b, out=c),
        }
        calls["ours"]()
        once = min(timed(calls["ours"], 1)[0] for _ in range(2))
        repeats = max(1, min(20_000, int(ROUND / once)))
        pairs, dropped = [], 0
        while len(pairs) < rounds and dropped < TRIES * rounds:
            best = max(best, *(peak(threads) for _ in range(3)))
            (theirs, foreign), (ours, again) = (timed(f, repeats) for f in calls.values())
            if max(foreign, again) > FOREIGN + 1.5 / os.sysconf("SC_CLK_TCK") / ROUND:
                dropped += 1
                continue
            pairs.append((theirs, ours))
        row = {"dtype": dtype, "threads": threads, "shape": text, "flop": 2 * m * k * n}
        row |= {"pairs": pairs, "dropped": dropped, "peak": best}
        print(json.dumps(row), flush=True)


def line(row: dict, *, markdown: bool) -> str:
    """One row of the table."""
    start = f"{row['dtype']:8} {row['threads']:2} {row['shape']:>15}"
    if not row["pairs"]:
        return f"{start}  no quiet round ({row['dropped']} dropped)"
    numpy, ours = (interval([pair[i] for pair in row["pairs"]])[0] for i in (0, 1))
    middle, low, high = interval([theirs / mine for theirs, mine in row["pairs"]])
    rates = [row["flop"] / seconds * 1e-9 for seconds in (numpy, ours)]
    share = 1e11 * rates[1] / row["peak"]
    cells = [
        *start.split(),
        f"{rates[0]:.1f}",
        f"{rates[1]:.1f}",
        f"{share:.0f} %",
        f"{middle:.2f}",
        f"{low:.2f} to {high:.2f}",
        f"{len(row['pairs'])}",
        f"{row['dropped']}",
    ]
    widths = (8, 3, 15, 8, 8, 6, 6, 13, 3, 3)
    if markdown:
        return f"| {' | '.join(cells)} |"
    return " ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))


HEAD = [
    *("dtype", "threads", "m×k×n", "NumPy", "ours", "of peak"),
    *("ratio", "interval", "rounds", "dropped"),
]


def compare(options: argparse.Namespace) -> None:
    """One fresh process for each dtype and thread count; their rows as a table."""
    if options.markdown:
        print(f"| {' | '.join(HEAD)} |\n|{' --- |' * len(HEAD)}")
    ratios = []
    for dtype in options.dtype:
        for threads in options.threads:
            count = str(threads)
            environment = os.environ | {"OPENBLAS_NUM_THREADS": count, "NUMBA_NUM_THREADS": count}
            path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
            environment |= {"PYTHONPATH": path}
            environment.pop("OPENBLAS_CORETYPE", None)
            command = [sys.executable, __file__, "--worker", "--dtype", dtype, "--threads", count]
            command += ["--rounds", str(options.rounds), "--order", options.order]
            command += ["--shapes", *options.shapes]
            with subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, text=True
            ) as run:
                for text in run.stdout or ():
                    row = json.loads(text)
                    print(line(row, markdown=options.markdown), flush=True)
                    ratios += [theirs / ours for theirs, ours in row["pairs"]][:1] and [
                        interval([theirs / ours for theirs, ours in row["pairs"]])[0]
                    ]
            if run.returncode:
                sys.exit(run.returncode)
    if ratios:
        product = 1.0
        for ratio in ratios:
            product *= ratio
        print(f"\ngeometric mean {product ** (1 / len(ratios)):.3f}, lowest {min(ratios):.3f}")


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--dtype", nargs="+", default=["float32", "float64"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, os.cpu_count() or 1])
    parser.add_argument("--shapes", nargs="+", default=SQUARE.split(), help="n or MxKxN; or: odd")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--order", default="CC", help="memory order of A and B, such as CF")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.shapes == ["odd"]:
        options.shapes = ODD.split()
    if options.worker:
        measure(options.dtype[0], options.shapes, options.threads[0], options.rounds, options.order)
    else:
        compare(options)


if __name__ == "__main__":
    main()
