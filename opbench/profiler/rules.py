"""The rules for events, one method each; `check` adds those for the file."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableSequence
from itertools import islice
from operator import le, neg
from sys import intern
from typing import Any, NamedTuple

from opbench.profiler.foreign import (
    hexadecimal,
    identifier,
    nanoseconds,
    not_finite,
    number,
    shown,
)
from opbench.profiler.nesting import LARGEST_ID, OpenSlices

__all__ = ["EventRules", "Problem"]

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
NAMES = ("process_name", "thread_name")
# Each time, and the rule that is broken when it is no number.
TIMES = {"ts": "ts", "dur": "dur", "tts": "ts", "tdur": "dur"}
EXACT_INTEGER = 2**53
EXACT_MICROSECONDS = 2**43  # from there on a double is coarser than 1 ns
END_OF_TIME = 2**63  # ns, in Perfetto's clock

Event = Mapping[str, Any]
# When, the event's position, whether it is a B, its name.
Edge = tuple[int, int, bool, str]


class Problem(NamedTuple):
    """One rule broken in one place.

    Attributes:
        rule: its short name.
        where: ``file``, or ``event 12`` counted from 0.
        message: what is wrong there and what a viewer makes of it.
    """

    rule: str
    where: str
    message: str


class Slices:
    """The X events and pairs of B and E of a lane, in nanoseconds as Perfetto rounds them.

    Of a long trace they are what the check holds in memory, and each takes 25 bytes here.
    """

    def __init__(self) -> None:
        self._starts: MutableSequence[int] = array("q")
        self._ends: MutableSequence[int] = array("q")
        self._positions = array("q")
        self._complete = bytearray()

    def add(self, start: int, end: int, position: int, *, complete: bool = True) -> None:
        """One more; a pair of B and E is not ``complete``."""
        try:
            self._starts.append(start)
            self._ends.append(end)
        except OverflowError:  # a stranger's time, beyond 64 bits
            place = len(self._positions)
            self._starts = [*self._starts[:place], start]
            self._ends = [*self._ends, end]
        self._positions.append(position)
        self._complete.append(complete)

    def in_order(self) -> Iterator[tuple[int, int, int, bool]]:
        """Start, end, position, whether complete: as viewers walk, by start, the longer first."""
        columns = (self._starts, self._ends, self._positions, map(bool, self._complete))
        if all(map(le, self._keys(), islice(self._keys(), 1, None))):  # as most are written
            return zip(*columns, strict=True)
        return iter(sorted(zip(*columns, strict=True), key=lambda row: (row[0], -row[1])))

    def _keys(self) -> Iterator[tuple[int, int]]:
        return zip(self._starts, map(neg, self._ends), strict=True)


class EventRules:
    """Judges a list of events: each alone, then those that share a lane or an id."""

    def __init__(self, events: Iterable[Any]) -> None:
        self.total = 0  # events judged so far
        self.seen = 0  # those of them that are no metadata
        self._events = events
        self._slices: dict[tuple[str, str], Slices] = {}
        self._covered: dict[tuple[str, str], list[tuple[int, int]]] = {}
        self._flows: dict[tuple[str, str, str], list[tuple[int, Event]]] = {}
        self._begun: dict[tuple[str, str], list[Edge]] = {}
        self._alone: dict[str, Callable[[int, Event], Iterator[Problem]]] = {
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

    def problems(self) -> Iterator[Problem]:
        """Everything that is wrong, event by event and then lane by lane."""
        for position, event in enumerate(self._events):
            self.total += 1
            if not isinstance(event, Mapping):
                yield _at(position, "event", f"is no object but {type(event).__name__}")
                continue
            self.seen += event.get("ph") != "M"
            yield from self._common(position, event)
            judge = self._alone.get(_text(event.get("ph")))
            if judge is not None:
                yield from judge(position, event)
        for lane, begun in self._begun.items():
            yield from _pairs(begun, self._slices.setdefault(lane, Slices()))
        for slices in self._slices.values():
            yield from _crossings(slices)
        for ends in self._flows.values():
            yield from self._arrows(ends)

    def _common(self, position: int, event: Event) -> Iterator[Problem]:
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
        if "ts" not in event and phase != "M":
            yield _at(position, "ts", "has no ts")
        for key in TIMES:
            if key in event:
                yield from _time(position, key, event[key])
        colour = event.get("cname")
        if colour is not None and _text(colour) not in COLOURS:
            yield _at(position, "cname", f"colour {shown(colour)} makes chrome://tracing give up")
        if not_finite(event.get("args")):
            yield _at(position, "non-finite", "a NaN or an infinity in args is no JSON")

    def _slice(self, position: int, event: Event) -> Iterator[Problem]:
        if "dur" not in event:
            yield _at(position, "dur", "has no dur; Perfetto drops it")
        start, duration = number(event.get("ts")), number(event.get("dur"))
        if duration is not None and duration < 0:
            yield _at(position, "dur", f"has a negative dur, {shown(event['dur'])}")
        elif start is not None and duration is not None:
            begin, length = nanoseconds(start), nanoseconds(duration)
            if begin < END_OF_TIME and length < END_OF_TIME <= begin + length:
                yield _at(position, "precision", "ends beyond 2**63 ns, the end of Perfetto's time")
            lane = _lane(event)
            slices = self._slices.get(lane)
            if slices is None:
                slices = self._slices[lane] = Slices()
            slices.add(begin, begin + length, position)

    def _begin_end(self, position: int, event: Event) -> Iterator[Problem]:
        start = number(event.get("ts"))
        if start is not None:
            lane = self._begun.setdefault(_lane(event), [])
            name = intern(_text(event.get("name")))
            lane.append((nanoseconds(start), position, event["ph"] == "B", name))
        return iter(())

    def _counter(self, position: int, event: Event) -> Iterator[Problem]:
        args = event.get("args")
        if not isinstance(args, Mapping) or not args:
            yield _at(position, "counter", "a counter without values in args")
            return
        for series, value in args.items():
            if number(value) is None and not not_finite(value):
                yield _at(
                    position, "counter", f"series {shown(series)} is no number: {shown(value)}"
                )

    def _metadata(self, position: int, event: Event) -> Iterator[Problem]:
        key = METADATA.get(_text(event.get("name")))
        args = event.get("args")
        if not key:
            return
        if not (isinstance(args, Mapping) and key in args):
            yield _at(position, "metadata", f"{event['name']} needs args with {key!r}")
        elif event["name"] in NAMES and not _text(args[key]):
            yield _at(
                position,
                "metadata",
                f"{event['name']} is {shown(args[key])} and no name; Perfetto counts an error",
            )

    def _instant(self, position: int, event: Event) -> Iterator[Problem]:
        if event.get("s", "t") not in ("t", "p", "g"):
            yield _at(position, "scope", f"instant scope {shown(event['s'])}; valid are t, p, g")
        elif event.get("s", "t") == "t" and "tid" not in event:
            yield _at(position, "tid", "an instant of a thread without tid")

    def _async(self, position: int, event: Event) -> Iterator[Problem]:
        scopes = event.get("id2")
        idents = [event.get("id")]
        if isinstance(scopes, Mapping):
            idents += [scopes.get("local"), scopes.get("global")]
        if "id" not in event and "id2" not in event:
            yield _at(position, "async", "an async event without id; both viewers refuse it")
        elif not any(map(identifier, idents)):
            yield _at(
                position,
                "async",
                f"the id of an async event, {shown(event.get('id', scopes))}, is neither text nor "
                "an integer of 64 bits; Perfetto drops it",
            )

    def _flow(self, position: int, event: Event) -> Iterator[Problem]:
        ident = event.get("id")
        if isinstance(ident, bool) or not isinstance(ident, (int, str)):
            yield _at(position, "flow", f"a flow needs an integer id, not {shown(ident)}")
            return
        if isinstance(ident, str) and not hexadecimal(ident):
            yield _at(
                position, "flow", f"flow id {shown(ident)} is read as hexadecimal; use an integer"
            )
            return
        key = (_key(event.get("cat")), _key(event.get("name")), _key(ident))
        self._flows.setdefault(key, []).append((position, event))

    def _arrows(self, ends: list[tuple[int, Event]]) -> Iterator[Problem]:
        phases = {event["ph"] for _, event in ends}
        for position, event in ends:
            if event["ph"] == "s" and "f" not in phases and "t" not in phases:
                yield _at(position, "flow", "a flow that never ends; cat, name and id must agree")
            elif event["ph"] != "s" and "s" not in phases:
                yield _at(position, "flow", "a flow that never began; cat, name and id must agree")
            elif (event["ph"] != "f" or event.get("bp") == "e") and not self._inside(event):
                yield _at(position, "flow", "a flow's end lies in no slice: no arrow in Chrome")

    def _inside(self, event: Event) -> bool:
        at = number(event.get("ts"))
        if at is None:
            return False
        lane = _lane(event)
        if lane in self._begun:  # pairs of B and E are not walked for this
            return True
        if lane not in self._covered:
            self._covered[lane] = _coverage(self._slices.get(lane, Slices()))
        moment = nanoseconds(at)
        before = bisect_right(self._covered[lane], (moment, math.inf)) - 1
        return before >= 0 and moment <= self._covered[lane][before][1]


def _at(position: int, rule: str, message: str) -> Problem:
    return Problem(rule, f"event {position}", message)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _lane(event: Event) -> tuple[str, str]:
    return _key(event.get("pid")), _key(event.get("tid"))


def _key(value: Any) -> str:
    """Something to sort events by: a process may be given as 7 or as "7", or wrongly as a list."""
    return value if isinstance(value, str) else shown(value)


def _id(position: int, event: Event, key: str, *, required: bool) -> Iterator[Problem]:
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


def _time(position: int, key: str, value: Any) -> Iterator[Problem]:
    """One of an event's times, in microseconds."""
    measured = number(value)
    if measured is None:
        rule = "non-finite" if not_finite(value) else TIMES[key]
        yield _at(position, rule, f"{key} {shown(value)} is no number; Perfetto fails on it")
    elif key not in ("ts", "dur"):
        return
    elif key == "ts" and measured < 0:
        yield _at(position, "ts", f"has a negative ts, {shown(value)}; Perfetto drops it")
    elif nanoseconds(measured) >= END_OF_TIME:
        message = f"{key} {shown(value)} is beyond 2**63 ns, the end of Perfetto's time"
        yield _at(position, "precision", message)
    elif isinstance(measured, int):
        if measured > EXACT_INTEGER:
            message = f"{key} {shown(value)} is above 2**53: chrome://tracing rounds it"
            yield _at(position, "precision", message)
    elif measured >= EXACT_MICROSECONDS and not measured.is_integer():
        message = f"{key} {shown(value)} is too large for its decimals: both round it"
        yield _at(position, "precision", message)


