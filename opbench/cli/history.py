"""``opbench history [BENCHMARK]``: every series of the saved records, and where it stepped."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from opbench.cli.sessions import TerminalProgress, add_results_option, results_of
from opbench.cli.terminal import DONE, MISTAKE, Parser, say, show, style
from opbench.errors import ConfigError

if TYPE_CHECKING:
    from opbench.records import Floor, History

__all__ = ["add"]

NOTHING = 3
FORMS = {"csv": "history_csv", "wide-csv": "history_wide_csv", "markdown": "history_markdown"}
_DESCRIPTION = """\
Show how the times of benchmarks went over all saved records, for each environment by itself: where
they stepped, from what to what, and between which commits. Where most of them step at once it is
one event of the machine. A step needs records of 3 launches or more (opbench run); with ruptures
(pip install 'opbench[history]') it is found on ranks and can be trusted after 4 records, without it
every step is tentative. It reports and does not fail a build: to judge a change use opbench ab.
Exit code 0: done; 2: a mistake in what was asked, or a saved run that cannot be read (the others
are shown); 3: there is no record, or none of such a benchmark.
"""
_EXAMPLES = """\
examples:
  opbench history
  opbench history 'dot kernel' --last 50
  opbench history 'tests/bench/test_dot.py::*' -v --csv dot.csv
"""


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Give the command to the parser."""
    command = commands.add_parser(
        "history",
        help="show how benchmarks went over all records, and where they stepped",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
    )
    command.set_defaults(run=_history, prog=command.prog)
    add = command.add_argument
    add(
        "benchmark",
        nargs="?",
        metavar="BENCHMARK",
        help="only benchmarks whose id or name holds this, or fits it as a pattern; with their"
        " records (default: all, the steps alone)",
    )
    add(
        "--group",
        action="append",
        default=[],
        metavar="GROUP",
        dest="groups",
        help="only benchmarks of this group",
    )
    add("--last", type=int, metavar="N", help="only the newest N records")
    add(
        "--floor",
        metavar="FLOOR",
        help="smallest step that counts, such as 2%% or '2%% + 100ns' (default: 3%%, or what"
        " marker or ini said)",
    )
    add("--rebuild", action="store_true", help="read every saved run again, not the index of them")
    add("--csv", type=Path, metavar="FILE", help="write a row for each record of each benchmark")
    add(
        "--wide-csv",
        type=Path,
        metavar="FILE",
        help="write a row for each record and a column for each benchmark, of today's environment",
    )
    add("--markdown", type=Path, metavar="FILE", help="write the steps as Markdown too")
    add("-v", "--verbose", action="store_true", help="list every step, and every record")
    add_results_option(command)


def _history(options: argparse.Namespace) -> int:
    from opbench import records, report

    _check_places(options)
    floor = _floor(options.floor)
    library = records.Library(results_of(options))
    progress = TerminalProgress()
    try:
        index = records.index_launches(
            library,
            rebuild=options.rebuild,
            progress=lambda done, total: progress.step(done, total, None, "saved runs read"),
        )
        history = records.history_of(
            index,
            selection=_selection(options.benchmark, options.groups),
            last=options.last,
            floor=floor,
        )
        found = records.find_steps(
            history, lambda done, total: progress.step(done, total, None, "series looked at")
        )
    finally:
        progress.clear()
    for problem in index.problems:
        say(f"{options.prog}: left out: {problem}")
    if index.unkept:
        say(f"{options.prog}: {index.unkept}; the next time every file is read again")
    if not history.series:
        say(f"{options.prog}: {_nothing(options, library.runs, history)}")
        return MISTAKE if index.problems else NOTHING
    lines = report.history_text(
        found, style(), verbose=options.verbose, series=options.benchmark is not None
    )
    show("\n".join(lines))
    for form, function in FORMS.items():
        path = _place(options, form)
        if path is not None:
            _write(path, form, getattr(report, function)(found))
    return MISTAKE if index.problems else DONE


def _place(options: argparse.Namespace, form: str) -> Path | None:
    path: Path | None = getattr(options, form.replace("-", "_"))
    return path


def _check_places(options: argparse.Namespace) -> None:
    """Raise before anything is read if a file has no place.

    Raises:
        ConfigError: its folder cannot be written.
    """
    from opbench import profiler

    for form in FORMS:
        path = _place(options, form)
        problem = path is not None and profiler.folder_problem(path.parent)
        if problem:
            msg = f"--{form} {path} cannot be written: {problem}; name another file"
            raise ConfigError(msg)


def _write(path: Path, form: str, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        msg = f"--{form} {path} cannot be written: {error.strerror or error}; name another file"
        raise ConfigError(msg) from error


def _floor(text: str | None) -> Floor | None:
    from opbench import records

    return None if text is None else records.parse_floor(text, "--floor", 0.0)


class _Selection:
    """Benchmarks by a word and groups; all of them where neither is given."""

    def __init__(self, word: str | None, groups: Sequence[str]) -> None:
        self._word, self._groups = word, groups

    def __call__(self, name: str, label: str, group: str | None) -> bool:
        word = self._word
        named = word is None or any(
            word in text or fnmatchcase(text, word) for text in (name, label)
        )
        return named and (not self._groups or group in self._groups)


def _selection(word: str | None, groups: Sequence[str]) -> _Selection:
    return _Selection(word, groups)


def _nothing(options: argparse.Namespace, runs: Path, history: History) -> str:
    """Why there is nothing to show, and what to do."""
    if not history.records:
        return f"no saved run in {runs}; make one with opbench run"
    asked = [f"{options.benchmark!r}"] if options.benchmark is not None else []
    asked += [f"group {group!r}" for group in options.groups]
    what = " and ".join(asked) or "any benchmark that took time"
    return f"none of {history.records} records in {runs} holds {what}; opbench history lists all"
