"""History as GitHub Markdown, for a step summary."""

from __future__ import annotations

from collections.abc import Sequence

from opbench.records import Findings, Step
from opbench.report import history_wording as wording
from opbench.report.markup import code, heading, plain, row

__all__ = ["history_markdown"]

MOST_ROWS = 20


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
        lines += ["", f"× machine event: {plain(told)}"]
    notes = wording.notes(found)
    if notes:
        lines += ["", "<details><summary>notes</summary>", ""]
        lines += [*(f"- {plain(note)}" for note in notes), "", "</details>"]
    return "\n".join(lines) + "\n"


def _table(steps: Sequence[Step], shown: dict[str, str]) -> list[str]:
    columns = ("step", "benchmark", "before", "after", "ratio", "since", "commits", "note")
    rows = heading(columns, right=(2, 3, 4))
    for step in steps:
        word = wording.word(step)
        mark = "?" if step.tentative else ""
        moment = step.series.points[step.index].moment
        rows.append(
            row(
                f"{wording.SIGNS[word][0]} {word}{mark}",
                code(shown[step.series.id]),
                *wording.times(step),
                f"{step.ratio:.3f}×",
                wording.day(moment),
                plain(wording.step_commits(step)),
                plain(wording.note_of(step)),
            )
        )
    return rows
