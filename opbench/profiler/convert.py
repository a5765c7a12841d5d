"""Anybody's trace events as ours: pairs become slices, ids become numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from itertools import islice
from operator import le
from sys import intern
from typing import Any, NamedTuple

from opbench.profiler.events import TraceEvent
from opbench.profiler.foreign import nanoseconds, number
from opbench.profiler.lines import FACTS, OWN
from opbench.profiler.nesting import LARGEST_ID

__all__ = ["Converter"]

# Processes that MXNet's profiler names; it writes each operator twice, and this is the first time.
MXNET_DEVICES = ("cpu/0", "cpu pinned/0")
TWICE = "operator"
PHASES = frozenset("XBEiICbnesf")
NOTHING: dict[str, Any] = {}


class _Begun(NamedTuple):
    name: str
    category: str
    start: int
    pid: int
    tid: int
    args: dict[str, Any]


class Converter:
    """Takes events in the order of the file.

    Attributes:
        events: ours, by start, a parent before its children; complete after `finish`.
        process_names: pid to name.
        thread_names: (pid, tid) to name.
        facts: what a growing file of ours says of itself, as of its last line that does; or None.
        taken: how many events of any kind were seen.
        lost: how many of them are not among ours.
    """

    def __init__(self) -> None:
        self.events: list[TraceEvent] = []
        self.process_names: dict[int, str] = {}
        self.thread_names: dict[tuple[int, int], str] = {}
        self.facts: Mapping[str, Any] | None = None
        self.taken = 0
        self.lost = 0
        self._end = 0
        self._unfinished = 0
        self._copies = 0
        self._stacks: dict[tuple[int, int], list[_Begun]] = {}
        self._async: dict[tuple[str, Any], list[_Begun]] = {}
        self._flows: dict[tuple[str, str, Any], int] = {}
        self._halves: dict[int, set[str]] = {}
        self._ids = itertools.count(1)
        self._used: set[int] = set()
        self._pids = _Numbers()
        self._tids: dict[int, _Numbers] = {}

    def take(self, event: Any) -> None:
        """One event of the file, whatever it is."""
        self.taken += 1
        if not isinstance(event, Mapping):
            self.lost += 1
            return
        phase = event.get("ph")
        if phase == "M":
            self._metadata(event)
            return
        at = number(event.get("ts"))
        if not isinstance(phase, str) or phase not in PHASES or at is None:
            self.lost += 1
            return
        start = nanoseconds(at)
        self._end = max(self._end, start)
        pid = self._pids.of(event.get("pid"))
        tid = self._tid(pid, event.get("tid"))
        name, category = _word(event.get("name")), _word(event.get("cat"))
        given = event.get("args")
        # Interned, since each event of a text brings words of its own.
        args = {intern(key): given[key] for key in given} if isinstance(given, dict) else NOTHING
        begun = _Begun(name, category, start, pid, tid, args)
        if phase == "X":
            self._slice(begun, event)
        elif phase == "C":
            self._counter(begun, event)
        elif phase in "BE":
            self._pair(phase, begun)
        elif phase in "iI":
            self._instant(begun, event)
        elif phase in "bne":
            self._overlapping(phase, begun, event)
        else:
            self._arrow(phase, begun, event)

    def finish(self) -> None:
        """No more events: end what is open, and put all in order."""
        unfinished: list[_Begun] = []
        for stack in [*self._stacks.values(), *self._async.values()]:
            for begun in stack:
                args = {**begun.args, "unfinished": True}
                unfinished.append(begun._replace(args=args))
        self._unfinished = len(unfinished)
        if unfinished:
            complete, self.events = self.events, []
            for begun in unfinished:  # first: at equal times, what was open is the parent
                self._add("X", begun, self._end - begun.start)
            self.events += complete
        half = {ident for ident, phases in self._halves.items() if len(phases) < len("sf")}
        if half:
            before = len(self.events)
            self.events = [e for e in self.events if e.phase not in "sf" or e.id not in half]
            self.lost += before - len(self.events)
        if any(name in MXNET_DEVICES for name in self.process_names.values()):
            before = len(self.events)
            self.events = [e for e in self.events if e.phase != "b" or e.category != TWICE]
            self._copies = before - len(self.events)
        # Most files are in order, and the keys of a million events would be a sixth of them.
        if not all(map(le, self._keys(), islice(self._keys(), 1, None))):
            self.events.sort(key=lambda event: (event.start_ns, -event.duration_ns))

    def shift(self, ns: int) -> None:
        """Let the events begin so much later; in their place, so that there are no two of each."""
        if ns:
            for place, event in enumerate(self.events):
                self.events[place] = event._replace(start_ns=event.start_ns + ns)

    def _keys(self) -> Iterator[tuple[int, int]]:
        return ((event.start_ns, -event.duration_ns) for event in self.events)

    def notes(self) -> Iterator[str]:
        """What was mended and left out."""
        if self._unfinished:
            yield f"{_count(self._unfinished, 'span')} never ended, and end with the trace now"
        if self._copies:
            yield f"{_count(self._copies, 'operator')} stood in it a second time"
        if self.lost:
            yield f"{_count(self.lost, 'event')} could not be kept"

    def _add(self, phase: str, begun: _Begun, duration: int, ident: int = 0) -> None:
        self._end = max(self._end, begun.start + duration)
        self.events.append(
            TraceEvent(
                begun.name, begun.category, phase, begun.start, duration, begun.pid, begun.tid,
                begun.args, ident,
            )
        )  # fmt: skip

    def _slice(self, begun: _Begun, event: Mapping[str, Any]) -> None:
        length = number(event.get("dur"))
        if length is None or length < 0:
            self.lost += 1
        else:
            self._add("X", begun, nanoseconds(length))

    def _pair(self, phase: str, begun: _Begun) -> None:
        stack = self._stacks.setdefault((begun.pid, begun.tid), [])
        if phase == "B":
            stack.append(begun)
        elif not stack:
            self.lost += 1
        else:
            first = _pop(stack, begun.name)
            args = {**first.args, **begun.args} if begun.args else first.args
            self._add("X", first._replace(args=args), max(0, begun.start - first.start))

    def _counter(self, begun: _Begun, event: Mapping[str, Any]) -> None:
        values = {key: number(value) for key, value in begun.args.items()}
        good = {intern(str(key)): value for key, value in values.items() if value is not None}
        self.lost += not good
        if good:
            ident = event.get("id")
            name = begun.name if ident is None else f"{begun.name} {ident}"
            self._add("C", begun._replace(args=good, name=name), 0)

    def _instant(self, begun: _Begun, event: Mapping[str, Any]) -> None:
        if begun.name == FACTS and begun.category == OWN:
            self.facts = begun.args
            return
        self._add("i", begun, 0)
        scope = event.get("s", "t")
        if scope in ("p", "g"):
            self.events[-1] = self.events[-1]._replace(scope=scope)

    def _overlapping(self, phase: str, begun: _Begun, event: Mapping[str, Any]) -> None:
        second = event.get("id2")
        ident = second if isinstance(second, Mapping) else event.get("id")
        if ident is None:
            self.lost += 1
        elif phase == "n":
            self._add("i", begun, 0)
        else:
            key = (begun.category, str(ident))
            stack = self._async.setdefault(key, [])
            if phase == "b":
                stack.append(begun)
            elif not stack:
                self.lost += 1
            else:
                first = _pop(stack, begun.name)
                self._add("b", first, max(0, begun.start - first.start), self._ident(ident))

    def _arrow(self, phase: str, begun: _Begun, event: Mapping[str, Any]) -> None:
        key = (begun.category, begun.name, str(event.get("id")))
        ident = self._flows.get(key, 0)
        if not ident or phase in self._halves[ident]:  # a new one, or an id that is used again
            ident = self._ident(event.get("id"))
        phases = self._halves.setdefault(ident, set())
        self._flows[key] = ident
        phases.add(phase)
        self._add(phase, begun, 0, ident)

    def _ident(self, given: Any) -> int:
        """The file's own id where it is a number that no other pair has."""
        ident = given if type(given) is int and 0 < given <= LARGEST_ID else 0
        while not ident or ident in self._used:
            ident = next(self._ids)
        self._used.add(ident)
        return ident

    def _metadata(self, event: Mapping[str, Any]) -> None:
        args = event.get("args")
        name = args.get("name") if isinstance(args, Mapping) else None
        if not isinstance(name, str):
            return
        if event.get("name") == "process_name":
            self.process_names[self._pids.of(event.get("pid"))] = name
        elif event.get("name") == "thread_name":
            pid = self._pids.of(event.get("pid"))
            self.thread_names[pid, self._tid(pid, event.get("tid"))] = name

    def _tid(self, pid: int, tid: Any) -> int:
        numbers = self._tids.get(pid)
        if numbers is None:
            numbers = self._tids[pid] = _Numbers()
        return numbers.of(pid if tid is None else tid)


class _Numbers:
    """A number that both viewers hold for each process, or for each thread of one."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}
        self._taken: set[int] = set()
        self._free = itertools.count(LARGEST_ID, -1)

    def of(self, given: Any) -> int:
        """The same for the same; its own where that is a fitting one."""
        try:
            found = self._known.get(given)
        except TypeError:  # a list, say
            given = repr(given)
            found = self._known.get(given)
        if found is None:
            found = given if type(given) is int and 1 <= given <= LARGEST_ID else 0
            if not found or found in self._taken:
                found = next(free for free in self._free if free not in self._taken)
            self._known[given] = found
            self._taken.add(found)
        return found


def _pop(stack: list[_Begun], name: str) -> _Begun:
    """The innermost that has the name of the end, or the innermost."""
    for place in range(len(stack) - 1, -1, -1):
        if not name or stack[place].name == name:
            return stack.pop(place)
    return stack.pop()


def _word(value: Any) -> str:
    return intern(value) if type(value) is str else "" if value is None else str(value)


def _count(number_: int, noun: str) -> str:
    return f"{number_} {noun}{'s' * (number_ != 1)}"
