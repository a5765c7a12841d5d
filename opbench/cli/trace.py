"""``opbench trace ACTION FILE...``: questions about trace files."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path

from opbench.cli.terminal import DONE, FAILED, MISTAKE, Parser, say, show, style
from opbench.errors import ConfigError, TraceError

__all__ = ["add"]

_CHECK = """\
examples:
  opbench trace check profile-matmul-5iter.json
  opbench trace check results/traces/*.json
"""
_REPAIR = """\
examples:
  opbench trace repair profile.json
  opbench trace repair theirs.json --output mended.json
"""
_SUMMARY = """\
examples:
  opbench trace summary profile.json
  opbench trace summary --by shape --sort-by median profile.json
"""
_MERGE = """\
examples:
  opbench trace merge profile.json profile-rank1.json --output whole.json
"""
_DIFF = """\
examples:
  opbench trace diff before.json after.json
"""
GROUPINGS = ("operator", "shape", "thread")
SORT_KEYS = ("total", "count", "avg", "min", "max", "median", "p90", "p99", "std", "share", "self")


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Give the command to the parser."""
    command = commands.add_parser("trace", help="look at trace files, mend and join them")
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_check(actions)
    _add_repair(actions)
    _add_summary(actions)
    _add_merge(actions)
    _add_diff(actions)


def _add_check(actions: argparse._SubParsersAction[Parser]) -> None:
    action = actions.add_parser(
        "check",
        help="say whether trace files open in Perfetto and chrome://tracing",
        description="Check trace files against the rules that Perfetto and chrome://tracing share."
        " Exit code 0: all are fine, also a continuous dump that was killed between two writes;"
        " 1: a problem was found; 2: a file cannot be read.",
        epilog=_CHECK,
    )
    action.set_defaults(run=_check, prog=action.prog)
    action.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a trace")


def _add_repair(actions: argparse._SubParsersAction[Parser]) -> None:
    action = actions.add_parser(
        "repair",
        help="make a finished trace of one that a killed process left, or of a broken one",
        description="Read what can be read of a trace and write it by the rules of both viewers:"
        " a torn end is cut off, open spans end with the trace, slices that cross get lanes of"
        " their own. A continuous dump that was never finished is mended in place; any other"
        " file needs --output. Exit code 0: done, or nothing to do; 2: nothing can be read.",
        epilog=_REPAIR,
    )
    action.set_defaults(run=_repair, prog=action.prog)
    action.add_argument("file", type=Path, metavar="FILE", help="a trace")
    action.add_argument("--output", "-o", type=Path, metavar="OUT", help="where to write instead")


def _add_summary(actions: argparse._SubParsersAction[Parser]) -> None:
    action = actions.add_parser(
        "summary",
        help="print the table of a trace: times, counters, workers, what the recording cost",
        description="Print the statistics of a trace, also of MXNet's, torch's or another's, and"
        " below them what the workers of parallel operators did.",
        epilog=_SUMMARY,
    )
    action.set_defaults(run=_summary, prog=action.prog)
    action.add_argument("file", type=Path, metavar="FILE", help="a trace")
    action.add_argument("--by", choices=GROUPINGS, default="operator", help="what makes a row")
    action.add_argument("--sort-by", choices=SORT_KEYS, default="total", help="the rows' order")
    action.add_argument("--ascending", action="store_true", help="the smallest first")
    action.add_argument("--json", action="store_true", help="as JSON, with all digits")


def _add_merge(actions: argparse._SubParsersAction[Parser]) -> None:
    action = actions.add_parser(
        "merge",
        help="put the traces of several processes on one axis of time",
        description="Join traces: each process is a group of its own, and events stand where they"
        " happened, by the clock that the processes share or else by the date.",
        epilog=_MERGE,
    )
    action.set_defaults(run=_merge, prog=action.prog)
    action.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a trace")
    action.add_argument(
        "--output", "-o", type=Path, default=Path("merged.trace.json"), metavar="OUT",
        help="where to write (default: %(default)s)",
    )  # fmt: skip
    action.add_argument(
        "--align", choices=("clock", "start"), default="clock",
        help="start: let all traces begin at one moment, to lay runs beside each other",
    )  # fmt: skip


def _add_diff(actions: argparse._SubParsersAction[Parser]) -> None:
    action = actions.add_parser(
        "diff",
        help="say what grew from one trace to another",
        description="Compare the times in two traces by category and name, the largest change of"
        " the total first; of names with 5 calls or more in both, with a 95 %% interval for the"
        " ratio of medians. A trace is one launch: this says where to look, and judges nothing;"
        " opbench compare and opbench ab do. Exit code 0 whatever differs.",
        epilog=_DIFF,
    )
    action.set_defaults(run=_diff, prog=action.prog)
    action.add_argument("before", type=Path, metavar="A", help="a trace")
    action.add_argument("after", type=Path, metavar="B", help="another")
    action.add_argument("--by", choices=GROUPINGS[:2], default="operator", help="what makes a row")
    action.add_argument("--json", action="store_true", help="as JSON, with all digits")


def _check(options: argparse.Namespace) -> int:
    from opbench import profiler

    codes = []
    for path in options.files:
        try:
            checked = profiler.verdict(path)
        except TraceError as error:
            say(f"{options.prog}: {error}")
            codes.append(MISTAKE)
            continue
        for problem in checked.problems:
            show(f"{path}: {problem.where}: {problem.message} [{problem.rule}]")
        if not checked.problems:
            show(f"{path}: fine" + ", but it holds no event" * (not checked.events))
        if checked.growing:
            show(f"  {_unfinished(path)}")
        codes.append(FAILED if checked.problems else DONE)
    return max(codes)


def _unfinished(path: Path) -> str:
    """What to know of a continuous dump, and what to do."""
    from opbench import profiler

    if profiler.being_written(path):
        return "a continuous dump that a running process is writing"
    return (
        "a continuous dump that was never finished: until it is, chrome://tracing nests "
        f"neighbours less than 1 µs apart; opbench trace repair {shlex.quote(str(path))} does it"
    )


def _repair(options: argparse.Namespace) -> int:
    from opbench import profiler

    if profiler.being_written(options.file):
        raise ConfigError(
            f"{options.file} is being written by a process that is running; wait for its end, or "
            "copy the file and repair the copy"
        )
    loaded = profiler.load_file(options.file)
    sound = not loaded.growing and not loaded.notes and not profiler.check(options.file)
    if sound and options.output is None:
        show(f"{options.file}: fine, nothing to repair")
        return DONE
    if not loaded.growing and options.output is None:
        raise ConfigError(
            f"{options.file} is no unfinished dump of opbench's, and is left as it is: what it "
            "holds besides events would be lost; give --output OUT"
        )
    target = options.output or options.file
    profiler.write(loaded.trace, target)
    events = len(loaded.trace.events)
    show(f"{target}: {events} event{'s' * (events != 1)}")
    for note in loaded.notes:
        show(f"  {note}")
    return DONE


def _summary(options: argparse.Namespace) -> int:
    from opbench import profiler, report

    loaded = profiler.load_file(options.file)
    text = profiler.summary(
        loaded.trace,
        by=options.by,
        sort_by=options.sort_by,
        ascending=options.ascending,
        form="json" if options.json else "table",
    )
    show(style()(text).rstrip("\n"))
    lanes = [] if options.json else report.lane_lines(profiler.lane_totals(loaded.trace), style())
    for line in ["", *lanes] if lanes else []:
        show(line)
    for note in loaded.notes:
        say(f"{options.file}: {note}")
    return DONE


def _merge(options: argparse.Namespace) -> int:
    from opbench import profiler

    sources = {os.path.realpath(path) for path in options.files}
    if os.path.realpath(options.output) in sources:
        raise ConfigError(f"--output {options.output} is one of the files to merge; name another")
    labels = _labels(options.files)
    parts = []
    for path, label in zip(options.files, labels, strict=True):
        loaded = profiler.load_file(path)
        for note in loaded.notes:
            say(f"{path}: {note}")
        parts.append(profiler.Part(label, loaded.trace))
    whole = profiler.join(parts, align=options.align)
    profiler.write(whole, options.output)
    show(
        f"{options.output}: {len(whole.events)} events of {len(whole.process_names)} processes "
        f"from {len(parts)} files"
    )
    return DONE


def _labels(paths: list[Path]) -> list[str]:
    """What tells the files apart: their names, or where those are equal the whole paths."""
    names = [path.name for path in paths]
    return [
        name if names.count(name) == 1 else str(path)
        for name, path in zip(names, paths, strict=True)
    ]


def _diff(options: argparse.Namespace) -> int:
    from opbench import profiler, report

    traces = []
    for path in (options.before, options.after):
        loaded = profiler.load_file(path)
        for note in loaded.notes:
            say(f"{path}: {note}")
        traces.append(loaded.trace)
    rows = profiler.differences(traces[0], traces[1], by=options.by)
    if options.json:
        show(report.differences_json(rows))
    else:
        for line in report.difference_lines(rows, style()):
            show(line)
    return DONE
