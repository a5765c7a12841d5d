"""What a session says in whole sentences."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from opbench import records
from opbench.launch.plan import DEFAULT_FLOOR, AbOptions
from opbench.launch.selection import Selection
from opbench.launch.side import Side
from opbench.launch.survey import Misplaced

__all__ = [
    "command_line",
    "counted",
    "duration",
    "no_work",
    "pairs_used",
    "planned",
    "wrong_place",
]


def counted(number: int, noun: str) -> str:
    """``1 suspect``, ``2 suspects``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def duration(seconds: float) -> str:
    """Seconds as a person says them: ``45 s``, ``4 min 10 s``, ``1 h 2 min``."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    if hours:
        return f"{hours} h {minutes} min"
    if minutes:
        return f"{minutes} min {left} s" if left else f"{minutes} min"
    return f"{left} s"


def pairs_used(screened: Sequence[int], confirmed: Sequence[int]) -> str:
    """``8 pairs``, ``8 to 24 pairs, 12 to 36 fresh ones``.

    Args:
        screened: of each benchmark that has some, the pairs of the first stage.
        confirmed: of each suspect that has some, those of the second stage.
    """
    if not screened:
        return "no pairs"
    text = "1 pair" if set(screened) == {1} else f"{_span(screened)} pairs"
    return f"{text}, {_span(confirmed)} fresh ones" if confirmed else text


def _span(counts: Sequence[int]) -> str:
    least, most = min(counts), max(counts)
    return f"{most}" if least == most else f"{least} to {most}"


def no_work(selection: Selection) -> str:
    """Why there is nothing that both sides have and can run."""
    parts = [
        f"{len(names)} {words}"
        for names, words in (
            (selection.problems, "fail or cannot be run"),
            (selection.added, "only on head"),
            (selection.removed, "only on base"),
            (selection.long, "marked long and not named"),
        )
        if names
    ]
    return "no benchmark can be compared: " + (", ".join(parts) or "none was collected")


def planned(selection: Selection, seconds: float, budget_s: float | None, seed: int) -> str:
    """What a session is about to cost, before any of it is spent.

    Args:
        selection: what is measured.
        seconds: what is left of screening, as estimated.
        budget_s: None for no end.
        seed: draws the turns.
    """
    limit = "no budget" if budget_s is None else f"budget {duration(budget_s)}"
    return (
        f"{counted(selection.count, 'benchmark')} in {counted(len(selection.work), 'file')}, "
        f"{records.SCREEN_LOOKS[0]} pairs of launches each: about {duration(seconds)}, and "
        f"{records.CONFIRM_LOOKS[0]} pairs more for each suspect ({limit}, seed {seed})"
    )


def wrong_place(side: Side, found: tuple[Misplaced, ...], setup: str) -> str:
    """The message of the end without a verdict: package, path and remedy."""
    first = found[0]
    others = f" (and {len(found) - 1} more packages)" if len(found) > 1 else ""
    expected = Path(first.expected)
    beside = expected.name == "__init__.py" and expected.parent.parent not in side.roots
    if setup:
        remedy = "have --setup install the project into the environment that it runs in"
    elif beside and expected.is_relative_to(side.tree) and expected != side.tree:
        remedy = f"give --import-root {os.path.relpath(expected.parent.parent, side.cwd)}"
    else:
        remedy = (
            f"uninstall the editable installation (pip uninstall {first.package}), or build each "
            "side in an environment of its own with --setup 'pip install .'"
        )
    return (
        f"{side.name} imported package {first.package} from {first.path}{others}, and not from its "
        f"checkout ({first.expected}), so both sides would have measured the same code; {remedy}. "
        f"If that is meant, give --elsewhere {first.package}"
    )


def command_line(options: AbOptions, commits: Mapping[str, str], seed: int) -> str:
    """The command that measures the same again; a snapshot of a working tree by its id."""
    words = [
        "opbench",
        "self-check" if options.self_check else "ab",
        "--base",
        commits["base"][:12],
    ]
    if not options.self_check:
        words += ["--exact-base", "--head", commits["head"][:12]]
    words += ["--seed", str(seed)]
    if options.floor.relative != DEFAULT_FLOOR.relative:
        words += ["--floor", f"{100 * options.floor.relative:g}%"]
    words += [] if options.threads is None else ["--threads", str(options.threads)]
    words += [] if options.cpus is None else ["--cpus", ",".join(map(str, options.cpus))]
    words += [word for root in options.import_roots for word in ("--import-root", root)]
    words += [word for name in options.elsewhere for word in ("--elsewhere", name)]
    words += ["--setup", options.setup] if options.setup else []
    words += ["--long"] if options.long else []
    words += options.paths
    words += ["--", *options.words] if options.words else []
    return shlex.join(words)
