"""Runs beside a measuring session, and clears away what a killed one leaves.

Started by path in an interpreter of its own, so it imports nothing of opbench. It reads one JSON
object a line from standard input, whose end it sees when the session ends in whatever way:

- ``{"group": N}`` and ``{"gone": N}``: a process group runs, or has ended;
- ``{"folder": PATH}``: belongs to the session, as does all that lies in it;
- ``{"repository": PATH}``: has worktrees in that folder;
- ``{"done": true}``: everything is cleared away already.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

__all__ = ["end_strays"]


def end_strays(folder: str) -> None:
    """Kill every process that works inside the folder; where there is no /proc, none.

    Such a one left its group on purpose, or was started in the very moment of an interrupt, before
    anybody could note its number.
    """
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            place = os.readlink(entry / "cwd")  # noqa: PTH115 - the text, not a path to resolve
            if place == folder or place.startswith(folder + os.sep):
                os.kill(int(entry.name), signal.SIGKILL)


def _watch(lines: Iterable[str]) -> None:
    """Note what is told until the lines end; then clear away."""
    groups: set[int] = set()
    folders: list[str] = []
    repositories: list[str] = []
    for line in lines:
        with contextlib.suppress(ValueError):  # a line that the end cut off
            told = json.loads(line)
            if "done" in told:
                return
            if "group" in told:
                groups.add(told["group"])
            groups.discard(told.get("gone"))
            folders += [told["folder"]] if "folder" in told else []
            repositories += [told["repository"]] if "repository" in told else []
    for group in groups:
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)
    for folder in folders:
        end_strays(folder)
        shutil.rmtree(folder, ignore_errors=True)
    for repository in repositories:
        with contextlib.suppress(OSError):
            subprocess.run(  # noqa: S603 - git, in the user's own repository
                ["git", "-C", repository, "worktree", "prune"],  # noqa: S607 - the user's git
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )


if __name__ == "__main__":
    # Ctrl-C and a closed terminal are for the session; this one must outlive it.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _watch(sys.stdin)
