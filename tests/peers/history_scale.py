"""How long ``opbench history`` takes on many records, and how much memory: cold, and indexed.

python tests/peers/history_scale.py                    # 1,000 records x 100 benchmarks, 5 launches
python tests/peers/history_scale.py --launches 1
python tests/peers/history_scale.py --folder kept      # writes the records once, and keeps them

Every 10th benchmark steps by 8 % somewhere, and at one record all of them by 6 % together.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path

from opbench.records import Environment, opbench_block

ROUNDS = 25
START = datetime(2024, 1, 1, tzinfo=timezone.utc)
_MEASURE = """\
import resource, sys, time
start = time.perf_counter()
from opbench.cli import main
code = main(sys.argv[1:])
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(f"{code} {seconds:.2f} {peak / 1024:.0f}", file=sys.stderr)
"""


def entry(number, factor, draw):
    """One benchmark as pytest-benchmark saves it, with opbench's summary."""
    centre = 1e-3 * (1 + number % 7) * factor
    data = [centre * draw.lognormvariate(0, 0.01) for _ in range(ROUNDS)]
    keys = ("min", "max", "mean", "stddev", "median", "iqr", "q1", "q3", "ld15iqr", "hd15iqr")
    stats = dict.fromkeys((*keys, "ops", "total"), centre)
    stats |= {"rounds": ROUNDS, "iterations": 5, "outliers": "2;0", "data": data}
    total = {"category": "imperative", "name": "dot", "count": 3, "total": 3 * centre}
    summary = {"form": "imperative", "begin": 1, "end": 4, "flop": 1000, "operators": [total]}
    return {
        "group": None,
        "name": f"test_{number}",
        "fullname": f"tests/bench/test_{number % 20}.py::test_{number}",
        "params": None,
        "extra_info": {"opbench": summary},
        "options": {"disable_gc": False, "timer": "perf_counter", "min_rounds": 25},
        "stats": stats,
    }


def write_history(folder, records, benchmarks, launches):
    """One file per launch; the drawn spread between launches is 1 %."""
    draw = random.Random(20261201)  # noqa: S311 - made-up times, no secrets
    folder.mkdir(parents=True, exist_ok=True)
    steps = {n: draw.randrange(20, max(21, records - 20)) for n in range(0, benchmarks, 10)}
    count = 0
    for record in range(records):
        machine = 1.06 if record >= records // 2 else 1.0
        for launch in range(launches):
            count += 1
            block = opbench_block(f"r{record}-{launch}", f"r{record}", Environment(cpu_model="x"))
            block["launcher"] = {"controls": {"compute": 1e-3 * machine, "memory": 1e-3 * machine}}
            factors = (
                machine * (1.08 if record >= steps.get(n, records) else 1.0)
                for n in range(benchmarks)
            )
            document = {
                "machine_info": {},
                "commit_info": {"id": f"{record:040x}"[::-1], "dirty": False},
                "benchmarks": [
                    entry(n, factor * draw.lognormvariate(0, 0.01), draw)
                    for n, factor in enumerate(factors)
                ],
                "datetime": (START + timedelta(days=record, minutes=launch)).isoformat(),
                "version": "5.3.1",
                "opbench": block,
            }
            (folder / f"{count:04}_x.json").write_text(json.dumps(document))


def measured(*words):
    """Seconds and MB of one process, and its last words."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, *words], capture_output=True, text=True, check=False
    )
    *_, last = done.stderr.strip().splitlines()
    code, seconds, peak = last.split()
    assert code == "0", done.stderr
    return float(seconds), float(peak), done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--benchmarks", type=int, default=100)
    parser.add_argument("--launches", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="keep the records here")
    options = parser.parse_args()
    kept = contextlib.nullcontext(options.folder)
    with kept if options.folder else tempfile.TemporaryDirectory() as name:
        results = Path(name)
        runs = results / "runs" / "machine"
        if not runs.exists():
            write_history(runs, options.records, options.benchmarks, options.launches)
        size = sum(path.stat().st_size for path in runs.iterdir())
        print(
            f"{options.records} records x {options.benchmarks} benchmarks, {options.launches} "
            f"launches: {size / 1e6:.0f} MB"
        )
        for case, more in (("cold", ["--rebuild"]), ("with the index", [])):
            seconds, peak, told = measured("history", "--results", str(results), *more)
            print(f"{case}: {seconds:.2f} s, {peak:.0f} MB: {told.strip().splitlines()[-1]}")
        index = (results / "runs" / ".history.json").stat().st_size
        print(f"index: {index / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
