"""Processes that are started inside a window record too, each into a file of its own.

The environment is what a spawned process certainly gets, so that the window is announced there: for
children that multiprocessing starts by spawn, and for the workers of pytest-xdist. A forked child
detaches from its parent's window; any other program that is started is left alone.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from opbench.profiler.config import ProfilerConfig
from opbench.profiler.modes import Mode

__all__ = ["announce", "inherited", "rank", "ranked", "withdraw"]

VARIABLE = "OPBENCH_PROFILER_WINDOW"
XDIST = "PYTEST_XDIST_WORKER"
MAIN = "MainProcess"
NUMBERED = re.compile(r"(?:Process|Worker)-(\d+(?::\d+)*)$")
# A pool ends its workers by a signal: what they have not written by then is lost.
LONGEST_PERIOD_S = 0.5


def announce(config: ProfilerConfig) -> None:
    """Let processes that are started from now on record what this one records."""
    window = {
        "pid": os.getpid(),
        "modes": int(config.modes),
        "filename": config.filename,
        "period": config.dump_period,
    }
    os.environ[VARIABLE] = json.dumps(window)


def withdraw() -> None:
    """The window is closed: processes started later are left alone."""
    os.environ.pop(VARIABLE, None)


def inherited(environment: Mapping[str, str]) -> ProfilerConfig | None:
    """What this process is to record because it was started inside a window; None if it was not.

    It is a continuous dump: of a worker that is ended by a signal the file is there nevertheless.
    """
    own = rank(environment)
    text = environment.get(VARIABLE)
    if not text or not own:
        return None
    try:
        window = json.loads(text)
        if window["pid"] == os.getpid():
            return None
        config = ProfilerConfig(
            modes=Mode(window["modes"]),
            filename=str(window["filename"]),
            continuous_dump=True,
            dump_period=min(float(window["period"]), LONGEST_PERIOD_S),
        )
    except (ValueError, TypeError, KeyError):  # not written by us
        return None
    return ranked(config, environment).checked()


def ranked(config: ProfilerConfig, environment: Mapping[str, str]) -> ProfilerConfig:
    """The configuration with this process's rank in the name of the file, where it has one."""
    own = rank(environment)
    if not own:
        return config
    path = Path(config.filename)
    return config._replace(filename=str(path.with_name(f"{path.stem}-{own}{path.suffix}")))


def rank(environment: Mapping[str, str]) -> str:
    """Which of its siblings this process is: ``rank3``, ``gw1``; empty for a first process."""
    worker = environment.get(XDIST, "")
    processes = sys.modules.get("multiprocessing.process")
    name = MAIN if processes is None else str(processes.current_process().name)
    if name == MAIN:
        return worker if worker.isalnum() else ""
    matched = NUMBERED.search(name)
    # A name that the program chose need not be unique.
    own = f"rank{matched[1].replace(':', '.')}" if matched else f"pid{os.getpid()}"
    return f"{worker}-{own}" if worker.isalnum() else own
