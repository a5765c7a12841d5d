"""What the commands share: exit codes, the parser's manners, and words that arrive."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from opbench.report import Style

__all__ = [
    "DONE",
    "FAILED",
    "INTERRUPTED",
    "MISTAKE",
    "OutputError",
    "Parser",
    "say",
    "show",
    "style",
]

DONE, FAILED, MISTAKE, INTERRUPTED = 0, 1, 2, 130
# Room for every column of a table where no terminal sets the width.
PIPE_WIDTH = 120


class OutputError(Exception):
    """Standard output takes no more; its cause is the error of the stream."""


def show(text: str, end: str = "\n") -> None:
    """Print a result, and have it arrive."""
    try:
        print(text, end=end, flush=True)
    except OSError as error:
        # What is left in the buffer goes nowhere: the interpreter must not complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OutputError(error.strerror) from error


def say(text: str) -> None:
    """Tell the user something that is no result."""
    # To print, no stream is the other stream; and of a full one there is nowhere left to tell.
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(text, file=sys.stderr, flush=True)


class Parser(argparse.ArgumentParser):
    """Says a usage error in one line, as every other mistake is said; subcommands inherit it."""

    def _print_message(self, message: str, file: Any = None) -> None:
        # Of a full disk argparse says nothing, and in Python 3.10 a traceback.
        if file is sys.stdout:
            show(message, end="")
        else:
            super()._print_message(message, file)

    def __init__(self, **settings: Any) -> None:
        super().__init__(
            **settings, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
        )

    def parse_known_args(  # type: ignore[override] # one of the stubs' two overloads is enough
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse an unknown option here, where its subcommand is still known."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown

    def error(self, message: str) -> NoReturn:
        """Say in one line what is wrong, and end with the exit code of a mistake."""
        self.exit(MISTAKE, f"{self.prog}: {message}; see {self.prog} --help\n")


def style() -> Style:
    """How wide the output is, and whether it takes more than ASCII, and colour."""
    from opbench.report import Style

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH
    encoding = (sys.stdout.encoding or "ascii").lower()
    return Style(width, unicode=encoding.startswith("utf"), colour=_takes_colour())


def _takes_colour() -> bool:
    """Whether to colour: NO_COLOR and FORCE_COLOR decide, then whether it is a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
