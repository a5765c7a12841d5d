"""Kill a process in the middle of a continuous dump, again and again, and load what is left.

Each child records numbered events from two threads as fast as it can. What its file holds after a
SIGKILL must load, without a gap in the numbers, and show the iteration that was open.

    python tests/peers/trace_kills.py --kills 50 --markdown
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from opbench import profiler

CHILD = """
import sys, threading
from opbench import profiler
path, period = sys.argv[1], float(sys.argv[2])
profiler.set_config(profile_all=True, filename=path, continuous_dump=True, dump_period=period)
profiler.set_state("run")
recorder = profiler.RECORDER
recorder.mark_open("iteration 0", "iteration", recorder.clock(), {"iteration": 0})
def work():
    number = 0
    while True:
        start = recorder.clock()
        recorder.complete("work", "imperative", start, recorder.clock(), {"number": number})
        number += 1
        if number == 100:
            print("going", flush=True)
        if number % 20 == 0:
            event.wait(0.0005)
event = threading.Event()
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
event.wait()
"""


class Killed(NamedTuple):
    """What one killed process left behind."""

    events: int
    strict: bool  # strict JSON as it stood, with nothing torn
    gap: bool  # whether an event is missing between two that are there
    opened: bool  # whether the open iteration is to be seen
    repaired: bool  # whether the repaired file breaks no rule
    lag_s: float  # from the last event in the file to the kill


def kill_one(folder: Path, period: float, seed: int) -> Killed:
    """Start a child, kill it after a random while, and judge its file."""
    path = folder / f"killed-{seed}.json"
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), str(period)], stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()  # it records
    chance = random.Random(seed).random()  # noqa: S311 - no secret
    time.sleep(period * (1 + 6 * chance))
    killed_ns = time.perf_counter_ns()
    child.kill()
    child.wait()
    child.stdout.close()
    try:
        json.loads(path.read_text())
        strict = True
    except ValueError:
        strict = False
    loaded = profiler.load_file(path)
    work = [event for event in loaded.trace.events if event.name == "work"]
    numbers: dict[int, list[int]] = {}
    for event in work:
        numbers.setdefault(event.tid, []).append(event.args["number"])
    profiler.write(loaded.trace, path)
    return Killed(
        events=len(work),
        strict=strict,
        gap=any(found != list(range(len(found))) for found in numbers.values()),
        opened=any(
            event.name == "iteration 0" and event.args.get("unfinished")
            for event in loaded.trace.events
        ),
        repaired=profiler.check(path) == [],
        lag_s=(killed_ns - max(event.end_ns for event in work)) / 1e9 if work else float("inf"),
    )


def main() -> int:
    """Kill, and say what was left; exit code 1 if a file was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--period", type=float, default=0.02, help="seconds between two dumps")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        killed = [kill_one(folder, options.period, seed) for seed in range(options.kills)]
    finally:
        shutil.rmtree(folder)
    lags = sorted(one.lag_s for one in killed)
    rows = [
        ("kills", len(killed)),
        ("files that load, with no gap between events", sum(not one.gap for one in killed)),
        ("of them strict JSON as they stood", sum(one.strict for one in killed)),
        ("that show the open iteration", sum(one.opened for one in killed)),
        ("that break no rule once repaired", sum(one.repaired for one in killed)),
        ("events in a file, fewest", min(k.events for k in killed)),
        ("events in a file, most", max(k.events for k in killed)),
        (f"last event before the kill, median and most (period {options.period:g} s)",
         f"{lags[len(lags) // 2]:.3f} s, {lags[-1]:.3f} s"),
    ]  # fmt: skip
    if options.markdown:
        print("| | |\n|---|---|")
    for name, value in rows:
        print(f"| {name} | {value} |" if options.markdown else f"{name}: {value}")
    return int(any(one.gap or not one.repaired or not one.events for one in killed))


if __name__ == "__main__":
    sys.exit(main())
