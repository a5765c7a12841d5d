"""Reads a saved run: pytest-benchmark's JSON, enriched by opbench or not."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NoReturn

from opbench.errors import RecordError
from opbench.records.environment import Environment, brief

__all__ = ["SCHEMA_VERSION", "RunRecord", "Sample", "read_run"]

SCHEMA_VERSION = 1
"""Of the ``opbench`` block.

1 (opbench 0.1): schema_version, record_id, launch_id, environment; and for each benchmark
  extra_info.opbench with flop, bytes (integers, per call) and profiled (true if its rounds ran
  inside a profiler window).
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """The numbers of one benchmark in one launch."""

    benchmark: str
    """The test's id."""
    launch: str
    """Id of the process launch that measured: the unit of replication."""
    unit: str
    """Of the values: ``s``, seconds per call."""
    values: tuple[float, ...]
    """One per round, in the order of measurement; finite, none negative, at least one."""
    flop: int | None = None
    """Floating point operations per call, if the writer knew."""
    bytes: int | None = None
    """Bytes that one call must move, if the writer knew."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What one saved run holds."""

    path: Path
    schema_version: int | None
    """None for a file that opbench did not enrich."""
    record_id: str
    """Shared by the launches that belong together."""
    launch_id: str
    date: datetime | None
    """With a time zone, UTC."""
    commit: str | None
    dirty: bool | None
    """Whether the working tree had changes that the commit does not hold."""
    environment: Environment
    samples: tuple[Sample, ...]
    """In the order of the file; each benchmark once."""
    excluded: tuple[tuple[str, str], ...]
    """Benchmarks that gave no sample, as (test id, reason)."""
    warnings: tuple[str, ...]
    """What the file lacks, in sentences that a report can print."""


def read_run(path: Path | str) -> RunRecord:
    """Reads one saved run.

    A file without opbench's additions is read as well; each lack is a warning. Its launch id is
    then made of its name and contents, so that copies agree and other files do not.

    Args:
        path: a JSON file that pytest-benchmark or ``save_run`` wrote.

    Raises:
        RecordError: the file cannot be read, is no strict JSON, is no saved run, or has a newer
            schema. An unreadable run is never skipped: a comparison against nothing looks green.
    """
    path = Path(path)
    raw = _bytes(path)
    document = _document(path, raw)
    fallback = f"{path.stem}-{hashlib.sha256(raw).hexdigest()[:8]}"
    warnings: list[str] = []
    block = _block(path, document)
    version = _version(path, block)
    launch = _id(path, block, "launch_id", fallback, warnings)
    samples, excluded = _samples(path, document, launch, warnings)
    commit, dirty = _commit(document, warnings)
    return RunRecord(
        path=path,
        schema_version=version,
        record_id=_id(path, block, "record_id", launch, warnings),
        launch_id=launch,
        date=_date(document, warnings),
        commit=commit,
        dirty=dirty,
        environment=_environment(path, document, block, warnings),
        samples=samples,
        excluded=excluded,
        warnings=tuple(warnings),
    )


def _refuse(
    path: Path,
    reason: str,
    cause: BaseException | None = None,
    advice: str = "save the run again, or take this file out of the comparison",
) -> NoReturn:
    msg = f"{path}: {reason}; {advice}"
    raise RecordError(msg) from cause


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        advice = "name a file that opbench or pytest-benchmark saved"
        _refuse(path, f"cannot be read: {reason}", error, advice)


def _document(path: Path, raw: bytes) -> dict[str, Any]:
    """The file's JSON, strictly: an object with a list of benchmarks."""
    if not raw.strip():
        _refuse(path, "is empty, since the run that wrote it was probably killed")
    try:
        document = json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        # ValueError covers bad UTF-8, bad JSON and an integer of more digits than Python reads.
        _refuse(path, f"is not strict JSON: {error}", error)
    if not isinstance(document, dict) or not isinstance(document.get("benchmarks"), list):
        _refuse(path, "is no saved run: expected an object with a list 'benchmarks'")
    return document


def _no_constant(constant: str) -> NoReturn:
    msg = f"{constant} is not a JSON number"
    raise ValueError(msg)


def _block(path: Path, document: Mapping[str, Any]) -> dict[str, Any] | None:
    block = document.get("opbench")
    if block is not None and not isinstance(block, dict):
        _refuse(path, f"its 'opbench' block is {type(block).__name__}, expected an object")
    return block


def _version(path: Path, block: Mapping[str, Any] | None) -> int | None:
    if block is None:
        return None
    version = block.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        _refuse(path, f"its schema version is {brief(version)}, expected a whole number from 1")
    if version > SCHEMA_VERSION:
        reason = (
            f"has schema version {brief(version)}, newer than {SCHEMA_VERSION}, the newest that "
            "this opbench reads"
        )
        _refuse(path, reason, advice="upgrade opbench to read it")
    return version


def _id(
    path: Path,
    block: Mapping[str, Any] | None,
    key: str,
    fallback: str,
    warnings: list[str],
) -> str:
    """The block's id under ``key``, or the fallback."""
    found = (block or {}).get(key)
    if found is None:
        if key == "launch_id":
            warnings.append("no launch id: taken to be one launch, named after the file")
        return fallback
    if not isinstance(found, str) or not found:
        _refuse(path, f"its {key} is {brief(found)}, expected text")
    return found


