"""The recorder: a state machine around one bounded buffer.

Everything else in this room is a frozen value or a function of one. Emit points look like this,
and cost one attribute and one integer test while nothing is recorded::

    if recorder.mask & 2:
        recorder.complete("dot", "imperative", start, recorder.clock(), args)
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from opbench.errors import StateError
from opbench.profiler.buffer import CAPACITY, Buffer, parse_bounds
from opbench.profiler.clock import Clock, ClockAnchor, take_anchor
from opbench.profiler.cost import WORKERS, Cost
from opbench.profiler.emit import Emitter, Mark, Sink, Thread
from opbench.profiler.events import Trace, join_names
from opbench.profiler.listeners import Listener, Listeners
from opbench.profiler.modes import Mode, parse_modes
from opbench.profiler.price import empty_span_ns, worker_event_ns
from opbench.profiler.raw import RawEvent, build_events, whole_arrows

__all__ = ["RECORDER", "Profiler", "Unsent"]

PROCESS_NAME = "opbench"


class Unsent(NamedTuple):
    """What a file that grows with the window needs to know; see `Trace` for most of it."""

    raw: list[RawEvent]
    up_to: int
    there: int
    window: tuple[int, int]
    pauses: list[tuple[int, int]]
    modes: Mode
    owner: str
    anchor: ClockAnchor
    names: dict[int, str]
    marks: list[Mark]
    groups: dict[str, int]
    dropped: int
    cost: Cost


class Profiler(Emitter):
    """Records events between `run` and `stop`.

    `run`, `stop`, `pause` and `resume` are transitions: one at a time, each refused with a
    `StateError` where the state does not allow it. The emit methods may be called from any thread
    at any time, also from finalizers and signal handlers.

    An event is in the trace if it was emitted while recording and **began** after the last `run` or
    `resume`: nothing reaches in from outside the window. An emit that has returned before `stop` or
    `snapshot` takes hold is in the trace, with or without a global interpreter lock; of one that is
    under way in another thread at that moment, the whole event is or is not.

    Attributes:
        owner: who called `run`, or None.
        bounds: how many events one window holds, and which stay when there are more; what does not
            is counted as dropped.
        python_memory: whether a window in mode memory counts what Python allocates; set by whoever
            opens it, and looked at by the probes.
        worker_record_ns: the price of a record that a worker of a parallel kernel writes, set by
            whoever timed one; None until then.
    """

    def __init__(
        self,
        clock: Clock = time.perf_counter_ns,
        wall_clock: Clock = time.time_ns,
        capacity: int = CAPACITY,
        keep: str = "oldest",
        price: Callable[[], float] = empty_span_ns,
        worker_price: Callable[[], float] = worker_event_ns,
    ) -> None:
        super().__init__(clock)
        self._price = price
        self._worker_price = worker_price
        self.bounds = parse_bounds(capacity, keep)
        self.worker_record_ns: float | None = None
        self._wall_clock = wall_clock
        self._synchronisers: list[Callable[[], object]] = []
        self._listeners = Listeners()
        self._reset()

    def _reset(self) -> None:
        self._forget_window()
        self._transition = ""
        self.owner: str | None = None
        self.python_memory = False
        self._modes = Mode(0)
        self._span_ns = 0.0
        self._thread = Thread()
        self._anchor = ClockAnchor(0, 0)
        self._opened: int | None = None  # when the window opened, None while stopped
        self._paused_at = 0
        self._forget()

    def _forget(self) -> None:
        self._buffer = Buffer(self.bounds)
        self._pauses: list[tuple[int, int]] = []
        self._names = {}

    # state

    @property
    def state(self) -> str:
        """``"run"`` or ``"stop"``; a paused recorder is in state run."""
        return "stop" if self._opened is None else "run"

    @property
    def paused(self) -> bool:
        """Whether a window is open, and recording suspended."""
        return self._opened is not None and self._sink is None

    @property
    def recording(self) -> bool:
        """Whether events are being recorded: running and not paused."""
        return self._sink is not None

    def add_synchroniser(self, synchronise: Callable[[], object]) -> None:
        """Have every transition call this first; it waits for all pending work.

        An exception from it (a keyboard interrupt, say) leaves the state as it was.
        """
        self._synchronisers.append(synchronise)

    def add_listener(self, listener: Listener) -> None:
        """Have it told of each transition after it took effect; see `Listener`.

        What it raises does not stop the transition and is reported once, as a RuntimeWarning.
        """
        self._listeners.add(listener)

    def configure(self, *, capacity: int = CAPACITY, keep: str = "oldest") -> None:
        """Say how many events a window holds, and whether the oldest or the newest stay.

        Raises:
            ConfigError: no positive whole number, or another word.
            StateError: a window is open.
        """
        bounds = parse_bounds(capacity, keep)
        with self._lock:
            if self._opened is not None:
                raise StateError(
                    f"cannot configure the profiler: its state is 'run', its owner {self.owner!r}; "
                    "stop it first"
                )
            self.bounds = bounds

    def run(self, modes: str | int | Mode, owner: str) -> None:
        """Open a window.

        Args:
            modes: what to record, in any form that `parse_modes` takes.
            owner: who opens it, in a word or two; only the owner can stop it.

        Raises:
            StateError: a window is open already.
            ConfigError: an unknown mode.
        """
        wanted = parse_modes(modes, "run()")
        span_ns = self._price()  # before the window: nothing of it is recorded
        with self._changing("run", owner):
            with self._lock:
                self._forget()
                self._thread = Thread()
                self._modes = wanted
                self._span_ns = span_ns
                self.owner = owner
                self.iteration = None
                self._anchor = take_anchor(self.clock, self._wall_clock)
                self._opened = self.clock()
                self._open_sink = self._sink = self._sink_since(self._opened)
                self.mask = int(wanted)
            self._listeners.tell("run", wanted)

    def stop(self, owner: str, *, wait: bool = True) -> Trace:
        """Close the window and hand over what it recorded.

        An interrupt on the way leaves the window paused, and its events in it: stop it again.

        Args:
            owner: who opened it.
            wait: wait for pending work first; without, what is pending is left out.

        Raises:
            StateError: no window is open, or it is somebody else's.
        """
        with self._changing("stop", owner, wait=wait):
            with self._lock:
                end = self.clock()
                freeze = self._take(end)
                if self._sink is not None:
                    self._paused_at = end
                    self._sink = None
                self.mask = 0
            # Freezing a million events takes a second. An interrupt in it finds the window paused
            # and whole, so that another stop can take it.
            trace = freeze()
            self._listeners.tell("stop", self._modes)
            with self._lock:
                self._open_sink = None
                self._opened = None
                self._marks = {}
                self.owner = None
                self.iteration = None
                self._forget()
        return trace

    def snapshot(self, owner: str) -> Trace:
        """What the open window has recorded so far; it stays open.

        Raises:
            StateError: no window is open, or it is somebody else's.
        """
        with self._changing("snapshot", owner), self._lock:
            freeze = self._take(self.clock())
        return freeze()

    def pause(self) -> None:
        """Suspend recording inside the window.

        Raises:
            StateError: no window is open, or it is paused already.
        """
        with self._changing("pause"):
            with self._lock:
                self.mask = 0
                self._paused_at = self.clock()
                self._sink = None
            self._listeners.tell("pause", self._modes)

    def resume(self) -> None:
        """Record again after `pause`.

        Raises:
            StateError: no window is open, or it is not paused.
        """
        with self._changing("resume"):
            with self._lock:
                since = self.clock()
                self._pauses.append((self._paused_at, since))
                self._sink = self._sink_since(since)
                self.mask = int(self._modes)
            self._listeners.tell("resume", self._modes)

    def detach(self) -> None:
        """Forget the window: a forked child shares neither the parent's threads nor its file."""
        self._reset()

    def _sink_since(self, since: int) -> Sink:
        return self._buffer.events, self._buffer.limit, since, self._thread, self._buffer

    # transitions

    @contextmanager
    def _changing(
        self, verb: str, asker: str | None = None, *, wait: bool = True
    ) -> Iterator[None]:
        """Claim the state, wait for pending work, change, release.

        The claim is no lock: whoever comes second is told so instead of waiting, possibly for ever,
        for a thread that waits for it.
        """
        claimed = False
        try:
            with self._lock:
                refusal = self._refusal(verb, asker)
                if not refusal:
                    claimed = True  # before the claim: an interrupt may come between any two lines
                    self._transition = verb
            if refusal:
                by = f" for {asker!r}" if asker is not None else ""
                raise StateError(f"cannot {verb} the profiler{by}: {refusal}")
            for synchronise in self._synchronisers if wait else ():
                synchronise()
            yield
        finally:
            if claimed:
                self._transition = ""

    def _refusal(self, verb: str, asker: str | None) -> str:
        """Why the present state does not allow the transition, and what to do; empty if it does."""
        if self._transition:
            return f"a {self._transition}() is under way, in this or another thread; try later"
        if self._opened is None:
            return "" if verb == "run" else "its state is 'stop', nobody owns it; run it first"
        described = f"its state is 'run'{', paused' * self.paused}, its owner {self.owner!r}"
        if verb == "run":
            return f"{described}; stop it first"
        if verb == "pause":
            return f"{described}; resume it first" * self.paused
        if verb == "resume":
            return f"{described}; pause it first" * self.recording
        return f"{described}; only its owner can {verb} it" if asker != self.owner else ""

    def _thread_names(self) -> dict[int, str]:
        # Of a copy, which is made in one step: a collection in the middle may run a probe that
        # emits, and makes this thread known, under the lock that it holds already.
        return {tid: join_names(known) for tid, known in self._names.copy().items()}

    def _take(self, end: int) -> Callable[[], Trace]:
        """Hold on to the window's content under the lock; freeze it outside."""
        modes, anchor, groups = self._modes, self._anchor, self._groups
        names = self._thread_names()
        pauses = tuple(self._pauses)
        if self._opened is None:
            raise StateError("the window is closed")
        if self.paused:
            pauses += ((self._paused_at, end),)
        window = (self._opened, end)
        events, dropped = self._buffer.taken()
        spilled = self._buffer.spilled
        cost = Cost(self._span_ns, self.worker_record_ns)

        def freeze() -> Trace:
            pid = os.getpid()
            built = whole_arrows(build_events(events, pid, groups))
            process_names = {pid: PROCESS_NAME}
            thread_names = {(pid, tid): name for tid, name in names.items()}
            for (process, number), lane in built.lanes.items():
                process_names[process] = lane.group
                thread_names[process, number] = lane.name
            there = any(lane.group == WORKERS for lane in built.lanes.values())
            # Timed here, where it is known that there is something to pay, and most often closed.
            paid = cost._replace(worker_event_ns=self._worker_price()) if there else cost
            return Trace(
                events=built.events,
                modes=modes,
                windows=(window,),
                dropped=dropped + built.lost,
                anchor=anchor,
                process_names=process_names,
                thread_names=thread_names,
                metadata={},
                pauses=pauses,
                spilled=spilled,
                cost=paid,
            )

        return freeze

    # what a continuous dump takes

    def remove_listener(self, listener: Listener) -> None:
        """Tell it no more; harmless if it is not told anyway."""
        self._listeners.remove(listener)

    def unsent(self, most: int) -> Unsent | None:
        """What the open window has recorded and no file holds yet; None while stopped."""
        with self._lock:
            if self._opened is None:
                return None
            now = self.clock()
            pauses = self._pauses + ([(self._paused_at, now)] if self.paused else [])
            raw, up_to = self._buffer.unsent(most)
            return Unsent(
                raw=raw,
                up_to=up_to,
                there=self._buffer.gone + len(self._buffer.events),
                window=(self._opened, now),
                pauses=pauses,
                modes=self._modes,
                owner=str(self.owner),
                anchor=self._anchor,
                names=self._thread_names(),
                marks=list(self._marks.copy().values()),
                groups=self._groups,
                dropped=self._buffer.dropped,
                cost=Cost(self._span_ns, self.worker_record_ns),
            )

    @property
    def half_full(self) -> bool:
        """Whether half of the buffer waits to be written."""
        return 2 * (len(self._buffer.events) - self._buffer.sent) >= self._buffer.limit

    def mark_sent(self, up_to: int) -> None:
        """A file holds what `unsent` gave."""
        with self._lock:
            self._buffer.mark_sent(up_to)


RECORDER = Profiler()
"""The process's recorder: the plugin and the doors drive it, the runtime emits into it."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=RECORDER.detach)
