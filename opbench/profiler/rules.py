"""The rules for events, one method each; `check` adds those for the file."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from opbench.profiler.nesting import LARGEST_ID, OpenSlices

__all__ = ["EventRules", "Finding", "shown"]

PHASES = frozenset("XBEiICMsftbne")
KNOWN_ELSEWHERE = frozenset("PNODVvRcT()")  # read by one viewer or none, but no error in either
NEEDS_THREAD = frozenset("XBEsft")
METADATA = {
    "process_name": "name",
    "process_labels": "labels",
    "process_sort_index": "sort_index",
    "thread_name": "name",
    "thread_sort_index": "sort_index",
}
COLOURS = frozenset(  # those that chrome://tracing lists
    (
        *("good", "bad", "terrible", "generic_work", "grey", "white", "black", "yellow", "olive"),
        *("startup", "rail_response", "rail_animation", "rail_idle", "rail_load"),
        *("thread_state_running", "thread_state_runnable", "thread_state_sleeping"),
        *("thread_state_iowait", "thread_state_uninterruptible", "thread_state_unknown"),
    )
)
EXACT_INTEGER = 2**53
SHOWN = 60
EXACT_MICROSECONDS = 2**43  # above it a double is coarser than 1 ns

Event = Mapping[str, Any]


class Finding(NamedTuple):
    """What `check` turns into a Problem: rule, where, message."""

    rule: str
    where: str
    message: str


class Slice(NamedTuple):
    """An X event on its lane, in whole nanoseconds as Perfetto rounds them."""

    start: int
    end: int
    position: int


class EventRules:
    """Judges a list of events: each alone, then those that share a lane or an id."""

    def __init__(self, events: list[Any]) -> None:
        self._events = events
        self._slices: dict[tuple[str, str], list[Slice]] = {}
        self._covered: dict[tuple[str, str], list[tuple[int, int]]] = {}
        self._flows: dict[tuple[str, str, str], list[tuple[int, Event]]] = {}
        self._begun: dict[tuple[str, str], list[tuple[int, int, Event]]] = {}
        self._alone: dict[str, Callable[[int, Event], Iterator[Finding]]] = {
            "X": self._slice,
            "B": self._begin_end,
            "E": self._begin_end,
            "C": self._counter,
            "M": self._metadata,
            "i": self._instant,
            "I": self._instant,
            "b": self._async,
            "n": self._async,
            "e": self._async,
            "s": self._flow,
            "t": self._flow,
            "f": self._flow,
        }

    def findings(self) -> Iterator[Finding]:
        """Everything that is wrong, event by event and then lane by lane."""
        for position, event in enumerate(self._events):
            if not isinstance(event, Mapping):
                yield _at(position, "event", f"is no object but {type(event).__name__}")
                continue
            yield from self._common(position, event)
            judge = self._alone.get(_text(event.get("ph")))
            if judge is not None:
                yield from judge(position, event)
        for slices in self._slices.values():
            yield from _crossings(slices)
        for lane in self._begun.values():
            yield from _unmatched(lane)
        for ends in self._flows.values():
            yield from self._arrows(ends)

    def _common(self, position: int, event: Event) -> Iterator[Finding]:
        phase = _text(event.get("ph"))
        if phase not in PHASES and phase not in KNOWN_ELSEWHERE:
            said = f"is {shown(event['ph'])}" if "ph" in event else "is absent"
            yield _at(position, "phase", f"ph {said}; Perfetto counts an error, the event is lost")
        if phase != "E" and not isinstance(event.get("name"), str):
            yield _at(position, "name", "has no name")
        yield from _id(position, event, "pid", required=True)
        per_thread = phase in NEEDS_THREAD or (
            phase == "M" and _text(event.get("name")).startswith("thread_")
        )
        yield from _id(position, event, "tid", required=per_thread)
        if phase != "M":
            yield from _timestamp(position, event)
        colour = event.get("cname")
        if colour is not None and _text(colour) not in COLOURS:
            yield _at(position, "cname", f"colour {shown(colour)} makes chrome://tracing give up")
        if _not_finite(event.get("args")):
            yield _at(position, "non-finite", "a NaN or an infinity in args is no JSON")

    def _slice(self, position: int, event: Event) -> Iterator[Finding]:
        duration = _number(event.get("dur"))
        if duration is None:
            said = (
                "no dur" if "dur" not in event else f"dur {shown(event['dur'])}, which is no number"
            )
            yield _at(position, "dur", f"has {said}; Perfetto drops it")
        elif duration < 0:
            yield _at(position, "dur", f"has a negative dur, {shown(event['dur'])}")
        start = _number(event.get("ts"))
        if start is not None and duration is not None and duration >= 0:
            begin = _nanoseconds(start)
            lane = self._slices.setdefault(_lane(event), [])
            lane.append(Slice(begin, begin + _nanoseconds(duration), position))

    def _begin_end(self, position: int, event: Event) -> Iterator[Finding]:
        start = _number(event.get("ts"))
        if start is not None:
            lane = self._begun.setdefault(_lane(event), [])
            lane.append((_nanoseconds(start), position, event))
        return iter(())

    def _counter(self, position: int, event: Event) -> Iterator[Finding]:
        args = event.get("args")
        if not isinstance(args, Mapping) or not args:
            yield _at(position, "counter", "a counter without values in args")
            return
        for series, value in args.items():
            if _number(value) is None and not _not_finite(value):
                yield _at(
                    position, "counter", f"series {shown(series)} is no number: {shown(value)}"
                )

    def _metadata(self, position: int, event: Event) -> Iterator[Finding]:
        key = METADATA.get(_text(event.get("name")))
        args = event.get("args")
        if key and not (isinstance(args, Mapping) and key in args):
            yield _at(position, "metadata", f"{event['name']} needs args with {key!r}")

    def _instant(self, position: int, event: Event) -> Iterator[Finding]:
        if event.get("s", "t") not in ("t", "p", "g"):
            yield _at(position, "scope", f"instant scope {shown(event['s'])}; valid are t, p, g")
        elif event.get("s", "t") == "t" and "tid" not in event:
            yield _at(position, "tid", "an instant of a thread without tid")

    def _async(self, position: int, event: Event) -> Iterator[Finding]:
        if "id" not in event and "id2" not in event:
            yield _at(position, "async", "an async event without id; both viewers refuse it")

    def _flow(self, position: int, event: Event) -> Iterator[Finding]:
        ident = event.get("id")
        if isinstance(ident, bool) or not isinstance(ident, (int, str)):
            yield _at(position, "flow", f"a flow needs an integer id, not {shown(ident)}")
            return
        if isinstance(ident, str) and not _hexadecimal(ident):
            yield _at(
                position, "flow", f"flow id {shown(ident)} is read as hexadecimal; use an integer"
            )
            return
        key = (_key(event.get("cat")), _key(event.get("name")), _key(ident))
        self._flows.setdefault(key, []).append((position, event))

    def _arrows(self, ends: list[tuple[int, Event]]) -> Iterator[Finding]:
        phases = {event["ph"] for _, event in ends}
        for position, event in ends:
            if event["ph"] == "s" and "f" not in phases and "t" not in phases:
                yield _at(position, "flow", "a flow that never ends; cat, name and id must agree")
            elif event["ph"] != "s" and "s" not in phases:
                yield _at(position, "flow", "a flow that never began; cat, name and id must agree")
            elif (event["ph"] != "f" or event.get("bp") == "e") and not self._inside(event):
                yield _at(position, "flow", "a flow's end lies in no slice: no arrow in Chrome")

    def _inside(self, event: Event) -> bool:
        at = _number(event.get("ts"))
        if at is None:
            return False
        lane = _lane(event)
        if lane in self._begun:  # pairs of B and E are not walked for this
            return True
        if lane not in self._covered:
            self._covered[lane] = _coverage(self._slices.get(lane, []))
        moment = _nanoseconds(at)
        before = bisect_right(self._covered[lane], (moment, math.inf)) - 1
        return before >= 0 and moment <= self._covered[lane][before][1]


def shown(value: Any) -> str:
    """A value from a stranger's file in a message: short, and never a deep structure."""
    if isinstance(value, str):
        return repr(value if len(value) <= SHOWN else value[:SHOWN] + "…")
    if value is None or isinstance(value, (bool, float)):
        return repr(value)
    if isinstance(value, int) and abs(value) < 2**128:
        return str(value)
    return f"<{type(value).__name__}>"


