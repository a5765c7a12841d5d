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
from opbench.profiler.events import Trace, TraceEvent
from opbench.profiler.modes import mode_names
from opbench.profiler.nesting import Placed, separate
from opbench.profiler.plain import json_text, text_of
from opbench.version import __version__

__all__ = ["decode", "encode", "read", "read_bytes", "reason", "temporary", "write"]

FORMAT = "opbench trace 1"
GZIP_MAGIC = b"\x1f\x8b"
BATCH = 4096
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
    try:
        target = _regular(path)
        handle, beside = temporary(target)
        try:
            _keep_permissions(handle, target)
            _store(handle, _lines(trace))
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


def temporary(target: str) -> tuple[int, str]:
    """A new, empty file beside the target, open for writing: its handle and its path.

    Raises:
        OSError: the folder is missing or closed to us.
    """
    folder, name = os.path.split(target)
    while True:
        # 40 characters keep the name under the usual 255 bytes in any script.
        unique = f".{name[:40]}.{os.getpid()}-{next(TEMPORARY_NAMES)}.tmp"
        candidate = str(Path(folder or os.curdir) / unique)
        try:
            return os.open(candidate, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666), candidate
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


def _store(handle: int, lines: Iterator[str]) -> None:
    """Write in batches, so that a trace of a million events is never one piece of text."""
    try:
        while batch := "".join(itertools.islice(lines, BATCH)):
            data = memoryview(batch.encode("ascii"))
            while data:
                data = data[os.write(handle, data) :]
    finally:
        os.close(handle)


def _lines(trace: Trace) -> Iterator[str]:
    placed = separate(trace)
    origin = min(
        [start for start, _ in trace.windows] + [event.start_ns for event in trace.events]
        or [trace.anchor.monotonic_ns]
    )
    yield '{"displayTimeUnit":"ns",\n'
    yield f'"baseTimeNanoseconds":{trace.anchor.wall_at(origin)},\n'
    yield f'"otherData":{json_text(_other_data(trace, origin, placed.left_out))},\n'
    yield '"traceEvents":['
    separator = "\n"
    for line in _event_lines(trace, placed, origin):
        yield f"{separator}{line}"
        separator = ",\n"
    yield "\n]}\n"


def _other_data(trace: Trace, origin: int, left_out: int) -> dict[str, Any]:
    """What no event says; times in ns since the origin, which is where `ts` counts from."""
    return {
        "format": FORMAT,
        "writer": f"opbench {__version__}",
        "modes": mode_names(trace.modes),
        "dropped": trace.dropped + left_out,
        "origin": {"monotonic_ns": origin, "wall_ns": trace.anchor.wall_at(origin)},
        "windows_ns": [[start - origin, end - origin] for start, end in trace.windows],
        "pauses_ns": [[start - origin, end - origin] for start, end in trace.pauses],
        "metadata": dict(trace.metadata),
    }


def _event_lines(trace: Trace, placed: Placed, origin: int) -> Iterator[str]:
    # Perfetto counts an empty name of a process or a thread as an error.
    for pid, name in sorted(trace.process_names.items()):
        label = json_text({"name": text_of(name) or f"process {pid}"})
        yield f'{{"ph":"M","name":"process_name","pid":{pid},"args":{label}}}'
    for (pid, tid), name in sorted(placed.names.items()):
        label = json_text({"name": text_of(name) or f"thread {tid}"})
        yield f'{{"ph":"M","name":"thread_name","pid":{pid},"tid":{tid},"args":{label}}}'
    # Names and categories are few: their text is made once.
    texts: dict[str, str] = {}
    for event in placed.events:
        name, category = text_of(event.name), text_of(event.category)
        for text in (name, category):
            if text not in texts:
                texts[text] = json_text(text)
        yield _event_line(event, origin, texts[name], texts[category])


def _event_line(event: TraceEvent, origin: int, name: str, category: str) -> str:
    head = (
        f'{{"ph":"{event.phase}","name":{name},"cat":{category},'
        f'"pid":{event.pid},"ts":{_microseconds(event.start_ns - origin)}'
    )
    args = f'"args":{json_text(event.args)}}}'
    if event.phase == "X":
        return f'{head},"tid":{event.tid},"dur":{_microseconds(event.duration_ns)},{args}'
    if event.phase == "C":  # belongs to the process: viewers ignore a thread
        return f"{head},{args}"
    return f'{head},"tid":{event.tid},"s":"t",{args}'


def _microseconds(ns: int) -> str:
    """Nanoseconds as decimal text: a float would lose the last digits."""
    return f"{ns // 1000}.{ns % 1000:03d}"
