"""Statistics as text: a table to read, or JSON in full precision to compute with."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any

from opbench.errors import ConfigError, nearest
from opbench.profiler.plain import plain_text
from opbench.profiler.rows import AggregateStat
from opbench.profiler.tally import Tally
from opbench.units import Scale, format_seconds, scale_seconds, significant

__all__ = ["FORMATS", "render"]

FORMATS = ("table", "json")
HALF_PAIR = re.compile("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]")
DASH = "–"
# A name is cut in the middle beyond this, so that one long name does not push the figures away.
NAME_CELLS = 48
NANOSECOND = 1e-9
BYTES = (Scale("TB", 1e12), Scale("GB", 1e9), Scale("MB", 1e6), Scale("kB", 1e3), Scale("B", 1.0))
BARE = Scale("", 1.0)
MS = 1e6  # nanoseconds
KB = 1e3  # bytes; MXNet's units, which the document states

FIGURES = ("mean", "median", "p90", "p99", "min", "max", "std")
TIMES = ("total", "self_total", *FIGURES)


def render(
    rows: Sequence[AggregateStat],
    tally: Tally,
    form: str,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """The rows in their order, as a ``table`` or as ``json``.

    Args:
        rows: what is shown.
        tally: what they were made of, for the words around them.
        form: one of the two.
        more: further keys of the JSON document.

    Raises:
        ConfigError: another form.
    """
    if form not in FORMATS:
        raise ConfigError(f"unknown format {form!r}{nearest(str(form), FORMATS)}")
    if form == "table":
        return _table(rows, tally)
    return json.dumps({**_document(rows, tally), **more}, allow_nan=False)


def _table(rows: Sequence[AggregateStat], tally: Tally) -> str:
    times = [row for row in rows if row.is_time]
    counters = [row for row in rows if not row.is_time]
    blocks = [
        *(_block(category, found, _time_cells) for category, found in _by_category(times)),
        *(
            _block(f"{category} (counters, weighted by time)", found, _counter_cells)
            for category, found in _by_category(counters)
        ),
    ]
    return "\n\n".join([*blocks, "\n".join(_footer(tally))]) + "\n"


def _by_category(
    rows: Iterable[AggregateStat],
) -> Iterable[tuple[str, list[AggregateStat]]]:
    """The categories in alphabetical order, the rows of each in theirs."""
    ordered = sorted(rows, key=lambda row: row.category)
    return [(category, list(found)) for category, found in groupby(ordered, lambda r: r.category)]


Cells = Callable[[AggregateStat], "dict[str, str]"]


def _block(title: str, rows: Sequence[AggregateStat], cells: Cells) -> str:
    lines = [cells(row) for row in rows]
    shown = [
        column
        for column in lines[0]
        if column not in ("shape", "thread") or any(line[column] for line in lines)
    ]
    widths = {c: max(len(c), *(len(line[c]) for line in lines)) for c in shown}
    texts = [{column: column for column in shown}, *lines]
    body = ["  ".join(_padded(line[c], widths[c], c) for c in shown).rstrip() for line in texts]
    return "\n".join([_cut(title), *body])


def _padded(text: str, width: int, column: str) -> str:
    return text.ljust(width) if column in ("name", "shape", "thread") else text.rjust(width)


def _labels(row: AggregateStat) -> dict[str, str]:
    return {"name": _cut(row.name), "shape": _cut(row.shape), "thread": _cut(row.thread)}


def _time_cells(row: AggregateStat) -> dict[str, str]:
    unit = scale_seconds(row.median * NANOSECOND)
    figures = {
        column.removesuffix("_total"): significant(getattr(row, column) * NANOSECOND / unit.size, 4)
        for column in TIMES
    }
    share = DASH if row.share is None else f"{row.share * 100:.1f} %"
    rate = DASH if not (row.flop and row.total) else significant(row.flop / row.total, 4)
    return {
        **_labels(row),
        "count": str(row.count),
        "unit": unit.suffix,
        **figures,
        "share": share,
        "GFLOP/s": rate,
    }


def _counter_cells(row: AggregateStat) -> dict[str, str]:
    unit = BARE
    if row.unit == "bytes":
        largest = max(abs(row.max), abs(row.min))
        unit = next((scale for scale in BYTES if largest >= scale.size), BYTES[-1])
    figures = {column: _plain(getattr(row, column) / unit.size) for column in FIGURES}
    return {
        **_labels(row),
        "count": str(row.count),
        "unit": unit.suffix or DASH,
        **figures,
    }


def _plain(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else significant(value, 4)


def _cut(name: str) -> str:
    """A name on one line of bounded length."""
    if len(name) > 5 * NAME_CELLS:  # of ten megabytes only the two ends are looked at
        name = name[: 4 * NAME_CELLS] + name[-NAME_CELLS:]
    text = "".join(c if c.isprintable() else "·" for c in plain_text(name))
    if len(text) <= NAME_CELLS:
        return text
    half = (NAME_CELLS - 1) // 2
    return f"{text[: NAME_CELLS - 1 - half]}…{text[-half:]}"


def _footer(tally: Tally) -> list[str]:
    recorded = format_seconds(tally.recorded_ns * NANOSECOND)
    windows = f"{tally.windows} window{'s' * (tally.windows != 1)}"
    lines = [f"{recorded} recorded in {windows}, {tally.events} events, {tally.dropped} dropped"]
    if tally.spilled:
        lines.append(
            f"{tally.spilled} events are in the file only and in no figure above; "
            "opbench trace summary reads them"
        )
    paid = tally.overhead()
    if paid is not None:
        lines += [paid.sentence(), *filter(None, [paid.warning])]
    return lines


def _document(rows: Sequence[AggregateStat], tally: Tally) -> dict[str, Any]:
    """MXNet's document (Time, Memory, Unit), with more figures and all their digits."""
    return {
        "Time": _section([row for row in rows if row.is_time], MS),
        "Memory": _section([r for r in rows if not r.is_time and r.unit == "bytes"], KB),
        "Counter": _section([r for r in rows if not r.is_time and r.unit != "bytes"], 1),
        "Unit": {"Time": "ms", "Memory": "kB", "Counter": ""},
        "Windows": tally.windows,
        "Recorded": tally.recorded_ns / MS,
        "Events": tally.events,
        "Dropped": tally.dropped,
        "Spilled": tally.spilled,
    }


