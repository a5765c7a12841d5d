"""One side of dot_vs_blas.py: a fresh process that times products when it is asked to.

It reads a JSON object a line and answers each with one. The environment that the parent gives it
sets the number of threads, for every library alike, before anything is imported.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
LONG = 0.3  # seconds


def spread(x, axis, step):
    """The same numbers, `step` elements apart along an axis."""
    shape = list(x.shape)
    shape[axis] *= step
    large = np.zeros(shape, x.dtype)
    view = large[::step] if axis == 0 else large[:, ::step]
    view[:] = x
    return view


def inside(x):
    """The same numbers as a piece of a larger matrix, so that rows are not end to end."""
    large = np.zeros((x.shape[0] + 9, x.shape[1] + 13), x.dtype)
    view = large[5 : 5 + x.shape[0], 7 : 7 + x.shape[1]]
    view[:] = x
    return view


LAYOUTS = {
    "A transposed": (lambda a: a.T.copy().T, None),
    "B transposed": (None, lambda b: b.T.copy().T),
    "A and B transposed": (lambda a: a.T.copy().T, lambda b: b.T.copy().T),
    "A every 2nd column": (lambda a: spread(a, 1, 2), None),
    "B every 2nd column": (None, lambda b: spread(b, 1, 2)),
    "A every 2nd row": (lambda a: spread(a, 0, 2), None),
    "B every 2nd row": (None, lambda b: spread(b, 0, 2)),
    "A and B inside larger": (inside, inside),
    "A rows reversed": (lambda a: a[::-1].copy()[::-1], None),
    "B columns reversed": (None, lambda b: b[:, ::-1].copy()[:, ::-1]),
}


def operands(dtype, shape, order="CC", layout=None):
    """(a, b, c) of a product m×k×n; a vector where m or n is 1."""
    m, k, n = shape
    rng = np.random.default_rng(0)
    a = np.asarray(rng.uniform(-1, 1, (m, k)).astype(dtype), order=order[0])
    b = np.asarray(rng.uniform(-1, 1, (k, n)).astype(dtype), order=order[1])
    if layout is not None:
        change_a, change_b = LAYOUTS[layout]
        a, b = (change_a or np.asarray)(a), (change_b or np.asarray)(b)
    a, b = (a[0] if m == 1 else a), (b[:, 0].copy() if n == 1 else b)
    return a, b, np.empty(a.shape[:-1] + b.shape[1:], dtype)


class Sides:
    """The calls that this process can make on the operands that it holds."""

    def __init__(self, dtype: str, threads: int, mkl: str | None) -> None:
        self.dtype, self.threads, self.calls, self.repeats = dtype, threads, {}, {}
        self.once = {}
        self.operands, self.library, self.shape = (), None, None
        if mkl is not None:
            from mkl_blas import Library

            self.library = Library(mkl, threads)
        self.pool = ThreadPoolExecutor(threads)
        self.peak_burst = None

    def prepare(self, shape, order, layout, naive) -> dict:
        """Make operands, check every side on them once, and forget those of before."""
        # MKL's call has their addresses, and does not keep them.
        self.operands = a, b, c = operands(self.dtype, shape, order, layout)
        self.calls = {}
        if self.library is not None:
            self.calls["mkl"] = self.library.product(a, b, c)
        else:
            from opbench import kernels

            self.calls["ours"] = functools.partial(kernels.dot, a, b, out=c)
            self.calls["numpy"] = functools.partial(np.dot, a, b, out=c)
            if layout is not None:
                base = [np.ascontiguousarray(x) for x in (a, b)]
                self.calls["contiguous"] = functools.partial(kernels.dot, *base, out=c)
            if naive:
                from naive_loop import product

                self.calls["naive"] = product(a, b, c)
        if shape != self.shape:  # another layout holds the same numbers
            bound = 2 * shape[1] * np.finfo(c.dtype).eps * np.dot(abs(a), abs(b))
            self.shape, self.expected, self.bound = shape, np.dot(a, b), bound
        for name, call in self.calls.items():
            c[...] = np.nan
            call()
            if not np.all(abs(c - self.expected) <= self.bound):
                sys.exit(f"{name} computes something else than NumPy for {shape} {self.dtype}")
        return {"sides": list(self.calls)}

    def calibrate(self, side: str, seconds: float, idle: float) -> dict:
        """Choose the calls of a batch so that it lasts about so long."""
        call = self.calls[side]
        time.sleep(idle)
        repeats = 1
        while True:
            once = self.batch(call, repeats) / repeats
            if once * repeats >= seconds / 4 or repeats >= 1_000_000:
                break
            repeats = max(2 * repeats, int(seconds / 3 / max(once, 1e-7)))
        self.repeats[side], self.once[side] = max(1, int(seconds / once)), once
        return {"seconds": once, "repeats": self.repeats[side]}

    @staticmethod
    def batch(call, repeats: int) -> float:
        """Seconds of so many calls."""
        start = time.perf_counter()
        for _ in itertools.repeat(None, repeats):
            call()
        return time.perf_counter() - start

    def time(self, side: str, idle: float) -> dict:
        """Idle, make one untimed call, and time a batch: seconds a call.

        Caches and sleeping workers are nothing to a call as long as LONG, so it is made once.
        """
        call, repeats = self.calls[side], self.repeats[side]
        time.sleep(idle)
        if self.once[side] < LONG:
            call()
        return {"seconds": self.batch(call, repeats) / repeats}

    def peak(self, idle: float) -> dict:
        """One burst of multiply-adds: FLOP/s."""
        from opbench.operators import roof
        from opbench.runtime.roof import Stopwatch, calibrated, together

        time.sleep(idle)
        if self.peak_burst is None:
            work = roof.peak_work(self.dtype, self.threads)
            self.peak_burst = calibrated(together(work, self.pool, Stopwatch()))
        work, seconds = self.peak_burst()
        return {"flops": work / seconds}

    def bandwidth(self) -> dict:
        """(bytes of the working set, bytes/s), ascending."""
        from opbench.runtime import roof

        found = roof.measure(self.threads, [], seconds=0.5, patience=1.0)
        return {"points": found.bandwidth}

    def cpu(self) -> dict:
        """Seconds of CPU time that this process has used."""
        return {"seconds": time.process_time()}


def main() -> None:
    """Answer until the parent closes the pipe."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--mkl", help="the library to load; then it is the only side")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    sides = Sides(options.dtype, options.threads, options.mkl)
    # Answers have the pipe for themselves: whatever a library prints goes to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for text in sys.stdin:
        request = json.loads(text)
        answer = getattr(sides, request.pop("do"))(**request)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
