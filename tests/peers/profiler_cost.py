"""What recording costs: ratios to an empty Python call, to VizTracer, to a reading of the clock.

Run by hand: ``python tests/peers/profiler_cost.py --markdown``; parts of it by ``--only emit calls
million tiles``.

``emit``: the price of one event, on and off. All quantities are timed in turns, in one process, so
that a ratio compares moments that lie together; printed are the medians of the rounds' ratios.
``calls``: 48,000 small operator calls with all modes on, the size of their trace, and the time per
event to write it beside VizTracer's ``save``. ``million``: a million events written, checked and
summarised, each in a process of its own, with its largest resident memory. ``tiles``: what
recording every tile does to a large matrix product.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from opbench import profiler  # noqa: E402 - run by path

LOOPS = 5000
ROUNDS = 25
CALLS = 48_000
EVENTS = 1_000_000
MB = 1e6
CLOCK = time.perf_counter_ns
RECORDER = profiler.RECORDER

Row = tuple[str, str, str]  # what, figure, bar


def empty() -> None:
    """Does nothing; the unit."""


@profiler.api("peers.marked")
def marked() -> None:
    """Does nothing, and would be recorded in mode api."""


def loop(count: int) -> None:
    """Nothing; subtracted from all others."""
    for _ in range(count):
        pass


def call(count: int) -> None:
    """An empty Python call."""
    for _ in range(count):
        empty()


def call_marked(count: int) -> None:
    """A call of a decorated function."""
    for _ in range(count):
        marked()


def emit_point(count: int) -> None:
    """An emit point as the runtime has them, while it records or not."""
    for _ in range(count):
        if RECORDER.mask & 2:
            start = RECORDER.clock()
            RECORDER.complete("dot", "imperative", start, RECORDER.clock(), {"iteration": 1})


def clock_pair(count: int) -> None:
    """Two readings of the clock."""
    for _ in range(count):
        CLOCK()
        CLOCK()


def timed(body: Callable[[int], None], count: int = LOOPS) -> float:
    """Nanoseconds a time."""
    start = CLOCK()
    body(count)
    return (CLOCK() - start) / count


def recorded(body: Callable[[int], None], modes: str) -> float:
    """The same while recording."""
    RECORDER.run(modes, "peers")
    try:
        return timed(body)
    finally:
        RECORDER.stop("peers")


def under_viztracer(tracer: object) -> float:
    """An empty call while VizTracer traces."""
    tracer.start()
    try:
        return timed(call)
    finally:
        tracer.stop()
        tracer.clear()


def torch_range() -> Callable[[int], None] | None:
    """A block of torch's record_function, where torch is installed."""
    try:
        from torch.profiler import record_function
    except ImportError:
        return None

    def ranges(count: int) -> None:
        for _ in range(count):
            with record_function("dot"):
                pass

    return ranges


