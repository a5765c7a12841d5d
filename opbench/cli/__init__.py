"""The shell's door: ``opbench COMMAND``, the same as ``python -m opbench COMMAND``.

A command is a function from parsed options to an exit code: 0 done, 1 a failure of ours or a
problem found, 2 a mistake in what was asked. Nothing heavy is imported before a command runs.
Each command stands in a module of its own, whose ``add`` gives it to the parser.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

from opbench.cli import ab, baseline, compare, history, matmul, roof, run, self_check, trace
from opbench.cli.terminal import FAILED, INTERRUPTED, MISTAKE, OutputError, Parser, say
from opbench.errors import AccuracyError, OpbenchError, OperatorError, TraceWriteError
from opbench.version import __version__

__all__ = ["main"]

# Errors that are not the user's mistake.
_OURS = (OperatorError, AccuracyError, TraceWriteError)
# In the order of the help text.
_COMMANDS = (matmul, roof, run, ab, compare, baseline, history, self_check, trace)

_EXAMPLES = """\
examples:
  opbench matmul --iterations 5 --begin 0 --end 1
  opbench run --launches 5
  opbench ab --base origin/main
  opbench trace check results/traces/*.json
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that ``argv`` asks for.

    Args:
        argv: the words after the program's name; the process's own if None.

    Returns:
        The exit code.
    """
    if sys.stdout is None:
        say("opbench: standard output is closed; send it to a file, or to /dev/null")
        return MISTAKE
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A path or a name that the terminal cannot show must not end the command.
            stream.reconfigure(errors="backslashreplace")
    try:
        return _run(argv)
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except OutputError as error:
        # Whoever reads only the beginning wants no complaint.
        if not isinstance(error.__cause__, BrokenPipeError):
            say(f"opbench: cannot write to standard output: {error}")
        return FAILED


def _run(argv: Sequence[str] | None) -> int:
    try:
        options = _parser().parse_args(argv)
    except SystemExit as stop:  # --help, --version, or a usage error that argparse has explained
        return stop.code if isinstance(stop.code, int) else MISTAKE
    try:
        return int(options.run(options))
    except MemoryError as error:
        say(f"{options.prog}: not enough memory: {error}")
        return MISTAKE
    except OpbenchError as error:
        say(f"{options.prog}: {error}")
        return FAILED if isinstance(error, _OURS) else MISTAKE


def _parser() -> Parser:
    parser = Parser(
        prog="opbench",
        description="Benchmark numerical operators, and look at what happened inside.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("--version", action="version", version=f"opbench {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add(commands)
    return parser
