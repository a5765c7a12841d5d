"""The shell's door: ``opbench COMMAND``, the same as ``python -m opbench COMMAND``.

A command is a function from parsed options to an exit code: 0 done, 1 a failure of ours or a
problem found, 2 a mistake in what was asked. Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from opbench.errors import (
    AccuracyError,
    ConfigError,
    OpbenchError,
    OperatorError,
    TraceError,
    TraceWriteError,
)
from opbench.units import format_bytes
from opbench.version import __version__

if TYPE_CHECKING:
    from opbench.report import Style

__all__ = ["main"]

DONE, FAILED, MISTAKE, INTERRUPTED = 0, 1, 2, 130

# Errors that are not the user's mistake.
_OURS = (OperatorError, AccuracyError, TraceWriteError)

# A product of this size takes the paths that every larger one takes, and compiles them.
WARM_UP_SIZE = 512

# BLAS workers, which the check's reference has woken, spin this long before they sleep.
BLAS_REST_SECONDS = 0.2

# A and B, and the results of two passes, which take turns.
MATRICES = 4

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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A path or a name that the terminal cannot show must not end the command.
            stream.reconfigure(errors="backslashreplace")
    try:
        options = _parser().parse_args(argv)
    except SystemExit as stop:  # --help, --version, or a usage error that argparse has explained
        return stop.code if isinstance(stop.code, int) else MISTAKE
    try:
        code = _COMMANDS[options.command](options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has left; the interpreter must not complain at its own flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except MemoryError as error:
        _say(f"opbench {options.command}: not enough memory: {error}")
        return MISTAKE
    except OpbenchError as error:
        _say(f"opbench {options.command}: {error}")
        return FAILED if isinstance(error, _OURS) else MISTAKE
    return code


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class _Parser(argparse.ArgumentParser):
    """Says a usage error in one line, as every other mistake is said; subcommands inherit it."""

    def error(self, message: str) -> NoReturn:
        self.exit(MISTAKE, f"{self.prog}: {message}; see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="opbench",
        description="Benchmark numerical operators, and look at what happened inside.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
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
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    action.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a trace")


def _matmul(options: argparse.Namespace) -> int:
    from opbench import profiler
    from opbench.report import operator_table

    window = profiler.IterationWindow(
        profiler.RECORDER,
        options.iterations,
        begin=options.begin,
        end=options.begin + 1 if options.end is None else options.end,
        modes=profiler.parse_modes(options.mode, "--mode"),
        owner="opbench matmul",
        source="--iterations, --begin and --end",
    )
    destination = _destination(options)
    _require_memory(options.size, options.dtype)
    with window:
        _multiply(options, window)
    if window.trace is None:
        raise AssertionError("a window that was run through left no trace")
    facts = {"command": "opbench matmul", "size": options.size, "dtype": options.dtype}
    profiler.write(window.trace.with_metadata(facts), destination)
    print(f"trace of iterations {window.begin} to {window.end - 1}: {destination}")
    rows = profiler.operator_totals(window.trace)
    print(operator_table(rows, _style()))
    if not rows:
        _say("matmul runs a bound symbol: --mode symbolic records its operators")
    return DONE


def _style() -> Style:
    """How wide the output is, and whether it takes more than ASCII."""
    from opbench.report import Style

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH
    encoding = (sys.stdout.encoding or "ascii").lower()
    return Style(width, unicode=encoding.startswith("utf"))


def _multiply(options: argparse.Namespace, iterations: Iterator[int]) -> None:
    """Run the example: each of ``iterations`` is one product, waited for."""
    from opbench.runtime import Context, random, sym

    # Before the window, so that what it shows is the operator and not the compiler.
    context = Context(options.device)
    size, dtype = options.size, options.dtype
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
    from opbench.operators import Case
    from opbench.runtime import cpu, sym

    case = Case("dot", ((size, size), (size, size)), dtype)
    a, b = case.inputs()
    executor = sym.dot(sym.var("A"), sym.var("B")).bind(cpu(), {"A": a, "B": b})
    case.check((a, b), executor.forward()[0].asnumpy())
    time.sleep(BLAS_REST_SECONDS)


def _destination(options: argparse.Namespace) -> Path:
    """Where the trace will stand; said to be impossible before any work is done."""
    name = options.filename or f"profile-matmul-{options.iterations}iter.json"
    if name != Path(name).name or name == "..":
        raise ConfigError(f"--filename {name!r} is a path; give the folder by --output")
    folder: Path = options.output
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise ConfigError(f"--output {folder} is a file; give a folder") from None
    except OSError as error:
        raise ConfigError(f"--output {folder} cannot be made: {error.strerror}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"--output {folder} is not writable; choose another folder")
    if (folder / name).is_dir():
        raise ConfigError(f"{folder / name} is a folder; choose another --filename")
    return folder / name


def _require_memory(size: int, dtype: str) -> None:
    """Refuse a size that is none, or whose matrices do not fit into memory."""
    if size < 1:
        raise ConfigError(f"--size is 1 or more, not {size}")
    itemsize = 8 if dtype == "float64" else 4
    needed, available = MATRICES * size * size * itemsize, _available_bytes()
    if available is not None and needed > available:
        fits = int((available / (MATRICES * itemsize)) ** 0.5)
        raise ConfigError(
            f"--size {size} needs {format_bytes(needed)} for {MATRICES} matrices of {dtype},"
            f" but {format_bytes(available)} are available; {fits} fits"
        )


def _available_bytes() -> int | None:
    """Memory that can be had without swapping, by Linux's count and the container's limit."""
    found = []
    for path, key, unit in (
        ("/proc/meminfo", "MemAvailable:", 1024),
        ("/sys/fs/cgroup/memory.max", "", 1),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "", 1),
    ):
        try:
            lines = Path(path).read_text(encoding="ascii").splitlines()
        except OSError:
            continue
        numbers = [line.removeprefix(key).split()[0] for line in lines if line.startswith(key)]
        found += [int(number) * unit for number in numbers if number.isdigit()]
    return min(found, default=None)


def _trace(options: argparse.Namespace) -> int:
    from opbench import profiler

    codes = []
    for path in options.files:
        try:
            problems = profiler.check(path)
        except TraceError as error:
            _say(f"opbench trace: {error}")
            codes.append(MISTAKE)
            continue
        for problem in problems:
            print(f"{path}: {problem.where}: {problem.message} [{problem.rule}]")
        if not problems:
            print(f"{path}: fine")
        codes.append(FAILED if problems else DONE)
    return max(codes)


_COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "matmul": _matmul,
    "trace": _trace,
}
