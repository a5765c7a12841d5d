"""How the modules `nd` and `sym` find their names: their own ones, and operators of users."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from opbench.errors import ConfigError, nearest
from opbench.operators import Operator, get, names

__all__ = ["finder"]


def finder(
    module: str, own: Sequence[str], applied: Callable[[Operator], Callable[..., Any]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a module that has a function for each operator.

    Args:
        module: its name, for the error.
        own: its public names; Python finds them without this.
        applied: makes the function of an operator; asked once for each, as one may be replaced.
    """
    function = functools.lru_cache(maxsize=256)(applied)

    def find(name: str) -> Any:
        # Each use of an operator of a user comes by here: one look-up, no list of all names.
        try:
            operator = get(name)
        except ConfigError:
            hint = "" if name.startswith("_") else nearest(name, known())
            raise AttributeError(f"module {module!r} has no attribute {name!r}{hint}") from None
        return function(operator)

    def known() -> list[str]:
        return sorted({*own, *names()})

    return find, known
