"""``opbench roof``: what this machine reaches at most, measured once and kept."""

from __future__ import annotations

import argparse
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from opbench.cli.terminal import DONE, Parser, say, show, style
from opbench.errors import ConfigError, RecordError

if TYPE_CHECKING:
    from opbench.records import Roof

__all__ = ["add"]

MOST_THREADS = 4096
PATIENCE = 4
_EXAMPLES = """\
examples:
  opbench roof                        peaks and bandwidth of 1 thread and of all
  opbench roof --measure              the same, measured again
  opbench roof --threads 1 4 8 --seconds 30
"""


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Give the command to the parser."""
    command = commands.add_parser(
        "roof",
        help="show the peak FLOP rate and the memory bandwidth of this machine",
        description="Show what this machine reaches at most: FLOP/s of multiply-adds in registers,"
        " and bytes/s of sweeps (a triad, a read) over caches and memory, counted as STREAM counts."
        " What is not stored is measured; the plugin's column 'of peak' uses the same numbers.",
        epilog=_EXAMPLES,
    )
    command.set_defaults(run=_roof, prog=command.prog)
    add = command.add_argument
    add("--measure", action="store_true", help="measure again what is stored")
    add(
        "--threads",
        type=int,
        nargs="+",
        metavar="N",
        help="how many threads work at the same time (default: 1, and all that Numba uses)",
    )
    add(
        "--seconds",
        type=float,
        default=3.0,
        metavar="S",
        help="how long to measure, for each number of threads; up to four times as long where other"
        " processes use the CPUs (default: 3)",
    )
    add(
        "--results",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="the results folder (default: results)",
    )


def _roof(options: argparse.Namespace) -> int:
    from opbench import report, runtime

    if not 0 < options.seconds < float("inf"):
        raise ConfigError(f"--seconds is {options.seconds}; give a time above 0")
    for count in options.threads or ():
        if not 1 <= count <= MOST_THREADS:
            raise ConfigError(f"--threads is {count}; give numbers from 1 to {MOST_THREADS}")
    threads = options.threads or [1, runtime.roof.pool_threads()]
    roofs = [_one(options, count) for count in sorted(set(threads))]
    for line in report.roof_lines(roofs, style()):
        show(line)
    return DONE


def _one(options: argparse.Namespace, threads: int) -> Roof:
    """The stored roof of so many threads, or one that is measured now and stored."""
    from opbench import records, runtime

    folder: Path = options.results / "roof"
    facts = runtime.roof.facts()
    stored = None
    try:
        stored = records.load_roof(folder, facts, threads)
    except RecordError as error:
        if not options.measure:
            raise
        say(f"{options.prog}: {error}")
    whole = stored is not None and set(runtime.roof.DTYPES) <= set(stored.peaks)
    if stored is not None and whole and not options.measure:
        return stored
    say(f"measuring {threads} {'thread' if threads == 1 else 'threads'} ...")
    found = runtime.roof.measure(
        threads, seconds=options.seconds, patience=PATIENCE * options.seconds
    )
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    roof = records.Roof(facts, threads, now, found.peaks, found.bandwidth, quiet=found.quiet)
    if stored is not None and not roof.quiet:
        # A quiet measurement replaces what was stored; a disturbed one cannot lower it.
        roof = stored.best_of(roof)
    records.save_roof(folder, roof)
    return roof
