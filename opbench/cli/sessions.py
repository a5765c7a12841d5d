"""What the commands that start launches share: options, words for pytest, progress, signals."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opbench.cli.terminal import Parser, say
from opbench.errors import ConfigError
from opbench.units import parse_seconds

if TYPE_CHECKING:
    from opbench.records import ComparisonSet

__all__ = [
    "TerminalProgress",
    "add_launch_options",
    "add_report_options",
    "add_results_option",
    "check_reports",
    "interruptible",
    "results_of",
    "seconds_of",
    "take_words",
    "threads_of",
    "write_reports",
]

# Where no terminal shows a line that is rewritten.
QUIET_S = 30.0
# What pytest takes its root from, and where a project ends.
_ROOTS = ("pytest.toml", "pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg", ".git")
CLEAR = "\r\x1b[K"


def take_words(parser: Parser) -> None:
    """Have the parser hand what follows ``--`` on as ``words``, whatever it looks like.

    argparse would give it to a positional argument, and refuse it where that has its words already.
    """
    inner: Callable[..., tuple[argparse.Namespace, list[str]]] = parser.parse_known_args

    def parse(
        args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        given = list(sys.argv[1:] if args is None else args)
        cut = given.index("--") if "--" in given else len(given)
        options, unknown = inner(given[:cut], namespace)
        options.words = tuple(given[cut + 1 :])
        return options, unknown

    parser.parse_known_args = parse  # type: ignore[method-assign] # on this one only


def add_launch_options(command: Parser) -> None:
    """What every launch can be given."""
    add = command.add_argument
    add(
        "--threads",
        metavar="N",
        help="set NUMBA_, OMP_, OPENBLAS_ and MKL_NUM_THREADS (default: leave them alone)",
    )
    add("--cpus", metavar="LIST", help="keep every launch on these CPUs, such as 0,2 or 0-3")
    add(
        "--timeout",
        metavar="TIME",
        help="end a launch that takes longer (default: 10m, then five times its first time)",
    )
    add_results_option(command)


def add_results_option(command: Parser) -> None:
    """Where everything is kept."""
    command.add_argument(
        "--results",
        type=Path,
        metavar="DIR",
        help="where sessions and records are kept (default: results, beside pytest's settings)",
    )


def results_of(options: argparse.Namespace) -> Path:
    """The folder of the results: the one given, or the one that the plugin takes by default."""
    if options.results is not None:
        given: Path = options.results
        return given.expanduser().absolute()
    here = Path.cwd()
    root = next((p for p in (here, *here.parents) if any((p / n).exists() for n in _ROOTS)), here)
    return root / "results"


def seconds_of(text: str | None, option: str) -> float | None:
    """A duration, or None where none was given.

    Raises:
        ConfigError: it is none, or not above 0.
    """
    if text is None:
        return None
    seconds = parse_seconds(text, option)
    if not 0 < seconds < float("inf"):
        msg = f"{option} {text!r} is no time to measure in; give more than 0, such as 10m"
        raise ConfigError(msg)
    return seconds


def threads_of(text: str | None) -> int | None:
    """A number of threads, or None where none was given.

    Raises:
        ConfigError: it is no whole number from 1.
    """
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        msg = f"--threads {text!r} is no number of threads; give a whole number from 1"
        raise ConfigError(msg)
    return int(text)


class TerminalProgress:
    """One line that is rewritten on a terminal; elsewhere a line every 30 s. Standard error."""

    def __init__(
        self,
        stream: Any = None,
        clock: Callable[[], float] = time.monotonic,
        width: Callable[[], int] = lambda: shutil.get_terminal_size().columns,
    ) -> None:
        """Write to a stream; standard error if None."""
        self._stream = sys.stderr if stream is None else stream
        self._clock, self._width = clock, width
        self._live = bool(self._stream is not None and self._stream.isatty())
        self._last, self._shown = clock(), False

    def say(self, text: str) -> None:
        """A line that stays."""
        self.clear()
        self._write(f"{text}\n")

    def step(self, done: int, planned: int, left_s: float | None, what: str) -> None:
        """How far it is, and about how long it will still take."""
        parts = [what]
        if planned:
            parts.insert(0, f"{done}/{planned}")
        if left_s is not None and left_s > 0:
            parts.append(f"about {_short(left_s)} left")
        line = " · ".join(parts)
        if self._live:
            self._write(CLEAR + line[: max(1, self._width() - 1)])
            self._shown = True
        elif self._clock() - self._last >= QUIET_S:
            self._last = self._clock()
            self._write(f"{line}\n")

    def clear(self) -> None:
        """Take the rewritten line away."""
        if self._shown:
            self._write(CLEAR)
            self._shown = False

    def _write(self, text: str) -> None:
        if self._stream is not None:
            with contextlib.suppress(OSError, ValueError):
                encoding = getattr(self._stream, "encoding", None) or "utf-8"
                self._stream.write(text.encode(encoding, "replace").decode(encoding))
                self._stream.flush()


def _short(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"  # noqa: PLR2004 - 1.5 min


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Have a polite end from outside (SIGTERM, a closed terminal) clear away as Ctrl-C does."""

    def interrupt(number: int, _frame: object) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    numbers = [number for number in (signal.SIGTERM, getattr(signal, "SIGHUP", None)) if number]
    before = {}
    with contextlib.suppress(ValueError):  # outside the main thread nothing can be caught
        before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


REPORTS = ("markdown", "json", "csv", "junit")


def add_report_options(command: Parser) -> None:
    """The forms in which verdicts can be written beside the text."""
    add = command.add_argument
    for form in REPORTS:
        add(f"--{form}", type=Path, metavar="FILE", help=f"write the verdicts as {form} too")
    add("--strict", action="store_true", help="exit 3 instead of 0 where something is not decided")
    add("-v", "--verbose", action="store_true", help="list what is unchanged as well")


def check_reports(options: argparse.Namespace) -> None:
    """Raise now, and not after minutes of measuring, if a report has no place.

    Raises:
        ConfigError: its folder cannot be written.
    """
    from opbench import profiler

    for form in REPORTS:
        path: Path | None = getattr(options, form)
        problem = path is not None and profiler.folder_problem(path.parent)
        if problem:
            msg = f"--{form} {path} cannot be written: {problem}; nothing was measured"
            raise ConfigError(msg)


def write_reports(options: argparse.Namespace, comparisons: ComparisonSet) -> None:
    """Write each form that was asked for; a full disk is said, and does not change the verdict."""
    from opbench import report

    for form in REPORTS:
        path: Path | None = getattr(options, form)
        if path is None:
            continue
        text: str = getattr(report, f"comparison_{form}")(comparisons)
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            say(f"--{form} {path}: not written: {error.strerror or error}")
