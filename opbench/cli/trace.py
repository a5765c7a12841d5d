"""``opbench trace ACTION FILE...``: questions about trace files."""

from __future__ import annotations

import argparse
from pathlib import Path

from opbench.cli.terminal import DONE, FAILED, MISTAKE, Parser, say, show
from opbench.errors import TraceError

__all__ = ["add"]

_EXAMPLES = """\
examples:
  opbench trace check profile-matmul-5iter.json
  opbench trace check results/traces/*.json
"""


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Give the command to the parser."""
    command = commands.add_parser("trace", help="look at trace files")
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    action = actions.add_parser(
        "check",
        help="say whether trace files open in Perfetto and chrome://tracing",
        description="Check trace files against the rules that Perfetto and chrome://tracing share."
        " Exit code 0: all are fine; 1: a problem was found; 2: a file cannot be read.",
        epilog=_EXAMPLES,
    )
    action.set_defaults(run=_check, prog=action.prog)
    action.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a trace")


def _check(options: argparse.Namespace) -> int:
    from opbench import profiler

    codes = []
    for path in options.files:
        try:
            problems = profiler.check(path)
        except TraceError as error:
            say(f"{options.prog}: {error}")
            codes.append(MISTAKE)
            continue
        for problem in problems:
            show(f"{path}: {problem.where}: {problem.message} [{problem.rule}]")
        if not problems:
            show(f"{path}: fine")
        codes.append(FAILED if problems else DONE)
    return max(codes)
