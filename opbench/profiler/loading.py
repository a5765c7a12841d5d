"""A trace from a file: ours, one that a killed process left, or a stranger's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from opbench.errors import TraceError
from opbench.profiler.chrome import decode, read_bytes
from opbench.profiler.clock import ClockAnchor
from opbench.profiler.convert import Converter
from opbench.profiler.cost import Cost
from opbench.profiler.events import Trace
from opbench.profiler.lines import FORMAT
from opbench.profiler.modes import Mode, parse_modes
from opbench.profiler.scan import Scan

__all__ = ["Loaded", "load", "load_file"]

MODES_SEPARATOR = " + "


class Loaded(NamedTuple):
    """A trace, and what had to be done to get it.

    Attributes:
        trace: what could be read.
        ours: whether opbench wrote the file.
        growing: whether it is the file of a continuous dump that nobody finished.
        notes: what was mended and what was left out, a sentence each; empty for a whole file.
    """

    trace: Trace
    ours: bool
    growing: bool
    notes: tuple[str, ...]


def load(path: str | os.PathLike[str]) -> Trace:
    """The trace that a file holds, as far as it can be told.

    Of a file of ours it is what was written. Of others, slices in any form, counters, instants and
    arrows are read; spans that never ended end with the trace, and have ``"unfinished": true`` in
    their arguments. Where a file tells no window, the window is from the first event to the last.

    Raises:
        TraceError: it cannot be read, or holds no event.
    """
    return load_file(path).trace


def load_file(path: str | os.PathLike[str]) -> Loaded:
    """`load`, with an account of what was mended.

    Raises:
        TraceError: it cannot be read, or holds nothing of a trace.
    """
    scan = Scan(decode(read_bytes(path), path), lenient=True)
    converter = Converter()
    for event in scan.events():
        converter.take(event)
    if not converter.taken and scan.damage:
        raise TraceError(
            f"{os.fspath(path)} holds no trace: {scan.damage}; "
            "give a file in the Trace Event Format"
        )
    converter.finish()
    facts = converter.facts
    growing = facts is not None
    if facts is None:
        other = scan.top.get("otherData")
        facts = other if isinstance(other, Mapping) and other.get("format") == FORMAT else None
    trace = _foreign(converter, scan.top) if facts is None else _ours(converter, facts)
    notes = list(converter.notes())
    if scan.damage:
        notes.insert(0, f"the file is damaged, and was read up to there: {scan.damage}")
    return Loaded(trace, facts is not None, growing, tuple(notes))


def _ours(converter: Converter, facts: Mapping[str, Any]) -> Trace:
    given = facts.get("origin")
    origin = given if isinstance(given, Mapping) else {}
    base = _integer(origin.get("monotonic_ns"))
    converter.shift(base)
    trace = _foreign(converter, {"baseTimeNanoseconds": origin.get("wall_ns")})
    metadata = facts.get("metadata")
    return trace._replace(
        modes=_modes(facts.get("modes")),
        windows=_stretches(facts.get("windows_ns"), base) or trace.windows,
        dropped=trace.dropped + _integer(facts.get("dropped")),
        anchor=ClockAnchor(base, trace.anchor.wall_ns),
        metadata=dict(metadata) if isinstance(metadata, Mapping) else {},
        pauses=_stretches(facts.get("pauses_ns"), base),
        cost=_cost(facts.get("cost")),
    )


def _foreign(converter: Converter, top: Mapping[str, Any]) -> Trace:
    events = converter.events
    last = max((event.end_ns for event in events), default=0)
    first = events[0].start_ns if events else 0
    return Trace(
        events=tuple(events),
        modes=Mode(0),
        windows=((first, last),) if events else (),
        dropped=converter.lost,
        anchor=ClockAnchor(0, _integer(top.get("baseTimeNanoseconds"))),
        process_names=converter.process_names,
        thread_names=converter.thread_names,
        metadata={},
    )


def _modes(words: Any) -> Mode:
    try:
        return parse_modes(str(words).replace(MODES_SEPARATOR, "+"), "otherData")
    except ValueError:
        return Mode(0)


def _stretches(pairs: Any, base: int) -> tuple[tuple[int, int], ...]:
    if not isinstance(pairs, list):
        return ()
    return tuple(
        (base + pair[0], base + pair[1])
        for pair in pairs
        if isinstance(pair, list) and [type(end) for end in pair] == [int, int]
    )


def _cost(figures: Any) -> Cost | None:
    if not isinstance(figures, Mapping):
        return None
    prices = [figures.get(key) for key in Cost._fields]
    span, *others = (float(ns) if isinstance(ns, (int, float)) else None for ns in prices)
    return None if span is None else Cost(span, *others)


def _integer(value: Any) -> int:
    return value if type(value) is int else 0
