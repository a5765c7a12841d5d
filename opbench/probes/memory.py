"""Memory that the runtime does not own: the process's, and what Python and compiled code allocate.

Nothing here runs on a thread of its own. The resident set is read where something happens anyway:
at the transitions of a window, and when the runtime books an array.
"""

from __future__ import annotations

import threading
from typing import Any

from opbench.probes.around import AROUND
from opbench.probes.probe import Probe
from opbench.probes.source import Source
from opbench.profiler import Mode, Profiler

__all__ = ["PythonMemory", "ResidentMemory"]

MEMORY = int(Mode.MEMORY)
# A reading costs about 6 µs: 0.12 % of the time, however often somebody asks.
INTERVAL_NS = 5_000_000


class ResidentMemory(Probe):
    """The resident set size of the process, as a counter in mode memory."""

    def __init__(self, recorder: Profiler, source: Source | None = None) -> None:
        self._recorder = recorder
        self._read = (source or Source()).resident
        self._next = 0

    def opened(self, modes: Mode) -> None:  # noqa: ARG002 - the modes make no difference
        """The first value."""
        self.read()

    def resumed(self) -> None:
        """The value after the pause."""
        self.read()

    def sample(self) -> None:
        """Read it, unless that was done within the last 5 ms."""
        if self._recorder.clock() >= self._next:
            self.read()

    def read(self) -> None:
        """Read it now, in mode memory."""
        if self._recorder.mask & MEMORY:
            resident = self._read()
            self._next = self._recorder.clock() + INTERVAL_NS
            if resident is not None:
                self._recorder.counter("memory resident", {"bytes": resident})


class _Call:
    """An operator that is under way: traced bytes at its start, and the most since."""

    __slots__ = ("most", "start")

    def __init__(self, start: int) -> None:
        self.start = self.most = start


class PythonMemory(Probe):
    """What tracemalloc sees, in mode memory, if it is asked for.

    It sees whatever is allocated through Python's allocators: objects, NumPy's arrays, the
    runtime's own among them, and arrays made inside Numba's compiled code. The figures are those of
    the whole process, so what another thread allocates during an operator is in that operator's.

    A session that traces already is left to trace on, and its peak is not reset; then an operator's
    own peak is not known and is not stated. Tracing goes on through a pause, since what is freed
    later must be known.

    Attributes:
        asked: whether windows that open from now on do it.
    """

    def __init__(self, recorder: Profiler) -> None:
        self.asked = False
        self._recorder = recorder
        self._lock = threading.RLock()
        self._ours = False  # whether tracing was started for the window
        self._open = False
        self._baseline = 0
        self._most = 0
        self._told = -1  # the most that a counter has shown
        self._calls: list[_Call] = []

    def opened(self, modes: Mode) -> None:
        """Begin tracing, if it was asked for."""
        import tracemalloc

        if not modes & MEMORY or not (self.asked or self._recorder.python_memory):
            return
        with self._lock:
            self._ours = not tracemalloc.is_tracing()
            if self._ours:
                tracemalloc.start()
            self._baseline = self._most = tracemalloc.get_traced_memory()[0]
            self._told = -1
            self._calls = []
            self._open = True
        AROUND.add(self)
        self.read()

    def closed(self) -> None:
        """End tracing."""
        import tracemalloc

        AROUND.remove(self)
        with self._lock:
            if self._open and self._ours:
                tracemalloc.stop()
            self._open = False

    def detach(self) -> None:
        """In a forked child: another thread, which stayed behind, may have held the lock."""
        self._lock = threading.RLock()
        self.closed()

    def resumed(self) -> None:
        """The value after the pause."""
        self.read()

    def read(self) -> None:
        """Record the present value, in a window that traces."""
        import tracemalloc

        with self._lock:
            if self._open and tracemalloc.is_tracing():
                self._tell(self._look())

    def enter(self, name: str) -> _Call:  # noqa: ARG002 - the signature of a hook
        """An operator begins."""
        with self._lock:
            call = _Call(self._look())
            self._calls.append(call)
            return call

    def leave(self, call: _Call) -> dict[str, Any]:
        """It ends: what it left allocated, and its most at any moment, both over its start."""
        with self._lock:
            if call not in self._calls:  # of a window that is over; its event is in none
                return {}
            now = self._look()
            self._calls.remove(call)
            self._tell(now)
        noticed = {"python_bytes": now - call.start}
        if self._ours:
            noticed["python_peak_bytes"] = call.most - call.start
        return noticed

    def _look(self) -> int:
        """The traced bytes; what was the most since the last look goes to whom it concerns."""
        import tracemalloc

        now, most = tracemalloc.get_traced_memory()
        if self._ours:
            # Else an operator's peak would be that of the largest one before it.
            tracemalloc.reset_peak()
        else:
            most = now
        self._most = max(self._most, most)
        for call in self._calls:
            call.most = max(call.most, most)
        return now

    def _tell(self, now: int) -> None:
        if not self._recorder.mask & MEMORY:
            return
        self._recorder.counter("memory python", {"live bytes": now - self._baseline})
        if self._most > self._told:
            self._told = self._most
            self._recorder.counter("memory peak python", {"bytes": self._most - self._baseline})
