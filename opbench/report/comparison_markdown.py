"""Verdicts as GitHub Markdown, for a step summary or a comment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opbench.records import Comparison, ComparisonSet, Verdict
from opbench.report import wording
from opbench.report.markup import code, heading, plain, row

__all__ = ["comparison_markdown"]

MOST_ROWS = 20
MOST_BYTES = 20_000
# What a table of the first rows may take; the folded parts share the rest.
TABLE_SHARE = 0.6
ROOM_FOR_ENDS = 400


def comparison_markdown(found: ComparisonSet, most_bytes: int = MOST_BYTES) -> str:
    """Headline, context and counts, at most 20 changed rows, and folded what is left.

    Where nothing has changed and all is decided it is two lines. It is always something: a silent
    tool cannot be told from a broken one.

    Args:
        found: the verdicts.
        most_bytes: where whole rows are left out; a step summary takes 1 MiB.
    """
    shown = wording.names(found.comparisons)
    lines = [f"### {plain(wording.headline(found))}", _context(found)]
    changed = wording.changed(found)
    used = _size(lines)
    if changed:
        rows = [_row(one, shown) for one in changed[:MOST_ROWS]]
        head = heading(
            ("verdict", "benchmark", *found.sides, "ratio", "interval", "why"), right=(2, 3)
        )
        kept = _fitting(rows, int(TABLE_SHARE * most_bytes) - used - _size(head))
        lines += ["", *head, *kept, *_rest(len(changed) - len(kept))]
    told = wording.unfinished(found, shown, MOST_ROWS)
    lines += ["", plain(told)] if told else []
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
    return " · ".join([plain(title), *map(plain, how), *wording.counts(found)])


def _row(one: Comparison, shown: dict[str, str]) -> str:
    sign = wording.SIGNS[one.verdict][0]
    before, after = wording.times(one)
    told = (wording.ratio(one), wording.interval(one), plain(wording.reason(one)))
    verdict = f"{sign} {wording.WORDS[one.verdict]}"
    return row(verdict, code(shown[one.id]), before, after, *told)


def _folded(found: ComparisonSet, shown: dict[str, str]) -> Iterator[tuple[str, list[str]]]:
    """The folded parts, each with a title and its rows; those without rows are left out."""
    ordered = wording.in_order(found)
    undecided = [one for one in ordered if one.verdict is Verdict.INCONCLUSIVE]
    if undecided:
        head = heading(("benchmark", "ratio", "interval", "could have seen", "why"), right=(3,))
        rows = [
            row(
                code(shown[one.id]),
                wording.ratio(one),
                wording.interval(one),
                wording.percent(one.detectable),
                plain(wording.reason(one)),
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
        yield f"{len(unchanged)} unchanged", [f"- {code(shown[one.id])}" for one in unchanged]
    if found.differences:
        rows = [f"- {plain(name)}: was {code(a)}, is {code(b)}" for name, a, b in found.differences]
        yield "environment", rows
    if found.context[1:] and not quiet:
        yield "notes", [f"- {plain(note)}" for note in found.context[1:]]
    if found.reproduce and not quiet:
        yield "how to reproduce", [code(found.reproduce)]


def _is_quiet(found: ComparisonSet) -> bool:
    """Whether there is nothing to say but that all is well."""
    return bool(found.comparisons) and all(
        one.verdict is Verdict.UNCHANGED for one in found.comparisons
    )


def _listed(one: Comparison, shown: dict[str, str]) -> str:
    told = f": {plain('; '.join(one.warnings))}" if one.verdict is Verdict.INCOMPARABLE else ""
    return f"- {code(shown[one.id])}{told}"


def _fitting(rows: Sequence[str], room: int) -> list[str]:
    kept: list[str] = []
    for line in rows:
        room -= len(line.encode()) + 1
        if room < 0:
            break
        kept.append(line)
    return kept


def _rest(count: int) -> list[str]:
    return ["", f"and {count} more in the artefact"] if count else []


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)
