"""The Trace Event Format, an event a line: what the finished file and the growing one share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opbench.profiler.cost import overhead
from opbench.profiler.events import Trace, TraceEvent
from opbench.profiler.modes import mode_names
from opbench.profiler.plain import ArgsText, json_text, text_of
from opbench.version import __version__

__all__ = [
    "FACTS",
    "FORMAT",
    "OWN",
    "EventLines",
    "begin_line",
    "head_lines",
    "other_data",
    "process_line",
    "thread_line",
]

FORMAT = "opbench trace 1"
# In a growing file: the event that tells what no other event says, and its category.
FACTS = "opbench stream"
OWN = "opbench"
# A name is often one of a few, and now and then one of a million.
HEADS_REMEMBERED = 10_000


def head_lines(trace: Trace, origin: int, left_out: int = 0) -> Iterator[str]:
    """The beginning of a finished file, up to its first event."""
    yield '{"displayTimeUnit":"ns",\n'
    yield f'"baseTimeNanoseconds":{trace.anchor.wall_at(origin)},\n'
    yield f'"otherData":{json_text(other_data(trace, origin, left_out))},\n'
    yield '"traceEvents":[\n'


def other_data(trace: Trace, origin: int, left_out: int = 0) -> dict[str, Any]:
    """What no event says; times in ns since the origin, which is where `ts` counts from."""
    facts: dict[str, Any] = {
        "format": FORMAT,
        "writer": f"opbench {__version__}",
        "modes": mode_names(trace.modes),
        "dropped": trace.dropped + left_out,
        "origin": {"monotonic_ns": origin, "wall_ns": trace.anchor.wall_at(origin)},
        "windows_ns": [[start - origin, end - origin] for start, end in trace.windows],
        "pauses_ns": [[start - origin, end - origin] for start, end in trace.pauses],
        "metadata": dict(trace.metadata),
    }
    paid = overhead(trace)
    if paid is not None:
        facts["cost"] = paid._asdict()
    return facts


def process_line(pid: int, name: str) -> str:
    """The name of a process; Perfetto counts an empty one as an error."""
    label = json_text({"name": text_of(name) or f"process {pid}"})
    return f'{{"ph":"M","name":"process_name","pid":{pid},"args":{label}}}'


def thread_line(pid: int, tid: int, name: str) -> str:
    """The name of a thread or lane."""
    label = json_text({"name": text_of(name) or f"thread {tid}"})
    return f'{{"ph":"M","name":"thread_name","pid":{pid},"tid":{tid},"args":{label}}}'


class EventLines:
    """Events as lines of text, with times counted from one origin."""

    def __init__(self, origin: int) -> None:
        self._origin = origin
        self._args = ArgsText()
        self._heads: dict[tuple[Any, Any, str, int, int], str] = {}  # few: made once

    def add(self, event: TraceEvent, lines: list[str]) -> None:
        """Append the event's lines: one, or the two ends of a slice that may overlap others."""
        name, category, phase, start, duration, pid, tid, args, ident, scope = event
        try:
            head = self._heads[name, category, phase, pid, tid]
        except (KeyError, TypeError):
            head = self._head(event)
        start -= self._origin
        at = f"{head}{start // 1000}.{start % 1000:03d}"
        text = self._args(args) if args else "{}"
        if phase == "X":
            line = f'{at},"dur":{duration // 1000}.{duration % 1000:03d},"args":{text}}}'
        elif phase == "C":
            line = f'{at},"args":{text}}}'
        elif phase == "i":
            line = f'{at},"s":"{scope}","args":{text}}}'
        else:
            # Without "bp" an arrow would end at the next slice that begins on its lane.
            inside = ',"bp":"e"' if phase == "f" else ""
            line = f'{at},"id":{ident}{inside},"args":{text}}}'
        lines.append(line)
        if phase == "b":
            end = event._replace(phase="e", start_ns=event.end_ns, duration_ns=0, args={})
            self.add(end, lines)

    def _head(self, event: TraceEvent) -> str:
        """What the lines of one name on one lane begin with, up to the number of `ts`."""
        # A counter belongs to the process: viewers ignore a thread.
        thread = "" if event.phase == "C" else f'"tid":{event.tid},'
        name, category = text_of(event.name), text_of(event.category)
        head = (
            f'{{"ph":"{event.phase}","name":{json_text(name)},"cat":{json_text(category)},'
            f'"pid":{event.pid},{thread}"ts":'
        )
        if isinstance(event.name, str) and isinstance(event.category, str):
            if len(self._heads) >= HEADS_REMEMBERED:
                self._heads.clear()
            self._heads[event.name, event.category, event.phase, event.pid, event.tid] = head
        return head


def _microseconds(ns: int) -> str:
    """Nanoseconds as decimal text: a float would lose the last digits."""
    return f"{ns // 1000}.{ns % 1000:03d}"


def begin_line(event: TraceEvent, origin: int) -> str:
    """The beginning of a slice whose end is not known yet."""
    return (
        f'{{"ph":"B","name":{json_text(text_of(event.name))},'
        f'"cat":{json_text(text_of(event.category))},"pid":{event.pid},'
        f'"ts":{_microseconds(event.start_ns - origin)},"tid":{event.tid},'
        f'"args":{json_text(event.args)}}}'
    )
