"""What statistics need of a trace and no more: durations, self times, and how long values held.

A `Tally` can be added to another and taken away from one that contains it. So figures can outlive
the events that they were made from, and can begin anew in the middle of a window, each event
counted once.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from opbench.profiler.cost import Cost, Counts, Overhead, counted, joined, taken_out
from opbench.profiler.events import Trace, TraceEvent

__all__ = ["OPERATOR_CATEGORIES", "Held", "Key", "Tally", "Times", "operator_name", "tally_of"]

OPERATOR_CATEGORIES = ("symbolic", "imperative")
SLICES = ("X", "b")
# Longer than any time that an integer of 64 bits holds in nanoseconds: some 292 years.
LONGEST = 2**63 - 1


class Key(NamedTuple):
    """What is told apart at the finest; a coarser grouping leaves out shape or thread.

    Attributes:
        category: the event's.
        name: the operator's, or the event's; of a counter with its series.
        shape: input shapes and dtype, or the arguments of a call; else empty.
        thread: name and number of the thread; empty for a counter, which belongs to a process.
    """

    category: str
    name: str
    shape: str = ""
    thread: str = ""


class Times:
    """The slices of one key.

    Attributes:
        durations: one per slice, ns.
        self_ns: their time less that of the slices inside them, on the same thread.
        flop: of all slices; None as soon as one did not state it. Likewise ``bytes``.
    """

    __slots__ = ("bytes", "durations", "flop", "self_ns")

    def __init__(self) -> None:
        self.durations = array("q")
        self.self_ns = 0
        self.flop: int | None = 0
        self.bytes: int | None = 0

    def note(self, event: TraceEvent) -> None:
        """Take in one slice; its self time is the caller's business."""
        self.durations.append(min(event.duration_ns, LONGEST))
        self.flop = _sum(self.flop, event.args.get("flop"))
        self.bytes = _sum(self.bytes, event.args.get("bytes"))

    def add(self, other: Times) -> None:
        """Take in all slices of another."""
        self.durations.extend(other.durations)
        self.self_ns += other.self_ns
        self.flop = _sum(self.flop, other.flop)
        self.bytes = _sum(self.bytes, other.bytes)

    def subtract(self, other: Times) -> None:
        """Take away the slices of another, as far as they are among these."""
        left = Counter(self.durations)
        left.subtract(other.durations)
        self.durations = array("q", left.elements())
        self.self_ns -= other.self_ns
        # What is left may state its work although a slice that was taken away did not; that is
        # not known any more, and a dash is no lie.
        self.flop = _difference(self.flop, other.flop)
        self.bytes = _difference(self.bytes, other.bytes)


class Held:
    """One series of one counter.

    Attributes:
        values: each value that it had, with how often it was set and how long it held, ns.
    """

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: dict[float, tuple[int, int]] = {}

    def note(self, value: float, updates: int, ns: int) -> None:
        """The value was set ``updates`` more times and held ``ns`` more; negative takes away."""
        known = self.values.get(value, (0, 0))
        updated = (max(0, known[0] + updates), max(0, known[1] + ns))
        if updated == (0, 0):
            self.values.pop(value, None)
        else:
            self.values[value] = updated

    def add(self, other: Held, sign: int = 1) -> None:
        """Take in another, or with ``sign`` -1 take it away."""
        for value, (updates, ns) in other.values.items():
            self.note(value, sign * updates, sign * ns)


class Tally:
    """All times and counters of one or more windows.

    Attributes:
        times: of slices.
        counters: of counter series.
        recorded_ns: the windows less their pauses.
        windows: how many there are.
        events: how many events were recorded, whatever their phase.
        counts: how much recording there is to pay for.
        dropped: how many were not.
        spilled: how many only the file of a continuous dump holds; they are in no figure.
        cost: what recording one event costs; None where nobody measured it.
    """

    def __init__(self) -> None:
        self.times: dict[Key, Times] = {}
        self.counters: dict[Key, Held] = {}
        self.recorded_ns = 0
        self.windows = 0
        self.events = 0
        self.counts = Counts(0, 0, 0)
        self.dropped = 0
        self.spilled = 0
        self.cost: Cost | None = None

    def add(self, other: Tally) -> None:
        """Take in all of another."""
        for key, times in other.times.items():
            self.times.setdefault(key, Times()).add(times)
        for key, held in other.counters.items():
            self.counters.setdefault(key, Held()).add(held)
        self._count(other, 1)
        self.cost = joined((self.cost, other.cost))

    def subtract(self, other: Tally) -> None:
        """Take away what another counted of the same windows, at an earlier time."""
        # A buffer that keeps the newest events may have let go of what was counted then.
        for key, times in other.times.items():
            if key in self.times:
                self.times[key].subtract(times)
        for key, held in other.counters.items():
            if key in self.counters:
                self.counters[key].add(held, -1)
        self.times = {key: times for key, times in self.times.items() if times.durations}
        self.counters = {key: held for key, held in self.counters.items() if held.values}
        # The window goes on, and is still one.
        self._count(other, -1)
        self.windows += other.windows

    def overhead(self) -> Overhead | None:
        """What recording all this cost; None where nobody timed a record."""
        return taken_out(self.cost, self.counts, self.recorded_ns)

    def _count(self, other: Tally, sign: int) -> None:
        self.recorded_ns += sign * other.recorded_ns
        self.windows += sign * other.windows
        self.events += sign * other.events
        pairs = zip(self.counts, other.counts, strict=True)
        self.counts = Counts(*(one + sign * more for one, more in pairs))
        self.dropped += sign * other.dropped
        self.spilled += sign * other.spilled


