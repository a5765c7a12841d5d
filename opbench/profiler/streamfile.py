"""A trace file that grows and can be read at every moment.

It holds a list, an event a line. Its last lines are a tail: what is true only for now, such as the
spans that are open. Each `append` overwrites the tail and the closing bracket with new events, a
new tail and a new bracket, in one positioned write, so that between two of them the file is strict
JSON. A kill in the middle of one tears the last lines; `load` reads the others.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from opbench.profiler.chrome import temporary

__all__ = ["StreamFile", "being_written"]

END = b"\n]\n"
SEPARATOR = b",\n"
COPIED = 1 << 20


class StreamFile:
    """Owned by one thread at a time.

    Attributes:
        path: of the file; not always the one asked for, see `open_at`.
        detail: why `path` is another one, or empty.
    """

    def __init__(self, handle: int, path: str, detail: str = "") -> None:
        self.path = path
        self.detail = detail
        self._handle = handle
        self._at = 0  # where the next events go: after the last one, before the tail
        self._rest = b""  # what stands in the file from there on

    @classmethod
    def open_at(cls, path: str, first: Iterable[str]) -> StreamFile:
        """A new file in the place of any that stood there; it takes the name when it is whole.

        Where another process is writing a file of that name, ours gets its process number into the
        name, and both stay whole.

        Args:
            path: where it goes.
            first: the lines that it begins with, at least one.

        Raises:
            OSError: no file can be made there.
        """
        target = os.path.realpath(path)
        detail = ""
        if being_written(target):
            detail = f"another process is writing {target}"
            named = Path(target)
            target = str(named.with_name(f"{named.stem}-pid{os.getpid()}{named.suffix}"))
        handle, beside = temporary(target, os.O_RDWR)
        stream = cls(handle, target, detail)
        try:
            data = b"[\n" + SEPARATOR.join(line.encode("ascii") for line in first)
            stream._put(0, data + END)
            stream._at, stream._rest = len(data), END
            _lock(handle)
            Path(beside).replace(target)
        except BaseException:
            stream.close()
            Path(beside).unlink(missing_ok=True)
            raise
        return stream

    def append(self, lines: Iterable[str], tail: Iterable[str]) -> None:
        """Put new events in, and a new tail behind them.

        Raises:
            OSError: the disk is full, say; the file is then what it was before.
        """
        added = b"".join(SEPARATOR + line.encode("ascii") for line in lines)
        rest = b"".join(SEPARATOR + line.encode("ascii") for line in tail) + END
        # Never shorter than what it overwrites, or the old end would stand behind the new one.
        missing = len(self._rest) - len(added) - len(rest)
        if missing > 0:
            rest = rest[: -len(END)] + b" " * missing + END
        try:
            self._put(self._at, added + rest)
        except OSError:
            self._restore()
            raise
        self._at += len(added)
        self._rest = rest

    @property
    def displaced(self) -> bool:
        """Whether the name leads to another file by now, or to none."""
        try:
            there, ours = Path(self.path).stat(), os.fstat(self._handle)
        except OSError:
            return True
        return (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino)

    def lines(self) -> Iterator[bytes]:
        """The events so far, without the tail, in pieces of a bounded size that end anywhere."""
        at = len(b"[\n")
        while at < self._at:
            os.lseek(self._handle, at, os.SEEK_SET)
            piece = os.read(self._handle, min(COPIED, self._at - at))
            if not piece:
                return
            yield piece
            at += len(piece)

    def close(self) -> None:
        """Let go of the file, which stays as it is; harmless the second time."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def _put(self, at: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            os.lseek(self._handle, at, os.SEEK_SET)
            count = os.write(self._handle, view)
            view = view[count:]
            at += count

    def _restore(self) -> None:
        # Where there is no room even for what stood there, the last lines are torn.
        with contextlib.suppress(OSError):
            os.ftruncate(self._handle, self._at + len(self._rest))
            self._put(self._at, self._rest)


def being_written(path: str | os.PathLike[str]) -> bool:
    """Whether a running process is writing this file as a stream; False where nobody can tell."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not _lock(handle)
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    """Take the lock that a stream holds while it lives; whether it was free."""
    try:
        import fcntl
    except ImportError:  # Windows
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
