"""The wires of one launch as lines under a pytest session, and as the text of a failure."""

from __future__ import annotations

from collections.abc import Sequence

from opbench.records import Tripwires, Wire
from opbench.report.history_wording import names_of, printable
from opbench.report.table import Column, Style, table_lines
from opbench.units import scale_seconds, significant

__all__ = ["tripwire_failure", "tripwire_headline", "tripwire_lines"]

MOST_ROWS = 20
MOST_SKIPPED = 3
TRIPPED, WITHIN = ("▲", "^"), ("·", ".")


def tripwire_headline(found: Tripwires) -> str:
    """The answer in one line; where nothing was compared it never reads as a good one."""
    if found.reason:
        return f"Nothing was compared with {printable(found.baseline)}: {printable(found.reason)}"
    tripped, total = len(found.tripped), len(found.wires)
    if not tripped:
        return f"None of {total} tripped its wire"
    return f"{tripped} of {total} tripped the wire, the worst at {found.wires[0].ratio:.2f}×"


def tripwire_lines(found: Tripwires, style: Style) -> list[str]:
    """A row per benchmark, the slowest first; then what has no wire, and what this is worth."""
    rows = found.wires[: max(MOST_ROWS, len(found.tripped))]
    lines = _table(rows, style) if rows else []
    if len(rows) < len(found.wires):
        lines.append(f"and {len(found.wires) - len(rows)} more within")
    for name, why in found.skipped[:MOST_SKIPPED]:
        lines.append(f"not compared: {printable(name)}: {printable(why)}")
    if len(found.skipped) > MOST_SKIPPED:
        lines.append(f"and {len(found.skipped) - MOST_SKIPPED} more that were not compared")
    if found.not_run:
        lines.append(f"{found.not_run} of the baseline were not run")
    lines += [f"note: {printable(note)}" for note in found.notes]
    if found.wires:
        lines.append("a single launch is no evidence: judge with opbench ab, or opbench run")
    return [style(line) for line in [*lines, tripwire_headline(found)]]


def _table(rows: Sequence[Wire], style: Style) -> list[str]:
    names = names_of({wire.id: wire.label for wire in rows})
    both = [_times(wire) for wire in rows]
    signs = [
        f"{TRIPPED[not style.unicode]} tripped"
        if wire.tripped
        else f"{WITHIN[not style.unicode]} within"
        for wire in rows
    ]
    columns = [
        Column("wire", signs, name=True),
        Column("benchmark", [names[wire.id] for wire in rows], name=True),
        Column("fastest", [before for before, _ in both]),
        Column("now", [after for _, after in both]),
        Column("ratio", [f"{wire.ratio:.2f}×" for wire in rows]),
        Column("limit", [f"{wire.limit:.2f}×" for wire in rows], droppable=True),
        Column("typical", [f"{wire.typical:.2f}×" for wire in rows], droppable=True),
    ]
    return table_lines(columns, style)


def _times(wire: Wire) -> tuple[str, str]:
    unit = scale_seconds(wire.before)
    before, after = (significant(value / unit.size) for value in (wire.before, wire.after))
    return f"{before} {unit.suffix}", f"{after} {unit.suffix}"


def tripwire_failure(wire: Wire, baseline: str) -> str:
    """What a failed test case says of a tripped wire."""
    before, after = _times(wire)
    return (
        f"the fastest round of {printable(wire.id)} took {after} a call, {wire.ratio:.2f} times "
        f"the {before} of {printable(baseline)}; the wire is at {wire.limit:.2f} times\n"
        "A single launch is no evidence: run it again, or judge with opbench ab."
    )
