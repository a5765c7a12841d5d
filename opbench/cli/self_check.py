"""``opbench self-check``: what this machine says of equal code."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from opbench.cli.ab import add_side_options, options_of, session
from opbench.cli.sessions import take_words
from opbench.cli.terminal import DONE, FAILED, Parser, show, style

if TYPE_CHECKING:
    from opbench.launch import SelfCheck, Spread

__all__ = ["add"]

NOTHING = 3
_DESCRIPTION = """\
Measure base against a second checkout of base, as opbench ab measures base against head. Whatever
it finds is a false alarm: of this machine, this suite, or the two checkouts. It prints how often
that happens, how far each benchmark spreads, the smallest change that could be shown here, and
what disturbs the measuring.
Exit code 0: no false alarm; 1: at least one; 2: a mistake in what was asked; 3: nothing was
measured.
"""
_EXAMPLES = """\
examples:
  opbench self-check
  opbench self-check --budget 20m --threads 1 tests/bench
  opbench self-check --resume
"""


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Give the command to the parser."""
    command = commands.add_parser(
        "self-check",
        help="measure the same code on both sides: how far can this machine be trusted?",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
    )
    command.set_defaults(run=_self_check, prog=command.prog)
    take_words(command)
    command.add_argument(
        "--base", default="HEAD", metavar="REV", help="what is on both sides (default: HEAD)"
    )
    add_side_options(command)


def _self_check(options: argparse.Namespace) -> int:
    from dataclasses import replace

    asked = replace(options_of(options), self_check=True)
    result = session(options, asked)
    check = result.check
    if check is None or not any(one.pairs for one in check.spreads):
        return NOTHING
    show("\n".join(["", *lines(check)]))
    return FAILED if check.alarms else DONE


def lines(check: SelfCheck) -> list[str]:
    """What a self-check found, first line first."""
    from opbench import report

    measured = [one for one in check.spreads if one.pairs]
    noun = "alarm" if len(check.alarms) == 1 else "alarms"
    headline = (
        f"{len(check.alarms)} false {noun} in {len(measured)} benchmarks of equal code "
        f"({len(check.suspects)} suspected by screening)"
    )
    told = [
        headline,
        *(f"  false alarm: {name}" for name in check.alarms),
        "",
    ]
    columns = [
        report.Column("benchmark", [one.id for one in measured], name=True),
        report.Column("pairs", [str(one.pairs) for one in measured]),
        report.Column("spread of pairs", [_percent(one.between_pairs) for one in measured]),
        report.Column("of launches", [_percent(one.between_launches) for one in measured]),
        report.Column("could have seen", [_percent(one.detectable) for one in measured]),
    ]
    told += report.table_lines(columns, style())
    told += ["", _best(measured), "", *(f"disturbed by {one}" for one in check.disturbances)]
    return told if check.disturbances else [*told, "nothing that disturbs was seen"]


def _percent(share: float | None) -> str:
    return "–" if share is None or not math.isfinite(share) else f"{100 * share:.1f} %"


def _best(spreads: list[Spread]) -> str:
    """The smallest detectable change over all benchmarks, in one line."""
    known = sorted(one.detectable for one in spreads if one.detectable is not None)
    if not known:
        return "no benchmark had enough pairs to say what could have been seen"
    worst = max(spreads, key=lambda one: one.detectable or 0.0)
    return (
        f"could have seen {_percent(known[len(known) // 2])} (median), "
        f"{_percent(known[-1])} (worst: {worst.id})"
    )
