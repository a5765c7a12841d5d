"""One record of a project as it stands: several fresh launches, saved one by one."""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from opbench import probes, records
from opbench.errors import ConfigError, RecordError
from opbench.launch.controls import Controls
from opbench.launch.guard import Guard
from opbench.launch.launch import Launch, LaunchResult, run_launch
from opbench.launch.launcher import Run, how_it_ended, last_words
from opbench.launch.machine import machine_facts
from opbench.launch.revision import without_git
from opbench.launch.side import THREAD_VARIABLES
from opbench.launch.stages import Progress
from opbench.launch.survey import PLUGIN, Survey, install_plugin, read_survey
from opbench.launch.survey_plugin import VARIABLE

__all__ = ["RecordResult", "RunOptions", "measure_record"]

# 25 rounds of at least 20 ms: half a second a benchmark. What the user gives comes later and wins.
_ROUNDS = (
    "--benchmark-min-rounds=25",
    "--benchmark-min-time=0.02",
    "--benchmark-max-time=0.5",
    "--benchmark-calibration-precision=100",
    "--benchmark-warmup=on",
    "--benchmark-warmup-iterations=1",
)
_USAGE_ERROR = 4


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What is asked for; ``opbench run --help`` says what each means."""

    folder: Path
    runs: Path
    """Where saved runs lie."""
    launches: int = 5
    words: tuple[str, ...] = ()
    """For pytest: paths and options."""
    timeout_s: float = 600.0
    threads: int | None = None
    python: str = sys.executable


@dataclass(slots=True)
class RecordResult:
    """What came of it."""

    record_id: str
    launches: int
    saved: list[Path] = field(default_factory=list)
    benchmarks: set[str] = field(default_factory=set)
    """Ids that at least one saved launch measured."""
    failed: dict[str, str] = field(default_factory=dict)
    """Tests whose numbers were left out, with the reason."""
    problems: list[str] = field(default_factory=list)
    """Launches that gave nothing."""
    usage_error: str = ""


def measure_record(
    options: RunOptions,
    progress: Progress,
    result: RecordResult | None = None,
    run: Run = run_launch,
    controls: Callable[[], Mapping[str, float]] | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
) -> RecordResult:
    """Launch the suite several times, and save each launch as soon as it is done.

    Args:
        options: what is asked for.
        progress: is told how far it is.
        result: is filled while it goes on, for whoever is interrupted; a new one if None.
        run: starts one process.
        controls: times the control kernels.
        now: the moment, with its time zone.

    Raises:
        ConfigError: the number of launches is no such number.
        RecordError: the folder of the runs cannot be written; nothing was measured then.
    """
    if options.launches < 1:
        msg = f"--launches is {options.launches}; give at least 1, and 5 for a verdict"
        raise ConfigError(msg)
    folder = options.runs / _machine_id()
    _check_writable(folder)
    _ignore_contents(options.runs)
    result = RecordResult("", 0) if result is None else result
    result.record_id = records.new_launch_id(now(), secrets.token_hex(4))
    result.launches = options.launches
    controls = Controls().measure if controls is None else controls
    facts: dict[str, Any] | None = None
    seconds: float | None = None
    with Guard() as guard:
        plugin = install_plugin(guard.folder / "plugin")
        for number in range(1, options.launches + 1):
            left = None if seconds is None else (options.launches - number + 1) * seconds
            progress.step(number - 1, options.launches, left, "launches done")
            around = _Around(dict(controls()), probes.usage())
            ended, survey = _launch(options, guard, plugin, run)
            seconds = ended.seconds
            problem = _problem(ended, options)
            if problem:
                result.problems.append(f"launch {number} of {options.launches}: {problem}")
                if ended.exit_code == _USAGE_ERROR:
                    result.usage_error = last_words(ended, 3)
                    return result
                continue
            facts = machine_facts() if facts is None else facts
            document = _enriched(ended, survey, result, around, facts, now())
            if not document["benchmarks"]:
                reason = "no benchmark passed"
                result.problems.append(f"launch {number} of {options.launches}: {reason}")
                continue
            name = f"{result.record_id}-{number}of{options.launches}"
            path, _ = records.save_run(folder, document, name)
            result.saved.append(path)
            result.benchmarks |= {entry["fullname"] for entry in document["benchmarks"]}
    return result


@dataclass(frozen=True, slots=True)
class _Around:
    """What was read before a launch."""

    controls: Mapping[str, float]
    usage: Mapping[str, float | int | None]


def _launch(
    options: RunOptions, guard: Guard, plugin: Path, run: Run
) -> tuple[LaunchResult, Survey | None]:
    path = guard.folder / "survey.json"
    path.unlink(missing_ok=True)
    kept = {k: v for k, v in without_git(os.environ).items() if not k.startswith("PYTEST_XDIST_")}
    before = kept.get("PYTHONPATH")
    kept["PYTHONPATH"] = os.pathsep.join([*([before] if before else []), str(plugin)])
    kept[VARIABLE] = str(path)
    if options.threads is not None:
        kept |= dict.fromkeys(THREAD_VARIABLES, str(options.threads))
    launch = Launch(
        arguments=("-p", PLUGIN, *_ROUNDS, *options.words),
        cwd=options.folder,
        environment=kept,
        timeout_s=options.timeout_s,
        python=options.python,
        scratch=guard.folder,
    )
    return run(launch, guard.group), read_survey(path)


def _problem(ended: LaunchResult, options: RunOptions) -> str:
    if ended.document is None or not isinstance(ended.document.get("benchmarks"), list):
        return how_it_ended(ended, options.timeout_s)
    return ""


def _enriched(
    ended: LaunchResult,
    survey: Survey | None,
    result: RecordResult,
    around: _Around,
    facts: Mapping[str, Any],
    now: datetime,
) -> dict[str, Any]:
    """The launch's document with the ids of its record, what else was measured, and no failures."""
    document = dict(ended.document or {})
    block = document.get("opbench")
    if not isinstance(block, dict) or not isinstance(block.get("environment"), dict):
        environment = records.Environment.from_facts(probes.facts())
        launch_id = records.new_launch_id(now, secrets.token_hex(4))
        block = records.opbench_block(launch_id, result.record_id, environment)
    document["opbench"] = {
        **block,
        "record_id": result.record_id,
        "environment": {**block["environment"], **facts},
        "usage": {"before": around.usage, "after": probes.usage()},
        "launcher": {
            "controls": dict(around.controls),
            "seconds": ended.seconds,
            "exit_code": ended.exit_code,
            "busy_elsewhere": ended.busy_elsewhere,
            "steal": ended.noise.steal,
            "load_before": ended.noise.load_before,
            "load_after": ended.noise.load_after,
            "voluntary_switches": ended.noise.voluntary_switches,
            "involuntary_switches": ended.noise.involuntary_switches,
        },
        "operators": dict(survey.operators) if survey else {},
    }
    document["benchmarks"] = list(_passed(document["benchmarks"], survey, result))
    return document


