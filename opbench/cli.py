"""The shell's door: ``opbench COMMAND``, the same as ``python -m opbench COMMAND``.

A command is a function from parsed options to an exit code: 0 done, 1 a failure of ours or a
problem found, 2 a mistake in what was asked. Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from opbench.errors import (
    AccuracyError,
    ConfigError,
    ContextError,
    OpbenchError,
    OperatorError,
    TraceError,
    TraceWriteError,
)
from opbench.units import format_bytes
from opbench.version import __version__

if TYPE_CHECKING:
    from opbench.report import Style
    from opbench.runtime import Context

__all__ = ["main"]

DONE, FAILED, MISTAKE, INTERRUPTED = 0, 1, 2, 130
# Errors that are not the user's mistake.
_OURS = (OperatorError, AccuracyError, TraceWriteError)
# A product of this size takes the paths that every larger one takes, and compiles them.
WARM_UP_SIZE = 512
# A and B, and the results of two passes, which take turns.
MATRICES = 4
# Beyond this the number of bytes tells nothing.
COUNTED_BYTES = 10**18
# A container's folder, and its limit and use of memory.
CONTAINERS = (
    ("sys/fs/cgroup", "memory.max", "memory.current"),
    ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
)
# Room for every column of a table where no terminal sets the width.
PIPE_WIDTH = 120

_MATMUL_EXAMPLES = """\
examples:
  opbench matmul                       five products of 4096 x 4096, the first one traced
  opbench matmul --begin 1 --end 5     the other four traced
  opbench matmul --size 1024 --dtype float64 --mode symbolic+memory
