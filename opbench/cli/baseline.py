"""``opbench baseline ACTION``: named records that later ones are judged against."""

from __future__ import annotations

import argparse
import math
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from opbench.cli.sessions import add_results_option, results_of
from opbench.cli.terminal import DONE, MISTAKE, Parser, say, show, style
from opbench.errors import ConfigError

if TYPE_CHECKING:
    from opbench.records import Library

__all__ = ["add"]

DAY = len("2026-12-01")
LONGEST_S = 10_000 * 86_400.0
_DAYS = {"d": 86_400.0, "w": 7 * 86_400.0}
_SET = """\
examples:
  opbench baseline set main
  opbench baseline set v1.2 20261201T0930 --replace
"""
_PRUNE = """\
examples:
  opbench baseline prune v1.0 v1.1
  opbench baseline prune --older-than 90d --dry-run
"""


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Give the command to the parser."""
    command = commands.add_parser(
        "baseline",
        help="keep records under names, to judge later ones against",
        description="Baselines are full copies of records in RESULTS/baseline/NAME. They can be"
        " committed, and only these commands move them: no verdict ever does.",
    )
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_set(actions)
    _add_list(actions)
    _add_show(actions)
    _add_prune(actions)


def _library(options: argparse.Namespace) -> Library:
    from opbench import records

    return records.Library(results_of(options))


def _add_set(actions: argparse._SubParsersAction[Parser]) -> None:
    action = actions.add_parser(
        "set",
        help="copy a record under a name",
        description="Copy a record under a name.",
        epilog=_SET,
    )
    action.set_defaults(run=_set, prog=action.prog)
    action.add_argument("name", metavar="NAME")
    action.add_argument(
        "record",
        metavar="RECORD",
        nargs="?",
        default="latest",
        help="an id, a number, files or a folder, as opbench compare takes them (default: latest)",
    )
    action.add_argument("--replace", action="store_true", help="move a baseline that is there")
    add_results_option(action)


def _set(options: argparse.Namespace) -> int:
    from opbench import records

    library = _library(options)
    record = library.find(options.record)
    if not record.samples:
        msg = f"{options.record}: nothing in record {record.id} can be compared; name another one"
        raise ConfigError(msg)
    records.set_baseline(library, options.name, record, replace=options.replace)
    count = len(record.launches)
    show(
        f"baseline {options.name}: record {record.id}, {len(record.samples)} benchmarks, "
        f"{count} launch{'es' if count != 1 else ''}"
    )
    if count < records.LEAST_LAUNCHES:
        say(f"a verdict needs at least {records.LEAST_LAUNCHES} launches; make them by opbench run")
    return DONE


def _add_list(actions: argparse._SubParsersAction[Parser]) -> None:
    action = actions.add_parser(
        "list", help="name the baselines", description="Name the baselines, one a line."
    )
    action.set_defaults(run=_list, prog=action.prog)
    add_results_option(action)


def _list(options: argparse.Namespace) -> int:
    from opbench import records, report

    library = _library(options)
    found = records.baselines(library)
    if not found:
        say(f"no baseline in {library.baselines}; make one with opbench baseline set NAME")
        return DONE
    columns = [
        report.Column("baseline", [one.name for one in found], name=True),
        report.Column("launches", [str(one.launches) for one in found]),
        report.Column("date", [one.date[:DAY] or "–" for one in found]),
        report.Column("record", [one.record_id or "–" for one in found], name=True),
    ]
    show("\n".join(report.table_lines(columns, style())))
    for one in found:
        if one.problem:
            say(f"{options.prog}: {one.name}: {one.problem}")
    return MISTAKE if any(one.problem for one in found) else DONE


def _add_show(actions: argparse._SubParsersAction[Parser]) -> None:
    action = actions.add_parser(
        "show", help="say what a baseline holds", description="Say what a baseline holds."
    )
    action.set_defaults(run=_show, prog=action.prog)
    action.add_argument("name", metavar="NAME")
    add_results_option(action)


def _show(options: argparse.Namespace) -> int:
    from opbench import records, report
    from opbench.units import format_seconds

    library = _library(options)
    if options.name not in library.names():
        known = ", ".join(library.names()) or "none at all"
        msg = f"there is no baseline {options.name!r} in {library.baselines}; there is {known}"
        raise ConfigError(msg)
    record = library.find(options.name)
    date = record.date.isoformat(timespec="seconds") if record.date else "not known"
    lines = [f"record {record.id}", f"commit {record.commit or 'not known'}"]
    lines[1] += " and changes" if record.dirty else ""
    lines += [f"measured {date}, {len(record.launches)} launches"]
    facts = {**record.environment.as_dict(), **dict(record.machine)}
    lines += [f"{name} {_plain(value)}" for name, value in facts.items() if value not in (None, {})]
    lines += [f"note: {warning}" for warning in record.warnings] + [""]
    summaries = {
        name: records.summary_of([records.launch_value(sample.values) for sample in samples])
        for name, samples in record.samples.items()
    }
    columns = [
        report.Column("benchmark", list(summaries), name=True),
        report.Column("value", [format_seconds(one.centre) for one in summaries.values()]),
        report.Column("spread", [f"{100 * one.spread:.1f} %" for one in summaries.values()]),
        report.Column("launches", [str(one.n) for one in summaries.values()], droppable=True),
    ]
    place = style()
    told = report.table_lines(columns, place) if summaries else ["no benchmark"]
    show("\n".join([*map(place, lines), *told]))
    return DONE


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={text}" for name, text in value.items())
    return str(value)


def _add_prune(actions: argparse._SubParsersAction[Parser]) -> None:
    action = actions.add_parser(
        "prune",
        help="remove baselines that are named or old",
        description="Remove the baselines named, and those older than an age.",
        epilog=_PRUNE,
    )
    action.set_defaults(run=_prune, prog=action.prog)
    action.add_argument("names", metavar="NAME", nargs="*")
    action.add_argument("--older-than", metavar="AGE", help="by the record's date, such as 90d")
    action.add_argument("--dry-run", action="store_true", help="say what would go, and keep it")
    add_results_option(action)


def _prune(options: argparse.Namespace) -> int:
    from opbench import records

    if not options.names and options.older_than is None:
        msg = "nothing to prune: name baselines, or an age by --older-than, such as 90d"
        raise ConfigError(msg)
    age = None if options.older_than is None else _age(options.older_than)
    gone = records.prune_baselines(
        _library(options),
        options.names,
        older_than=age,
        now=datetime.now(timezone.utc),
        dry_run=options.dry_run,
    )
    verb = "would remove" if options.dry_run else "removed"
    show("\n".join(f"{verb} {name}" for name in gone) if gone else "no baseline is that old")
    return DONE


def _age(text: str) -> timedelta:
    """An age from text such as ``90d``, ``2w`` or ``12h``.

    Raises:
        ConfigError: it is none.
    """
    from opbench.units import parse_seconds

    word = text.strip().lower()
    try:
        size = _DAYS.get(word[-1:])
        seconds = float(word[:-1]) * size if size else parse_seconds(word, "--older-than")
    except ValueError:  # a ConfigError is one too
        seconds = math.nan
    if not 0 < seconds <= LONGEST_S:
        msg = f"--older-than {text!r} is no age; write one such as 90d, 2w or 12h"
        raise ConfigError(msg)
    return timedelta(seconds=seconds)
