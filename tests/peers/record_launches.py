"""Record real launches of five kernels, for the tests of the statistics.

Each launch is a fresh process that times 25 rounds of every kernel and nothing else, so that
relabelling launches gives trials in which nothing changed. Run it on a machine that is as quiet or
as noisy as it is in daily use, a chunk at a time; chunks are added to the file::

    python tests/peers/record_launches.py --launches 60 tests/records/data/launches.npz
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROUNDS = 25
# Calls a round: rounds of about 1 ms.
KERNELS = {"matmul": 24, "softmax": 5, "sort": 2, "transpose": 2, "numba": 12}
TENTH_NS = 1e-10


def kernels():
    """Each kernel as a function without arguments."""
    import numba

    draw = np.random.default_rng(7)
    a, b = draw.standard_normal((2, 96, 96))
    rows = draw.standard_normal((256, 256)).astype(np.float32)
    numbers, square = draw.permutation(20_000), draw.standard_normal((512, 512))
    out, copy = np.empty_like(a), np.empty_like(square)

    def softmax():
        grown = np.exp(rows - rows.max(axis=1, keepdims=True))
        return grown / grown.sum(axis=1, keepdims=True)

    @numba.njit(cache=True)
    def distances(x, y):
        total = 0.0
        for i in range(x.size):
            total += abs(x[i] - y[i]) / (1.0 + x[i] * x[i])
        return total

    x, y = draw.standard_normal((2, 40_000))
    return {
        "matmul": lambda: np.dot(a, b, out=out),
        "softmax": softmax,
        "sort": lambda: np.sort(numbers),
        "transpose": lambda: np.copyto(copy, square.T),
        "numba": lambda: distances(x, y),
    }


def launch():
    """What one process measures: seconds a call of each round of each kernel."""
    found = {}
    for name, kernel in kernels().items():
        calls = KERNELS[name]
        for _ in range(calls):
            kernel()
        seconds = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            for _ in range(calls):
                kernel()
            seconds.append((time.perf_counter() - start) / calls)
        found[name] = seconds
    return found


def measured():
    """One launch in a process of its own: values, when it started, and the load."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    started, load = time.time(), os.getloadavg()[0]
    done = subprocess.run(
        [sys.executable, __file__, "--one"],
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, **threads},
    )
    found = json.loads(done.stdout)
    values = np.array([found[name] for name in KERNELS])
    return np.round(values / TENTH_NS).astype(np.uint32), started, load


def main():
    """Measure, and add to the file what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--launches", type=int, default=60)
    parser.add_argument("--one", action="store_true", help="a single launch, printed")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(launch()))
        return
    columns = [
        list(column) for column in zip(*(measured() for _ in range(options.launches)), strict=True)
    ]
    if options.file.exists():
        before = np.load(options.file)
        columns = [
            [*before[key], *column]
            for key, column in zip(("tenths_of_ns", "started", "load"), columns, strict=True)
        ]
    values, started, load = columns
    np.savez_compressed(
        options.file,
        tenths_of_ns=np.array(values),
        started=np.array(started),
        load=np.array(load, np.float32),
        kernels=np.array(list(KERNELS)),
    )
    print(f"{len(values)} launches in {options.file}")


if __name__ == "__main__":
    main()
