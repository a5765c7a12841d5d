"""``opbench matmul``: the example of MXNet's profiler, a bound product run a few times."""

from __future__ import annotations

import argparse
import contextlib
import math
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from opbench.cli.terminal import DONE, Parser, say, show, style
from opbench.errors import ConfigError, ContextError
from opbench.units import format_bytes

if TYPE_CHECKING:
    from opbench.runtime import Context

__all__ = ["add"]

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
_EXAMPLES = """\
examples:
  opbench matmul                       five products of 4096 x 4096, the first one traced
  opbench matmul --begin 1 --end 5     the other four traced
  opbench matmul --size 1024 --dtype float64 --mode symbolic+memory
"""


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Give the command to the parser."""
    command = commands.add_parser(
        "matmul",
        help="multiply two matrices a few times and trace some of the iterations",
        description="Bind the symbol dot(A, B) to two random matrices, run it a few times, and"
        " trace the iterations from --begin up to, not including, --end.",
        epilog=_EXAMPLES,
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


def _matmul(options: argparse.Namespace) -> int:
    from opbench import profiler
    from opbench.report import lane_lines, operator_table
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
    show(operator_table(rows, style()))
    for line in lane_lines(profiler.lane_totals(window.trace), style()):
        show(line)
    if not rows:
        say("matmul runs a bound symbol: --mode symbolic records its operators")
    # After the table, which must not be lost with the trace.
    facts = {"command": options.prog, "size": options.size, "dtype": options.dtype}
    profiler.write(window.trace.with_metadata(facts), destination)
    first, last = window.begin, window.end - 1
    traced = f"iteration {first}" if first == last else f"iterations {first} to {last}"
    show(f"trace of {traced}: {destination}")
    return DONE


def _multiply(options: argparse.Namespace, context: Context, iterations: Iterator[int]) -> None:
    """Run the example: each of ``iterations`` is one product, waited for."""
    from opbench.runtime import random, sym

    size, dtype = options.size, options.dtype
    # Before the window, so that what it shows is the operator and not the compiler.
    say(f"compiling dot for {dtype} ...")
    _warm_up(min(size, WARM_UP_SIZE), dtype)
    say(f"filling two {size} x {size} matrices ...")
    inputs = {
        name: random.uniform(-1.0, 1.0, (size, size), context, dtype, seed)
        for seed, name in enumerate("AB")
    }
    executor = sym.dot(sym.var("A"), sym.var("B")).bind(context, inputs)
    say(f"running {options.iterations} iterations ...")
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
