"""From the records of workers to their lanes in the trace, and what they say about the call.

The records come as plain numbers, nine each: worker, OS thread, CPU before, CPU after, start, end,
tag, items, bytes. Who wrote them is not this room's business.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from opbench.profiler.cost import WORKERS
from opbench.profiler.emit import Emitter
from opbench.profiler.events import Lane

__all__ = ["LaneFigures", "record_lanes"]

CATEGORY = "worker"
COUNTER, SERIES = "running", "workers"  # which Perfetto and the tables put together
# What lies between two pieces of one worker up to this long is the recording of the one and the
# taking of the next, and does not count as an end of running.
GAP_NS = 5000
# A verdict is given where it is clear: the busiest worker has that much more to do than the mean,
# and that costs this share of the call; or workers lay side by side on one CPU for such a share.
IMBALANCED, MATTERS = 1.2, 0.1
# A worker is missing if it had that long to come, and so many times what the last of the others
# took: waking one takes some hundred µs on a busy machine, and a small call is over by then.
ARRIVES_NS, PATIENCE = 1_000_000, 10
LEVEL = 10_000  # lanes for one more thread of the same worker number begin so much higher


class Row(NamedTuple):
    """One record, times in ns."""

    worker: int
    os_thread: int
    cpu_before: int
    cpu_after: int
    start: int
    end: int
    tag: int
    items: int
    bytes: int


class LaneFigures(NamedTuple):
    """What the workers of one call did.

    Attributes:
        asked: workers that the call could have had; None if nobody said.
        workers: those that recorded anything.
        records: complete ones.
        lost: records that are not among them.
        fork_ns: from the call's begin to the first piece's.
        join_ns: from the last piece's end to the call's.
        busy_ns: time in pieces by worker, in the order of their numbers.
        imbalance: the busiest worker's time by the mean.
        all_running: share of the call in which as many run as were asked for, 0 to 1.
        cpus: the CPUs that they ran on, as far as the system says.
        verdict: what is clearly wrong, in a few words; else empty.
    """

    asked: int | None
    workers: int
    records: int
    lost: int
    fork_ns: int
    join_ns: int
    busy_ns: tuple[int, ...]
    imbalance: float
    all_running: float
    cpus: tuple[int, ...]
    verdict: str

    def args(self) -> dict[str, Any]:
        """As arguments of the call's event: plain JSON values, nothing where nothing is known."""
        found: dict[str, Any] = {}
        if self.lost:
            found["records_lost"] = self.lost
        if not self.records:
            return found
        if self.asked is not None:
            found["workers_asked"] = self.asked
        found |= {
            "workers": self.workers,
            "fork_ns": self.fork_ns,
            "join_ns": self.join_ns,
            "busy_ns": list(self.busy_ns),
            "imbalance": round(self.imbalance, 4),
            "all_running": round(self.all_running, 4),
            "cpus": list(self.cpus),
        }
        return found | ({"verdict": self.verdict} if self.verdict else {})


def record_lanes(
    recorder: Emitter,
    rows: Iterable[Sequence[int]],
    operator: str,
    enter_ns: int,
    leave_ns: int,
    asked: int | None = None,
    *,
    lost: int = 0,
) -> LaneFigures:
    """Give each worker of a call a lane with its pieces, an arrow to it, and count who runs.

    Call it while recording, on the thread that records the call's own event, whose track the arrows
    leave from.

    Args:
        recorder: what records.
        rows: the records, in the recorder's clock.
        operator: what the pieces are called.
        enter_ns: when the call began.
        leave_ns: when it ended.
        asked: workers that it could have had.
        lost: records that are missing; those that do not lie within the call are added.
    """
    given = [Row(*row) for row in rows]
    kept = [row for row in given if enter_ns <= row.start <= row.end <= leave_ns]
    kept.sort(key=lambda row: (row.start, -row.end))
    lost += len(given) - len(kept)
    stretches = {
        worker: _stretches([row for row in kept if row.worker == worker])
        for worker in sorted({row.worker for row in kept})
    }
    lanes = _lanes(kept, _NUMBERS.setdefault(recorder, _Numbers()))
    for row, lane in zip(kept, lanes, strict=True):
        recorder.complete(operator, CATEGORY, row.start, row.end, _piece(row), lane=lane)
    met: set[Lane] = set()
    for row, lane in zip(kept, lanes, strict=True):
        if lane not in met:
            met.add(lane)
            recorder.flow("fork", CATEGORY, (enter_ns, None), (row.start, lane))
    steps = _running(stretches.values())
    if steps:
        for at, running in [(enter_ns, 0), *steps]:
            recorder.counter_at(COUNTER, {SERIES: running}, at, CATEGORY, lane=lanes[0])
    return _figures(kept, stretches, steps, (enter_ns, leave_ns), asked, lost)


def _piece(row: Row) -> dict[str, Any]:
    args = {
        "tag": row.tag,
        "items": row.items,
        "bytes": row.bytes,
        "cpu": row.cpu_before,
        "os_thread": row.os_thread,
    }
    if row.cpu_after != row.cpu_before:
        args["moved_to_cpu"] = row.cpu_after
    if row.bytes and row.end > row.start:
        return {**args, "GB_per_s": round(row.bytes / (row.end - row.start), 3)}
    return args


