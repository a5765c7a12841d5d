"""The recorder: a state machine around one bounded buffer.

Everything else in this room is a frozen value or a function of one. Emit points look like this,
and cost one attribute and one integer test while nothing is recorded::

    if recorder.mask & 2:
        recorder.complete("dot", "imperative", start, recorder.clock(), args)
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from operator import index
from typing import Any

from opbench.errors import StateError, TraceError
from opbench.profiler.clock import Clock, ClockAnchor, take_anchor
from opbench.profiler.events import RawEvent, Trace, build_events, join_names
from opbench.profiler.modes import Mode, parse_modes

__all__ = ["RECORDER", "Profiler"]

PROCESS_NAME = "opbench"


class _Thread(threading.local):
    """What is remembered per thread, asked anew in each run: the number costs a system call."""

    run = 0  # the run in which the thread made itself known
    tid = 0


class Profiler:
    """Records events between `run` and `stop`.

    `run`, `stop`, `pause` and `resume` are transitions: one at a time, each refused with a
    `StateError` where the state does not allow it. The emit methods may be called from any thread
    at any time, also from finalizers and signal handlers.

    An event is in the trace if it was emitted while recording and **began** after the last `run` or
    `resume`: nothing reaches in from outside the window. What is emitted before `stop` takes hold
    is in the trace; the lock decides, with or without a global interpreter lock.

    Attributes:
        mask: the modes being recorded, as a plain integer; 0 while stopped or paused.
        clock: the clock of all events, ns.
        iteration: the iteration being recorded, or None; emit points copy it.
        owner: who called `run`, or None.
        capacity: events one window can hold; what comes later is counted as dropped. Iterations and
            calls are kept beyond it: there are as many as the window has iterations.
    """

    def __init__(
        self,
        clock: Clock = time.perf_counter_ns,
        wall_clock: Clock = time.time_ns,
        capacity: int = 1_000_000,
    ) -> None:
        self.clock = clock
        self.capacity = capacity
        self._wall_clock = wall_clock
        self._synchronisers: list[Callable[[], object]] = []
        self._runs = 0
        self._thread = _Thread()
        self._reset()

    def _reset(self) -> None:
        # Re-entrant, since a finalizer or a signal handler may emit inside an emit of its thread.
        self._lock = threading.RLock()
        self._transition = ""
        self.mask = 0
        self.iteration: int | None = None
        self.owner: str | None = None
        self._modes = Mode(0)
        self._anchor = ClockAnchor(0, 0)
        self._opened: int | None = None  # when the window opened, None while stopped
        self._since: int | None = None  # when recording last began, None while stopped or paused
        self._paused_at = 0
        self._forget()

    def _forget(self) -> None:
        self._events: list[RawEvent] = []
        self._dropped = 0
        self._pauses: list[tuple[int, int]] = []
        self._names: dict[int, list[str]] = {}

    # state

    @property
    def state(self) -> str:
        """``"run"`` or ``"stop"``; a paused recorder is in state run."""
        return "stop" if self._opened is None else "run"

    @property
    def paused(self) -> bool:
        """Whether a window is open, and recording suspended."""
        return self._opened is not None and self._since is None

    @property
    def recording(self) -> bool:
        """Whether events are being recorded: running and not paused."""
        return self._since is not None

    def add_synchroniser(self, synchronise: Callable[[], object]) -> None:
        """Have every transition call this first; it waits for all pending work.

        An exception from it (a keyboard interrupt, say) leaves the state as it was.
        """
        self._synchronisers.append(synchronise)

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
        with self._changing("run", owner), self._lock:
            self._forget()
            self._runs += 1
            self._modes = wanted
            self.owner = owner
            self.iteration = None
            self._anchor = take_anchor(self.clock, self._wall_clock)
            self._opened = self._since = self.clock()
            self.mask = int(wanted)

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
                if self._since is not None:
                    self._paused_at = end
                    self._since = None
                self.mask = 0
            # Freezing a million events takes a second. An interrupt in it finds the window paused
            # and whole, so that another stop can take it.
            trace = freeze()
            with self._lock:
                self._opened = None
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
        with self._changing("pause"), self._lock:
            self.mask = 0
            self._paused_at = self.clock()
            self._since = None

    def resume(self) -> None:
        """Record again after `pause`.

        Raises:
            StateError: no window is open, or it is not paused.
        """
        with self._changing("resume"), self._lock:
            self._since = self.clock()
            self._pauses.append((self._paused_at, self._since))
            self.mask = int(self._modes)

    def detach(self) -> None:
        """Forget the window: a forked child shares neither the parent's threads nor its file."""
        self._reset()

    # events

    def complete(
        self,
        name: str,
        category: str,
        start_ns: int,
        end_ns: int,
        args: dict[str, Any] | None = None,
        *,
        across_pauses: bool = False,
    ) -> None:
        """Record a slice of the calling thread.

        Args:
            name: what groups in a viewer.
            category: the mode's name, ``iteration`` or ``call``.
            start_ns: when it began, by `clock`.
            end_ns: when it ended.
            args: plain JSON values; kept, not copied, so pass a fresh dictionary and no arrays.
            across_pauses: keep a slice that reaches over a pause, as an iteration does; it must
                still have begun inside the window. Such a slice finds room in a full buffer too.

        Raises:
            TraceError: it ends before it starts, or a time is no whole number.
        """
        try:
            start_ns, end_ns = index(start_ns), index(end_ns)
        except TypeError:
            raise TraceError(
                f"slice {name!r} has the times {start_ns!r} and {end_ns!r}, but nanoseconds are "
                "whole numbers; take both times from the recorder's clock"
            ) from None
        if end_ns < start_ns:
            raise TraceError(
                f"slice {name!r} ends {start_ns - end_ns} ns before it starts; "
                "take both times from the recorder's clock"
            )
        self._append("X", name, category, start_ns, end_ns - start_ns, args, across_pauses)

    def counter(self, name: str, values: Mapping[str, float], category: str = "memory") -> None:
        """Record the present values of a quantity.

        Args:
            name: the quantity; one per name.
            values: series to number; copied. A value that is no finite number is left out and
                counted as dropped when the window closes, since it would hang a viewer.
            category: the mode's name.
        """
        self._append("C", name, category, self.clock(), 0, dict(values), False)

    def instant(self, name: str, category: str, args: dict[str, Any] | None = None) -> None:
        """Record a moment of the calling thread; `args` as in `complete`."""
        self._append("i", name, category, self.clock(), 0, args, False)

    def _append(
        self,
        phase: str,
        name: str,
        category: str,
        start: int,
        duration: int,
        args: dict[str, Any] | None,
        across_pauses: bool,
    ) -> None:
        thread = self._thread
        with self._lock:
            since = self._opened if across_pauses else self._since
            if since is None or start < since:
                return
            if len(self._events) >= self.capacity and not (across_pauses or category == "call"):
                self._dropped += 1
                return
            if thread.run != self._runs:
                self._introduce(thread)
            self._events.append((phase, name, category, start, duration, thread.tid, args))

    def _introduce(self, thread: _Thread) -> None:
        """Note number and name of a thread at its first event of a run."""
        thread.tid = threading.get_native_id()
        thread.run = self._runs
        name = str(threading.current_thread().name) or f"thread {thread.tid}"
        self._names.setdefault(thread.tid, []).append(name)

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

    def _take(self, end: int) -> Callable[[], Trace]:
        """Hold on to the window's content under the lock; freeze it outside."""
        events, dropped, modes, anchor = self._events[:], self._dropped, self._modes, self._anchor
        names = {tid: join_names(known) for tid, known in self._names.items()}
        pauses = tuple(self._pauses)
        if self._opened is None:
            raise StateError("the window is closed")
        if self.paused:
            pauses += ((self._paused_at, end),)
        window = (self._opened, end)

        def freeze() -> Trace:
            pid = os.getpid()
            frozen, not_finite = build_events(events, pid)
            return Trace(
                events=frozen,
                modes=modes,
                windows=(window,),
                dropped=dropped + not_finite,
                anchor=anchor,
                process_names={pid: PROCESS_NAME},
                thread_names={(pid, tid): name for tid, name in names.items()},
                metadata={},
                pauses=pauses,
            )

        return freeze


RECORDER = Profiler()
"""The process's recorder: the plugin and the doors drive it, the runtime emits into it."""
