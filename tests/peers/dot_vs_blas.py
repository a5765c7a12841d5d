"""dot against NumPy's BLAS, MKL and the naive loop, side by side.

    python tests/peers/dot_vs_blas.py --set odd --markdown

For each dtype and number of threads a fresh process, whose environment sets the threads of every
library before anything is imported, times the sides in turns; MKL has a process of its own, since
its OpenMP would become Numba's. What would spoil it is kept out:

- workers spin for a while after a call (OpenBLAS's for 0.1 s): whoever comes after them idles
  first, and makes one untimed call;
- who comes first changes from round to round;
- other processes use the CPU now and then: a round in which they did (/proc/stat) is repeated;
- the clock changes with the load: the peak (multiply-adds in registers) is measured in each round,
  and its best burst counts;
- small products are timed in batches that last as long as a round.

A line shows rates in GFLOP/s (medians), ours as a share of the peak, or (mem) of the bandwidth
where that is the lower bound (`opbench roof --help`), and time(peer) / time(ours):
the median over rounds with its sign interval, of 95 % or the next more that the number of rounds
allows (from 6 on). Above 1 ours is faster. A naive loop that takes long gets fewer rounds.

Other questions, by option: --set layouts (transposed and strided operands: time(contiguous) /
time(this layout), both ours), --busy-core (another process occupies one core, pinned), --first-call
(a fresh process with a warm cache: seconds from after the import to the first result).
MKL: pip install mkl, or --mkl FOLDER of an environment that has it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(Path(__file__).parent))

import mkl_blas  # noqa: E402 - run by path
from dot_sides import LAYOUTS  # noqa: E402 - run by path

from opbench import probes  # noqa: E402 - run by path
from opbench.records import Roof  # noqa: E402 - run by path

SETS = {
    "squares-small": "32 48 64 100 128 200 256 384 512",
    "squares-large": "1024 1536 2048 3072 4096",
    # Not square, not multiples of a tile, one dimension small, one dimension deep, vectors, primes.
    "odd": "1000x37x511 64x20000x64 4096x4096x8 20000x64x64 17x4096x4096 64x64x20000 333x777x555"
    " 2047x2049x2051 1009x1013x1019 1025x1025x1025 5x5000x5000 5000x5000x5 2000x1x2000"
    " 50x10000x50 127x131x137 4096x4096x1 1x4096x4096 1000x37x1 1x1000000x1 1x64x64",
    "layouts": "1024 1500 2048",
}
ROUND, BUSY_ROUND = 0.05, 0.5  # seconds of calls in one timing, at least one call
FOREIGN = 0.04  # share of one CPU that others may use in a round, beyond two steps of the clock
STEPS = 0.02  # seconds: two steps of /proc/stat
TRIES = 4  # times the wanted number of rounds
NAIVE_ROUNDS = ((0.1, 3), (2.0, 1))  # seconds a call, up to which the naive loop gets such rounds
CONFIDENCE = 0.95


def idle_after(side: str, threads: int) -> float:
    """Seconds until that side's workers sleep; one thread has none."""
    if threads == 1:
        return 0.0
    # MKL's are told by KMP_BLOCKTIME; GNU OpenMP's, which are Numba's and ours, spin shortly.
    return {"numpy": 0.15, "mkl": 0.05}.get(side, 0.02)


def interval(values: list[float]) -> tuple[float, float, float]:
    """Median, and the order statistics of its sign interval (the extremes below 6 values)."""
    ordered, n = sorted(values), len(values)
    tail, skip = 0.5**n, 0  # the chance that fewer than `skip` + 1 values lie below the median
    total = tail
    while skip < (n - 1) // 2:
        tail = tail * (n - skip) / (skip + 1)
        if 2 * (total + tail) > 1 - CONFIDENCE:
            break
        total, skip = total + tail, skip + 1
    return statistics.median(ordered), ordered[skip], ordered[n - 1 - skip]


