"""Verdicts as text for a terminal: what changed and what is open; the rest is counted."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from opbench.records import Comparison, ComparisonSet, Verdict
from opbench.report import wording
from opbench.report.table import Style, cells, middle_cut

__all__ = ["comparison_text"]

GAP = "  "
INDENT = 11
NARROWEST = 12
MOST_OPEN = 20
MOST_NAMED = 3
PICTURE_FROM = 110
PICTURE = 21
_COLOURS = {
    Verdict.REGRESSED: "31",
    Verdict.IMPROVED: "32",
    Verdict.INCONCLUSIVE: "33",
}


@dataclass(frozen=True, slots=True)
class _Column:
    """One column: heading, texts, and how it behaves where the terminal is narrow."""

    key: str
    heading: str
    texts: Sequence[str]
    left: bool = False

    @property
    def width(self) -> int:
        return max(map(cells, (self.heading, *self.texts)))


def comparison_text(
    found: ComparisonSet,
    style: Style,
    *,
    verbose: bool = False,
    strict: bool = False,
    only: Collection[Verdict] = (),
) -> list[str]:
    """Lines for a terminal.

    Args:
        found: the verdicts.
        style: how wide the place is, and what it takes.
        verbose: list what is unchanged as well, with every warning.
        strict: whether what is undecided fails.
        only: list these verdicts and no others, all of them; what is counted stays.
    """
    shown = wording.names(found.comparisons)
    rows = _rows(found, only, verbose=verbose)
    lines = _head(found, style)
    if verbose and found.differences:
        lines += [f"{name}: was {before}, is {after}" for name, before, after in found.differences]
    lines.append("")
    if rows:
        lines += _table(rows, shown, found, style, verbose=verbose)
        hidden = found.count(Verdict.INCONCLUSIVE) - sum(
            one.verdict is Verdict.INCONCLUSIVE for one in rows
        )
        lines += [f"and {hidden} more not decided; -v lists all"] if hidden and not only else []
    if not any(one.verdict in _COLOURS for one in rows):
        lines += [wording.headline(found)]
    lines += _named(found, shown, style) if not verbose else []
    lines += _unfinished(found, shown, style, verbose=verbose)
    lines.append("")
    words = wording.counts(found, unicode=style.unicode)
    lines += textwrap.wrap("   ".join(words), style.width, break_on_hyphens=False) if words else []
    seen = wording.could_have_seen(found, shown)
    lines += [seen] if seen else []
    lines += _notes(found, style)
    lines.append(wording.exit_words(found, strict=strict))
    # Style translates what is left; the signs of the rows are ASCII already where they must be.
    return [style(line) for line in lines]


def _head(found: ComparisonSet, style: Style) -> list[str]:
    """The title with how it was measured, on one line where that fits."""
    how = found.context[:1]
    one_line = "   ".join((found.title, *how))
    return [one_line] if cells(style(one_line)) <= style.width else [found.title, *how]


def _notes(found: ComparisonSet, style: Style) -> list[str]:
    """What the reader must know; below the answer, which it must not push off the screen."""
    notes = [f"note: {note}" for note in found.context[1:]]
    return [line for note in notes for line in textwrap.wrap(note, style.width)]


def _rows(found: ComparisonSet, only: Collection[Verdict], *, verbose: bool) -> list[Comparison]:
    ordered = wording.in_order(found)
    if only:
        return [one for one in ordered if one.verdict in only]
    if verbose:
        return ordered
    # Where nothing could be judged at all, the headline gives the reason once.
    any_judged, cut = any(one.judged for one in ordered), set(found.unfinished)
    open_ones = [
        one
        for one in ordered
        if one.verdict is Verdict.INCONCLUSIVE and (any_judged or one.id in cut)
    ]
    kept = {id(one) for one in open_ones[:MOST_OPEN]}
    changed = {id(one) for one in ordered if one.verdict in {Verdict.REGRESSED, Verdict.IMPROVED}}
    return [one for one in ordered if id(one) in kept | changed]


def _named(found: ComparisonSet, shown: dict[str, str], style: Style) -> list[str]:
    """Benchmarks of one side only, and those that are not comparable: never silent."""
    lines = []
    for verdict in (Verdict.INCOMPARABLE, Verdict.ADDED, Verdict.REMOVED):
        those = [one for one in wording.in_order(found) if one.verdict is verdict]
        if not those:
            continue
        names = [shown[one.id] for one in those[:MOST_NAMED]]
        more = f" and {len(those) - MOST_NAMED} more" if len(those) > MOST_NAMED else ""
        front = f"{wording.SIGNS[verdict][not style.unicode]} {wording.WORDS[verdict]}"
        room = style.width - INDENT - len(more)
        lines.append(f"{front:<{INDENT}}{middle_cut(', '.join(names), max(room, NARROWEST))}{more}")
    return lines


def _unfinished(
    found: ComparisonSet, shown: dict[str, str], style: Style, *, verbose: bool
) -> list[str]:
    """What more time would decide."""
    told = wording.unfinished(found, shown, len(found.unfinished) if verbose else MOST_OPEN)
    return textwrap.wrap(
        told,
        max(style.width, INDENT + NARROWEST),
        subsequent_indent=GAP,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _table(
    rows: Sequence[Comparison],
    shown: dict[str, str],
    found: ComparisonSet,
    style: Style,
    *,
    verbose: bool,
) -> list[str]:
    columns = _columns(rows, shown, found, style)
    while _least(columns) > style.width and (gone := _droppable(columns)) is not None:
        columns.remove(gone)
    widths = [column.width for column in columns]
    excess = sum(widths) + len(GAP) * (len(columns) - 1) + 1 - style.width
    widths[1] = max(min(NARROWEST, widths[1]), widths[1] - max(0, excess))
    lines = [_line([column.heading for column in columns], widths, columns)]
    for index, one in enumerate(rows):
        line = _line([column.texts[index] for column in columns], widths, columns)
        lines.append(_coloured(line, one, style))
        told = wording.reason(one)
        # Without a decision there is a reason; of what is the same only the curious want one.
        if told and (verbose or one.verdict in _COLOURS):
            lines += _indented("why", told, style)
    return lines


def _columns(
    rows: Sequence[Comparison], shown: dict[str, str], found: ComparisonSet, style: Style
) -> list[_Column]:
    signs = [wording.SIGNS[one.verdict][not style.unicode] for one in rows]
    words = [f"{sign} {wording.WORDS[one.verdict]}" for sign, one in zip(signs, rows, strict=True)]
    both = [tuple(map(style, wording.times(one))) for one in rows]
    wide = style.width >= PICTURE_FROM
    columns = [
        _Column("verdict", "verdict", words, left=True),
        _Column("benchmark", "benchmark", [style(shown[one.id]) for one in rows], left=True),
        _Column("base", found.sides[0], [first for first, _ in both]),
        _Column("head", found.sides[1], [second for _, second in both]),
        _Column("ratio", "ratio", [style(wording.ratio(one)) for one in rows], left=True),
    ]
    if wide:
        spreads = [style(wording.percent(_spread(one))) for one in rows]
        pictures = [style(text) for text in _pictures(rows, signs)]
        columns.insert(4, _Column("spread", "spread", spreads))
        columns.append(_Column("picture", "interval", pictures, left=True))
    else:
        texts = [style(wording.interval(one)) for one in rows]
        columns.append(_Column("interval", "interval", texts, left=True))
    return columns


def _least(columns: Sequence[_Column]) -> int:
    widths = (
        min(NARROWEST, column.width) if column.key == "benchmark" else column.width
        for column in columns
    )
    return sum(widths) + len(GAP) * (len(columns) - 1) + 1


def _droppable(columns: Sequence[_Column]) -> _Column | None:
    """The next column to go: the picture, the spread, the base, and at last the interval."""
    by_key = {column.key: column for column in columns}
    order = ("picture", "spread", "base", "interval", "head")
    return next((by_key[key] for key in order if key in by_key), None)


def _line(texts: Sequence[str], widths: Sequence[int], columns: Sequence[_Column]) -> str:
    parts = []
    for text, width, column in zip(texts, widths, columns, strict=True):
        # The mark of a cut takes one cell in ASCII as well.
        cut = middle_cut(text, width) if column.key == "benchmark" else text
        space = " " * (width - cells(cut))
        parts.append(cut + space if column.left else space + cut)
    # The verdict stands a cell further from the rest, as what explains it is indented.
    first = f"{parts[0]:<{INDENT - len(GAP)}}"
    return GAP.join([first, *parts[1:]]).rstrip()


def _indented(front: str, text: str, style: Style) -> list[str]:
    lead = f"  {front}".ljust(INDENT)
    return textwrap.wrap(
        style(text),
        max(style.width, INDENT + NARROWEST),
        initial_indent=lead,
        subsequent_indent=" " * INDENT,
        break_on_hyphens=False,
    )


def _coloured(line: str, one: Comparison, style: Style) -> str:
    code = _COLOURS.get(one.verdict)
    if not style.colour or code is None:
        return line
    word = wording.WORDS[one.verdict]
    end = line.index(word) + len(word)
    return f"\x1b[{code}m{line[:end]}\x1b[0m{line[end:]}"


def _spread(one: Comparison) -> float | None:
    sides = [side.spread for side in (one.baseline, one.candidate) if side is not None]
    return max(sides, default=None)


def _pictures(rows: Sequence[Comparison], signs: Sequence[str]) -> list[str]:
    """Each interval in 21 cells, all on one logarithmic scale; dotted lines are the floor."""
    ends = [math.log(end) for one in rows for end in (one.low, one.high) if end]
    floors = [math.log1p(one.floor) for one in rows if one.floor is not None]
    ends += [*floors, *(-floor for floor in floors), 0.0]
    low, high = min(ends), max(ends)
    step = (high - low) / (PICTURE - 1) or 1.0

    def cell(value: float) -> int:
        return round((value - low) / step)

    pictures = []
    for one, sign in zip(rows, signs, strict=True):
        canvas = [" "] * PICTURE
        if one.floor is not None:
            for edge in (-math.log1p(one.floor), math.log1p(one.floor)):
                canvas[cell(edge)] = "┊"
        if one.low and one.high and one.ratio:
            first, last = cell(math.log(one.low)), cell(math.log(one.high))
            canvas[first : last + 1] = "─" * (last + 1 - first)
            canvas[first], canvas[last] = "├", "┤"
            canvas[min(max(cell(math.log(one.ratio)), first), last)] = sign
        pictures.append("".join(canvas).rstrip())
    return pictures
