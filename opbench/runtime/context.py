"""The device on which arrays lie and operators run."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from opbench.errors import ContextError, nearest

__all__ = ["Context", "cpu", "gpu", "resolve", "same"]

_DEVICES = ("cpu",)
_KNOWN = ("cpu", "gpu")


@dataclass(frozen=True, slots=True)
class Context:
    """A device by kind and number.

    Attributes:
        device_type: ``cpu``.
        device_id: 0 and up; all CPU contexts share one memory, the number only keeps them apart.

    Raises:
        ContextError: a device that opbench does not have.
    """

    device_type: str
    device_id: int = 0

    def __post_init__(self) -> None:
        if self.device_type not in _KNOWN:
            raise ContextError(
                f"no device is called {self.device_type!r}{nearest(str(self.device_type), _KNOWN)}"
            )
        object.__setattr__(self, "device_id", _number(self.device_id))
        if self.device_type not in _DEVICES:
            raise ContextError(
                f"{self} is not available: opbench has no {self.device_type} kernels yet;"
                " use opbench.cpu()"
            )

    def __hash__(self) -> int:
        # The books look a context up at every allocation; there are only a few to tell apart.
        return self.device_id

    def __str__(self) -> str:
        return f"{self.device_type}({self.device_id})"


def _number(given: Any) -> int:
    try:
        number = -1 if isinstance(given, bool) else operator.index(given)
    except TypeError:
        number = -1
    if number < 0:
        raise ContextError(f"a device number is 0 or more, not {given!r}")
    return number


def cpu(device_id: int = 0) -> Context:
    """The processor. Raises ContextError for a negative number."""
    return Context("cpu", device_id)


def gpu(device_id: int = 0) -> Context:
    """A known gap: raises ContextError, which says what to use instead."""
    return Context("gpu", device_id)


_DEFAULT = Context("cpu")


def resolve(context: Any) -> Context:
    """The context that a caller means: their own, or ``cpu(0)`` for None.

    Raises:
        ContextError: it is something else.
    """
    if context is None:
        return _DEFAULT
    if not isinstance(context, Context):
        # Of an array, which a caller who swapped two arguments gave, the type says enough.
        given = repr(context) if isinstance(context, (str, int)) else f"a {type(context).__name__}"
        raise ContextError(f"{given} is no context; give opbench.cpu(), or nothing")
    return context


def same(name: str, contexts: list[Context]) -> Context:
    """The one context of all operands of ``name``.

    Raises:
        ContextError: they lie on different devices.
    """
    first = contexts[0]
    for context in contexts:
        # Identity first: nearly always it is the very same object, and a comparison costs more.
        if context is not first and context != first:
            raise ContextError(f"{name} takes operands on one device, not on {first} and {context}")
    return first
