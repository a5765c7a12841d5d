"""History as GitHub Markdown, for a step summary."""

from __future__ import annotations

import re
from collections.abc import Sequence

from opbench.records import Findings, Step
from opbench.report import history_wording as wording

__all__ = ["history_markdown"]

MOST_ROWS = 20
_ACTIVE = re.compile(r"([\\`*_{}\[\]<>|~&])")
# A mention or an issue's number, which no backslash stops; a space of no width does.
_LINKED = re.compile(r"(?<!\w)([@#])(?=\w)")


def history_markdown(found: Findings) -> str:
    """Headline, one line of context, the newest steps, machine events and notes.

    It is always something: a silent tool cannot be told from a broken one.
    """
    history = found.history
    context = (
        f"opbench history · {len(history.benchmarks):,} benchmarks · {history.records:,} records "
        f"· {len(history.epochs)} environments"
    )
    lines = [f"### {wording.headline(found)}", context]
    steps = wording.newest(found)
    if steps:
        lines += ["", *_table(steps[:MOST_ROWS], wording.shown_names(history.series))]
    if len(steps) > MOST_ROWS:
        lines += ["", f"and {len(steps) - MOST_ROWS} more in the artefact"]
    for event in found.events:
        span = wording.commits(event.before, event.after)
        told = f"{wording.day(event.after)}, {span}: {wording.event_words(event)}"
        lines += ["", f"× machine event: {_text(told)}"]
    notes = wording.notes(found)
    if notes:
        lines += ["", "<details><summary>notes</summary>", ""]
        lines += [*(f"- {_text(note)}" for note in notes), "", "</details>"]
    return "\n".join(lines) + "\n"


def _table(steps: Sequence[Step], shown: dict[str, str]) -> list[str]:
    rows = [
        _cells("step", "benchmark", "before", "after", "ratio", "since", "commits", "note"),
        _cells("---", "---", "---:", "---:", "---:", "---", "---", "---"),
    ]
    for step in steps:
        word = wording.word(step)
        mark = "?" if step.tentative else ""
        moment = step.series.points[step.index].moment
        rows.append(
            _cells(
                f"{wording.SIGNS[word][0]} {word}{mark}",
                _code(shown[step.series.id]),
                *wording.times(step),
                f"{step.ratio:.3f}×",
                wording.day(moment),
                _text(wording.step_commits(step)),
                _text(wording.note_of(step)),
            )
        )
    return rows


def _cells(*texts: str) -> str:
    return f"| {' | '.join(texts)} |"


def _text(text: str) -> str:
    """Plain text: nothing in a name is markup, a mention or a new cell."""
    return _LINKED.sub("\\1\u200b", _ACTIVE.sub(r"\\\1", " ".join(text.split())))


def _code(text: str) -> str:
    """A code span; inside a table a bar ends the cell even there, unless it is escaped."""
    flat = " ".join(text.split()).replace("|", "\\|")
    longest = max(map(len, re.findall("`+", flat)), default=0)
    fence, pad = "`" * (longest + 1), " " if "`" in flat else ""
    return f"{fence}{pad}{flat}{pad}{fence}"
