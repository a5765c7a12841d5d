"""The share of the machine's roof that each benchmark reached.

The roof is measured after the last benchmark, once for a machine: when none is stored for this
environment, when the stored one was taken in a busy moment, or when a benchmark exceeded it.
Nothing is loaded for it in a session that called no kernel of ours.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from opbench.errors import OpbenchError
from opbench.plugin import settings as _settings

if TYPE_CHECKING:
    from opbench.plugin.session import Session
    from opbench.records import Roof

__all__ = ["apply", "problem"]

FOLDER = "roof"
EXCEEDED = 1.02  # of the roof: what a clock that varies, and a best-of beside a median, do not make
PROBLEM = pytest.StashKey[str]()

Benchmarks: TypeAlias = "list[tuple[dict[str, Any], float]]"


def problem(config: pytest.Config) -> str:
    """What went wrong with the roof, or an empty string."""
    return config.stash.get(PROBLEM, "")


def apply(session: Session, *, may_measure: bool) -> None:
    """Add ``roof`` to the summaries, as they are shown and as they are saved.

    Called at the end of the session, before pytest-benchmark saves.

    Args:
        session: whose benchmarks are finished.
        may_measure: whether the session measured for its own sake, so that a second more is fine.
    """
    wanted = list(_with_work(session))
    # Without our kernels loaded, nothing here knows for which target they are compiled.
    if not wanted or "opbench.kernels" not in sys.modules:
        return
    if _settings.resolve(session.default_levels).roof == "off":
        return
    try:
        roof = _roof(session, wanted, may_measure=may_measure)
    except OpbenchError as error:
        _note(session, f"the machine's roof is not known: {error}")
        return
    if roof is None:
        return
    for summary, median in wanted:
        if shared := share(roof, summary, median):
            summary["roof"] = shared


def share(roof: Roof, summary: Mapping[str, Any], median: float) -> dict[str, Any]:
    """What ``extra_info`` says of the roof; empty if the roof does not know the dtype.

    ``share`` is the rate at the median call over the roof: 1 is all that the machine can do.
    """
    flop = summary["flop"]
    ceiling = roof.ceiling(flop, summary["bytes"], summary["dtype"])
    if ceiling is None:
        return {}
    return {
        "share": flop / median / ceiling.flops,
        "bound": ceiling.bound,
        "flops": ceiling.flops,
        "threads": roof.threads,
        "measured": roof.measured,
        "quiet": roof.quiet,
    }


def _with_work(session: Session) -> Iterator[tuple[dict[str, Any], float]]:
    """Summary and median of each benchmark whose work and dtype are known: shown ones, saved ones.

    They are two dictionaries, since a report carries a copy, which may come from another process.
    """
    benchmarks = getattr(getattr(session.config, "_benchmarksession", None), "benchmarks", ())
    pairs = [(row["summary"], row["median"]) for row in session.rows]
    for benchmark in benchmarks:
        stats = getattr(benchmark, "stats", None)
        pairs.append((benchmark.extra_info.get("opbench"), getattr(stats, "median", None)))
    for summary, median in pairs:
        known = isinstance(summary, dict) and {"flop", "bytes", "dtype"} <= summary.keys()
        if known and median and summary["flop"]:
            yield summary, float(median)


def _roof(session: Session, wanted: Benchmarks, *, may_measure: bool) -> Roof | None:
    """The roof that applies: the stored one, or one that is measured now and stored.

    Raises:
        OpbenchError: it can be neither read nor measured.
    """
    from opbench import records, runtime

    facts, folder = runtime.roof.facts(), session.results / FOLDER
    threads = runtime.roof.pool_threads()
    unreadable = ""
    try:
        stored = records.load_roof(folder, facts, threads)
    except OpbenchError as error:
        stored, unreadable = None, str(error)
    dtypes = sorted({summary["dtype"] for summary, _ in wanted} & set(runtime.roof.DTYPES))
    if not may_measure or not dtypes or (stored is not None and _holds(stored, dtypes, wanted)):
        if unreadable:
            _note(session, unreadable)
        return stored
    from opbench.plugin import section

    section.say(session.config, "opbench: measuring what this machine can do at most (about 2 s)")
    session.references.settle()
    measured = runtime.roof.measure(threads, dtypes)
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    roof = records.Roof(
        facts, threads, now, measured.peaks, measured.bandwidth, quiet=measured.quiet
    )
    if stored is not None:
        roof = stored.best_of(roof)
    try:
        records.save_roof(folder, roof)
    except OpbenchError as error:
        _note(session, str(error))
    return roof


def _holds(roof: Roof, dtypes: Sequence[str], wanted: Benchmarks) -> bool:
    """Whether the roof needs no measuring: all dtypes, taken in quiet, and nothing above it."""
    shares = [share(roof, summary, median).get("share", 0.0) for summary, median in wanted]
    return roof.quiet and set(dtypes) <= set(roof.peaks) and max(shares) <= EXCEEDED


def _note(session: Session, sentence: str) -> None:
    session.config.stash[PROBLEM] = sentence
