"""Compiled code on disk, never stale: numba's cache, with a stamp over every file of this room.

numba's own stamp covers the file of the jitted function only, so an edit to an intrinsic in another
file would go unnoticed. Its index file also lets two processes that compile at once for two targets
swap their results. Here the stamp and numba's key (types, target triple, CPU and its features,
bytecode) make up a data file's name, and there is no index.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import pickle
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.core import config as numba_config
from numba.core.caching import FunctionCache
from numba.core.serialize import dumps

from opbench.errors import ConfigError

__all__ = ["FolderCache", "StampedFiles", "entry_point", "folder_stamp", "jit"]

DIGITS = 16
config: Any = numba_config  # its settings come from the environment, unseen by type checkers


@functools.cache
def folder_stamp() -> str:
    """A hash over names and contents of all Python files of this folder and those below it."""
    folder, digest = Path(__file__).parent, hashlib.sha256(numba.__version__.encode())
    for path in sorted(folder.rglob("*.py")):
        text = path.read_bytes()
        digest.update(f"{path.relative_to(folder)} {len(text)}\n".encode() + text)
    return digest.hexdigest()[:DIGITS]


class StampedFiles:
    """A file for each compiled overload of one function; written whole or not at all."""

    def __init__(self, folder: str, name: str, stamp: str) -> None:
        self.folder, self.name, self.stamp = Path(folder), name, stamp

    def path(self, key: object) -> Path:
        """Where the overload with that key lies. numba's keys are nested tuples of named types."""
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:DIGITS]
        return self.folder / f"{self.name}.{self.stamp}.{digest}.nbc"

    def load(self, key: object) -> Any:
        """What was saved under the key, or None; a torn or unreadable file counts as none."""
        try:
            return pickle.loads(self.path(key).read_bytes())  # noqa: S301 - numba's own files
        except Exception:  # noqa: BLE001 - unpickling a torn file can raise nearly anything
            return None

    def save(self, key: object, data: object) -> None:
        """Save where that is possible (a full disk costs compiling again); drop older stamps."""
        path = self.path(key)
        partial = path.with_name(f"{path.name}.{uuid.uuid4().hex[:DIGITS]}")
        try:
            partial.write_bytes(dumps(data))
            partial.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                partial.unlink()
        self.flush(keep=self.stamp)

    def flush(self, keep: str | None = None) -> None:
        """Remove this function's files, but for those with the stamp `keep`."""
        for path in self.folder.glob(f"{self.name}.*.nbc"):
            if keep is None or not path.name.startswith(f"{self.name}.{keep}."):
                with contextlib.suppress(OSError):
                    path.unlink()


class FolderCache(FunctionCache):  # type: ignore[misc] # numba is untyped here
    """numba's cache of one function, in stamped files."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        name = f"{function.__module__}.{self._impl.filename_base}"
        self._cache_file: Any = StampedFiles(self._cache_path, name, folder_stamp())


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`numba.njit` with this room's cache, and with none where no folder can be written."""
    if function is None:
        return functools.partial(jit, **options)
    dispatcher = njit(**options)(function)
    with contextlib.suppress(RuntimeError, OSError):  # numba's "no locator available"
        dispatcher._cache = FolderCache(function)  # noqa: SLF001 - numba has no public way to set it
    return dispatcher


def entry_point(dispatcher: Any, *argument_types: Any) -> Callable[..., Any]:
    """The compiled function for these types, from the cache or compiled now.

    It skips numba's dispatch on types (about 0.1 µs an argument). It checks array arguments
    for their item size and number of dimensions, and trusts the caller for the rest.

    Raises:
        ConfigError: NUMBA_DISABLE_JIT is set, and the micro-kernel exists as machine code only.
    """
    if config.DISABLE_JIT:
        raise ConfigError("NUMBA_DISABLE_JIT is set, and opbench's kernels need the compiler")
    function: Callable[..., Any] = dispatcher.compile(argument_types)
    return function
