"""What a benchmark's ``extra_info["opbench"]`` holds: plain numbers and text, nothing of NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opbench import profiler
from opbench.errors import OpbenchError

__all__ = ["notes", "of_kernel", "of_trace"]

NANOSECONDS = 1e9


def of_kernel(operator: Any, args: Sequence[Any]) -> dict[str, Any]:
    """Operator, operands and work of a kernel that was called directly.

    Empty without an operator, and if the positional arguments are not its operands, with or
    without an ``out`` and a buffer for lanes behind them: then the work is not known, and a dash is
    printed.
    """
    for operands in (args, args[:-1], args[:-2]) if operator is not None else ():
        try:
            shapes = tuple(tuple(int(size) for size in array.shape) for array in operands)
            operator.infer_shape(shapes)
            dtype = str(operands[0].dtype)
        except (OpbenchError, AttributeError, IndexError):
            continue
        cost = operator.cost(shapes, dtype)
        return {
            "form": "kernel",
            "operator": operator.name,
            "shapes": [list(shape) for shape in shapes],
            "dtype": dtype,
            "flop": int(cost.flop),
            "bytes": int(cost.bytes),
        }
    return {}


def of_trace(trace: profiler.Trace, measured: profiler.Trace) -> dict[str, Any]:
    """Mode, operator totals, and the work of one iteration.

    Args:
        trace: of all windows.
        measured: of what was timed, whose work it is.
    """
    totals = profiler.operator_totals(trace)
    return {
        "mode": profiler.mode_names(trace.modes),
        "events": len(trace.events),
        "dropped": trace.dropped,
        "operators": [_total(row) for row in totals],
        **_workers(trace),
        **_work(measured),
    }


def _total(row: profiler.OperatorTotal) -> dict[str, Any]:
    return {
        "category": row.category,
        "name": row.name,
        "count": row.count,
        "total": row.total_ns / NANOSECONDS,
        "min": row.min_ns / NANOSECONDS,
        "max": row.max_ns / NANOSECONDS,
        "mean": row.mean_ns / NANOSECONDS,
        "median": row.median_ns / NANOSECONDS,
        "flop": row.flop,
        "bytes": row.bytes,
    }


def notes(trace: profiler.Trace) -> list[str]:
    """What is clearly wrong with how workers shared most calls, and what was lost."""
    found = []
    for row in profiler.lane_totals(trace):
        found += [
            f"{row.name}: {verdict} in {times} of {row.count} profiled calls"
            for verdict, times in row.verdicts.items()
            if 2 * times > row.count
        ]
        if row.lost:
            found.append(
                f"{row.name}: {row.lost} worker records were lost, its buffer is too small"
            )
    return found


def _workers(trace: profiler.Trace) -> dict[str, Any]:
    """What the workers of each operator did, in medians over its calls; nothing without any."""
    found: list[dict[str, Any]] = [
        {
            "category": row.category,
            "name": row.name,
            "count": row.count,
            "asked": row.asked,
            "workers": row.workers,
            "fork": row.fork_ns / NANOSECONDS,
            "join": row.join_ns / NANOSECONDS,
            "busy": [time / NANOSECONDS for time in row.busy_ns],
            "imbalance": row.imbalance,
            "all_running": row.all_running,
            "cpus": list(row.cpus),
            "lost": row.lost,
            "verdicts": dict(row.verdicts),
        }
        for row in profiler.lane_totals(trace)
    ]
    if not found:
        return {}
    # One number for the comparison of two runs: of the operator that workers are busiest with.
    busiest = max(found, key=lambda row: row["count"] * sum(row["busy"]))
    return {"lanes": {"imbalance": busiest["imbalance"], "operators": found}}


def _work(trace: profiler.Trace) -> dict[str, Any]:
    """FLOP and bytes of one iteration; the form and operands where one operator is all there is."""
    events = [
        event
        for event in trace.events
        if event.phase == "X" and event.category in ("symbolic", "imperative")
    ]
    iterations = {event.args.get("iteration") for event in events}
    if not events or None in iterations:
        return {}
    work: dict[str, Any] = {}
    for key in ("flop", "bytes"):
        values = [event.args.get(key) for event in events]
        if all(isinstance(value, int) for value in values):
            work[key] = sum(values) // len(iterations)  # type: ignore[arg-type]
    first = events[0]
    kinds = {(e.category, e.name, repr(e.args.get("inputs"))) for e in events}
    if len(kinds) == 1 and len(events) == len(iterations):
        work["form"] = first.args.get("form", first.category)
        work["operator"] = first.args["operator"]
        work["shapes"] = first.args["inputs"]
        work["dtype"] = first.args["dtype"]
    return work