class _Numbers:
    """A number in the group for each track that a recorder ever had.

    A track belongs to a worker and the thread behind it: two Python threads that compute at once
    each have a worker 0 under OpenMP, and slices that cross on one track would be lost.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[int, int, int], Lane] = {}
        self._levels: dict[int, int] = {}

    def lane(self, worker: int, os_thread: int, depth: int) -> Lane:
        """The lane of a worker's thread; of its own for what crosses what is there."""
        with self._lock:
            known = self._known.get((worker, os_thread, depth))
            if known is None:
                level = self._levels.get(worker, 0)
                self._levels[worker] = level + 1
                more = f" (thread {os_thread})" if level else ""
                name = f"worker {worker}{more}{', crossing' * bool(depth)}"
                known = Lane(WORKERS, level * LEVEL + worker + 1, name)
                self._known[worker, os_thread, depth] = known
        return known


_NUMBERS: WeakKeyDictionary[Emitter, _Numbers] = WeakKeyDictionary()


def _lanes(rows: Iterable[Row], numbers: _Numbers) -> list[Lane]:
    """The lane of each row: rows on one nest or lie apart, whatever a kernel has recorded."""
    open_ends: dict[tuple[int, int], list[list[int]]] = {}
    lanes = []
    for row in rows:
        levels = open_ends.setdefault((row.worker, row.os_thread), [])
        for depth in range(len(levels) + 1):
            if depth == len(levels):
                levels.append([])
            ends = levels[depth]
            while ends and ends[-1] <= row.start:
                ends.pop()
            if not ends or row.end <= ends[-1]:
                ends.append(row.end)
                lanes.append(numbers.lane(row.worker, row.os_thread, depth))
                break
    return lanes


def _stretches(rows: Iterable[Row]) -> list[tuple[int, int]]:
    """When one worker ran: its pieces, those that overlap or nearly touch made one."""
    found: list[tuple[int, int]] = []
    for row in rows:
        if found and row.start <= found[-1][1] + GAP_NS:
            found[-1] = (found[-1][0], max(found[-1][1], row.end))
        else:
            found.append((row.start, row.end))
    return found


def _running(workers: Iterable[Sequence[tuple[int, int]]]) -> list[tuple[int, int]]:
    """How many run from each moment on at which that changes."""
    changes: dict[int, int] = {}
    for stretches in workers:
        for start, end in stretches:
            changes[start] = changes.get(start, 0) + 1
            changes[end] = changes.get(end, 0) - 1
    steps, running = [], 0
    for at in sorted(changes):
        running += changes[at]
        if changes[at]:
            steps.append((at, running))
    return steps


def _busy(rows: Iterable[Row]) -> int:
    """Time in pieces, those inside others not counted twice."""
    total, reached = 0, 0
    for row in rows:
        total += max(0, row.end - max(row.start, reached))
        reached = max(reached, row.end)
    return total


def _figures(
    rows: Sequence[Row],
    workers: Iterable[int],
    steps: Sequence[tuple[int, int]],
    call: tuple[int, int],
    asked: int | None,
    lost: int,
) -> LaneFigures:
    if not rows:
        return LaneFigures(asked, 0, 0, lost, 0, 0, (), 0.0, 0.0, (), "")
    enter, leave = call
    busy = tuple(_busy(row for row in rows if row.worker == worker) for worker in workers)
    wanted = max(asked or 0, len(busy))
    ends = [at for at, _ in steps[1:]] + [leave]
    together = sum(
        end - at for (at, running), end in zip(steps, ends, strict=True) if running >= wanted
    )
    mean = sum(busy) / len(busy)
    imbalance = max(busy) / mean if mean else 1.0
    length = max(leave - enter, 1)
    cpus = tuple(sorted({cpu for row in rows for cpu in (row.cpu_before, row.cpu_after)} - {-1}))
    verdict = ""
    if asked is not None and len(busy) < asked and len(rows) < asked:
        verdict = "fewer pieces than workers"
    elif asked is not None and len(busy) < asked and _missing(rows, busy, call, asked):
        verdict = "fewer workers than asked"
    elif cpus and (len(cpus) < len(busy) or _shared(rows) >= MATTERS * length):
        verdict = "workers shared a CPU"
    elif imbalance >= IMBALANCED and max(busy) - mean >= MATTERS * length:
        verdict = "imbalanced"
    return LaneFigures(
        asked=asked,
        workers=len(busy),
        records=len(rows),
        lost=lost,
        fork_ns=min(row.start for row in rows) - enter,
        join_ns=leave - max(row.end for row in rows),
        busy_ns=busy,
        imbalance=imbalance,
        all_running=together / length,
        cpus=cpus,
        verdict=verdict,
    )


def _missing(rows: Iterable[Row], busy: Sequence[int], call: tuple[int, int], asked: int) -> bool:
    """Whether those who did not come had the time to, and would have spared a part of the call.

    Args:
        rows: by start.
        busy: time in pieces of those who came.
        call: its begin and end.
        asked: how many could have come.
    """
    enter, leave = call
    came = {row.worker: row.start - enter for row in reversed(list(rows))}
    needed = max(ARRIVES_NS, PATIENCE * max(came.values()))
    spared = max(busy) - sum(busy) / asked
    return leave - enter >= needed and spared >= MATTERS * (leave - enter)


def _shared(rows: Iterable[Row]) -> int:
    """How long pieces of two workers were under way at once on one CPU, which runs one of them."""
    latest: dict[int, Row] = {}
    total = 0
    for row in rows:
        if row.cpu_before != row.cpu_after or row.cpu_before < 0:
            continue
        other = latest.get(row.cpu_before)
        if other is not None and other.worker != row.worker:
            total += max(0, min(row.end, other.end) - row.start)
        if other is None or row.end > other.end:
            latest[row.cpu_before] = row
    return total
