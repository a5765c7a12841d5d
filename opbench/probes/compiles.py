"""Did Numba compile meanwhile?"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from types import ModuleType, TracebackType
from typing import Any

from opbench.probes.source import Source

__all__ = ["CompileWatch"]

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
            self._listener = _listener(self._events, self._began, self._ended)
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


def _listener(events: ModuleType, began: Callable[[], None], ended: Callable[[], None]) -> Any:
    """Numba takes only instances of its own base class, which exists once Numba is loaded."""
    methods = {"on_start": lambda _self, _event: began(), "on_end": lambda _self, _event: ended()}
    return type("Listener", (events.Listener,), methods)()
