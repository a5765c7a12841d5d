"""``opbench run``: the suite in fresh processes, kept as one record."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from opbench.cli.sessions import (
    TerminalProgress,
    add_launch_options,
    interruptible,
    results_of,
    seconds_of,
    take_words,
    threads_of,
)
from opbench.cli.terminal import DONE, FAILED, MISTAKE, Parser, say, show

if TYPE_CHECKING:
    from opbench.launch import RecordResult

__all__ = ["add"]

NOTHING = 3
SHOWN = 5
FIRST_TIMEOUT_S = 600.0
_DESCRIPTION = """\
Run the benchmarks in fresh processes, one after the other, and save them as one record: a file for
each launch in RESULTS/runs. A verdict between two records needs at least 5 launches of each.
Exit code 0: every launch is saved; 1: a test or a launch failed, what passed is saved; 2: a
mistake in what was asked; 3: nothing was measured.
"""
_EXAMPLES = """\
examples:
  opbench run
  opbench run --launches 10 --threads 1
  opbench run -- tests/bench -k matmul
"""


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Give the command to the parser."""
    command = commands.add_parser(
        "run",
        help="run the benchmarks in fresh processes and save one record",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
    )
    command.set_defaults(run=_run, prog=command.prog)
    take_words(command)
    add = command.add_argument
    add(
        "paths",
        nargs="*",
        metavar="PATH",
        help="test files, folders or ids; after --: words for pytest (default: what pytest finds)",
    )
    add("--launches", type=int, default=5, metavar="N", help="fresh processes (default: 5)")
    add_launch_options(command)


def _run(options: argparse.Namespace) -> int:
    from opbench import launch

    cpus = None if options.cpus is None else launch.parse_cpus(options.cpus)
    asked = launch.RunOptions(
        folder=Path.cwd(),
        runs=results_of(options) / "runs",
        launches=options.launches,
        words=(*options.words, *options.paths),
        timeout_s=seconds_of(options.timeout, "--timeout") or FIRST_TIMEOUT_S,
        threads=threads_of(options.threads),
    )
    progress = TerminalProgress()
    result = launch.RecordResult("", 0)
    try:
        with interruptible(), launch.on_cpus(cpus):
            launch.measure_record(asked, progress, result)
    except KeyboardInterrupt:
        progress.clear()
        say(f"{len(result.saved)} of {result.launches} launches are saved")
        raise
    finally:
        progress.clear()
    return _told(options, result)


def _told(options: argparse.Namespace, result: RecordResult) -> int:
    """Say what was saved and what was not; the exit code."""
    if result.usage_error:
        say(f"{options.prog}: pytest does not understand this: {result.usage_error}")
        return MISTAKE
    for problem in result.problems:
        say(f"{options.prog}: {problem}")
    for name, reason in list(result.failed.items())[:SHOWN]:
        say(f"{options.prog}: left out, since it failed: {name}: {reason}")
    if len(result.failed) > SHOWN:
        say(f"{options.prog}: and {len(result.failed) - SHOWN} more that failed")
    if not result.saved:
        say(f"{options.prog}: nothing was measured, so nothing is saved")
        return NOTHING
    numbers = [path.name.partition("_")[0] for path in result.saved]
    span = numbers[0] if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    folder = os.path.relpath(result.saved[0].parent)
    show(
        f"record {result.record_id}: {len(result.benchmarks)} benchmarks, {len(result.saved)} of "
        f"{result.launches} launches, saved as {span} in {folder}"
    )
    return FAILED if result.problems or result.failed else DONE
