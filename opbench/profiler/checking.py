"""Does a trace open alike in both viewers? Each problem names the rule that is broken.

The rules are those of docs/profiler.md. A verdict is what Perfetto and chrome://tracing do with the
file: whatever one of them rejects, drops, moves or draws differently is a problem.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from opbench.errors import TraceError
from opbench.profiler.chrome import decode, read_bytes
from opbench.profiler.foreign import shown
from opbench.profiler.lines import FACTS, OWN
from opbench.profiler.rules import EventRules, Problem
from opbench.profiler.scan import IrregularTextError, Scan

__all__ = ["Checked", "Problem", "check", "verdict"]

BOM = "\ufeff"
DECODER = json.JSONDecoder(strict=False)
NOT_PARSED = object()  # None is what a file with `null` holds
ONE_REJECTS = "chrome://tracing rejects the whole file"


class Checked(NamedTuple):
    """The verdict on a trace.

    Attributes:
        problems: in the order of the file; empty for a good one.
        events: how many there are, names of processes and threads not counted. A good trace may
            hold none.
        growing: whether it is opbench's continuous dump, which nobody has finished (yet). It is a
            list, as only a list can be torn and still open, and a list has no `displayTimeUnit`:
            that is no problem of it, though until it is finished chrome://tracing nests
            neighbours less than 1 µs apart.
    """

    problems: list[Problem]
    events: int
    growing: bool = False


def check(trace: Mapping[str, Any] | list[Any] | str | os.PathLike[str]) -> list[Problem]:
    """All problems of a trace, in the order of the file; an empty list for a good one.

    Args:
        trace: a document as `read` returns it, the bare list of events, or the path of a file. Of a
            file the text is judged too: encoding, escapes, numbers that are none, a torn end.

    Raises:
        TraceError: the file cannot be read at all.
    """
    return verdict(trace).problems


def verdict(trace: Mapping[str, Any] | list[Any] | str | os.PathLike[str]) -> Checked:
    """`check`, with the number of events.

    Raises:
        TraceError: the file cannot be read at all.
    """
    if isinstance(trace, (str, os.PathLike)):
        return _file(Path(trace))
    return _document(trace)


def _file(path: Path) -> Checked:
    data = read_bytes(path)
    try:
        text = decode(data, path)
    except TraceError as error:
        return Checked([Problem("json", "file", str(error))], 0)
    del data
    found: list[Problem] = []
    if text.startswith(BOM):
        found.append(
            Problem("bom", "file", "starts with a byte-order mark, which Perfetto rejects")
        )
        text = text[1:]
    if not text.isascii():
        found.append(Problem("ascii", "file", "holds characters beyond ASCII that are not escaped"))
    regular = _regular(text)
    if regular is not None:
        return regular._replace(problems=found + regular.problems)
    constants: list[str] = []
    document, problems = _parse(text, constants)
    judged = Checked([], 0) if document is NOT_PARSED else _document(document)
    if constants and not any(problem.rule == "non-finite" for problem in judged.problems):
        words = ", ".join(sorted(set(constants)))
        problems.append(Problem("non-finite", "file", f"holds {words}, which is no JSON"))
    return judged._replace(problems=found + problems + judged.problems)


def _regular(text: str) -> Checked | None:
    """The verdict on strict JSON, an event at a time; None where the text is something else."""
    scan = Scan(text)
    events = scan.events()
    try:
        first = list(islice(events, 1))
        rules = EventRules(chain(first, events))
        problems = list(rules.problems())
    except IrregularTextError:
        return None
    growing = not scan.is_object and _ours(first)
    form = _form(
        scan.top.get("displayTimeUnit"),
        empty_list=not (rules.total or scan.is_object),
        growing=growing,
    )
    return Checked(form + problems, rules.seen, growing)


def _parse(text: str, constants: list[str]) -> tuple[Any, list[Problem]]:
    """The document, or NOT_PARSED, and what is wrong with the text as JSON."""

    def constant(word: str) -> float:
        constants.append(word)
        return math.nan

    try:
        return json.loads(text, parse_constant=constant), []
    except (ValueError, RecursionError) as error:
        strict_error = error
    constants.clear()
    try:
        document = json.loads(text, strict=False, parse_constant=constant)
    except (ValueError, RecursionError):
        pass
    else:
        message = (
            f"a control character is not escaped ({strict_error}); chrome://tracing rejects it"
        )
        return document, [Problem("control", "file", message)]
    constants.clear()
    if text.lstrip().startswith("["):
        return _open_list(text)
    return NOT_PARSED, [Problem("json", "file", _no_json(text, strict_error))]


def _no_json(text: str, error: Exception) -> str:
    """What is wrong with a text that the decoder refused, and which viewer minds."""
    at = error.pos if isinstance(error, json.JSONDecodeError) else 0
    # Which of the two is named depends on Python's version.
    comma = at if text[at : at + 1] == "," else len(text[:at].rstrip()) - 1
    if comma > 0 and text[comma] == "," and text[comma + 1 :].lstrip()[:1] in ("]", "}"):
        return f"has a comma before a closing bracket, at character {comma}; {ONE_REJECTS}"
    if str(error).startswith("Extra data"):
        return f"has text after its end, at character {at}; {ONE_REJECTS}"
    return f"is no JSON: {error}; both viewers reject it"


def _open_list(text: str) -> tuple[list[Any], list[Problem]]:
    """The whole events of a list that breaks off, as a recording does that was killed."""
    events: list[Any] = []
    at = text.index("[") + 1
    while True:
        at = _skip(text, at)
        if at == len(text):
            message = "the list of events is not closed; both viewers accept that"
            return events, [Problem("unfinished", "file", message)]
        if text[at] == "]":
            if text[:at].rstrip().endswith(","):
                message = f"has a comma before its closing bracket, at character {at}"
            elif text[at + 1 :].strip():
                message = f"has text after its closing bracket, at character {at + 1}"
            else:
                message = "has events that are not separated by one comma"
            return events, [Problem("json", "file", f"{message}; {ONE_REJECTS}")]
        try:
            event, at = DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            message = f"breaks off inside event {len(events)}, at character {at}; {ONE_REJECTS}"
            return events, [Problem("torn", "file", message)]
        events.append(event)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in ", \t\r\n":
        at += 1
    return at


def _document(document: Any) -> Checked:
    if isinstance(document, list):
        events, unit = document, None
    elif isinstance(document, Mapping) and isinstance(document.get("traceEvents"), list):
        events, unit = document["traceEvents"], document.get("displayTimeUnit")
    else:
        message = "is neither an object with a list 'traceEvents' nor a list"
        return Checked([Problem("form", "file", message)], 0)
    rules = EventRules(events)
    problems = list(rules.problems())
    is_list = isinstance(document, list)
    growing = is_list and _ours(events)
    form = _form(unit, empty_list=is_list and not events, growing=growing)
    return Checked(form + problems, rules.seen, growing)


def _ours(events: list[Any]) -> bool:
    """Whether a list begins as a continuous dump does."""
    first = events[0] if events else None
    return isinstance(first, Mapping) and (first.get("name"), first.get("cat")) == (FACTS, OWN)


def _form(unit: Any, *, empty_list: bool, growing: bool) -> list[Problem]:
    """What is wrong around the events."""
    found = []
    if empty_list:
        found.append(Problem("empty", "file", "an empty list, which Perfetto takes for no trace"))
    if unit != "ns" and not growing:
        message = (
            f"displayTimeUnit is {'absent' if unit is None else shown(unit)} and not 'ns': "
            "chrome://tracing then nests neighbours less than 1 µs apart"
        )
        found.append(Problem("unit", "file", message))
    return found
