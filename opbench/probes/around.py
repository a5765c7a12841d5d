"""What is done around each operator that is recorded, for as long as a probe asks for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Protocol

__all__ = ["AROUND", "Around", "Entered", "Hook"]


class Hook(Protocol):
    """Called on the operator's own thread, right before and right after it."""

    def enter(self, name: str) -> Any:
        """The operator begins; what this returns is handed to `leave`."""

    def leave(self, token: Any) -> Mapping[str, Any]:
        """It has ended, perhaps by an exception; returns args for its event."""


Entered = list[tuple[Hook, Any]]


class _Broken:
    """Stands in for a hook that failed, so that the operator's event says so."""

    def __init__(self, hook: Hook, error: Exception) -> None:
        self._what = f"{type(hook).__name__}: {type(error).__name__}: {error}"

    def enter(self, name: str) -> None:
        """Never called."""

    def leave(self, token: Any) -> dict[str, Any]:  # noqa: ARG002 - a hook's signature
        """What went wrong."""
        return {"probe_failed": self._what}


class Around:
    """The hooks of this process; none while no window is open.

    An emit point does this, and pays for one attribute while there is no hook::

        entered = AROUND.enter("dot") if AROUND.hooks else []
        try:
            work()
        finally:
            noticed = AROUND.leave(entered) if entered else {}

    Attributes:
        hooks: replaced as a whole, never changed.
    """

    __slots__ = ("hooks",)

    def __init__(self) -> None:
        self.hooks: tuple[Hook, ...] = ()

    def add(self, hook: Hook) -> None:
        """Call this one too, from the next operator on; once, however often it is added."""
        if hook not in self.hooks:
            self.hooks = (*self.hooks, hook)

    def remove(self, hook: Hook) -> None:
        """Enter it no more; an operator that has entered it leaves it."""
        self.hooks = tuple(other for other in self.hooks if other is not hook)

    def enter(self, name: str) -> Entered:
        """Enter all hooks; returns what `leave` takes.

        A hook that raises does not fail the operator: it is removed, and the event says why.
        """
        return [self._entered(hook, name) for hook in self.hooks]

    def leave(self, entered: Entered) -> dict[str, Any]:
        """Leave them, the last one first; returns what they say about the operator."""
        noticed: dict[str, Any] = {}
        for hook, token in reversed(entered):
            noticed.update(self._left(hook, token))
        return noticed

    def _entered(self, hook: Hook, name: str) -> tuple[Hook, Any]:
        try:
            return hook, hook.enter(name)
        except Exception as error:  # noqa: BLE001 - an instrument must not fail the operator
            self.remove(hook)
            return _Broken(hook, error), None

    def _left(self, hook: Hook, token: Any) -> Mapping[str, Any]:
        try:
            return hook.leave(token)
        except Exception as error:  # noqa: BLE001 - an instrument must not fail the operator
            self.remove(hook)
            return _Broken(hook, error).leave(token)

    def detach(self) -> None:
        """In a forked child: the window was the parent's."""
        self.hooks = ()


AROUND = Around()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=AROUND.detach)