def usable_cpus() -> int:
    """Logical CPUs that this process may use."""
    return probes.facts()["usable_cpus"] or os.cpu_count() or 1


def parse_shape(text: str) -> tuple[int, int, int]:
    """``n`` or ``MxKxN``."""
    parts = text.split("x") if "x" in text else [text] * 3
    try:
        m, k, n = map(int, parts)
    except ValueError:
        sys.exit(f"dot_vs_blas.py: --shapes {text!r} is neither a size nor MxKxN")
    if min(m, k, n) < 1:
        sys.exit(f"dot_vs_blas.py: --shapes {text!r} has a dimension below 1")
    return m, k, n


class Worker:
    """A process of dot_sides.py, asked through its standard input."""

    def __init__(self, dtype: str, threads: int, mkl: Path | None = None) -> None:
        command = [sys.executable, str(Path(__file__).with_name("dot_sides.py"))]
        command += ["--dtype", dtype, "--threads", str(threads)]
        command += ["--mkl", str(mkl)] if mkl else []
        names = ("OPENBLAS", "NUMBA", "MKL", "OMP")
        settings = {f"{name}_NUM_THREADS": str(threads) for name in names}
        settings["KMP_BLOCKTIME"] = os.environ.get("KMP_BLOCKTIME", "20")
        environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"} | settings
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, do: str, **request) -> dict:
        """One request, one answer."""
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps({"do": do, **request}), file=self.process.stdin, flush=True)
            if answer := self.process.stdout.readline():
                return json.loads(answer)
        sys.exit(f"dot_vs_blas.py: the measuring process ended with {self.process.wait()}")

    def close(self) -> None:
        """Let it end."""
        self.process.stdin.close()
        self.process.wait()


