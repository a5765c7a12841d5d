"""What a ``call`` slice says about a call: the function's name and the kinds of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["call_args", "plain_arguments"]

ARGUMENTS_SHOWN = 16
DEPTH_SHOWN = 4
TEXT_SHOWN = 80


def call_args(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a ``call`` slice; never raises, and keeps hold of none of the values.

    Returns:
        ``{"function": "numpy.dot", "arguments": ["float32[4096,4096]", "axis=int"]}``: arrays
        (whatever has a shape and a dtype) by element type and shape, everything else by type. An
        array whose dtype has named fields is ``records[16]``. After 16 arguments the rest is only
        counted.
    """
    arguments = [_kind(value) for value in args[:ARGUMENTS_SHOWN]]
    room = ARGUMENTS_SHOWN - len(arguments)
    arguments += [f"{name}={_kind(kwargs[name])}" for name in list(kwargs)[:room]]
    hidden = len(args) + len(kwargs) - len(arguments)
    if hidden:
        arguments.append(f"… and {hidden} more")
    return {"function": _qualified(function), "arguments": arguments}


def plain_arguments(args: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of what a user says of an event; never raises, and keeps hold of none of the objects.

    Plain values are kept, and lists, tuples and dictionaries of them copied; an array becomes its
    element type and shape, and any other object its text, cut at 80 characters.
    """
    return {str(key): _plain(value, DEPTH_SHOWN) for key, value in args.items()}


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    try:
        if depth and isinstance(value, Mapping):
            return {str(key): _plain(item, depth - 1) for key, item in value.items()}
        if depth and isinstance(value, (list, tuple)):
            return [_plain(item, depth - 1) for item in value]
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            return value.item() if value.shape == () else _kind(value)
        return _short(str(value))
    except Exception:  # noqa: BLE001 - a stranger's object may raise anything
        return _kind(value)


def _kind(value: Any) -> str:
    try:
        shape, dtype = value.shape, value.dtype
        # The fields of a record would be most of the text, and say nothing of the work.
        element = "records" if getattr(dtype, "names", None) else _short(str(dtype))
        return f"{element}[{','.join(str(int(size)) for size in shape)}]"
    except Exception:  # noqa: BLE001 - a stranger's property may raise anything
        return _short(type(value).__qualname__)


def _qualified(function: Any) -> str:
    """Module and name: of a partial its function's, of a callable object its class's."""
    for _ in range(ARGUMENTS_SHOWN):
        inner = _attribute(function, "func")
        if inner is None or isinstance(_attribute(function, "__qualname__"), str):
            break
        function = inner
    name = _attribute(function, "__qualname__") or _attribute(function, "__name__")
    if not isinstance(name, str):
        function = type(function)
        name = str(function.__qualname__)
    module = _attribute(function, "__module__")
    if not isinstance(module, str) or module == "builtins":
        return name
    return f"{module}.{name}"


def _attribute(value: Any, name: str) -> Any:
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001 - a stranger's attribute access may raise anything
        return None


def _short(text: str) -> str:
    return text if len(text) <= TEXT_SHOWN else text[: TEXT_SHOWN - 1] + "…"
