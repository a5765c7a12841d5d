"""Verdicts as GitHub Markdown, for a step summary or a comment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opbench.records import Comparison, ComparisonSet, Verdict
from opbench.report import wording

__all__ = ["comparison_markdown"]

MOST_ROWS = 20
MOST_BYTES = 20_000
# What a table of the first rows may take; the folded parts share the rest.
TABLE_SHARE = 0.6
ROOM_FOR_ENDS = 400
_ACTIVE = re.compile(r"([\\`*_{}\[\]<>|~&])")
# A mention or an issue's number, which no backslash stops; a space of no width does.
_LINKED = re.compile(r"(?<!\w)([@#])(?=\w)")


def comparison_markdown(found: ComparisonSet, most_bytes: int = MOST_BYTES) -> str:
    """Headline, context and counts, at most 20 changed rows, and folded what is left.

    Where nothing has changed and all is decided it is two lines. It is always something: a silent
    tool cannot be told from a broken one.

    Args:
        found: the verdicts.
        most_bytes: where whole rows are left out; a step summary takes 1 MiB.
    """
    shown = wording.names(found.comparisons)
    lines = [f"### {_text(wording.headline(found))}", _context(found)]
    changed = wording.changed(found)
    used = _size(lines)
    if changed:
        rows = [_row(one, shown) for one in changed[:MOST_ROWS]]
        head = _heading(
            ("verdict", "benchmark", *found.sides, "ratio", "interval", "why"), right=(2, 3)
        )
        kept = _fitting(rows, int(TABLE_SHARE * most_bytes) - used - _size(head))
        lines += ["", *head, *kept, *_rest(len(changed) - len(kept))]
    for title, rows in _folded(found, shown):
        room = most_bytes - _size(lines) - _size([title]) - ROOM_FOR_ENDS
        kept = _fitting(rows, room)
        if kept:
            fence = ["", "</details>"]
            lines += ["", f"<details><summary>{title}</summary>", "", *kept]
            # A row more, so that a table ends before the words that something was left out.
            lines += [*_rest(len(rows) - len(kept)), *fence]
    return "\n".join(lines) + "\n"


def _context(found: ComparisonSet) -> str:
    title = re.sub(r"\s{2,}", " · ", found.title)
    how = [re.sub(r"\s{2,}", " · ", line) for line in found.context[:1]]
    return " · ".join([_text(title), *map(_text, how), *wording.counts(found)])


def _row(one: Comparison, shown: dict[str, str]) -> str:
    sign = wording.SIGNS[one.verdict][0]
    before, after = wording.times(one)
    told = (wording.ratio(one), wording.interval(one), _text(wording.reason(one)))
    verdict = f"{sign} {wording.WORDS[one.verdict]}"
    return _cells(verdict, _code(shown[one.id]), before, after, *told)


def _folded(found: ComparisonSet, shown: dict[str, str]) -> Iterator[tuple[str, list[str]]]:
    """The folded parts, each with a title and its rows; those without rows are left out."""
    ordered = wording.in_order(found)
    undecided = [one for one in ordered if one.verdict is Verdict.INCONCLUSIVE]
    if undecided:
        head = _heading(("benchmark", "ratio", "interval", "could have seen", "why"), right=(3,))
        rows = [
            _cells(
                _code(shown[one.id]),
                wording.ratio(one),
                wording.interval(one),
                wording.percent(one.detectable),
                _text(wording.reason(one)),
            )
            for one in undecided
        ]
        yield f"{len(undecided)} not decided", [*head, *rows]
    for verdict, title in (
        (Verdict.INCOMPARABLE, "not comparable"),
        (Verdict.ADDED, "only in the candidate"),
        (Verdict.REMOVED, "only in the baseline"),
    ):
        those = [one for one in ordered if one.verdict is verdict]
        if those:
            yield f"{len(those)} {title}", [_listed(one, shown) for one in those]
    quiet = _is_quiet(found)
    unchanged = [one for one in ordered if one.verdict is Verdict.UNCHANGED]
    if unchanged and not quiet:
        yield f"{len(unchanged)} unchanged", [f"- {_code(shown[one.id])}" for one in unchanged]
    if found.differences:
        rows = [
            f"- {_text(name)}: was {_code(a)}, is {_code(b)}" for name, a, b in found.differences
        ]
        yield "environment", rows
    if found.context[1:] and not quiet:
        yield "notes", [f"- {_text(note)}" for note in found.context[1:]]
    if found.reproduce and not quiet:
        yield "how to reproduce", [_code(found.reproduce)]


def _is_quiet(found: ComparisonSet) -> bool:
    """Whether there is nothing to say but that all is well."""
    return bool(found.comparisons) and all(
        one.verdict is Verdict.UNCHANGED for one in found.comparisons
    )


def _listed(one: Comparison, shown: dict[str, str]) -> str:
    told = f": {_text('; '.join(one.warnings))}" if one.verdict is Verdict.INCOMPARABLE else ""
    return f"- {_code(shown[one.id])}{told}"


def _heading(words: Sequence[str], right: Sequence[int] = ()) -> list[str]:
    rules = ["---:" if index in right else "---" for index in range(len(words))]
    return [_cells(*words), _cells(*rules)]


def _cells(*texts: str) -> str:
    return f"| {' | '.join(texts)} |"


def _fitting(rows: Sequence[str], room: int) -> list[str]:
    kept: list[str] = []
    for row in rows:
        room -= len(row.encode()) + 1
        if room < 0:
            break
        kept.append(row)
    return kept


def _rest(count: int) -> list[str]:
    return ["", f"and {count} more in the artefact"] if count else []


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _text(text: str) -> str:
    """Plain text: nothing in a benchmark's name or a reason is markup, a mention or a new cell."""
    return _LINKED.sub("\\1\u200b", _ACTIVE.sub(r"\\\1", " ".join(text.split())))


def _code(text: str) -> str:
    """A code span; inside a table a bar ends the cell even there, unless it is escaped."""
    flat = " ".join(text.split()).replace("|", "\\|")
    longest = max(map(len, re.findall("`+", flat)), default=0)
    fence, pad = "`" * (longest + 1), " " if "`" in flat else ""
    return f"{fence}{pad}{flat}{pad}{fence}"
