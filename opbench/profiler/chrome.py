"""The Trace Event Format: a finished trace as JSON text, in a file, and back.

The rules that the text follows are told in docs/profiler.md. Both viewers read what is written
here alike; where they disagree, the writer avoids the matter.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opbench.errors import TraceError, TraceWriteError
from opbench.profiler.events import Trace
from opbench.profiler.lines import EventLines, head_lines, process_line, thread_line
from opbench.profiler.nesting import Placed, separate

__all__ = ["decode", "encode", "read", "read_bytes", "reason", "temporary", "write", "write_text"]

GZIP_MAGIC = b"\x1f\x8b"
BATCH = 1024
TEMPORARY_NAMES = itertools.count()


def encode(trace: Trace) -> str:
    """The trace as JSON text: one object, ASCII only, one event a line."""
    return "".join(_lines(trace))


def write(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write the trace, all of it or nothing.

    It goes to a temporary file in the same folder, which then takes the name. A symbolic link is
    followed. On a failure, a file that stood there is unchanged and no temporary file is left.

    Raises:
        TraceWriteError: the folder is missing or closed to us, the disk is full, or the path is
            something other than a regular file.
    """
    write_text(_lines(trace), path)


def write_text(pieces: Iterator[str], path: str | os.PathLike[str]) -> None:
    """`write` for the pieces of a trace's text."""
    try:
        target = _regular(path)
        handle, beside = temporary(target)
        try:
            _keep_permissions(handle, target)
            _store(handle, pieces)
            Path(beside).replace(target)
        except BaseException:
            Path(beside).unlink(missing_ok=True)
            raise
    except (TraceError, TraceWriteError):
        raise
    except (OSError, ValueError) as error:
        raise TraceWriteError(
            f"cannot write the trace to {os.fspath(path)}: {reason(error)}; what stood there "
            "before is unchanged; make room or choose a folder that exists and can be written"
        ) from error


def _regular(path: str | os.PathLike[str]) -> str:
    """The real path of the file to write; a device or a folder is never replaced."""
    target = os.path.realpath(os.fspath(path))
    try:
        kind = Path(target).stat().st_mode
    except FileNotFoundError:
        return target
    if not stat.S_ISREG(kind):
        raise TraceWriteError(
            f"cannot write the trace to {os.fspath(path)}: it is no regular file; "
            "choose another name"
        )
    return target


def _keep_permissions(handle: int, target: str) -> None:
    """Give the new file the permissions of the one that it replaces, if there is one."""
    # Not every file system has permissions, and none is worth a trace.
    with contextlib.suppress(OSError, AttributeError):
        os.fchmod(handle, stat.S_IMODE(Path(target).stat().st_mode))


def reason(error: Exception) -> str:
    """An error's own words without its number and path, which our sentence has already."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def temporary(target: str, access: int = os.O_WRONLY) -> tuple[int, str]:
    """A new, empty file beside the target, open for writing: its handle and its path.

    `access` may ask for reading too.

    Raises:
        OSError: the folder is missing or closed to us.
    """
    folder, name = os.path.split(target)
    while True:
        # 40 characters keep the name under the usual 255 bytes in any script.
        unique = f".{name[:40]}.{os.getpid()}-{next(TEMPORARY_NAMES)}.tmp"
        candidate = str(Path(folder or os.curdir) / unique)
        try:
            return os.open(candidate, os.O_CREAT | os.O_EXCL | access, 0o666), candidate
        except FileExistsError:  # left by a process that was killed and had our number
            continue


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A trace file as a document: the object it holds, or ``{"traceEvents": [...]}`` for a list.

    Gzipped files are read too.

    Raises:
        TraceError: the file cannot be read, is no strict JSON, or is no trace.
    """
    text = decode(read_bytes(path), path)
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise TraceError(
            f"{os.fspath(path)} is no strict JSON: {error}; "
            "opbench trace check names every rule that it breaks"
        ) from error
    if isinstance(document, list):
        document = {"traceEvents": document}
    if not isinstance(document, dict) or not isinstance(document.get("traceEvents"), list):
        raise TraceError(f"{os.fspath(path)} is JSON, but no trace: it has no list 'traceEvents'")
    return document


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The file's content, unpacked.

    Raises:
        TraceError: it cannot be read.
    """
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise TraceError(f"cannot read the trace {os.fspath(path)}: {reason(error)}") from error
    if not data.startswith(GZIP_MAGIC):
        return data
    import gzip
    import zlib

    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(
            f"cannot unpack the trace {os.fspath(path)}, which is cut off or damaged: {error}; "
            "record or copy it again"
        ) from error


def decode(data: bytes, path: str | os.PathLike[str]) -> str:
    """The text of a trace file.

    Raises:
        TraceError: it is no UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise TraceError(f"{os.fspath(path)} is no text in UTF-8: {error}") from error


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON number")


def _store(handle: int, pieces: Iterator[str]) -> None:
    try:
        for piece in pieces:
            data = memoryview(piece.encode("ascii"))
            while data:
                data = data[os.write(handle, data) :]
    finally:
        os.close(handle)


def _lines(trace: Trace) -> Iterator[str]:
    """In batches, so that a trace of a million events is never one piece of text."""
    placed = separate(trace)
    origin = min(
        [start for start, _ in trace.windows] + [event.start_ns for event in trace.events]
        or [trace.anchor.monotonic_ns]
    )
    yield from head_lines(trace, origin, placed.left_out)
    separator = ""
    for lines in _batches(trace, placed, origin):
        yield separator + ",\n".join(lines)
        separator = ",\n"
    yield "\n]}\n"


def _batches(trace: Trace, placed: Placed, origin: int) -> Iterator[list[str]]:
    lines = [process_line(pid, name) for pid, name in sorted(trace.process_names.items())]
    lines += [thread_line(pid, tid, name) for (pid, tid), name in sorted(placed.names.items())]
    texts = EventLines(origin)
    for event in placed.events:
        texts.add(event, lines)
        if len(lines) >= BATCH:
            yield lines
            lines = []
    if lines:
        yield lines
