"""Did Numba compile meanwhile? As a count, and as slices in a trace."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from types import ModuleType, TracebackType
from typing import Any

from opbench.probes.interruptions import INTERRUPTIONS, So
from opbench.probes.probe import Probe
from opbench.probes.source import Source
from opbench.profiler import Mode, Profiler

__all__ = ["CompileSlices", "CompileWatch"]

_KIND = "numba:compile"


class CompileWatch:
    """Counts Numba's compilations while its block runs.

    Those of all threads count, and so do those that fail; functions loaded from Numba's disk
    cache do not. A compilation inside another one (a jitted function that calls one) is counted,
    its time is part of the outer one's. One that is under way when the block begins is not seen.

    It listens only if Numba is loaded when the block begins: ``watching`` tells. Readings stay
    after the block, and a second block starts from zero.
    """

    def __init__(self, source: Source | None = None) -> None:
        """With ``source`` the clock and the loaded modules are a test's."""
        self._source = source or Source()
        self._lock = threading.Lock()
        self._open: dict[int, list[float]] = {}
        self._count = 0
        self._seconds = 0.0
        self._events: ModuleType | None = None
        self._listener: Any = None

    @property
    def count(self) -> int:
        """Compilations that began in the block."""
        return self._count

    @property
    def seconds(self) -> float:
        """Seconds spent in those that ended in the block."""
        return self._seconds

    @property
    def watching(self) -> bool:
        """Whether Numba was loaded when the block began; if not, a count of zero says nothing."""
        return self._listener is not None

    def __enter__(self) -> CompileWatch:  # noqa: PYI034 - Python 3.10 has no typing.Self
        self._open.clear()
        self._count, self._seconds = 0, 0.0
        self._listener = None
        self._events = self._source.modules.get("numba.core.event")
        if self._events is not None:
            self._listener = _listener(
                self._events, lambda _: self._began(), lambda _: self._ended()
            )
            self._events.register(_KIND, self._listener)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._events is not None:
            # Someone may have cleared Numba's list; the end of a measurement is no place to fail.
            with contextlib.suppress(ValueError):
                self._events.unregister(_KIND, self._listener)

    def _began(self) -> None:
        with self._lock:
            self._count += 1
            self._open.setdefault(threading.get_ident(), []).append(self._source.clock())

    def _ended(self) -> None:
        with self._lock:
            started = self._open.get(threading.get_ident())
            if not started:
                return
            start = started.pop()
            if not started:
                self._seconds += self._source.clock() - start


class _Stack(threading.local):
    """The compilations that this thread is in, outermost first."""

    def __init__(self) -> None:
        self.begun: list[tuple[int, So]] = []


class CompileSlices(Probe):
    """Records each compilation of Numba's, of any mode's window, with function and signature.

    Those that fail are recorded too, and those inside another one, which they nest in. Loading from
    Numba's disk cache is no compilation, and Numba does not tell of it.

    What a pause contains is dropped by the recorder. It is registered with Numba only while a
    window is open, and only if Numba is loaded when the window opens or resumes.
    """

    def __init__(self, recorder: Profiler, source: Source | None = None) -> None:
        self._recorder = recorder
        self._source = source or Source()
        self._stack = _Stack()
        self._events: ModuleType | None = None
        self._listener: Any = None

    def opened(self, modes: Mode) -> None:  # noqa: ARG002 - the modes make no difference
        """Listen, if Numba is there."""
        self._stack = _Stack()
        self.resumed()

    def closed(self) -> None:
        """Listen no more."""
        if self._events is not None:
            with contextlib.suppress(ValueError):  # somebody has cleared Numba's list
                self._events.unregister(_KIND, self._listener)
        self._events = self._listener = None

    def resumed(self) -> None:
        """Listen to a Numba that was loaded meanwhile."""
        if self._events is None:
            self._events = self._source.modules.get("numba.core.event")
            if self._events is not None:
                self._listener = _listener(self._events, self._began, self._ended)
                self._events.register(_KIND, self._listener)

    def _began(self, _event: Any) -> None:
        self._stack.begun.append((self._recorder.clock(), INTERRUPTIONS.so_far))

    def _ended(self, event: Any) -> None:
        if not self._stack.begun:  # it was under way when the window opened
            return
        start, before = self._stack.begun.pop()
        end = self._recorder.clock()
        INTERRUPTIONS.compiled(end - start, before)
        name, args = _described(event)
        args["iteration"] = self._recorder.iteration
        self._recorder.complete(f"compile {name}", "compile", start, end, args)


def _described(event: Any) -> tuple[str, dict[str, Any]]:
    """Name and args of a compilation: the function, the types it was compiled for, its fate."""
    data = event.data or {}
    function = getattr(data.get("dispatcher"), "py_func", None)
    name = str(getattr(function, "__name__", "a function"))
    qualified = getattr(function, "__qualname__", name)
    types = ", ".join(str(kind) for kind in data.get("args") or ())
    args = {
        "function": f"{getattr(function, '__module__', None)}.{qualified}",
        "signature": f"({types})",
    }
    # Numba's own is_failed answers the other way round.
    if getattr(event, "_exc_details", None) is not None:
        args["failed"] = "the compilation raised an error"
    return name, args


def _listener(
    events: ModuleType, began: Callable[[Any], None], ended: Callable[[Any], None]
) -> Any:
    """Numba takes only instances of its own base class, which exists once Numba is loaded."""
    methods = {
        "on_start": lambda _self, event: began(event),
        "on_end": lambda _self, event: ended(event),
    }
    return type("Listener", (events.Listener,), methods)()
