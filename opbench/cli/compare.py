"""``opbench compare BASELINE [CANDIDATE]``: two stored records, judged."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from opbench.cli.sessions import (
    add_report_options,
    add_results_option,
    check_reports,
    results_of,
    write_reports,
)
from opbench.cli.terminal import Parser, show, style
from opbench.errors import ConfigError

if TYPE_CHECKING:
    from opbench.records import Floors, Library, Rename, RunRecord, Verdict

__all__ = ["add"]

ORDERS = ("change", "name", "file")
_DESCRIPTION = """\
Judge a candidate against a baseline, both stored before. Each side is a baseline's name, a
record's id or the beginning of one, a run's number, files, a pattern of files, or a folder (its
newest record); the candidate is by default the newest run. A verdict needs 5 launches of each side
(opbench run), the same environment, and a machine that did not move in between.
Exit code 0: no regression is confirmed; 1: one is; 2: a mistake in what was asked, or a file that
cannot be read; 3: nothing was judged (with --strict: something was not decided).
"""
_EXAMPLES = """\
examples:
  opbench compare main
  opbench compare main latest --floor 3% --floor 'tests/bench/test_io.py::* 10%'
  opbench compare 20261201T09 20261202T09 -k matmul --markdown compare.md
  opbench compare 'base/*.json' 'head/*.json' --rename 'tests/old.py::*' 'tests/new.py::*'
"""


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Give the command to the parser."""
    command = commands.add_parser(
        "compare",
        help="judge a stored record against another one",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
    )
    command.set_defaults(run=_compare, prog=command.prog)
    add = command.add_argument
    add("baseline", metavar="BASELINE", help="what is compared against")
    add("candidate", metavar="CANDIDATE", nargs="?", help="what is judged (default: latest)")
    add(
        "--floor",
        action="append",
        default=[],
        metavar="FLOOR",
        dest="floors",
        help="smallest change that counts, such as 2.5%%, 100ns or '2%% + 100ns'; or, after a"
        " pattern of ids or a group, for those: 'test_io.py::* 10%%' (default: 5%%, or what"
        " marker or ini said)",
    )
    add(
        "-k",
        action="append",
        default=[],
        metavar="WORD",
        dest="words",
        help="only benchmarks whose id or name holds WORD, or fits it as a pattern",
    )
    add(
        "--group",
        action="append",
        default=[],
        metavar="GROUP",
        dest="groups",
        help="only benchmarks of this group",
    )
    add(
        "--only",
        action="append",
        default=[],
        metavar="VERDICT",
        dest="verdicts",
        help="show these verdicts alone; what is judged, and the exit code, stay",
    )
    add("--sort", choices=ORDERS, default="change", help="order of rows (default: change)")
    add(
        "--rename",
        nargs=2,
        action="append",
        default=[],
        metavar=("OLD", "NEW"),
        dest="renames",
        help="a benchmark's old and new name; a * in both stands for the same text",
    )
    add("--rename-map", type=Path, metavar="FILE", help="a JSON object of old and new names")
    add(
        "--although",
        action="append",
        default=[],
        metavar="FACT",
        dest="although",
        help="compare although this fact of the environment differs, such as numpy",
    )
    add_results_option(command)
    add_report_options(command)


def _compare(options: argparse.Namespace) -> int:
    from opbench import records, report

    check_reports(options)
    only = [_verdict(word) for word in options.verdicts]
    floors, rename = _floors(options.floors), _rename(options)
    library = records.Library(results_of(options))
    baseline, candidate = _both(library, options)
    found = records.compare(
        baseline,
        candidate,
        floors,
        rename,
        although=options.although,
        selection=_selection(options.words, options.groups),
    )
    found = replace(found, order=options.sort, reproduce=_command(options, candidate))
    lines = report.comparison_text(
        found, style(), verbose=options.verbose, strict=options.strict, only=only
    )
    show("\n".join(lines))
    write_reports(options, found)
    return found.exit_code(strict=options.strict)


def _both(library: Library, options: argparse.Namespace) -> tuple[RunRecord, RunRecord]:
    baseline = library.find(options.baseline)
    if options.candidate is None:
        return baseline, library.latest(other_than=baseline)
    return baseline, library.find(options.candidate)


def _floors(texts: Sequence[str]) -> Floors:
    """The default floor and those of patterns, from what was given.

    Raises:
        ConfigError: one of them is none.
    """
    from opbench import records

    default, patterns = records.DEFAULT_FLOOR, []
    for text in texts:
        pattern, _, rest = text.strip().partition(" ")
        if rest and not (pattern[0].isdigit() or pattern[0] == "."):
            patterns.append((pattern, records.parse_floor(rest, f"--floor {text!r}")))
        else:
            default = records.parse_floor(text, "--floor")
    return records.Floors(default, tuple(patterns))


def _rename(options: argparse.Namespace) -> Rename:
    from opbench import records

    pairs = tuple((old, new) for old, new in options.renames)
    if options.rename_map is not None:
        pairs += records.load_rename(options.rename_map).pairs
    return records.Rename(pairs)


def _verdict(word: str) -> Verdict:
    """The verdict's name, from it or from the word that reports use.

    Raises:
        ConfigError: it is none.
    """
    from opbench import records
    from opbench.errors import nearest

    said = {"slower": "regressed", "faster": "improved", "open": "inconclusive"}
    name = said.get(word.lower(), word.lower())
    values = [verdict.value for verdict in records.Verdict]
    if name not in values:
        msg = f"--only {word!r} is no verdict{nearest(word, [*values, *said])}"
        raise ConfigError(msg)
    return records.Verdict(name)


class _Selection:
    """Benchmarks by words and groups; all of them where neither is given."""

    def __init__(self, words: Sequence[str], groups: Sequence[str]) -> None:
        self._words, self._groups = words, groups

    def __call__(self, name: str, label: str, group: str | None) -> bool:
        named = not self._words or any(
            word in text or fnmatchcase(text, word)
            for word in self._words
            for text in (name, label)
        )
        return named and (not self._groups or group in self._groups)


def _selection(words: Sequence[str], groups: Sequence[str]) -> _Selection | None:
    return _Selection(words, groups) if words or groups else None


def _command(options: argparse.Namespace, candidate: RunRecord) -> str:
    """The command that compares the same two records again, whatever is the newest by then."""
    words = ["opbench", "compare", options.baseline, options.candidate or candidate.id]
    for option, values in (
        ("--floor", options.floors),
        ("-k", options.words),
        ("--group", options.groups),
        ("--although", options.although),
    ):
        words += [part for value in values for part in (option, value)]
    words += [part for pair in options.renames for part in ("--rename", *pair)]
    if options.rename_map is not None:
        words += ["--rename-map", str(options.rename_map)]
    return shlex.join(words)
