"""Scopes: named stretches of a thread, which tag what is allocated inside."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import ParamSpec, TypeVar

from opbench.errors import StateError
from opbench.profiler.intervals import Arguments, Event, checked_name
from opbench.profiler.wrapping import around

__all__ = ["current_scope", "scope"]

P = ParamSpec("P")
R = TypeVar("R")

SCOPE_CATEGORY = "scope"
# MXNet's name of the scope that nobody opened.
NO_SCOPE = "<unk>:"

_SCOPE: ContextVar[str] = ContextVar("opbench scope", default=NO_SCOPE)


def current_scope() -> str:
    """The scopes that are open here, outermost first: ``outer:inner:``; ``<unk>:`` for none.

    Each thread, and each task of asyncio, has its own.
    """
    return _SCOPE.get()


class scope:  # noqa: N801 - MXNet's word, used like a function
    """Names what happens inside: a slice of its thread, and the tag of what is allocated there.

    Nests as ``outer:inner:``, and whatever ends it, the outer one is restored.

    Args:
        name: any text that is not empty.
        append_mode: append to the scope that is open; False makes it begin anew.
        args: as those of `Task`.
    """

    __slots__ = ("_append", "_event", "_outer", "name")

    def __init__(self, name: str, append_mode: bool = True, args: Arguments = None) -> None:
        self.name = checked_name("scope", name)
        self._append = append_mode
        self._event = Event(name, args)
        self._event._category = SCOPE_CATEGORY  # noqa: SLF001 - of this module
        self._outer: list[str] = []

    def __repr__(self) -> str:
        return f"scope({self.name!r})"

    def __enter__(self) -> scope:  # noqa: PYI034 - Self needs Python 3.11
        if self._outer:
            raise StateError(f"cannot enter {self!r}: it is open already; make another one")
        outer = _SCOPE.get()
        inside = outer if self._append and outer != NO_SCOPE else ""
        _SCOPE.set(f"{inside}{self.name.removesuffix(':')}:")
        self._outer.append(outer)
        self._event.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _SCOPE.set(self._outer.pop())
        self._event.stop()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate: each call is a scope of its own."""

        def enter() -> scope:
            return scope(self.name, self._append, self._event._args).__enter__()  # noqa: SLF001 - of this module

        return around(function, enter, lambda entered: entered.__exit__(None, None, None))