def emit_rows() -> list[Row]:
    """The price of one event."""
    from viztracer import VizTracer

    tracer = VizTracer(verbose=0, tracer_entries=2 * LOOPS + 100)
    ranges = torch_range()
    rounds: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        rounds.setdefault(name, []).append(value)

    gc.disable()
    for _ in range(ROUNDS):
        bare = timed(loop)
        unit = timed(call) - bare
        viz = under_viztracer(tracer) - bare - unit
        on = recorded(emit_point, "imperative") - bare
        note("empty call, ns", unit)
        note("viztracer, ns", viz)
        note("on, ns", on)
        note("off", (timed(emit_point) - bare) / unit)
        note("marked off", (timed(call_marked) - bare) / unit)
        note("on / viztracer", on / viz)
        note("marked on / viztracer", (recorded(call_marked, "api") - bare) / viz)
        note("clock pair, ns", timed(clock_pair) - bare)
        if ranges is not None:
            note("torch, ns", timed(ranges, LOOPS // 10) - bare)
        gc.collect()
    gc.enable()
    middle = {name: statistics.median(values) for name, values in rounds.items()}
    rows = [
        ("an empty Python call", f"{middle['empty call, ns']:.0f} ns", ""),
        ("emit point, off / empty call", f"{middle['off']:.2f}", "1.5"),
        ("decorated function, off / empty call", f"{middle['marked off']:.2f}", "4"),
        ("VizTracer, a Python call", f"{middle['viztracer, ns']:.0f} ns", ""),
        ("operator event, on", f"{middle['on, ns']:.0f} ns", ""),
        ("operator event, on / VizTracer's call", f"{middle['on / viztracer']:.2f}", "5"),
        ("decorated function, on (a slice and three counters) / VizTracer's call",
         f"{middle['marked on / viztracer']:.1f}", ""),
        ("two readings of the clock", f"{middle['clock pair, ns']:.0f} ns", ""),
    ]  # fmt: skip
    if ranges is not None:
        rows.append(("torch record_function, off", f"{middle['torch, ns']:.0f} ns", ""))
    return rows


def call_rows() -> list[Row]:
    """48,000 small operator calls with all modes on."""
    program = f"""
import json, os, resource, sys, time
from opbench import nd, profiler
RECORDER = profiler.RECORDER
RECORDER.configure(capacity=10**7)
a, b = nd.ones((4, 4)), nd.ones((4, 4))
nd.dot(a, b).wait_to_read()
RECORDER.run("all", "peers")
for _ in range({CALLS}):
    nd.dot(a, b)
trace = RECORDER.stop("peers")
start = time.perf_counter()
profiler.write(trace, sys.argv[1])
print(json.dumps({{"write_s": time.perf_counter() - start, "events": len(trace.events),
    "dropped": trace.dropped, "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}}))
"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "calls.json"
        told = json.loads(run(program, str(path)))
        data = path.read_bytes()
        packed = gzip.compress(data, 6)
        problems = profiler.check(path)
    save_ns, viz_events = viztracer_save()
    write_ns = told["write_s"] * 1e9 / told["events"]
    return [
        ("events of 48,000 calls of nd.dot, all modes", f"{told['events']:,}", ""),
        ("dropped; problems found by trace check", f"{told['dropped']}; {len(problems)}", "0; 0"),
        ("their trace", f"{len(data) / MB:.1f} MB", "100 MB"),
        ("the same, gzip level 6", f"{len(packed) / MB:.2f} MB", "8 MB"),
        ("writing it, per event", f"{write_ns:.0f} ns", ""),
        (f"VizTracer's save, per event (of {viz_events:,})", f"{save_ns:.0f} ns", ""),
        ("writing / VizTracer's save", f"{write_ns / save_ns:.2f}", "1"),
        ("largest resident memory of that process", f"{told['rss'] / 1e3:.0f} MB", ""),
    ]


def viztracer_save() -> tuple[float, int]:
    """Nanoseconds per event of VizTracer's save, and how many events there were."""
    program = """
import json, sys, time
from viztracer import VizTracer
def empty(): pass
tracer = VizTracer(verbose=0, tracer_entries=1_000_000)
tracer.start()
for _ in range(400_000):
    empty()
tracer.stop()
start = time.perf_counter()
tracer.save(sys.argv[1])
print(time.perf_counter() - start)
"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "viztracer.json"
        seconds = float(run(program, str(path)).splitlines()[-1])
        document = json.loads(path.read_text())
    events = sum(event["ph"] != "M" for event in document["traceEvents"])
    return seconds * 1e9 / events, events


def million_rows() -> list[Row]:
    """A million events, each step in a process of its own."""
    measured = """
import json, resource, sys, time
from opbench import profiler
def rss(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
before, start = rss(), time.perf_counter()
STEP
print(json.dumps([time.perf_counter() - start, rss() - before]))
"""
    record = f"""
recorder = profiler.Profiler(capacity={EVENTS})
recorder.run("all", "peers")
for number in range({EVENTS}):
    begin = recorder.clock()
    recorder.complete("dot", "imperative", begin, recorder.clock(), {{"iteration": number}})
"""
    steps = {
        "recorded": record,
        "recorded and written": record + "profiler.write(recorder.stop('peers'), sys.argv[1])",
        "checked": "assert profiler.check(sys.argv[1]) == []",
        "loaded": "profiler.load(sys.argv[1])",
        "summarised": "profiler.summary(profiler.load(sys.argv[1]))",
    }
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "million.json"
        for name, step in steps.items():
            seconds, memory = json.loads(run(measured.replace("STEP", step), str(path)))
            size = path.stat().st_size / MB if path.exists() else 0.0
            times = f", {memory / size:.1f} times the file" if size else ""
            rows.append(
                (f"a million events {name}", f"{seconds:.1f} s, {memory:.0f} MB{times}", "")
            )
        rows.append(("their file", f"{path.stat().st_size / MB:.0f} MB", ""))
    return rows


def tile_rows() -> list[Row]:
    """What recording all tiles does to dot 4096 by 4096, and the price of a worker's record."""
    program = """
import json, statistics, time
import numpy as np
from opbench import kernels
size = 4096
generator = np.random.default_rng(1)
a, b = (generator.random((size, size), dtype=np.float32) for _ in range(2))
out = np.empty((size, size), np.float32)
lanes, off = kernels.lanes.buffer(1 << 16), kernels.lanes.OFF
def timed(buffer):
    start = time.perf_counter()
    kernels.dot(a, b, out, lanes=buffer)
    return time.perf_counter() - start
timed(off), timed(lanes)
pairs = []
for turn in range(8):
    order = (off, lanes) if turn % 2 == 0 else (lanes, off)
    found = {id(buffer): timed(buffer) for buffer in order}
    pairs.append(found[id(lanes)] / found[id(off)])
records = len(kernels.lanes.taken(lanes).rows)
print(json.dumps([statistics.median(pairs), records, kernels.lanes.record_ns()]))
"""
    ratio, records, record_ns = json.loads(run(program))
    return [
        (f"dot 4096² with {records} tiles recorded / without", f"{ratio:.4f}", "1.01"),
        ("a worker's record", f"{record_ns:.0f} ns", ""),
    ]


def run(program: str, *arguments: str) -> str:
    """What a fresh process prints."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


PARTS: dict[str, Callable[[], list[Row]]] = {
    "emit": emit_rows,
    "calls": call_rows,
    "million": million_rows,
    "tiles": tile_rows,
}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    rows = [row for part in options.only for row in PARTS[part]()]
    if options.markdown:
        print("| What | Measured | At most |\n|---|---|---|")
        for row in rows:
            print(f"| {' | '.join(row)} |")
    else:
        for what, figure, bar in rows:
            print(f"{what}: {figure}" + (f" (at most {bar})" if bar else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
