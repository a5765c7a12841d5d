"""Reads the file of a launch: pytest-benchmark's JSON, enriched by opbench or not."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NoReturn

from opbench.errors import RecordError
from opbench.records.environment import Environment, brief
from opbench.records.samples import Sample, samples_of
from opbench.units import format_bytes

__all__ = ["SCHEMA_VERSION", "Launch", "document_of", "read_run"]

SCHEMA_VERSION = 1
"""Of the ``opbench`` block. There has been one so far, and it has grown: what was added later is
optional, and a file that lacks it is read with a warning of what that costs. A field that changes
its meaning makes a new number, and its reader then says how the older one is understood.

1 (opbench 0.1): schema_version, record_id, launch_id, environment; and for each benchmark
  extra_info.opbench with flop, bytes (integers, per call) and profiled (true if its rounds ran
  inside a profiler window). Optional since: environment.kernel, caches, container,
  virtual_machine, governor and turbo; launcher (controls, load, steal); operators (fingerprints);
  and for each benchmark extra_info.opbench.floor and operators (totals of the profiled pass).
"""

MOST_BYTES = 256_000_000
"""A launch of 10,000 benchmarks takes 20 MB; what is larger than this is something else."""

_MACHINE = ("kernel", "caches", "container", "virtual_machine", "governor", "turbo")


@dataclass(frozen=True, slots=True)
class Launch:
    """What one file holds: the numbers of one fresh process."""

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
    enriched: bool = True
    """Whether the file names its record; if not, it is one of its own."""
    machine: tuple[tuple[str, str], ...] = ()
    """Facts beside the environment's, such as the kernel's release, as text and sorted."""
    controls: Mapping[str, float] = field(default_factory=dict)
    """Seconds a call of the control kernels just before the launch."""
    noise: Mapping[str, float] = field(default_factory=dict)
    """What disturbed it: load_before, load_after, steal, busy_elsewhere and the like."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Fingerprint of each operator's source."""


def read_run(path: Path | str) -> Launch:
    """Reads the file of one launch.

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
    document = document_of(path, raw)
    fallback = f"{path.stem}-{hashlib.sha256(raw).hexdigest()[:8]}"
    warnings: list[str] = []
    block = _block(path, document)
    version = _version(path, block)
    launch = _id(path, block, "launch_id", fallback, warnings)
    try:
        samples, excluded = samples_of(document["benchmarks"], launch, warnings)
    except ValueError as error:
        _refuse(path, f"is no saved run: {error}", error)
    if not samples:
        warnings.append("no sample: nothing in this run can be compared")
    commit, dirty = _commit(document, warnings)
    block = block or {}
    return Launch(
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
        enriched=isinstance(block.get("record_id"), str),
        machine=_machine(block.get("environment")),
        controls=_numbers(_object(block, "launcher"), "controls"),
        noise=_numbers(block, "launcher"),
        sources={
            name: mark
            for name, mark in _object(block, "operators").items()
            if isinstance(mark, str) and mark
        },
    )


def _object(block: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = block.get(key)
    return found if isinstance(found, dict) else {}


def _numbers(block: Mapping[str, Any], key: str) -> dict[str, float]:
    """The finite numbers above 0 of an object in the block; what is none is not known."""
    return {
        name: float(value)
        for name, value in _object(block, key).items()
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
    }


def _machine(facts: object) -> tuple[tuple[str, str], ...]:
    """Facts that the launcher adds to the environment, as text."""
    facts = facts if isinstance(facts, dict) else {}
    known = {name: facts[name] for name in _MACHINE if facts.get(name) is not None}
    return tuple(
        (
            name,
            ", ".join(f"{k} {v}" for k, v in value.items())
            if isinstance(value, dict)
            else str(value),
        )
        for name, value in sorted(known.items())
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
    advice = "name a file that opbench or pytest-benchmark saved"
    try:
        with path.open("rb") as stream:
            size = path.stat().st_size
            # Bounded: a file may grow, or have no size, as a pipe and a device have none.
            raw = stream.read(MOST_BYTES + 1) if size <= MOST_BYTES else b""
            size = max(len(raw), size)
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        _refuse(path, f"cannot be read: {reason}", error, advice)
    if size > MOST_BYTES:
        limit = format_bytes(MOST_BYTES)
        _refuse(
            path, f"has {format_bytes(size)}, more than the {limit} of any saved run", None, advice
        )
    return raw


def document_of(path: Path, raw: bytes) -> dict[str, Any]:
    """The file's JSON, strictly: an object with a list of benchmarks.

    Raises:
        RecordError: it is something else; says what.
    """
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
        elif block:
            warnings.append("no record id: taken to be a record of its own")
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
