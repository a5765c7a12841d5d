"""What reaches a saved run: where it goes, how many rounds, and what is left out."""

from __future__ import annotations

import os
import shlex
from typing import Any

import pytest

from opbench.plugin.session import Session

__all__ = [
    "FAILED",
    "adopt",
    "bound_rounds",
    "decide",
    "disable_in_worker",
    "drop_failed",
    "leave_out_profiled",
    "redirect",
    "stable_machine_info",
    "take_over",
    "uses_fixture",
]

FAILED = pytest.StashKey[bool]()

# pytest-benchmark has no upper bound on rounds: a 50 ns function gets 200,000 of them, and two
# such tests once saved 12 MB. A round of at least a 20th of the time bounds them at 20.
ROUNDS = 20
# Calibration multiplies the iterations by ten until a round lasts 5/precision of its goal, and only
# then aims: with pytest-benchmark's 10 it can overshoot tenfold, which left 5 rounds of 20.
PRECISION = 100
VOLATILE = ("hz_actual", "hz_actual_friendly")


def disable_in_worker(config: pytest.Config) -> None:
    """Keep xdist's workers from measuring, which pytest-benchmark before 5.2.1 only announces."""
    if hasattr(config, "workerinput") and not config.option.benchmark_only:
        config.option.benchmark_disable = True


def redirect(config: pytest.Config, session: Session) -> None:
    """Send pytest-benchmark's storage to the results folder, if this project keeps runs there.

    It happens in ``pytest_configure``, since pytest-benchmark reads its options in the same hook,
    last. The storage is redirected also when nothing is saved, so that ``--benchmark-compare``
    finds the runs; a storage that the user gave is never touched.
    """
    if not config.getini("opbench_autosave"):
        return
    option = config.option
    if _given(config, "--benchmark-storage"):
        return
    session.keeps_runs = True
    option.benchmark_storage = f"file://{session.runs}"
    measures = option.benchmark_enable or not option.benchmark_disable
    idle = hasattr(config, "workerinput") or option.collectonly or option.help
    if option.benchmark_only and measures and not idle:
        session.save_problem = session.run_problem()
        session.autosave = not session.save_problem
    if session.autosave:
        option.benchmark_autosave = session.run_id
        option.benchmark_save_data = True


def _given(config: pytest.Config, option: str) -> bool:
    """Whether an option was given at all, be it with its default for a value.

    It is looked for where pytest takes arguments from: the command line, ``addopts`` and
    ``PYTEST_ADDOPTS``; pytest allows no abbreviations.
    """
    arguments = [str(argument) for argument in config.invocation_params.args]
    arguments += config.getini("addopts")
    arguments += shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))
    return any(word == option or word.startswith(f"{option}=") for word in arguments)


def adopt(benchmarks: Any) -> None:
    """Put our atomic storage in the place of pytest-benchmark's."""
    from opbench.plugin import storage

    storage.adopt(benchmarks)


def take_over(config: pytest.Config, session: Session) -> None:
    """Once pytest-benchmark's session stands: our storage, and no profiled baseline."""
    benchmarks = getattr(config, "_benchmarksession", None)
    if benchmarks is None:
        return
    if session.keeps_runs:
        adopt(benchmarks)
        session.storage = benchmarks.storage
    for stored in (benchmarks.compared_mapping or {}).values():
        for fullname in [name for name, bench in stored.items() if _profiled(bench)]:
            del stored[fullname]


def _profiled(bench: dict[str, Any]) -> bool:
    block = bench.get("extra_info", {}).get("opbench", {})
    return bool(isinstance(block, dict) and block.get("profiled"))


def decide(config: pytest.Config, session: Session, *, interrupted: bool) -> None:
    """Before pytest-benchmark saves: no run without benchmarks, and no run that was cut short."""
    benchmarks = getattr(config, "_benchmarksession", None)
    if benchmarks is None or not session.autosave:
        return
    if interrupted:
        session.save_problem = "the run was interrupted"
    if interrupted or not benchmarks.benchmarks:
        session.autosave = False
        benchmarks.autosave = None


def leave_out_profiled(config: pytest.Config) -> None:
    """Make pytest-benchmark compare no benchmark that ran inside an open window."""
    benchmarks = getattr(config, "_benchmarksession", None)
    if benchmarks is None or not benchmarks.compared_mapping:
        return
    for bench in benchmarks.benchmarks:
        if _profiled({"extra_info": bench.extra_info}):
            for stored in benchmarks.compared_mapping.values():
                stored.pop(bench.fullname, None)


def bound_rounds(item: pytest.Item, session: Session) -> None:
    """Ask for rounds of a 20th of the test's time, unless the user chose the length of a round."""
    names = getattr(item, "fixturenames", ())
    ours = uses_fixture(item) or (session.keeps_runs and "benchmark" in names)
    mark = item.get_closest_marker("benchmark")
    chosen = dict(mark.kwargs) if mark else {}
    if not ours or not hasattr(item.config.option, "benchmark_min_time"):
        return
    if "min_time" in chosen or _given(item.config, "--benchmark-min-time"):
        return
    option = item.config.option
    try:
        max_time = float(chosen.get("max_time", option.benchmark_max_time))
    except (TypeError, ValueError):
        return  # pytest-benchmark refuses it in a moment
    chosen["min_time"] = max(float(option.benchmark_min_time), max_time / ROUNDS)
    if not _given(item.config, "--benchmark-calibration-precision"):
        chosen.setdefault("calibration_precision", PRECISION)
    args = mark.args if mark else ()
    item.add_marker(pytest.mark.benchmark(*args, **chosen), append=False)


def uses_fixture(item: pytest.Item) -> bool:
    """Whether the test's ``profiler`` is opbench's, or a project's own that builds on it.

    A project may have another fixture of that name, which is none of our business.
    """
    found = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    for definition in reversed(found.get("profiler", ())):
        if definition.func.__module__ == "opbench.plugin":
            return True
        if "profiler" not in definition.argnames:
            return False
    return False


def drop_failed(item: pytest.Item, session: Session) -> None:
    """Keep the times of a test that did not pass out of saved runs: the next baseline is there.

    That is also a test that was skipped or expected to fail after it had timed something.
    """
    fixture = getattr(item, "funcargs", {}).get("benchmark")
    if fixture is None:
        return
    item.stash[FAILED] = True
    if session.keeps_runs or uses_fixture(item):
        # The mark that pytest-benchmark itself sets when a benchmarked function raises.
        fixture.has_error = True


def stable_machine_info(session: Session, machine_info: dict[str, Any]) -> None:
    """Drop the measured frequency, which differs between any two runs, and the host's name."""
    if not session.keeps_runs:
        return
    machine_info.pop("node", None)
    cpu = machine_info.get("cpu")
    if isinstance(cpu, dict):
        for key in VOLATILE:
            cpu.pop(key, None)
