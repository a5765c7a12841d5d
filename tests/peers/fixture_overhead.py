"""Does the ``profiler`` fixture change what pytest-benchmark measures?

Run by hand: ``python tests/peers/fixture_overhead.py --pairs 10 --markdown``.

Two test files time the same three functions, one through ``benchmark`` and one through
``profiler``, each in fresh pytest launches that take turns (``opbench.launch``). One pair of
launches gives one ratio of medians per function; printed are the median of the ratios and its
order-statistic interval. The fixture is clean if the interval holds 1.

The plain file calls each function once before it times it, as the fixture does: without that,
pytest-benchmark takes the compilation for the first round and stops after five.
A pair in which other processes took more than ``--busy`` of the CPUs is dropped and another one
measured, up to three times as many as asked for; ``--null`` puts the plain file on both sides.
Where the system does not tell what others took, a pair counts as quiet, and the last line says so.
Both sides get the same length of a round, on the command line, so that the fixture's own default
for it is not what is compared.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from opbench.launch import Launch, LaunchResult, run_launch, turns  # noqa: E402 - run by path

FUNCTIONS = {"numba": "numba, 300 ns", "numpy": "numpy, 50 µs", "dot": "opbench dot 512²"}

TARGETS = """
import numba
import numpy as np

from opbench import kernels

rng = np.random.default_rng(1)
SMALL = rng.random(200)
LONG = rng.random(60_000)
A, B = (rng.random((512, 512), dtype=np.float32) for _ in range(2))
C = np.empty((512, 512), np.float32)


@numba.njit
def total(x):
    s = 0.0
    for i in range(x.size):
        s += x[i]
    return s


CALLS = {
    "numba": (total, (SMALL,)),
    "numpy": (np.exp, (LONG,)),
    "dot": (kernels.dot, (A, B, C)),
}
"""

DIRECT = """
import pytest
from targets import CALLS


@pytest.mark.parametrize("name", CALLS)
def test_call(benchmark, name):
    function, arguments = CALLS[name]
    function(*arguments)
    benchmark(function, *arguments)
"""

FIXTURE = """
import pytest
from targets import CALLS


@pytest.mark.parametrize("name", CALLS)
def test_call(profiler, name):
    function, arguments = CALLS[name]
    profiler(function, *arguments)
