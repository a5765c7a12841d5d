"""How far this machine can be trusted: base measured against a second checkout of base."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from opbench.launch.journal import Journal
from opbench.launch.selection import Selection
from opbench.launch.side import THREAD_VARIABLES
from opbench.launch.turn import Turn
from opbench.launch.verdicts import BIMODAL_SHARE, Evidence, Verdicts

__all__ = ["SelfCheck", "Spread", "crowded", "self_check"]

# From these shares on a disturbance is told. Judgements: a quiet machine here stays below each.
STEAL, ELSEWHERE, CONTROL = 0.01, 0.1, 0.03
SWITCHES_A_SECOND = 50.0
# 1.4826 median absolute deviations are one standard deviation of normal noise.
MAD_TO_SD = 1.4826


@dataclass(frozen=True, slots=True)
class Spread:
    """How one benchmark repeats."""

    id: str
    pairs: int
    between_pairs: float
    """Standard deviation of a pair's ratio, as a share; robust, of log ratios."""
    between_launches: float
    """The same of the launches' values around their median."""
    detectable: float | None
    """The smallest change that a verdict of these pairs could have shown, as a share."""
    bimodal: float
    """Share of launches whose rounds lie around two values."""


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """What a session with the same code on both sides tells of the machine."""

    benchmarks: int
    suspects: tuple[str, ...]
    """Falsely suspected by screening: they cost time, and no trust."""
    alarms: tuple[str, ...]
    """Falsely confirmed."""
    spreads: tuple[Spread, ...]
    disturbances: tuple[str, ...]


def self_check(
    journal: Journal,
    selection: Selection,
    verdicts: Verdicts,
    detectable: Mapping[str, float | None],
    threads: int | None = None,
) -> SelfCheck:
    """Judge a finished session whose sides are equal.

    Args:
        journal: what was measured.
        selection: which benchmarks there are.
        verdicts: judges them.
        detectable: by id, the smallest change that could have been shown.
        threads: what the thread variables were set to; None left them alone.
    """
    spreads = [
        _spread(journal, file, name, detectable.get(name))
        for file, ids in selection.work.items()
        for name in ids
    ]
    alarms = tuple(name for ids in verdicts.changed().values() for name in ids)
    return SelfCheck(
        benchmarks=selection.count,
        suspects=tuple(name for ids in verdicts.suspects().values() for name in ids),
        alarms=alarms,
        spreads=tuple(sorted(spreads, key=lambda one: (one.pairs == 0, -one.between_pairs))),
        disturbances=tuple(_disturbances(journal.turns, spreads, _threads(threads))),
    )


def _spread(journal: Journal, file: str, name: str, detectable: float | None) -> Spread:
    evidence = Evidence(journal, file, name)
    base, head = evidence.all("base"), evidence.all("head")
    logs = [math.log(after / before) for before, after in zip(base, head, strict=True)]
    launches = [math.log(value) for value in (*base, *head)]
    return Spread(
        id=name,
        pairs=len(logs),
        between_pairs=_deviation(logs),
        between_launches=_deviation(launches),
        detectable=detectable,
        bimodal=evidence.bimodal,
    )


def _median(values: Sequence[float]) -> float:
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _deviation(values: Sequence[float]) -> float:
    if not values:
        return math.nan
    centre = _median(values)
    return MAD_TO_SD * _median([abs(value - centre) for value in values])


def _disturbances(turns: Sequence[Turn], spreads: Sequence[Spread], threads: int) -> Iterator[str]:
    """What was seen that makes timings worse, and what helps against it."""
    steal = _known([turn.steal for turn in turns])
    if steal and max(steal) >= STEAL:
        yield (
            f"steal: the hypervisor gave {_median(steal):.1%} of the CPU time to other machines "
            f"(at worst {max(steal):.1%}); a dedicated runner has none"
        )
    if load := crowded(turns):
        yield load
    rates = [
        turn.involuntary_switches / turn.seconds
        for turn in turns
        if turn.involuntary_switches is not None and turn.seconds > 0
    ]
    if rates and _median(rates) >= SWITCHES_A_SECOND:
        yield f"a launch was taken off a CPU {_median(rates):.0f} times a second"
    crowd = _oversubscription(threads, _usable(), _known([turn.load for turn in turns]))
    if crowd:
        yield crowd
    for control in ("compute", "memory"):
        logs = [math.log(turn.controls[control]) for turn in turns if control in turn.controls]
        if logs and _deviation(logs) >= CONTROL:
            yield (
                f"speed: the {control} control varied by {_deviation(logs):.1%} between launches, "
                "with no project's code in it"
            )
    modes = [one.id for one in spreads if one.bimodal >= BIMODAL_SHARE]
    if modes:
        yield (
            f"bimodal: {', '.join(modes)} ran around two speeds within a launch and cannot be "
            "judged; --threads 1 often helps"
        )


def crowded(turns: Sequence[Turn]) -> str:
    """A sentence if other processes used much of the CPUs during the launches; else empty."""
    elsewhere = _known([turn.busy_elsewhere for turn in turns])
    if not elsewhere or _median(elsewhere) < ELSEWHERE:
        return ""
    return (
        f"load: other processes used {_median(elsewhere):.0%} of the CPUs during a launch "
        f"(at worst {max(elsewhere):.0%}); stop them, or give the benchmarks CPUs by --cpus"
    )


def _usable() -> int:
    """CPUs that a launch may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _threads(given: int | None) -> int:
    """Threads that a parallel benchmark starts: as many as CPUs, unless somebody says otherwise."""
    if given is not None:
        return given
    named = [os.environ.get(name, "") for name in THREAD_VARIABLES]
    return max((int(text) for text in named if text.isdigit()), default=_usable())


def _oversubscription(threads: int, usable: int, load: Sequence[float]) -> str:
    """More threads than there are CPUs for them; each waits for the last one."""
    if threads > usable:
        return f"threads: {threads} are asked for on {usable} CPUs; give --threads {usable} or less"
    busy = _median(load) if load else 0.0
    if threads > 1 and busy + threads > usable + 0.5:
        return (
            f"threads: up to {threads} beside a load of {busy:.1f} on {usable} CPUs, so that "
            "parallel benchmarks wait for each other; --threads 1 is steadier"
        )
    return ""


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]
