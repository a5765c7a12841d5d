"""What reaches a saved run: where it goes, how many rounds, and what is left out."""

from __future__ import annotations

from typing import Any

import pytest

from opbench.plugin.session import Session

__all__ = [
    "FAILED",
    "adopt",
    "bound_rounds",
    "drop_failed",
    "leave_out_profiled",
    "redirect",
    "stable_machine_info",
    "take_over",
]

FAILED = pytest.StashKey[bool]()

# pytest-benchmark has no upper bound on rounds: a 50 ns function gets 200,000 of them, and two
# such tests once saved 12 MB. A round of at least a 20th of the time bounds them at 20.
ROUNDS = 20
VOLATILE = ("hz_actual", "hz_actual_friendly")


def redirect(config: pytest.Config, session: Session) -> None:
    """Send pytest-benchmark's storage to the results folder, if this project keeps runs there.

    It happens in ``pytest_configure``, since pytest-benchmark reads its options in the same hook,
    last. The storage is redirected also when nothing is saved, so that ``--benchmark-compare``
    finds the runs; a storage that the user gave is never touched.
    """
    if not config.getini("opbench_autosave"):
        return
    option = config.option
    if option.benchmark_storage != _default(config, "benchmark_storage"):
        return
    session.keeps_runs = True
    option.benchmark_storage = f"file://{session.runs}"
    idle = option.benchmark_disable or hasattr(config, "workerinput")
    if option.benchmark_only and not idle:
        session.save_problem = session.run_problem()
        session.autosave = not session.save_problem
    if session.autosave:
        option.benchmark_autosave = session.run_id
        option.benchmark_save_data = True


def _default(config: pytest.Config, name: str) -> Any:
    """An option's default, asked of the parser and not repeated here."""
    return config._parser.parse_known_args([]).__dict__.get(name)  # noqa: SLF001 - no public way


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
    ours = "profiler" in names or (session.keeps_runs and "benchmark" in names)
    if not ours or not item.config.pluginmanager.hasplugin("benchmark"):
        return
    mark = item.get_closest_marker("benchmark")
    chosen = dict(mark.kwargs) if mark else {}
    option = item.config.option
    if "min_time" in chosen or option.benchmark_min_time != _default(
        item.config, "benchmark_min_time"
    ):
        return
    max_time = float(chosen.get("max_time", option.benchmark_max_time))
    args = mark.args if mark else ()
    item.add_marker(
        pytest.mark.benchmark(*args, **chosen, min_time=max_time / ROUNDS), append=False
    )


def drop_failed(item: pytest.Item, session: Session) -> None:
    """Keep a failed test's times out of saved runs: they would be the next baseline."""
    fixture = getattr(item, "funcargs", {}).get("benchmark")
    if fixture is None:
        return
    item.stash[FAILED] = True
    if session.keeps_runs or "profiler" in getattr(item, "fixturenames", ()):
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