@dataclass
class Row:
    """What was measured of one shape: seconds a call by side, a value for each kept round."""

    dtype: str
    threads: int
    name: str
    shape: tuple[int, int, int]
    seconds: dict[str, list[float]] = field(default_factory=dict)
    dropped: int = 0

    @property
    def flop(self) -> int:
        """Of one product."""
        return 2 * math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Of its operands and its result."""
        m, k, n = self.shape
        return (m * k + k * n + m * n) * (4 if self.dtype == "float32" else 8)

    def ratios(self, peer: str, ours: str = "ours") -> list[float]:
        """time(peer) / time(ours), round by round; a side that left out rounds has fewer."""
        pairs = zip(self.seconds.get(peer, ()), self.seconds.get(ours, ()), strict=False)
        return [theirs / mine for theirs, mine in pairs]

    def rate(self, side: str) -> float | None:
        """GFLOP/s at the median."""
        values = self.seconds.get(side)
        return 1e-9 * self.flop / statistics.median(values) if values else None


class Contest:
    """The sides of one dtype and number of threads, and the rounds that they are timed in."""

    def __init__(self, options: argparse.Namespace, dtype: str, threads: int) -> None:
        self.options, self.dtype, self.threads = options, dtype, threads
        self.home = Worker(dtype, threads)
        self.workers = {"home": self.home}
        if "mkl" in options.against:
            self.workers["mkl"] = Worker(dtype, threads, options.mkl)
        self.peak, self.last, self.hog, self.points = 0.0, "numpy", None, ()

    def __enter__(self):
        for _ in range(5):
            self.burst()
        self.points = self.home.ask("bandwidth")["points"]
        if self.options.busy_core:
            self.hog = start_hog()
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers.values():
            worker.close()
        if self.hog is not None:
            self.hog.kill()
            self.hog.wait()

    def burst(self) -> None:
        """Measure the peak once more; that of the whole machine, so never beside the hog."""
        if self.hog is not None:
            return
        answer = self.home.ask("peak", idle=idle_after(self.last, self.threads))
        self.peak, self.last = max(self.peak, answer["flops"]), "peak"

    @property
    def roof(self) -> Roof:
        """What these threads reach at most, as far as it was measured."""
        points = tuple((size, rate) for size, rate in self.points)
        return Roof({}, self.threads, "", {self.dtype: self.peak}, points)

    def worker(self, side: str) -> Worker:
        """The process that has the side."""
        return self.workers["mkl"] if side == "mkl" else self.home

    def timed(self, side: str) -> float:
        """Seconds a call."""
        idle = 0.0 if side == self.last else idle_after(self.last, self.threads)
        answer = self.worker(side).ask("time", side=side, idle=idle)
        self.last = side
        if side == "ours":  # whose workers sleep soonest
            self.burst()
        return float(answer["seconds"])

    def own_cpu(self) -> float:
        """Seconds of CPU time that this contest has used, the process in its way included."""
        used = sum(worker.ask("cpu")["seconds"] for worker in self.workers.values())
        return used + time.process_time() + (cpu_of(self.hog.pid) if self.hog else 0.0)

    def shape(self, shape: tuple[int, int, int], name: str, layout: str | None) -> Row:
        """Time all sides on one shape."""
        row = Row(self.dtype, self.threads, name, shape)
        wanted = self.prepare(shape, layout)
        sides, kept = sorted(wanted, key=lambda side: idle_after(side, self.threads)), 0
        while kept < self.options.rounds and row.dropped < TRIES * self.options.rounds:
            # Who makes others wait longest comes last, and in the next round first.
            order = sides if (kept + row.dropped) % 2 == 0 else sides[::-1]
            order = [side for side in order if kept < wanted[side]]
            found = self.round(order)
            if found is None:
                row.dropped += 1
                continue
            kept += 1
            for side, seconds in found.items():
                row.seconds.setdefault(side, []).append(seconds)
        return row

    def round(self, order: list[str]) -> dict[str, float] | None:
        """Seconds a call by side; None if other processes used the CPUs meanwhile."""
        before, own, start = probes.cpu_reading(), self.own_cpu(), time.perf_counter()
        found = {side: self.timed(side) for side in order}
        after, own = probes.cpu_reading(), self.own_cpu() - own
        limit = FOREIGN * (time.perf_counter() - start) + STEPS
        if before is not None and after is not None and after.busy_s - before.busy_s - own > limit:
            return None
        return found

    def prepare(self, shape: tuple[int, int, int], layout: str | None) -> dict[str, int]:
        """Operands and batches; the sides that take part, and in how many rounds."""
        request = {"shape": shape, "order": self.options.order, "layout": layout}
        sides = []
        for name, worker in self.workers.items():
            naive = name == "home" and "naive" in self.options.against
            sides += worker.ask("prepare", **request, naive=naive)["sides"]
        self.last, wanted = "numpy", {}
        for side in sorted(sides, key=lambda side: idle_after(side, self.threads)):
            if side not in {"ours", "contiguous", *self.options.against}:
                continue
            length = BUSY_ROUND if self.options.busy_core else ROUND
            idle, self.last = idle_after(self.last, self.threads), side
            answer = self.worker(side).ask("calibrate", side=side, seconds=length, idle=idle)
            wanted[side] = self.options.rounds
            if side == "naive":
                fitting = (count for most, count in NAIVE_ROUNDS if answer["seconds"] <= most)
                wanted[side] = min(wanted[side], next(fitting, 0))
        return wanted


def start_hog() -> subprocess.Popen:
    """A process that does nothing but use one core, the last one that this process may use."""
    if not hasattr(os, "sched_setaffinity"):
        sys.exit("dot_vs_blas.py: --busy-core pins a process to a core, which this system cannot")
    core = max(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    return subprocess.Popen([sys.executable, "-c", code])


def cpu_of(pid: int) -> float:
    """Seconds of CPU time that a process has used."""
    words = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def share(row: Row, roof: Roof) -> str:
    """Percent of what the machine can do, marked where its memory bounds it."""
    ceiling, rate = roof.ceiling(row.flop, row.nbytes, row.dtype), row.rate("ours")
    if ceiling is None or rate is None:
        return "–"
    return f"{'mem ' if ceiling.bound == 'memory' else ''}{1e11 * rate / ceiling.flops:.0f} %"


def cells(row: Row, roof: Roof, peers: list[str]) -> list[str]:
    """One row of the table as texts."""
    start = [row.dtype, str(row.threads), row.name]
    ours = row.rate("ours")
    if ours is None:
        return [*start, f"no quiet round, {row.dropped} dropped", *[""] * (2 * len(peers) + 3)]
    texts = [*start, f"{ours:.1f}", share(row, roof)]
    for peer in peers:
        rate, ratios = row.rate(peer), row.ratios(peer)
        if rate is None:
            texts += ["–", "–"]
            continue
        middle, low, high = interval(ratios)
        texts += [f"{rate:.1f}", f"{middle:.3f} ({low:.2f} to {high:.2f})"]
    return [*texts, str(len(row.seconds["ours"])), str(row.dropped)]


def heading(peers: list[str]) -> list[str]:
    """The names of the columns."""
    names = {"numpy": "NumPy", "mkl": "MKL", "naive": "naive", "contiguous": "contiguous"}
    both = [text for peer in peers for text in (names[peer], f"{names[peer]} / ours")]
    return ["dtype", "threads", "m×k×n", "ours", "of peak", *both, "rounds", "dropped"]


def show(lines: list[list[str]], *, markdown: bool) -> None:
    """Print lines of cells, the first one a heading."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for number, line in enumerate(lines):
        padded = [text.rjust(width) for text, width in zip(line, widths, strict=True)]
        print(f"| {' | '.join(padded)} |" if markdown else "  ".join(padded), flush=True)
        if markdown and number == 0:
            print(f"|{'|'.join(['---'] * len(line))}|", flush=True)