def tally_of(trace: Trace) -> Tally:
    """Everything of one trace, each event once. Instants are counted as events, and are no times.

    The self time of a slice is its duration less what the slices of its thread cover of it that
    begin inside it.
    """
    tally = Tally()
    tally.events = len(trace.events)
    tally.counts = counted(trace)
    tally.dropped = trace.dropped
    tally.spilled = trace.spilled
    tally.cost = trace.cost
    tally.windows = len(trace.windows)
    tally.recorded_ns = _length(trace.windows) - _length(trace.pauses)
    names: dict[tuple[int, int], str] = {}
    stacks: dict[tuple[int, int], list[_Open]] = {}
    counters: dict[tuple[int, Key], list[tuple[int, float]]] = {}
    for event in trace.events:
        if event.phase == "C":
            _gather(event, counters)
        elif event.phase in SLICES:
            thread = (event.pid, event.tid)
            if thread not in names:
                known = trace.thread_names.get(thread, "thread")
                names[thread] = f"{known} · {event.tid}"
            key = Key(event.category, operator_name(event), _shape(event.args), names[thread])
            times = tally.times.get(key)
            if times is None:
                times = tally.times[key] = Times()
            times.note(event)
            times.self_ns += event.duration_ns
            if event.phase == "X":  # what is async may overlap, and has no parent
                _nest(stacks.setdefault(thread, []), event, times)
    clock = _Recorded(trace)
    for (_, key), points in counters.items():
        _hold(points, clock, tally.counters.setdefault(key, Held()))
    return tally


def operator_name(event: TraceEvent) -> str:
    """What an event counts under: its operator, without the number of an iteration."""
    if event.category in OPERATOR_CATEGORIES:
        return str(event.args.get("operator", event.name))
    return "iteration" if event.category == "iteration" else event.name


def _sum(one: int | None, other: Any) -> int | None:
    return None if one is None or type(other) is not int else one + other


def _difference(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one - other


def _shape(args: Mapping[str, Any]) -> str:
    """The shapes and dtype that an event states, as one short text."""
    inputs = args.get("inputs")
    if isinstance(inputs, (list, tuple)):
        shapes = " · ".join(_lengths(shape) for shape in inputs)
        return f"{shapes} {args.get('dtype', '')}".strip()
    arguments = args.get("arguments")
    return ", ".join(map(str, arguments)) if isinstance(arguments, (list, tuple)) else ""


def _lengths(shape: Any) -> str:
    return "×".join(map(str, shape)) or "scalar" if isinstance(shape, (list, tuple)) else str(shape)


class _Open:
    """A slice that the walk over its thread is in: its end, and up to where others covered it."""

    __slots__ = ("covered", "end", "times")

    def __init__(self, event: TraceEvent, times: Times) -> None:
        self.end = event.end_ns
        self.covered = event.start_ns
        self.times = times


def _nest(stack: list[_Open], event: TraceEvent, times: Times) -> None:
    """Put the slice under its parent, whose self time it lessens."""
    while stack and stack[-1].end <= event.start_ns:
        stack.pop()
    for parent in reversed(stack):
        begin, end = max(event.start_ns, parent.covered), min(event.end_ns, parent.end)
        if end > begin:
            parent.times.self_ns -= end - begin
            parent.covered = end
        if event.end_ns <= parent.end:
            break  # what lies further out is covered by the parent; one that crosses it reaches on
    stack.append(_Open(event, times))


def _gather(event: TraceEvent, counters: dict[tuple[int, Key], list[tuple[int, float]]]) -> None:
    for series, value in event.args.items():
        if isinstance(value, (int, float)):
            told = series == event.category or series in event.name.split()
            name = event.name if told else f"{event.name} {series}"
            key = (event.pid, Key(event.category, name))
            counters.setdefault(key, []).append((event.start_ns, value))


def _hold(points: list[tuple[int, float]], clock: _Recorded, held: Held) -> None:
    """Let each value hold until the next one, or until its window ends."""
    following = [at for at, _ in points[1:]] + [LONGEST]
    for (at, value), until in zip(points, following, strict=True):
        held.note(value, 1, clock.between(at, min(until, clock.end_of_window(at))))


class _Recorded:
    """How much was recorded between two moments: pauses do not count."""

    def __init__(self, trace: Trace) -> None:
        self._windows = sorted(trace.windows)
        self._opened = [start for start, _ in self._windows]
        self._pauses = sorted(trace.pauses)
        self._starts = [start for start, _ in self._pauses]
        self._before = [0]
        for start, end in self._pauses:
            self._before.append(self._before[-1] + end - start)

    def end_of_window(self, at: int) -> int:
        """Of the window that the moment lies in; the moment itself, if it lies in none."""
        place = bisect_right(self._opened, at) - 1
        return max(at, self._windows[place][1]) if place >= 0 else at

    def between(self, start: int, end: int) -> int:
        return max(0, end - start - self._paused(end) + self._paused(start))

    def _paused(self, until: int) -> int:
        place = bisect_right(self._starts, until)
        if not place:
            return 0
        return self._before[place] - max(0, self._pauses[place - 1][1] - until)


def _length(stretches: Iterable[tuple[int, int]]) -> int:
    return sum(end - start for start, end in stretches)
