"""How long ``opbench compare`` takes, and how much memory, on records of many benchmarks.

python tests/peers/compare_scale.py                 # 1,000 and 10,000 benchmarks, 5 launches
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from opbench.records import Environment, opbench_block

ROUNDS = 20
_MEASURE = """\
import resource, sys, time
start = time.perf_counter()
from opbench.cli import main
code = main(sys.argv[1:])
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(f"{code} {seconds:.2f} {peak / 1024:.0f}", file=sys.stderr)
"""


def entry(number, draw, factor):
    """One benchmark as pytest-benchmark saves it, with opbench's summary."""
    centre = 1e-3 * (1 + number % 7) * factor * draw.lognormvariate(0, 0.01)
    data = [centre * draw.lognormvariate(0, 0.01) for _ in range(ROUNDS)]
    ordered = sorted(data)
    stats = {
        "min": ordered[0],
        "max": ordered[-1],
        "mean": sum(data) / ROUNDS,
        "stddev": centre / 100,
        "rounds": ROUNDS,
        "median": ordered[ROUNDS // 2],
        "iqr": ordered[15] - ordered[5],
        "q1": ordered[5],
        "q3": ordered[15],
        "iqr_outliers": 0,
        "stddev_outliers": 2,
        "outliers": "2;0",
        "ld15iqr": ordered[0],
        "hd15iqr": ordered[-1],
        "ops": 1 / centre,
        "total": sum(data),
        "data": data,
        "iterations": 5,
    }
    totals = {"category": "imperative", "name": "dot", "count": 3, "total": 3 * centre}
    summary = {"form": "imperative", "begin": 1, "end": 4, "flop": 1000, "operators": [totals]}
    return {
        "group": None,
        "name": f"test_{number}",
        "fullname": f"tests/bench/test_{number % 20}.py::test_{number}",
        "params": None,
        "param": None,
        "extra_info": {"opbench": summary},
        "options": {"disable_gc": False, "timer": "perf_counter", "min_rounds": 5, "max_time": 1.0},
        "stats": stats,
    }


def write_record(folder, name, benchmarks, launches, seed, slower=()):
    """One file per launch; every 100th benchmark is slower where asked."""
    draw = random.Random(seed)  # noqa: S311 - noise, no secret
    folder.mkdir(parents=True, exist_ok=True)
    for launch in range(launches):
        block = opbench_block(f"{name}-{launch}", name, Environment(cpu_model="model"))
        block["launcher"] = {"controls": {"compute": 1e-3, "memory": 1e-3}}
        document = {
            "machine_info": {},
            "commit_info": {"id": name, "dirty": False},
            "benchmarks": [
                entry(number, draw, 1.2 if number in slower else 1.0)
                for number in range(benchmarks)
            ],
            "datetime": f"2026-12-01T09:{launch:02}:00+00:00",
            "version": "5.3.1",
            "opbench": block,
        }
        path = folder / f"{launch + 1:04}_{name}.json"
        path.write_text(json.dumps(document, indent=1), encoding="ascii")


def main():
    """Write two records of each size and compare them in a fresh process."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--benchmarks", type=int, nargs="*", default=[1000, 10_000])
    parser.add_argument("--launches", type=int, default=5)
    options = parser.parse_args()
    for count in options.benchmarks:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            slower = set(range(0, count, 100))
            write_record(folder / "a", "before", count, options.launches, 1)
            write_record(folder / "b", "after", count, options.launches, 2, slower)
            size = sum(path.stat().st_size for path in folder.rglob("*.json"))
            start = time.perf_counter()
            words = ["compare", str(folder / "a"), str(folder / "b")]
            done = subprocess.run(
                [sys.executable, "-c", _MEASURE, *words],
                capture_output=True,
                text=True,
                check=False,
            )
            whole = time.perf_counter() - start
            code, seconds, peak = done.stderr.split()[-3:]
            print(
                f"{count:,} benchmarks, {options.launches} launches a side, {size / 1e6:.0f} MB: "
                f"{seconds} s ({whole:.2f} s with the interpreter), {peak} MiB, exit code {code}"
            )


if __name__ == "__main__":
    main()
