"""Does a trace open alike in both viewers? Each problem names the rule that is broken.

The rules are those of docs/profiler.md. A verdict is what Perfetto and chrome://tracing do with the
file: whatever one of them rejects, drops, moves or draws differently is a problem.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from opbench.errors import TraceError
from opbench.profiler.chrome import decode, read_bytes
from opbench.profiler.rules import EventRules, Finding, shown

__all__ = ["Problem", "check"]

BOM = "\ufeff"
DECODER = json.JSONDecoder(strict=False)


class Problem(NamedTuple):
    """One rule broken in one place.

    Attributes:
        rule: its short name.
        where: ``file``, or ``event 12`` counted from 0.
        message: what is wrong there and what a viewer makes of it.
    """

    rule: str
    where: str
    message: str


def check(trace: Mapping[str, Any] | list[Any] | str | os.PathLike[str]) -> list[Problem]:
    """All problems of a trace, in the order of the file; an empty list for a good one.

    Args:
        trace: a document as `read` returns it, the bare list of events, or the path of a file. Of a
            file the text is judged too: encoding, escapes, numbers that are none, a torn end.

    Raises:
        TraceError: the file cannot be read at all.
    """
    if not isinstance(trace, (str, os.PathLike)):
        return [Problem(*finding) for finding in _document(trace)]
    return [Problem(*finding) for finding in _file(Path(trace))]


def _file(path: Path) -> Iterator[Finding]:
    data = read_bytes(path)
    try:
        text = decode(data, path)
    except TraceError as error:
        yield Finding("json", "file", str(error))
        return
    if text.startswith(BOM):
        yield Finding("bom", "file", "starts with a byte-order mark, which Perfetto rejects")
        text = text[1:]
    if not text.isascii():
        yield Finding("ascii", "file", "holds characters beyond ASCII that are not escaped")
    constants: list[str] = []
    document, findings = _parse(text, constants)
    yield from findings
    judged = [] if document is None else list(_document(document))
    if constants and not any(finding.rule == "non-finite" for finding in judged):
        words = ", ".join(sorted(set(constants)))
        yield Finding("non-finite", "file", f"holds {words}, which is no JSON")
    yield from judged


def _parse(text: str, constants: list[str]) -> tuple[Any, list[Finding]]:
    """The document, or None, and what is wrong with the text as JSON."""

    def constant(word: str) -> float:
        constants.append(word)
        return math.nan

    try:
        return json.loads(text, parse_constant=constant), []
    except (ValueError, RecursionError) as error:
        strict_error = str(error)
    constants.clear()
    try:
        document = json.loads(text, strict=False, parse_constant=constant)
    except (ValueError, RecursionError):
        pass
    else:
        message = (
            f"a control character is not escaped ({strict_error}); chrome://tracing rejects it"
        )
        return document, [Finding("control", "file", message)]
    constants.clear()
    if text.lstrip().startswith("["):
        return _open_list(text)
    return None, [Finding("json", "file", f"is no JSON: {strict_error}; both viewers reject it")]


def _open_list(text: str) -> tuple[list[Any], list[Finding]]:
    """The whole events of a list that breaks off, as a recording does that was killed."""
    events: list[Any] = []
    at = text.index("[") + 1
    while True:
        at = _skip(text, at)
        if at == len(text):
            message = "the list of events is not closed; both viewers accept that"
            return events, [Finding("unfinished", "file", message)]
        try:
            event, at = DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            message = (
                f"breaks off inside event {len(events)}, at character {at}; "
                "chrome://tracing rejects the whole file"
            )
            return events, [Finding("torn", "file", message)]
        events.append(event)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in ", \t\r\n":
        at += 1
    return at


def _document(document: Any) -> Iterator[Finding]:
    if isinstance(document, list):
        events, unit = document, None
        if not events:
            yield Finding("empty", "file", "an empty list, which Perfetto takes for no trace")
    elif isinstance(document, Mapping) and isinstance(document.get("traceEvents"), list):
        events, unit = document["traceEvents"], document.get("displayTimeUnit")
    else:
        yield Finding("form", "file", "is neither an object with a list 'traceEvents' nor a list")
        return
    if unit != "ns":
        yield Finding(
            "unit",
            "file",
            f"displayTimeUnit is {'absent' if unit is None else shown(unit)} and not 'ns': "
            "chrome://tracing then nests neighbours less than 1 µs apart",
        )
    yield from EventRules(events).findings()
