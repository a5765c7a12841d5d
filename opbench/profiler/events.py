"""The values that leave the recorder: one event, and the finished trace.

They are named tuples and not dataclasses: as frozen and as slim, built in C when a window of a
million events closes, and `dataclasses` would load `inspect` into every pytest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from opbench.errors import TraceError
from opbench.profiler.clock import ClockAnchor
from opbench.profiler.cost import Cost, joined
from opbench.profiler.modes import Mode

__all__ = ["Lane", "Trace", "TraceEvent", "join_names", "merge"]

NAMES_SHOWN = 3


class Lane(NamedTuple):
    """A track of its own, beside those of the process's threads.

    Attributes:
        group: the name of a process group in the viewer, such as ``numba workers``.
        number: 1 or more, unique in the group.
        name: the track's.
    """

    group: str
    number: int
    name: str


class TraceEvent(NamedTuple):
    """One entry of a trace.

    Attributes:
        name: what groups in a viewer; what varies stands in `args`.
        category: ``symbolic``, ``imperative``, ``api``, ``memory``, ``iteration``, ``call``, or
            what whoever emitted it calls it.
        phase: ``X`` a slice, ``C`` a counter, ``i`` an instant, ``b`` a slice that may overlap
            others of its thread (a file holds its two ends), ``s`` and ``f`` the two ends of an
            arrow.
        start_ns: on the recorder's clock.
        duration_ns: 0 or more; 0 for all but slices.
        pid: the process, or a group of lanes in it.
        tid: the operating system's number of the thread, or the lane's in its group.
        args: plain values that JSON can hold; for a counter its series.
        id: what the two ends of an arrow share, unique in the trace; 0 for none.
        scope: of an instant: ``t`` its thread, ``p`` its process, ``g`` the whole trace.
    """

    name: str
    category: str
    phase: str
    start_ns: int
    duration_ns: int
    pid: int
    tid: int
    args: Mapping[str, Any]
    id: int = 0
    scope: str = "t"

    @property
    def end_ns(self) -> int:
        """Where it ends, on the recorder's clock."""
        return self.start_ns + self.duration_ns


class Trace(NamedTuple):
    """A finished recording.

    Attributes:
        events: by start, a parent before its children.
        modes: what was asked for; the union over the windows.
        windows: (start ns, end ns) from each run to its stop, in order.
        dropped: events that found the buffer full, and counter values that are no finite number.
        anchor: one instant on the recorder's clock and on the wall clock.
        process_names: pid to name.
        thread_names: (pid, tid) to name.
        metadata: facts for the file's reader, such as the test id; JSON values.
        pauses: (start ns, end ns) of each pause, in order; nothing was recorded in them.
        spilled: events that only the file of a continuous dump holds; they are not among `events`.
        cost: what recording cost in the process; None where nobody measured it.
    """

    events: tuple[TraceEvent, ...]
    modes: Mode
    windows: tuple[tuple[int, int], ...]
    dropped: int
    anchor: ClockAnchor
    process_names: Mapping[int, str]
    thread_names: Mapping[tuple[int, int], str]
    metadata: Mapping[str, Any]
    pauses: tuple[tuple[int, int], ...] = ()
    spilled: int = 0
    cost: Cost | None = None

    def with_metadata(self, metadata: Mapping[str, Any]) -> Trace:
        """The same trace with more facts; a key that is there already is replaced."""
        return self._replace(metadata={**self.metadata, **metadata})


def merge(traces: Iterable[Trace]) -> Trace:
    """All windows of one process as one trace, in order of time.

    The anchor is the earliest trace's; modes are united, drops added, and of equal metadata keys
    the latest trace's value stays.

    Raises:
        TraceError: no trace at all.
    """
    ordered = sorted(traces, key=lambda trace: trace.windows[:1])
    if not ordered:
        raise TraceError("no trace to merge: record at least one window first")
    modes = Mode(0)
    process_names: dict[int, str] = {}
    thread_names: dict[tuple[int, int], list[str]] = {}
    metadata: dict[str, Any] = {}
    for trace in ordered:
        modes |= trace.modes
        process_names.update(trace.process_names)
        metadata.update(trace.metadata)
        for thread, name in trace.thread_names.items():
            thread_names.setdefault(thread, []).append(name)
    events = [event for trace in ordered for event in trace.events]
    events.sort(key=lambda event: (event.start_ns, -event.duration_ns))
    return Trace(
        events=tuple(events),
        modes=modes,
        windows=tuple(window for trace in ordered for window in trace.windows),
        dropped=sum(trace.dropped for trace in ordered),
        anchor=ordered[0].anchor,
        process_names=process_names,
        thread_names={thread: join_names(names) for thread, names in thread_names.items()},
        metadata=metadata,
        pauses=tuple(pause for trace in ordered for pause in trace.pauses),
        spilled=sum(trace.spilled for trace in ordered),
        cost=joined(trace.cost for trace in ordered),
    )


def join_names(names: Iterable[str]) -> str:
    """One name for all the threads that had one number, one after the other.

    The system gives the number of a thread that has ended to a new one, and a lane has one name.
    """
    different = list(dict.fromkeys(names))
    more = ", …" if len(different) > NAMES_SHOWN else ""
    return ", ".join(different[:NAMES_SHOWN]) + more