def closing(rows: list[Row], peers: list[str]) -> list[str]:
    """For each peer the geometric mean of the median ratios, and the lowest."""
    lines = []
    for peer in peers:
        found = {
            f"{row.dtype} {row.threads} {row.name}": statistics.median(ratios)
            for row in rows
            if (ratios := row.ratios(peer))
        }
        if found:
            lowest = min(found, key=found.__getitem__)
            lines.append(
                f"{peer} / ours: geometric mean {statistics.geometric_mean(found.values()):.3f}"
                f" of {len(found)}, lowest {found[lowest]:.3f} ({lowest})"
            )
    return lines


def compare(options: argparse.Namespace) -> None:
    """Fresh processes for each dtype and thread count; their rows as a table."""
    layouts = list(LAYOUTS) if options.set == "layouts" else [None]
    peers = ["contiguous", *options.against] if options.set == "layouts" else options.against
    lines, rows, peaks = [heading(peers)], [], []
    for dtype in options.dtype:
        for threads in dict.fromkeys(options.threads):
            with Contest(options, dtype, threads) as contest:
                done = []
                for text in options.shapes:
                    for layout in layouts:
                        name = text if layout is None else f"{text} {layout}"
                        done.append(contest.shape(parse_shape(text), name, layout))
                        print(
                            f"{dtype}, {threads} threads: {name} done",
                            file=sys.stderr,
                            flush=True,
                        )
            lines += [cells(row, contest.roof, peers) for row in done]
            peaks.append(f"{dtype}, {threads} threads: {contest.peak * 1e-9:.1f}")
            rows += done
    show(lines, markdown=options.markdown)
    print(f"\npeak of multiply-adds, GFLOP/s: {'; '.join(peaks)}")
    print("\n".join(closing(rows, peers)))


FIRST_CALL = """
import sys, time
begin = time.perf_counter()
import numpy as np
from opbench import kernels
imported = time.perf_counter()
dtype, m, k, n = sys.argv[1], *map(int, sys.argv[2:])
a, b = np.ones((m, k), dtype), np.ones((k, n), dtype)
b = b[:, 0].copy() if n == 1 else b
start = time.perf_counter()
c = kernels.dot(a, b)
end = time.perf_counter()
assert c.ravel()[-1] == k
print(imported - begin, end - start)
"""