def _at(position: int, rule: str, message: str) -> Finding:
    return Finding(rule, f"event {position}", message)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _lane(event: Event) -> tuple[str, str]:
    return _key(event.get("pid")), _key(event.get("tid"))


def _key(value: Any) -> str:
    """Something to sort events by: a process may be given as 7 or as "7", or wrongly as a list."""
    return value if isinstance(value, str) else shown(value)


def _id(position: int, event: Event, key: str, *, required: bool) -> Iterator[Finding]:
    value = event.get(key)
    if value is None:
        if required:
            yield _at(position, key, f"has no {key}; chrome://tracing may reject the whole file")
    elif isinstance(value, str):
        return  # both viewers make a number of their own for a name
    elif isinstance(value, bool) or not isinstance(value, int):
        yield _at(position, key, f"{key} {shown(value)} is no integer")
    elif not 1 <= value <= LARGEST_ID:
        yield _at(
            position,
            key,
            f"{key} {shown(value)} is not in 1 to 2**32 - 1: Perfetto takes it for another lane",
        )


def _timestamp(position: int, event: Event) -> Iterator[Finding]:
    value = event.get("ts")
    number = _number(value)
    if value is None:
        yield _at(position, "ts", "has no ts")
    elif number is None:
        rule = "non-finite" if _not_finite(value) else "ts"
        yield _at(position, rule, f"ts {shown(value)} is no number")
    elif number < 0:
        yield _at(position, "ts", f"has a negative ts, {shown(value)}; Perfetto drops it")
    elif isinstance(number, int):
        if number > EXACT_INTEGER:
            yield _at(
                position,
                "precision",
                f"ts {shown(value)} is above 2**53: chrome://tracing rounds it",
            )
    elif number >= EXACT_MICROSECONDS and not number.is_integer():
        yield _at(
            position, "precision", f"ts {shown(value)} is too large for its decimals: both round it"
        )