def _environment(
    path: Path,
    document: Mapping[str, Any],
    block: Mapping[str, Any] | None,
    warnings: list[str],
) -> Environment:
    """The block's environment; for a foreign file the little that pytest-benchmark notes."""
    facts = (block or {}).get("environment")
    if facts is None:
        warnings.append(
            "no environment: NumPy, Numba, BLAS and thread settings are not known, only "
            "pytest-benchmark's machine info"
        )
        facts = _machine_facts(document.get("machine_info"))
    if not isinstance(facts, dict):
        _refuse(path, f"its environment is {type(facts).__name__}, expected an object")
    try:
        return Environment.from_facts(facts)
    except RecordError as error:
        _refuse(path, str(error), error)


def _machine_facts(info: object) -> dict[str, Any]:
    """What pytest-benchmark's ``machine_info`` knows; facts of a wrong kind are left out."""
    info = info if isinstance(info, dict) else {}
    cpu = info.get("cpu")
    cpu = cpu if isinstance(cpu, dict) else {}
    count = cpu.get("count")
    texts = {
        "cpu_model": cpu.get("brand_raw", cpu.get("brand")),
        "machine": info.get("machine"),
        "system": info.get("system"),
        "implementation": info.get("python_implementation"),
    }
    facts: dict[str, Any] = {name: text for name, text in texts.items() if isinstance(text, str)}
    if isinstance(count, int) and not isinstance(count, bool):
        facts["cpu_count"] = count
    version = info.get("python_version")
    if isinstance(version, str):
        facts["python"] = ".".join(version.split(".")[:2])
    return facts


def _date(document: Mapping[str, Any], warnings: list[str]) -> datetime | None:
    """The run's time; older releases of pytest-benchmark wrote UTC without saying so."""
    text = document.get("datetime")
    try:
        # Python 3.10 reads an offset, but not the letter Z.
        moment = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
        if moment.tzinfo is None:
            return moment.replace(tzinfo=timezone.utc)
        return moment.astimezone(timezone.utc)
    except (ValueError, OverflowError):  # the second: an offset leads out of the years 1 to 9999
        warnings.append(f"no date: 'datetime' is {brief(text)}")
        return None


def _commit(document: Mapping[str, Any], warnings: list[str]) -> tuple[str | None, bool | None]:
    info = document.get("commit_info")
    info = info if isinstance(info, dict) else {}
    commit, dirty = info.get("id"), info.get("dirty")
    if not isinstance(commit, str) or commit in {"", "unknown", "unversioned"}:
        warnings.append("no commit: the run cannot be tied to a revision")
        return None, None
    return commit, dirty if isinstance(dirty, bool) else None


def _samples(
    path: Path, document: Mapping[str, Any], launch: str, warnings: list[str]
) -> tuple[tuple[Sample, ...], tuple[tuple[str, str], ...]]:
    """Every benchmark of the file, either as a sample or as excluded with its reason."""
    samples: dict[str, Sample] = {}
    excluded: list[tuple[str, str]] = []
    for position, entry in enumerate(document["benchmarks"]):
        benchmark = entry.get("fullname") if isinstance(entry, dict) else None
        if not isinstance(benchmark, str):
            _refuse(path, f"is no saved run: benchmark {position} has no 'fullname'")
        stats = entry.get("stats")
        if not isinstance(stats, dict):
            _refuse(path, f"is no saved run: {benchmark} has no 'stats'")
        extra = _opbench_extra(entry)
        reason = _reason(stats, extra)
        if reason is None and benchmark in samples:
            reason = "a second benchmark of the same id"
        if reason is not None:
            excluded.append((benchmark, reason))
            continue
        samples[benchmark] = Sample(
            benchmark=benchmark,
            launch=launch,
            unit="s",
            values=tuple(float(value) for value in stats["data"]),
            flop=_work(benchmark, extra, "flop", warnings),
            bytes=_work(benchmark, extra, "bytes", warnings),
        )
    if not samples:
        warnings.append("no sample: nothing in this run can be compared")
    return tuple(samples.values()), tuple(excluded)


def _opbench_extra(entry: Mapping[str, Any]) -> dict[str, Any]:
    extra = entry.get("extra_info")
    block = extra.get("opbench") if isinstance(extra, dict) else None
    return block if isinstance(block, dict) else {}


def _reason(stats: Mapping[str, Any], extra: Mapping[str, Any]) -> str | None:
    """Why a benchmark gives no sample, or None if it gives one."""
    if extra.get("profiled"):
        return "profiled: its rounds ran inside a profiler window"
    values = stats.get("data")
    if values is None:
        return "no round values: saved without --benchmark-save-data"
    if not isinstance(values, list) or not values:
        return f"no round values: 'data' is {values if values == [] else type(values).__name__}"
    for position, value in enumerate(values):
        if not _is_duration(value):
            return f"round {position} is {brief(value)}, no duration"
    return None


def _is_duration(value: object) -> bool:
    """Whether a round's value is a finite number from zero on (a coarse clock does read zero)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value) and value >= 0
    except OverflowError:
        return False


def _work(benchmark: str, extra: Mapping[str, Any], key: str, warnings: list[str]) -> int | None:
    amount = extra.get(key)
    if amount is None:
        return None
    if not isinstance(amount, int) or isinstance(amount, bool) or amount < 0:
        warnings.append(f"{benchmark}: {key} is {brief(amount)}, no whole number; left out")
        return None
    return amount