def first_call(options: argparse.Namespace) -> None:
    """Seconds of the first call in fresh processes, with a warm cache, after the import."""
    shapes = options.shapes or ["8", "1024", "64x20000x64", "4096x4096x1"]
    lines = [["dtype", "threads", "m×k×n", "first call, s", "longest", "import, s", "processes"]]
    for dtype in options.dtype:
        for threads in dict.fromkeys(options.threads):
            names = ("OPENBLAS", "NUMBA", "OMP")
            environment = os.environ | {f"{name}_NUM_THREADS": str(threads) for name in names}
            environment["PYTHONPATH"] = os.pathsep.join(
                filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
            )
            for text in shapes:
                command = [sys.executable, "-c", FIRST_CALL, dtype, *map(str, parse_shape(text))]
                found = []
                for _ in range(options.rounds + 1):
                    done = subprocess.run(
                        command, env=environment, stdout=subprocess.PIPE, text=True, check=True
                    )
                    found.append([float(word) for word in done.stdout.split()])
                del found[0]  # it may have compiled
                imports, calls = zip(*found, strict=True)
                texts = [f"{statistics.median(calls):.3f}", f"{max(calls):.3f}"]
                texts += [f"{statistics.median(imports):.2f}", str(len(found))]
                lines.append([dtype, str(threads), text, *texts])
    show(lines, markdown=options.markdown)


def parse_options(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options, checked, with what follows from them filled in."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--dtype", nargs="+", default=["float32", "float64"], choices=["float32", "float64"])
    add("--threads", nargs="+", type=int, default=[1, usable_cpus()])
    add("--set", choices=sorted(SETS), help="a named set of shapes")
    add("--shapes", nargs="+", help="n or MxKxN")
    add("--rounds", type=int, default=7, help="rounds to keep (default: 7)")
    add("--order", default="CC", help="memory order of A and B, such as CF (default: CC)")
    add(
        "--against",
        nargs="+",
        choices=["numpy", "mkl", "naive"],
        help="default: all there are, but for --set layouts",
    )
    add("--mkl", default="auto", help="libmkl_rt, or a folder that has it, or auto")
    add("--markdown", action="store_true")
    add("--busy-core", action="store_true", help="another process occupies one core")
    add("--first-call", action="store_true", help="seconds of the first call in a fresh process")
    options = parser.parse_args(arguments)
    if options.rounds < 1 or min(options.threads) < 1:
        parser.error("--rounds and --threads are 1 or more")
    if options.set not in (None, "layouts") and options.shapes:
        parser.error(f"--set {options.set} and --shapes are two ways to say the same; give one")
    if len(options.order) != 2 or set(options.order) - set("CF"):
        parser.error(f"--order is {options.order!r}; give two of C and F, such as CF")
    if options.first_call:
        return options
    found = mkl_blas.find(options.mkl)
    plain = options.order == "CC" and options.set != "layouts"
    if found is None and (options.mkl != "auto" or "mkl" in (options.against or ())):
        parser.error(
            f"--mkl {options.mkl}: no libmkl_rt there; pip install mkl, or name its folder"
        )
    options.mkl = found
    if options.against is None:
        options.against = ["numpy"] if options.busy_core else ["numpy", "mkl", "naive"]
        if options.set == "layouts":
            options.against = []
        if found is None or not plain:
            options.against = [side for side in options.against if side != "mkl"]
    elif "mkl" in options.against and not plain:
        parser.error("MKL is called for contiguous operands only; leave out --order, --set layouts")
    default = "2048" if options.busy_core else SETS["squares-small"] + " 1024 2048"
    options.shapes = options.shapes or SETS.get(options.set, default).split()
    return options


def main() -> None:
    """Measure what was asked for."""
    options = parse_options()
    if options.first_call:
        first_call(options)
    else:
        compare(options)


if __name__ == "__main__":
    main()