def _passed(
    entries: Sequence[Any], survey: Survey | None, result: RecordResult
) -> Sequence[dict[str, Any]]:
    """The entries of tests that passed: the next baseline must not hold a failed one's."""
    outcomes = dict(survey.outcomes) if survey else {}
    for name, (how, why) in outcomes.items():
        if how == "failed":
            result.failed[name] = why.strip().splitlines()[0] if why.strip() else "no reason given"
    return [
        entry
        for entry in entries
        if isinstance(entry, dict)
        and outcomes.get(entry.get("fullname", ""), ("passed",))[0] == "passed"
    ]


def _check_writable(folder: Path) -> None:
    """Say before minutes of measuring that nothing of it could be kept."""
    probe = folder / f".{secrets.token_hex(4)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        msg = (
            f"cannot save a run in {folder}: {error.strerror or error}; nothing was measured. Name "
            "another folder with --results"
        )
        raise RecordError(msg) from error


def _ignore_contents(folder: Path) -> None:
    """Saved runs are no part of the project's history, unless somebody says so."""
    ignore = folder / ".gitignore"
    if not ignore.exists():
        with contextlib.suppress(OSError):
            ignore.write_text("*\n", encoding="ascii")


def _machine_id() -> str:
    """pytest-benchmark's name for the folder of a machine's runs."""
    version = ".".join(platform.python_version_tuple()[:2])
    bits = platform.architecture()[0]
    return f"{platform.system()}-{platform.python_implementation()}-{version}-{bits}"