"""


@dataclass(frozen=True)
class Row:
    """One function: its median time, and what the fixture did to it."""

    label: str
    direct_s: float
    ratios: tuple[float, ...]

    def cells(self) -> tuple[str, ...]:
        low, high, confidence = interval(self.ratios)
        return (
            self.label,
            f"{self.direct_s * 1e6:.3f}",
            f"{statistics.median(self.ratios):.4f}",
            f"{low:.4f} – {high:.4f}",
            f"{confidence:.1%}",
            "yes" if low <= 1 <= high else "no",
        )


def interval(ratios: tuple[float, ...], wanted: float = 0.95) -> tuple[float, float, float]:
    """The sign test's interval for the median, and its actual confidence.

    The widest there is, from the smallest to the greatest ratio, if there are too few pairs.
    """
    ordered, n = sorted(ratios), len(ratios)
    rank, confidence = 0, 1 - 2 / 2**n
    for candidate in range(1, n // 2):
        outside = 2 * sum(math.comb(n, k) for k in range(candidate + 1)) / 2**n
        if 1 - outside < wanted:
            break
        rank, confidence = candidate, 1 - outside
    return ordered[rank], ordered[n - 1 - rank], confidence


def medians(result: LaunchResult, side: str) -> dict[str, float]:
    """Median seconds per call of each function; a launch that failed ends the program."""
    if result.exit_code != 0 or result.document is None:
        sys.exit(
            f"the {side} launch failed with {result.exit_code}\n{result.stdout}{result.stderr}"
        )
    found = {
        entry["params"]["name"]: statistics.median(entry["stats"]["data"])
        for entry in result.document["benchmarks"]
    }
    if set(found) != set(FUNCTIONS):
        sys.exit(f"the {side} launch measured {sorted(found)}, expected {sorted(FUNCTIONS)}")
    return found


def measure(options: argparse.Namespace) -> tuple[list[Row], int, int]:
    """All pairs: a row for each function.

    Returns:
        The rows; how many pairs others disturbed too much; in how many of those kept nobody knows
        what others took.
    """
    with tempfile.TemporaryDirectory(prefix="opbench-overhead-") as name:
        project = Path(name)
        (project / "pytest.ini").write_text("[pytest]\n")
        (project / "targets.py").write_text(TARGETS)
        (project / "test_direct.py").write_text(DIRECT)
        (project / "test_fixture.py").write_text(FIXTURE)
        (project / "test_null.py").write_text(DIRECT)
        launches = {
            # base is the plain file: a ratio above 1 is what the fixture costs.
            "base": launch(project, "test_direct.py", options),
            "head": launch(project, "test_null.py" if options.null else "test_fixture.py", options),
        }
        for side in launches if options.warm_up else ():
            medians(run_launch(launches[side]), side)
        kept, dropped, unknown = [], 0, 0
        for order in turns(3 * options.pairs, options.seed):
            results = {side: run_launch(launches[side]) for side in order}
            pair = {side: medians(result, side) for side, result in results.items()}
            busy = [result.busy_elsewhere for result in results.values()]
            # Chosen by what others did, never by the times: that would choose the answer.
            if max(share or 0.0 for share in busy) > options.busy:
                dropped += 1
            else:
                kept.append(pair)
                unknown += None in busy
            print(f"{len(kept)} of {options.pairs} pairs, {dropped} dropped", file=sys.stderr)
            if len(kept) == options.pairs:
                break
    if not kept:
        sys.exit(f"in every pair others used more than {options.busy:.0%} of all CPUs")
    rows = [
        Row(
            label,
            statistics.median(pair["base"][name] for pair in kept),
            tuple(pair["head"][name] / pair["base"][name] for pair in kept),
        )
        for name, label in FUNCTIONS.items()
    ]
    return rows, dropped, unknown


def launch(project: Path, file: str, options: argparse.Namespace) -> Launch:
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(
        part for part in (str(ROOT), environment.get("PYTHONPATH", "")) if part
    )
    arguments = [
        file,
        "-q",
        "--benchmark-quiet",
        f"--benchmark-max-time={options.max_time}",
        f"--benchmark-min-time={options.max_time / 20}",
        "-p",
        "no:cacheprovider",
    ]
    # The same module twice is one plugin: this works installed and from a checkout.
    arguments += ["-p", "opbench.plugin"]
    return Launch(tuple(arguments), project, environment, timeout_s=300)


def text(rows: list[Row], markdown: bool) -> str:
    head = ("function", "direct, µs", "fixture / direct", "interval", "confidence", "holds 1")
    table = [head, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(head))]
    lines = [
        [cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in table
    ]
    if not markdown:
        return "\n".join("  ".join(line).rstrip() for line in lines)
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=10, help="pairs of launches, at least 1")
    parser.add_argument("--seed", type=int, default=None, help="of the order; drawn by default")
    parser.add_argument("--max-time", type=float, default=1.0, help="seconds per benchmark")
    parser.add_argument("--busy", type=float, default=0.1, help="drop a pair if others used more")
    parser.add_argument("--no-warm-up", dest="warm_up", action="store_false")
    parser.add_argument(
        "--null", action="store_true", help="both sides plain: the method's own error"
    )
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    if options.pairs < 1:
        parser.error(f"--pairs is {options.pairs}; give at least 1")
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(2**32)
    rows, dropped, unknown = measure(options)
    print(text(rows, options.markdown))
    print(
        f"\n{len(rows[0].ratios)} pairs of fresh launches in turns, seed {options.seed}, "
        f"{options.max_time:g} s per benchmark; {dropped} more dropped, "
        f"since others used over {options.busy:.0%} of all CPUs."
    )
    if unknown:
        print(f"In {unknown} of the pairs the load by others is not known; they count as quiet.")


if __name__ == "__main__":
    main()
