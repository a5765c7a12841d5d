"""What starts and stops: the base of tasks, frames and events, and the event itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, ParamSpec, TypeVar

from opbench.errors import ConfigError, StateError
from opbench.profiler.calls import plain_arguments
from opbench.profiler.profiler import RECORDER
from opbench.profiler.wrapping import around, is_async

__all__ = ["Arguments", "Event", "Interval", "checked_arguments", "checked_name"]

P = ParamSpec("P")
R = TypeVar("R")

EVENT_CATEGORY = "event"
NO_THREAD = 0

Arguments = Mapping[str, Any] | None


class Begun(NamedTuple):
    """One start that waits for its stop."""

    start_ns: int
    thread: int
    args: dict[str, Any]
    mark: int


class Interval:
    """What starts and stops; its subclasses say where it stands in a trace."""

    __slots__ = ("_args", "_begun", "_category", "name")

    def __init__(self, name: str, category: str, args: Arguments) -> None:
        self.name = checked_name(type(self).__name__, name)
        self._category = category
        self._args = checked_arguments(type(self).__name__, args)
        # One slot in a dictionary: filling and emptying it are one step each, in any thread and
        # in a signal handler, with and without a global interpreter lock.
        self._begun: dict[None, Begun] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def start(self, **args: Any) -> None:
        """Begin; ``args`` join those given to the constructor.

        Raises:
            StateError: it was started already, and not stopped since.
        """
        begun = self._begin(args)
        if self._begun.setdefault(None, begun) is not begun:
            RECORDER.mark_closed(begun.mark)
            raise StateError(
                f"cannot start {self!r}: it was started already; stop it first, or use another one"
            )

    def stop(self, **args: Any) -> None:
        """End, in any thread; ``args`` join those given at the start.

        Raises:
            StateError: it was not started, or is stopped already.
        """
        begun = self._begun.pop(None, None)
        if begun is None:
            raise StateError(f"cannot stop {self!r}: it was not started; call start() before it")
        self._end(begun, args)

    def __enter__(self) -> Interval:  # noqa: PYI034 - Self needs Python 3.11
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate: each call is one interval of its own, so it may recurse and run in threads."""
        # Coroutines take turns on their thread, so theirs belong to none.
        thread = NO_THREAD if callable(function) and is_async(function) else None
        return around(function, lambda: self._begin({}, thread), lambda begun: self._end(begun, {}))

    def _begin(self, args: Mapping[str, Any], thread: int | None = None) -> Begun:
        start = RECORDER.clock()
        given = {**self._args, **plain_arguments(args)}
        mark = RECORDER.mark_open(self.name, self._category, start, given)
        return Begun(start, threading.get_ident() if thread is None else thread, given, mark)

    def _end(self, begun: Begun, args: Mapping[str, Any]) -> None:
        end = RECORDER.clock()
        RECORDER.mark_closed(begun.mark)
        if RECORDER.recording:
            self._record(begun, end, {**begun.args, **plain_arguments(args)})

    def _record(self, begun: Begun, end: int, args: dict[str, Any]) -> None:
        RECORDER.span(self.name, self._category, begun.start_ns, end, args)


class Event(Interval):
    """A stretch of one thread, nested in what the thread was doing; category ``event``.

    One that is stopped in another thread than it was started in cannot stand on either's track, and
    is drawn like a task.

    Args:
        name: any text that is not empty.
        args: as those of `Task`.
    """

    __slots__ = ()

    def __init__(self, name: str, args: Arguments = None) -> None:
        super().__init__(name, EVENT_CATEGORY, args)

    def _record(self, begun: Begun, end: int, args: dict[str, Any]) -> None:
        if begun.thread == threading.get_ident():
            RECORDER.complete(self.name, self._category, begun.start_ns, end, args)
        else:
            super()._record(begun, end, args)


def checked_name(kind: str, name: Any) -> str:
    """The name of an instrument; raises ConfigError if it is empty or no text."""
    if not isinstance(name, str) or not name:
        raise ConfigError(f"the name of a {kind} is a text that is not empty, not {name!r}")
    return name


def checked_arguments(kind: str, args: Any) -> dict[str, Any]:
    """A plain copy of what an instrument was given; raises ConfigError if it is no mapping."""
    if args is None:
        return {}
    if not isinstance(args, Mapping):
        raise ConfigError(f"args of a {kind} is a dictionary of name to value, not {args!r}")
    return plain_arguments(args)
