"""What workers did over all calls of a trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from opbench.profiler.events import Trace

__all__ = ["LaneTotal", "lane_totals"]

Args = Mapping[str, Any]
NUMBERS = ("workers", "fork_ns", "join_ns", "imbalance", "all_running")
LARGEST = 2**63  # ns, the end of a viewer's time


class LaneTotal(NamedTuple):
    """The workers of all calls of one name; figures are medians over the calls.

    Attributes:
        category: the calls'.
        name: likewise.
        count: calls that recorded workers.
        asked: the most workers that one could have had; None if nobody said.
        workers: the fewest that one had.
        fork_ns: median; likewise `join_ns`, `imbalance` and `all_running`.
        busy_ns: medians by worker, of the calls that had as many as most had.
        cpus: all of them.
        lost: records, of all calls.
        verdicts: each one's number of calls.
    """

    category: str
    name: str
    count: int  # type: ignore[assignment]  # hides tuple.count, which a row has no use for
    asked: int | None
    workers: int
    fork_ns: float
    join_ns: float
    busy_ns: tuple[float, ...]
    imbalance: float
    all_running: float
    cpus: tuple[int, ...]
    lost: int
    verdicts: Mapping[str, int]


def lane_totals(trace: Trace) -> list[LaneTotal]:
    """One row for each category and name of calls that recorded workers, the most calls first."""
    groups: dict[tuple[str, str], list[Args]] = {}
    for event in trace.events:
        if event.phase == "X" and (_tells(event.args) or _lost(event.args)):
            name = str(event.args.get("operator", event.name))
            groups.setdefault((event.category, name), []).append(event.args)
    rows = [_total(*key, calls) for key, calls in groups.items()]
    return sorted(rows, key=lambda row: (-row.count, row.category, row.name))


def _total(category: str, name: str, calls: Sequence[Args]) -> LaneTotal:
    told = [call for call in calls if _tells(call)]
    counts = [len(call["busy_ns"]) for call in told]
    most = max(counts, key=counts.count, default=0)
    busy = [call["busy_ns"] for call in told if len(call["busy_ns"]) == most]
    verdicts: dict[str, int] = {}
    for call in told:
        if "verdict" in call:
            verdicts[str(call["verdict"])] = verdicts.get(str(call["verdict"]), 0) + 1

    def middle(key: str) -> float:
        return _median(call[key] for call in told)

    return LaneTotal(
        category=category,
        name=name,
        count=len(told),
        asked=max(
            (call["workers_asked"] for call in told if "workers_asked" in call), default=None
        ),
        workers=min((call["workers"] for call in told), default=0),
        fork_ns=middle("fork_ns"),
        join_ns=middle("join_ns"),
        busy_ns=tuple(_median(times) for times in zip(*busy, strict=True)),
        imbalance=middle("imbalance"),
        all_running=middle("all_running"),
        cpus=tuple(sorted({cpu for call in told for cpu in call["cpus"]})),
        lost=sum(_lost(call) for call in calls),
        verdicts=verdicts,
    )


def _tells(args: Args) -> bool:
    """Whether a call's arguments hold the figures of its workers, and not words of another's."""
    numbers = [args.get(key) for key in NUMBERS]
    numbers += [args.get("workers_asked", 0)]
    busy, cpus = args.get("busy_ns"), args.get("cpus")
    if not (busy and isinstance(busy, (list, tuple)) and isinstance(cpus, (list, tuple))):
        return False
    # A comparison that NaN fails too, and no number is so large that it could overflow a float.
    return all(
        isinstance(number, (int, float)) and -LARGEST <= number <= LARGEST
        for number in (*numbers, *busy, *cpus)
    )


def _lost(args: Args) -> int:
    lost = args.get("records_lost", 0)
    return lost if isinstance(lost, int) else 0


def _median(values: Iterable[float]) -> float:
    # Not the standard library's, whose module takes 10 ms to import, in every pytest.
    ordered = sorted(values)
    if not ordered:
        return 0.0
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
