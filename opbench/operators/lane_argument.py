"""A user's kernel that takes a buffer for its workers' records, callable without one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any

from opbench import kernels
from opbench.errors import ConfigError

__all__ = ["LANES", "lanes_optional"]

LANES = "lanes"


def lanes_optional(
    name: str, function: Callable[..., Any], parameters: Collection[str], *, told: bool
) -> Callable[..., Any]:
    """The function with an empty buffer as its default, if it has a parameter ``lanes``.

    Args:
        name: the operator's.
        function: the user's.
        parameters: its, by name.
        told: whether the user said how many records a call writes.

    Raises:
        ConfigError: that was said of a function without the parameter.
    """
    if LANES not in parameters:
        if told:
            raise ConfigError(
                f"operator {name!r}: lanes=... says how many records a call writes, but the "
                "function has no parameter 'lanes' to write them to; add it, or drop the argument"
            )
        return function

    @functools.wraps(function, updated=())
    def called(*operands: Any, lanes: Any = kernels.lanes.OFF, **others: Any) -> Any:
        return function(*operands, lanes=lanes, **others)

    return called
