"""The operators by name. Filled while modules load, only read afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from opbench.errors import ConfigError, nearest
from opbench.operators.operator import Operator

if TYPE_CHECKING:
    from opbench.operators.case import Case

__all__ = ["cases", "get", "names", "of_kernel", "register"]

# The public names of nd and sym that are no operators; an operator of such a name would be hidden.
TAKEN = {
    "nd": ("NDArray", "array", "empty", "ones", "waitall", "zeros"),
    "sym": ("Symbol", "var", "variable"),
}

_OPERATORS: dict[str, Operator] = {}
_CASES: dict[str, tuple[Case, ...]] = {}


def register(operator: Operator, cases: Sequence[Case] = ()) -> None:
    """Make ``operator`` known under its name, with the cases that its benchmark runs.

    The same function may come again, as when a module is reloaded or a cell of a notebook runs a
    second time: it takes the place of its predecessor.

    Raises:
        ConfigError: the name is taken, by another operator or by a public name of `nd` or `sym`, or
            a case belongs to another operator.
    """
    for module, words in TAKEN.items():
        if operator.name in words:
            raise ConfigError(
                f"operator: {module}.{operator.name} is opbench's own and would hide an operator"
                " of that name; give name='...', another one"
            )
    known = _OPERATORS.get(operator.name)
    if known is not None and not _same_function(known.function, operator.function):
        raise ConfigError(
            f"an operator named {operator.name!r} is registered already; choose another name"
        )
    for case in cases:
        if case.operator != operator.name:
            raise ConfigError(
                f"case {case.shapes} is one of {case.operator!r}, not of {operator.name!r}"
            )
    _OPERATORS[operator.name] = operator
    _CASES[operator.name] = tuple(cases)


def get(name: str) -> Operator:
    """The operator called ``name``.

    Raises:
        ConfigError: there is none; names the nearest.
    """
    try:
        return _OPERATORS[name]
    except KeyError:
        hint = nearest(name, _OPERATORS)
        raise ConfigError(f"no operator is named {name!r}{hint}") from None


def names() -> list[str]:
    """The names of all operators, in alphabetical order."""
    return sorted(_OPERATORS)


def cases(name: str) -> tuple[Case, ...]:
    """The cases of the operator called ``name``, in the order in which the suite runs them.

    Raises:
        ConfigError: there is no such operator; names the nearest.
    """
    return _CASES[get(name).name]


def of_kernel(function: Callable[..., Any]) -> Operator | None:
    """The operator that ``function`` is a kernel of, or None for a foreign function."""
    for operator in _OPERATORS.values():
        if function is not None and operator.function is function:
            return operator
        if any(kernel is function for kernel in operator.kernels.values()):
            return operator
    return None


def _same_function(one: Any, other: Any) -> bool:
    """Whether two functions are one definition, executed twice."""
    if one is None or other is None:
        return False
    places = [
        (getattr(function, "__module__", None), getattr(function, "__qualname__", None))
        for function in (one, other)
    ]
    return places[0] == places[1] and None not in places[0]
