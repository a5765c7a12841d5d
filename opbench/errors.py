"""Every exception and warning that opbench raises.

Each derives from the built-in it resembles, so that ``except ValueError`` keeps working.
Messages say what was wrong, what was given, where it came from and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "AccuracyError",
    "AliasError",
    "BindError",
    "ConfigError",
    "ContextError",
    "DTypeError",
    "ForkError",
    "OpbenchError",
    "OpbenchWarning",
    "OperatorError",
    "ReadOnlyError",
    "RecordError",
    "ShapeError",
    "StateError",
    "TraceError",
    "TraceWriteError",
    "WindowError",
    "nearest",
]


class OpbenchError(Exception):
    """The base of every exception that opbench raises on purpose."""


class OpbenchWarning(UserWarning):
    """Something that does not stop the run, but that the reader of its numbers must know."""


class ShapeError(OpbenchError, ValueError):
    """Operands whose shapes do not fit the operator, or each other."""


class DTypeError(OpbenchError, TypeError):
    """An operand that is no array, or an element type that the operator does not take."""


class AliasError(OpbenchError, ValueError):
    """An output array that shares memory with an input."""


class ReadOnlyError(OpbenchError, ValueError):
    """An output array that cannot be written."""


class AccuracyError(OpbenchError, ArithmeticError):
    """A result that lies further from its reference than the error bound allows."""


class ContextError(OpbenchError, RuntimeError):
    """A device that is not there."""


class BindError(OpbenchError, ValueError):
    """A symbol bound with arguments that are missing, unknown or of the wrong kind."""


class OperatorError(OpbenchError, RuntimeError):
    """An operator that failed while the worker ran it; raised at the wait, its cause attached."""


class ForkError(OpbenchError, RuntimeError):
    """Parallel or worker-thread work asked for in a forked child, which cannot have it."""


class ConfigError(OpbenchError, ValueError):
    """A setting that is unknown or has a value that it cannot have."""


class StateError(OpbenchError, RuntimeError):
    """Something asked of the profiler, or of an executor, that its present state does not allow."""


class WindowError(OpbenchError, ValueError):
    """A window that is negative, reversed, empty or beyond the iterations."""


class TraceError(OpbenchError, ValueError):
    """A trace file that cannot be read, or an event that no trace can hold."""


class TraceWriteError(OpbenchError, OSError):
    """A trace that could not be written; a file that stood there before is unchanged."""


class RecordError(OpbenchError, ValueError):
    """A stored run that cannot be read, or a storage that cannot be written."""


def nearest(word: str, valid: Iterable[str]) -> str:
    """The end of an error about an unknown word: the nearest valid one, and all of them."""
    names = sorted(valid)
    close = difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else ";"
    return f"{hint} valid are {', '.join(names)}"