def _number(value: Any) -> int | float | None:
    """The number that viewers read, also from text; None for anything else, NaN and infinities."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, int):
        return value
    return value if isinstance(value, float) and math.isfinite(value) else None


def _not_finite(value: Any) -> bool:
    """Whether there is a NaN or an infinity at any depth; depth is the file's: no recursion."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, float) and not math.isfinite(item):
            return True
        if isinstance(item, Mapping):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return False


def _nanoseconds(microseconds: float) -> int:
    if isinstance(microseconds, int):
        return microseconds * 1000
    if microseconds >= EXACT_INTEGER:  # whole anyway, and the product could overflow
        return int(microseconds) * 1000
    return math.floor(microseconds * 1000 + 0.5)


def _coverage(slices: list[Slice]) -> list[tuple[int, int]]:
    """The stretches of a lane that slices cover, in order and apart."""
    stretches: list[tuple[int, int]] = []
    for start, end, _ in sorted(slices):
        if stretches and start <= stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], max(end, stretches[-1][1]))
        else:
            stretches.append((start, end))
    return stretches


def _hexadecimal(text: str) -> bool:
    try:
        int(text, 16)
    except ValueError:
        return False
    return True


def _crossings(slices: list[Slice]) -> Iterator[Finding]:
    # The walk that viewers make: by start; of equal starts the longer one is the parent.
    open_slices = OpenSlices()
    previous: Slice | None = None
    for piece in sorted(slices, key=lambda piece: (piece.start, piece.start - piece.end)):
        if not open_slices.accepts(piece.start, piece.end):
            yield _at(
                piece.position,
                "crossing",
                "crosses another slice of its lane: it begins inside and ends outside; "
                "Perfetto drops it",
            )
        elif (
            previous is not None
            and previous.start == piece.start
            and previous.end > piece.end
            and piece.position < previous.position
        ):
            yield _at(
                piece.position,
                "order",
                "is written before its parent, which starts at the same time; "
                "chrome://tracing then draws the parent as a child",
            )
        previous = piece


def _unmatched(lane: list[tuple[int, int, Event]]) -> Iterator[Finding]:
    names: list[str] = []
    for _, position, event in sorted(lane, key=lambda entry: entry[:2]):
        name = _text(event.get("name"))
        if event["ph"] == "B":
            names.append(name)
        elif not names:
            yield _at(position, "begin-end", "an end without a beginning; Perfetto counts a loss")
        elif name and names[-1] and name != names[-1]:
            yield _at(
                position,
                "begin-end",
                f"ends {shown(name)} while {shown(names[-1])} is open; viewers disagree",
            )
        else:
            names.pop()
