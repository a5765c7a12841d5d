"""One pytest session: its folders, its settings, its run, and the rows of the closing section."""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from opbench import profiler
from opbench.errors import TraceWriteError
from opbench.plugin import settings as _settings
from opbench.plugin.reference import ReferenceTimer
from opbench.plugin.settings import Level, Settings

if TYPE_CHECKING:
    from opbench.records import Environment

__all__ = ["ROW", "Session", "trace_name"]

SLUG_LENGTH = 100
IGNORE_ALL = "*\n"
DEFAULT_RESULTS = "results"
# Share of all CPUs; a judgement, the same by which tests/peers/fixture_overhead.py drops a pair.
DISTURBED = 0.1

ROW = pytest.StashKey[dict[str, Any]]()


def trace_name(nodeid: str, worker: str = "") -> str:
    """The trace's file name: a readable slug and 8 hex digits that keep test ids apart.

    Args:
        nodeid: pytest's test id; any characters, any length.
        worker: the xdist worker, where several workers run the same test.
    """
    test, bracket, parameters = nodeid.partition("[")
    readable = test.rpartition("::")[2] + bracket + parameters.rstrip("]")
    slug = re.sub(r"[^A-Za-z0-9._-]+", "_", readable)
    digest = hashlib.sha256(nodeid.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    suffix = f"-{worker}" if worker else ""
    return f"{slug[:SLUG_LENGTH].strip('_.') or 'test'}-{digest}{suffix}.trace.json"


def _ignore_contents(folder: Path) -> None:
    """Give a folder that we fill its own ignore file, so that no project has to."""
    ignore = folder / ".gitignore"
    if not ignore.exists():
        with contextlib.suppress(OSError):
            ignore.write_text(IGNORE_ALL, encoding="ascii")


class Session:
    """State of one pytest session.

    Attributes:
        results: folder for traces and runs, below pytest's root unless absolute.
        rows: one dictionary per benchmark that used the fixture, in order.
        references: times NumPy beside the kernels.
        keeps_runs: whether pytest-benchmark's storage is the results folder (``opbench_autosave``).
        autosave: whether this run is saved.
        save_problem: why it is not although it should be.
        storage: pytest-benchmark's storage, once it is ours.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.default_levels = (_settings.command_line(config), _settings.ini(config))
        if not config.option.help:
            _settings.check(self.default_levels)
        self.results: Path = config.rootpath / self._results()
        self.rows: list[dict[str, Any]] = []
        self.keeps_runs = False
        self.autosave = False
        self.save_problem = ""
        self.storage: Any = None
        self._usage: dict[str, Any] | None = None
        self._cpu: Any = None
        self._trace_problem: str | None = None
        self.references = ReferenceTimer()
        self._controller: dict[str, str] = getattr(config, "workerinput", {}).get("opbench", {})

    @cached_property
    def run_id(self) -> str:
        """Names this run in traces, ``extra_info`` and the saved file; one for all workers."""
        if "run" in self._controller:
            return str(self._controller["run"])
        from opbench import records

        return records.new_launch_id(datetime.now(timezone.utc), secrets.token_hex(4))

    def for_worker(self, workerid: str) -> dict[str, str]:
        """What an xdist worker must know of this session; its name only if all run each test."""
        each = self.config.getoption("dist", "no") == "each"
        return {"run": self.run_id, **({"worker": workerid} if each else {})}

    def _results(self) -> Path:
        """The results folder as it was given, ``~`` resolved.

        Raises:
            pytest.UsageError: a blank name, or the home of a user that does not exist.
        """
        for level in self.default_levels:
            if "results" not in level.values:
                continue
            given, where = str(level.values["results"]), level.name("results")
            if not given.strip():
                raise pytest.UsageError(
                    f"{where} is blank; name a folder, such as {DEFAULT_RESULTS}"
                )
            try:
                return Path(given).expanduser()
            except RuntimeError as error:
                raise pytest.UsageError(f"{where} is {given!r}: {error}; name a folder") from None
        return Path(DEFAULT_RESULTS)

    # settings

    def levels(self, item: pytest.Item) -> Sequence[Level]:
        """Marker, command line, ini: what stands behind a call.

        Raises:
            ConfigError: a marker with positional arguments or unknown keywords.
        """
        return (_settings.marker(item), *self.default_levels)

    def tracing(self, settings: Settings) -> bool:
        """Whether a test with these settings writes a trace."""
        if settings.trace == "auto":
            return not self.benchmarks_disabled
        return settings.trace == "on"

    @property
    def traces_off(self) -> bool:
        """Whether the session's own settings switch traces off (a marker can still ask for one)."""
        return not self.tracing(_settings.resolve(self.default_levels))

    @property
    def benchmarks_disabled(self) -> bool:
        """Whether pytest-benchmark only calls its targets (disabled, or under xdist)."""
        benchmarks = getattr(self.config, "_benchmarksession", None)
        return benchmarks is None or bool(benchmarks.disabled)

    # folders

    @property
    def traces(self) -> Path:
        """Folder of the traces."""
        return self.results / "traces"

    @property
    def runs(self) -> Path:
        """Folder of the saved runs."""
        return self.results / "runs"

    def shown(self, path: Path) -> str:
        """``path`` as a user reads it: relative to pytest's root where it lies below it."""
        try:
            return path.relative_to(self.config.rootpath).as_posix()
        except ValueError:
            return str(path)

    def trace_problem(self) -> str:
        """Why no trace can be written, or an empty string; looked at once."""
        if self._trace_problem is None:
            self._trace_problem = self._folder_problem(self.traces, "traces are not kept")
        return self._trace_problem

    def run_problem(self) -> str:
        """Why no run can be saved, or an empty string."""
        return self._folder_problem(self.runs, "this run is not saved")

    def _folder_problem(self, folder: Path, loss: str) -> str:
        problem = profiler.folder_problem(folder)
        if problem:
            return (
                f"{self.shown(folder)} cannot be written ({problem}), so {loss}; timings go on. "
                "Name another folder with --opbench-results."
            )
        _ignore_contents(folder)
        return ""

    # one test

    @contextlib.contextmanager
    def compile_watch(self) -> Any:
        """Count numba's compilations inside the block."""
        from opbench import probes

        with probes.CompileWatch() as watch:
            yield watch

    def unfinished(self) -> bool:
        """Whether opbench's engine still has work; loads no room that is not loaded."""
        return "opbench.runtime" in sys.modules and not self._runtime.idle()

    def raise_failures(self) -> None:
        """Raise the first operator's failure that no wait has raised: closing a window is a wait.

        Raises:
            OperatorError: an operator failed.
        """
        if "opbench.runtime" in sys.modules:
            self._runtime.nd.waitall()

    @property
    def _runtime(self) -> Any:
        from opbench import runtime

        return runtime

    def operator_of(self, function: Any) -> Any:
        """The operator whose kernel ``function`` is, or None; loads no room that is not loaded."""
        if "opbench.kernels" not in sys.modules:
            return None
        from opbench import operators

        return operators.of_kernel(function)

    def size_of(self, summary: Mapping[str, Any]) -> dict[str, str]:
        """The label of an operator's operands, such as ``4096²``; nothing without an operator."""
        if "operator" not in summary:
            return {}
        from opbench import operators

        shapes = [tuple(shape) for shape in summary["shapes"]]
        return {"size": operators.get(summary["operator"]).label(shapes)}

    def trace_path(self, item: pytest.Item) -> Path | None:
        """Where a test's trace goes; None where none can be written."""
        if self.trace_problem():
            return None
        return self.traces / trace_name(item.nodeid, self._controller.get("worker", ""))

    def write_trace(self, item: pytest.Item, trace: profiler.Trace) -> tuple[Path | None, str]:
        """Write a test's trace: its path, or None and why."""
        path = self.trace_path(item)
        if path is None:
            return None, self.trace_problem()
        try:
            profiler.write(trace, path)
        except TraceWriteError as error:
            return None, str(error)
        return path, ""

    def finished(
        self, item: pytest.Item, benchmark: Any, summary: Mapping[str, Any], notes: Sequence[str]
    ) -> None:
        """Keep a test's row for the closing section."""
        stats = getattr(benchmark, "stats", None)
        item.stash[ROW] = {
            "nodeid": item.nodeid,
            "name": item.name,
            "median": float(stats.stats.median) if stats else None,
            "summary": dict(summary),
            "notes": list(notes),
        }

    # the document

    def started(self) -> None:
        """Note load and switches before anything is measured, if this run will be saved."""
        if self.autosave:
            from opbench import probes

            self._usage = probes.usage()
            self._cpu = probes.cpu_reading()

    def disturbance(self) -> str:
        """A sentence if other processes used the CPUs during a saved run, or an empty string."""
        if self._cpu is None:
            return ""
        from opbench import probes

        after = probes.cpu_reading()
        share = probes.cpu_busy_elsewhere(self._cpu, after) if after is not None else None
        if share is None or share < DISTURBED:
            return ""
        return (
            f"other processes used {share:.0%} of the CPUs during this run, so its times are "
            "doubtful; measure again on a quiet machine"
        )

    @cached_property
    def environment(self) -> Environment:
        """What this run was measured on; its facts take a while to gather."""
        from opbench import probes, records

        return records.Environment.from_facts(probes.facts())

    @cached_property
    def document_block(self) -> dict[str, Any]:
        """The ``opbench`` block of a saved run: schema version, ids, environment, load.

        One for all documents of a run, such as those of ``--benchmark-json`` and of autosave.
        """
        from opbench import probes, records

        block = records.opbench_block(self.run_id, self.run_id, self.environment)
        return {**block, "usage": {"before": self._usage, "after": probes.usage()}}