def _coverage(slices: Slices) -> list[tuple[int, int]]:
    """The stretches of a lane that slices cover, in order and apart."""
    stretches: list[tuple[int, int]] = []
    for start, end, *_ in slices.in_order():
        if stretches and start <= stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], max(end, stretches[-1][1]))
        else:
            stretches.append((start, end))
    return stretches


def _crossings(slices: Slices) -> Iterator[Problem]:
    # The walk that viewers make: by start; of equal starts the longer one is the parent.
    open_slices = OpenSlices()
    before: tuple[int, int, int, bool] | None = None
    for piece in slices.in_order():
        start, end, position, complete = piece
        if not open_slices.accepts(start, end):
            yield _at(
                position,
                "crossing",
                "crosses another slice of its lane: it begins inside and ends outside; "
                "Perfetto drops it, or its end",
            )
        elif (
            before is not None
            and before[0] == start
            and before[1] > end
            and position < before[2]
            and complete
            and before[3]
        ):
            yield _at(
                position,
                "order",
                "is written before its parent, which starts at the same time; "
                "chrome://tracing then draws the parent as a child",
            )
        before = piece


def _pairs(begun: list[Edge], slices: Slices) -> Iterator[Problem]:
    """What is wrong with a lane's B and E events; each good pair is added to the slices."""
    open_events: list[tuple[int, int, str]] = []
    for at, position, begins, name in sorted(begun, key=lambda edge: edge[:2]):
        if begins:
            open_events.append((at, position, name))
        elif not open_events:
            yield _at(position, "begin-end", "an end without a beginning; Perfetto counts a loss")
        elif name and open_events[-1][2] and name != open_events[-1][2]:
            yield _at(
                position,
                "begin-end",
                f"ends {shown(name)} while {shown(open_events[-1][2])} is open; viewers disagree",
            )
        else:
            start, place, _ = open_events.pop()
            slices.add(start, at, place, complete=False)