"""
_TRACE_EXAMPLES = """\
examples:
  opbench trace check profile-matmul-5iter.json
  opbench trace check results/traces/*.json
"""
_EXAMPLES = """\
examples:
  opbench matmul --iterations 5 --begin 0 --end 1
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
        _say("opbench: standard output is closed; send it to a file, or to /dev/null")
        return MISTAKE
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A path or a name that the terminal cannot show must not end the command.
            stream.reconfigure(errors="backslashreplace")
    try:
        return _run(argv)
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except _OutputError as error:
        # Whoever reads only the beginning wants no complaint.
        if not isinstance(error.__cause__, BrokenPipeError):
            _say(f"opbench: cannot write to standard output: {error}")
        return FAILED


def _run(argv: Sequence[str] | None) -> int:
    try:
        options = _parser().parse_args(argv)
    except SystemExit as stop:  # --help, --version, or a usage error that argparse has explained
        return stop.code if isinstance(stop.code, int) else MISTAKE
    try:
        return int(options.run(options))
    except MemoryError as error:
        _say(f"{options.prog}: not enough memory: {error}")
        return MISTAKE
    except OpbenchError as error:
        _say(f"{options.prog}: {error}")
        return FAILED if isinstance(error, _OURS) else MISTAKE


class _OutputError(Exception):
    """Standard output takes no more; its cause is the error of the stream."""


def _show(text: str, end: str = "\n") -> None:
    """Print a result, and have it arrive."""
    try:
        print(text, end=end, flush=True)
    except OSError as error:
        # What is left in the buffer goes nowhere: the interpreter must not complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise _OutputError(error.strerror) from error


def _say(text: str) -> None:
    """Tell the user something that is no result."""
    # To print, no stream is the other stream; and of a full one there is nowhere left to tell.
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(text, file=sys.stderr, flush=True)


class _Parser(argparse.ArgumentParser):
    """Says a usage error in one line, as every other mistake is said; subcommands inherit it."""

    def _print_message(self, message: str, file: Any = None) -> None:
        # Of a full disk argparse says nothing, and in Python 3.10 a traceback.
        if file is sys.stdout:
            _show(message, end="")
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
        self.exit(MISTAKE, f"{self.prog}: {message}; see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="opbench",
        description="Benchmark numerical operators, and look at what happened inside.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("--version", action="version", version=f"opbench {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_matmul(commands)
    _add_trace(commands)
    return parser


def _add_matmul(commands: argparse._SubParsersAction[_Parser]) -> None:
    command = commands.add_parser(
        "matmul",
        help="multiply two matrices a few times and trace some of the iterations",
        description="Bind the symbol dot(A, B) to two random matrices, run it a few times, and"
        " trace the iterations from --begin up to, not including, --end.",
        epilog=_MATMUL_EXAMPLES,
    )
    command.set_defaults(run=_matmul, prog=command.prog)
    add = command.add_argument
    add(
        "--mode",
        default="symbolic",
        metavar="MODES",
        help="what to record: symbolic, imperative, api, memory, joined by +, or all"
        " (default: symbolic)",
    )
    add("--iterations", type=int, default=5, metavar="N", help="products in all (default: 5)")
    add("--begin", type=int, default=0, metavar="N", help="first one traced (default: 0)")
    add("--end", type=int, metavar="N", help="first one not traced (default: begin + 1)")
    add("--size", type=int, default=4096, metavar="N", help="rows and columns (default: 4096)")
    add(
        "--dtype",
        choices=("float32", "float64"),
        default="float32",
        help="of the matrices (default: float32)",
    )
    add(
        "--output",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="folder of the trace, made if missing (default: the current folder)",
    )
    add(
        "--filename",
        metavar="NAME",
        help="name of the trace (default: profile-matmul-{iterations}iter.json)",
    )
    add("--device", choices=("cpu", "gpu"), default="cpu", help="where to compute (default: cpu)")


def _add_trace(commands: argparse._SubParsersAction[_Parser]) -> None:
    command = commands.add_parser("trace", help="look at trace files")
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    action = actions.add_parser(
        "check",
        help="say whether trace files open in Perfetto and chrome://tracing",
        description="Check trace files against the rules that Perfetto and chrome://tracing share."
        " Exit code 0: all are fine; 1: a problem was found; 2: a file cannot be read.",
        epilog=_TRACE_EXAMPLES,
    )
    action.set_defaults(run=_check_traces, prog=action.prog)
    action.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a trace")


def _matmul(options: argparse.Namespace) -> int:
    from opbench import profiler
    from opbench.report import operator_table
    from opbench.runtime import Context

    window = profiler.IterationWindow(
        profiler.RECORDER,
        options.iterations,
        begin=options.begin,
        end=options.begin + 1 if options.end is None else options.end,
        modes=profiler.parse_modes(options.mode, "--mode"),
        owner="opbench matmul",
        source="--iterations, --begin and --end",
    )
    _require_memory(options.size, options.dtype)
    try:
        context = Context(options.device)
    except ContextError as error:
        raise ConfigError(f"--device {options.device}: {error}") from error
    destination = _destination(options)
    with window:
        _multiply(options, context, window)
    if window.trace is None:
        raise AssertionError("a window that was run through left no trace")
    rows = profiler.operator_totals(window.trace)
    _show(operator_table(rows, _style()))
    if not rows:
        _say("matmul runs a bound symbol: --mode symbolic records its operators")
    # After the table, which must not be lost with the trace.
    facts = {"command": options.prog, "size": options.size, "dtype": options.dtype}
    profiler.write(window.trace.with_metadata(facts), destination)
    first, last = window.begin, window.end - 1
    traced = f"iteration {first}" if first == last else f"iterations {first} to {last}"
    _show(f"trace of {traced}: {destination}")
    return DONE


def _style() -> Style:
    """How wide the output is, and whether it takes more than ASCII."""
    from opbench.report import Style

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH
    encoding = (sys.stdout.encoding or "ascii").lower()
    return Style(width, unicode=encoding.startswith("utf"))


def _multiply(options: argparse.Namespace, context: Context, iterations: Iterator[int]) -> None:
    """Run the example: each of ``iterations`` is one product, waited for."""
    from opbench.runtime import random, sym

    size, dtype = options.size, options.dtype
    # Before the window, so that what it shows is the operator and not the compiler.
    _say(f"compiling dot for {dtype} ...")
    _warm_up(min(size, WARM_UP_SIZE), dtype)
    _say(f"filling two {size} x {size} matrices ...")
    inputs = {
        name: random.uniform(-1.0, 1.0, (size, size), context, dtype, seed)
        for seed, name in enumerate("AB")
    }
    executor = sym.dot(sym.var("A"), sym.var("B")).bind(context, inputs)
    _say(f"running {options.iterations} iterations ...")
    for _ in iterations:
        executor.forward()[0].wait_to_read()


def _warm_up(size: int, dtype: str) -> None:
    """Compile what the example will run, by a small product that is checked as well."""
    from opbench.operators import BLAS_REST_SECONDS, Case
    from opbench.runtime import cpu, sym

    case = Case("dot", ((size, size), (size, size)), dtype)
    a, b = case.inputs()
    executor = sym.dot(sym.var("A"), sym.var("B")).bind(cpu(), {"A": a, "B": b})
    # A small product takes another way from its second call on.
    for _ in range(2):
        result = executor.forward()[0].asnumpy()
    case.check((a, b), result)
    time.sleep(BLAS_REST_SECONDS)


def _destination(options: argparse.Namespace) -> Path:
    """Where the trace will stand; said to be impossible before any work is done."""
    from opbench import profiler

    ours = f"profile-matmul-{options.iterations}iter.json"
    name: str = ours if options.filename is None else options.filename
    if name != (Path(name).name or None) or name == "..":
        raise ConfigError(f"--filename {name!r} is no plain name; give the folder by --output")
    folder: Path = options.output
    if problem := profiler.folder_problem(folder):
        raise ConfigError(
            f"--output {str(folder)!r} cannot be written: {problem}; choose another folder"
        )
    if problem := _taken(folder / name):
        raise ConfigError(f"--filename {name!r} cannot be used: {problem}; choose another name")
    return folder / name


def _taken(path: Path) -> str:
    """Why no trace can take this path, in a folder that takes files; or an empty string."""
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:  # too long, for one; or with a NUL in it
        return getattr(error, "strerror", "") or str(error)
    return "" if stat.S_ISREG(kind) else "what is there is no regular file"


def _require_memory(size: int, dtype: str) -> None:
    """Refuse a size that is none, or whose matrices do not fit into memory."""
    if size < 1:
        raise ConfigError(f"--size is 1 or more, not {size}")
    itemsize = 8 if dtype == "float64" else 4
    needed, available = MATRICES * size * size * itemsize, _available_bytes()
    if available is not None and needed > available:
        fits = math.isqrt(available // (MATRICES * itemsize))
        over = "over " if needed > COUNTED_BYTES else ""
        raise ConfigError(
            f"--size {size} needs {over}{format_bytes(min(needed, COUNTED_BYTES))}"
            f" for {MATRICES} matrices of {dtype},"
            f" but {format_bytes(available)} are available; {fits} fits"
        )


def _available_bytes(root: Path = Path("/")) -> int | None:
    """Memory that can be had without swapping, by Linux's count and the container's limit."""
    found = [_counted(root / "proc/meminfo", "MemAvailable:", 1024)]
    for folder, limit, use in CONTAINERS:
        most, used = _counted(root / folder / limit), _counted(root / folder / use)
        if most is not None:
            # The cache of files counts as used, and its inactive part is given up when asked for.
            cache = _counted(root / folder / "memory.stat", "inactive_file")
            found.append(max(0, most - max(0, (used or 0) - (cache or 0))))
    return min((count for count in found if count is not None), default=None)


def _counted(path: Path, key: str = "", unit: int = 1) -> int | None:
    """The number behind ``key`` in a file of the system's, or its only one."""
    with contextlib.suppress(OSError):
        for line in path.read_text(encoding="ascii").splitlines():
            number = "".join(line.removeprefix(key).split()[:1])
            if line.startswith(key) and number.isdigit():
                return int(number) * unit
    return None


def _check_traces(options: argparse.Namespace) -> int:
    from opbench import profiler

    codes = []
    for path in options.files:
        try:
            problems = profiler.check(path)
        except TraceError as error:
            _say(f"{options.prog}: {error}")
            codes.append(MISTAKE)
            continue
        for problem in problems:
            _show(f"{path}: {problem.where}: {problem.message} [{problem.rule}]")
        if not problems:
            _show(f"{path}: fine")
        codes.append(FAILED if problems else DONE)
    return max(codes)