def _section(rows: Iterable[AggregateStat], size: float) -> dict[str, dict[str, Any]]:
    """Category to name to figures; the order of the names is that of the rows."""
    section: dict[str, dict[str, Any]] = {}
    categories: dict[str, str] = {}
    for row in rows:
        if row.category not in categories:
            categories[row.category] = _free_key(row.category, section)
        names = section.setdefault(categories[row.category], {})
        parts = (row.name, row.shape, row.thread)
        name = _free_key(" · ".join(part for part in parts if part), names)
        names[name] = _figures(row, size)
    return section


def _free_key(text: str, taken: Mapping[str, Any]) -> str:
    """The text as a key that every reader of JSON takes, and that no other row has.

    Half a surrogate pair is written out in hexadecimal: with U+FFFD in its place, as where text is
    only looked at, two names would be one. What is alike even so is numbered.
    """
    key = plain_text(HALF_PAIR.sub(lambda match: f"\\u{ord(match[0]):04x}", text))
    number, free = 1, key
    while free in taken:
        number += 1
        free = f"{key} ({number})"
    return free


def _figures(row: AggregateStat, size: float) -> dict[str, Any]:
    figures: dict[str, Any] = {"Count": row.count}
    if row.total is not None:
        figures["Total"] = row.total / size
        figures["Self"] = (row.self_total or 0) / size
        figures["Share"] = row.share
        figures["Flop"] = row.flop
        figures["Bytes"] = row.bytes
    for label, field in (
        ("Min", "min"),
        ("Max", "max"),
        ("Avg", "mean"),
        ("Median", "median"),
        ("P90", "p90"),
        ("P99", "p99"),
        ("Std", "std"),
    ):
        figures[label] = getattr(row, field) / size
    return figures
