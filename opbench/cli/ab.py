"""``opbench ab``: two states of a project, measured in turns and judged."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from opbench.cli.sessions import (
    TerminalProgress,
    add_launch_options,
    add_report_options,
    check_reports,
    interruptible,
    results_of,
    seconds_of,
    take_words,
    threads_of,
    write_reports,
)
from opbench.cli.terminal import Parser, say, show, style

if TYPE_CHECKING:
    from opbench.launch import AbOptions, AbResult

__all__ = ["add", "add_side_options", "options_of", "session"]

_DESCRIPTION = """\
Measure two states of a project in turns, in one session on one machine, and judge each benchmark.
Base is the merge base of --base and head; head is the working tree as it stands, unless --head
names a commit. Both are checked out beside each other; nothing of the project is changed.
Exit code 0: no regression is confirmed; 1: one is; 2: a mistake in what was asked, or code that
was imported from elsewhere; 3: nothing was judged (with --strict: something was not decided).
"""
_EXAMPLES = """\
examples:
  opbench ab --base origin/main
  opbench ab --base HEAD~1 --exact-base --budget 5m --threads 1 tests/bench
  opbench ab --base v1.2 --setup 'pip install .' --markdown ab.md
  opbench ab --base origin/main -- -k matmul
  opbench ab --resume
  opbench ab --resume --budget 20m
"""


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Give the command to the parser."""
    command = commands.add_parser(
        "ab",
        help="measure two states of a project in turns and judge each benchmark",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
    )
    command.set_defaults(run=_ab, prog=command.prog)
    take_words(command)
    add = command.add_argument
    add("--base", metavar="REV", help="what to compare against; needed but for --resume")
    add("--head", metavar="REV", help="what is judged (default: the working tree)")
    add("--exact-base", action="store_true", help="base is REV itself, not the merge base")
    add_side_options(command)


def add_side_options(command: Parser) -> None:
    """What ``ab`` and ``self-check`` have in common."""
    add = command.add_argument
    add(
        "paths",
        nargs="*",
        metavar="PATH",
        help="test files, folders or ids; after --: options"
        " for pytest (default: what pytest finds)",
    )
    add("--budget", default="10m", metavar="TIME", help="how long it may take (default: 10m)")
    add("--floor", default="3%", metavar="SHARE", help="smallest change that counts (default: 3%%)")
    add("--seed", type=int, metavar="N", help="draws the order of turns (default: drawn)")
    add("--long", action="store_true", help="measure benchmarks marked long as well")
    add(
        "--import-root",
        action="append",
        default=[],
        metavar="DIR",
        dest="import_roots",
        help="folder of the checkout that is first on the import path (default: src, and .)",
    )
    add(
        "--setup",
        default="",
        metavar="COMMAND",
        help="build and install each side by this, in an environment of its own",
    )
    add(
        "--elsewhere",
        action="append",
        default=[],
        metavar="PACKAGE",
        help="a package of the checkout that is meant to come from the environment",
    )
    add(
        "--resume",
        nargs="?",
        const="",
        metavar="ID",
        help="go on with a session that was interrupted, or whose budget was spent, with the"
        " --budget of now: the newest, or the one of that id",
    )
    add_launch_options(command)
    add_report_options(command)


def _ab(options: argparse.Namespace) -> int:
    from opbench.errors import ConfigError

    if options.base is None and options.resume is None:
        msg = "--base is missing; name what to compare against, such as --base origin/main"
        raise ConfigError(msg)
    if options.resume is not None and (options.base or options.head):
        say("--resume takes base and head from the session; --base and --head are not looked at")
    result = session(options, options_of(options))
    return result.exit_code(strict=options.strict)


def options_of(options: argparse.Namespace) -> AbOptions:
    """The launch room's options, every text of the command line checked.

    Raises:
        ConfigError: one has a value that it cannot have.
    """
    from opbench import launch, records

    return launch.AbOptions(
        folder=Path.cwd(),
        results=results_of(options),
        base=options.base or "HEAD",
        head=getattr(options, "head", None),
        exact_base=getattr(options, "exact_base", False),
        paths=tuple(options.paths),
        words=options.words,
        import_roots=tuple(options.import_roots),
        elsewhere=tuple(options.elsewhere),
        setup=options.setup,
        budget_s=seconds_of(options.budget, "--budget"),
        timeout_s=seconds_of(options.timeout, "--timeout"),
        threads=threads_of(options.threads),
        cpus=None if options.cpus is None else launch.parse_cpus(options.cpus),
        seed=options.seed,
        floor=records.parse_floor(options.floor, "--floor"),
        long=options.long,
    )


def session(options: argparse.Namespace, asked: AbOptions) -> AbResult:
    """Run a session to its end and show its verdicts.

    Raises:
        KeyboardInterrupt: it was interrupted; how to go on has been said.
    """
    from opbench import launch, report

    check_reports(options)
    progress = TerminalProgress()
    try:
        with interruptible():
            result = launch.measure_ab(asked, progress, options.resume)
    except KeyboardInterrupt:
        progress.clear()
        say(_how_to_go_on(options, options.resume or ""))
        raise
    finally:
        progress.clear()
    lines = report.comparison_text(
        result.comparisons, style(), verbose=options.verbose, strict=options.strict
    )
    show("\n".join(lines))
    write_reports(options, result.comparisons)
    if result.resumable and asked.budget_s is not None:
        twice = 2 * asked.budget_s
        budget = f"{twice / 60:g}m" if twice % 60 == 0 else f"{twice:g}s"
        say(_how_to_go_on(options, result.session, budget))
    return result


def _how_to_go_on(options: argparse.Namespace, name: str, budget: str = "") -> str:
    """The command that takes the session up again.

    Args:
        options: of the command that was given.
        name: the session's id, since others may stay unfinished; empty for the newest.
        budget: what to advise instead of the budget of then; empty to leave it.
    """
    words = ["--resume", *([name] if name else [])]
    words += ["--budget", budget] if budget else []
    words += [] if options.results is None else ["--results", str(options.results)]
    return f"go on with: {options.prog} {shlex.join(words)}"
