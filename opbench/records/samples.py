"""The benchmarks of one saved launch: what each entry gives, or why it gives nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from opbench.errors import ConfigError
from opbench.records.environment import brief
from opbench.records.floors import Floor

__all__ = ["Part", "Sample", "samples_of"]

SHORT_DTYPES = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64"}


class Part(NamedTuple):
    """What the profiled pass saw of one operator, or of another thing that takes time."""

    side: str
    """``operator``, ``api``, ``memory``, ``compile`` or ``imbalance``."""
    name: str
    value: float
    """Seconds per recorded iteration; of an imbalance, its ratio."""


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
    group: str | None = None
    """pytest-benchmark's."""
    floor: Mapping[str, Any] | None = None
    """As ``Floor.as_dict`` gives it; None where neither marker nor ini key named one."""
    parts: tuple[Part, ...] = ()
    """Of the profiled pass."""
    label: str = ""
    """Such as ``dot kernel 4096² f32``, where one operator is all there is."""
    kernel: str | None = None
    """The operator whose kernel was called directly: its source is all that was measured."""


def samples_of(
    entries: Sequence[Any], launch: str, warnings: list[str]
) -> tuple[tuple[Sample, ...], tuple[tuple[str, str], ...]]:
    """Every benchmark of the file, either as a sample or as excluded with its reason.

    Args:
        entries: the file's list of benchmarks.
        launch: the launch's id.
        warnings: is told what had to be left out of a sample.

    Raises:
        ValueError: an entry is no benchmark; says which.
    """
    samples: dict[str, Sample] = {}
    excluded: list[tuple[str, str]] = []
    for position, entry in enumerate(entries):
        benchmark = entry.get("fullname") if isinstance(entry, dict) else None
        if not isinstance(benchmark, str):
            msg = f"benchmark {position} has no 'fullname'"
            raise ValueError(msg)  # noqa: TRY004 - the file is wrong, and not a caller's type
        stats = entry.get("stats")
        if not isinstance(stats, dict):
            msg = f"{benchmark} has no 'stats'"
            raise ValueError(msg)  # noqa: TRY004 - as above
        extra = _opbench_extra(entry)
        reason = _reason(stats, extra)
        if reason is None and benchmark in samples:
            reason = "a second benchmark of the same id"
        if reason is not None:
            excluded.append((benchmark, reason))
            continue
        group = entry.get("group")
        samples[benchmark] = Sample(
            benchmark=benchmark,
            launch=launch,
            unit="s",
            values=tuple(map(float, stats["data"])),
            flop=_work(benchmark, extra, "flop", warnings),
            bytes=_work(benchmark, extra, "bytes", warnings),
            group=group if isinstance(group, str) else None,
            floor=_floor(benchmark, extra, warnings),
            parts=parts_of(extra),
            label=_label(extra),
            kernel=_text(extra, "operator") if extra.get("form") == "kernel" else None,
        )
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
    if type(value) is float:
        return 0 <= value < math.inf
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


def _floor(
    benchmark: str, extra: Mapping[str, Any], warnings: list[str]
) -> Mapping[str, Any] | None:
    found = extra.get("floor")
    if found is None:
        return None
    try:
        if isinstance(found, dict):
            Floor.from_dict(found, 0.0)
            return found
    except ConfigError:
        pass
    warnings.append(f"{benchmark}: its floor is {brief(found)}, which is none; left out")
    return None


def _text(extra: Mapping[str, Any], key: str) -> str | None:
    found = extra.get(key)
    return found if isinstance(found, str) and found else None


def _label(extra: Mapping[str, Any]) -> str:
    words = [_text(extra, key) for key in ("operator", "form", "size", "dtype")]
    if None in words:
        return ""
    *front, dtype = map(str, words)
    return " ".join([*front, SHORT_DTYPES.get(dtype, dtype)])


def parts_of(extra: Mapping[str, Any]) -> tuple[Part, ...]:
    """What the profiled pass of a benchmark saw, per iteration; whatever is no number is left out.

    Args:
        extra: the benchmark's ``extra_info["opbench"]``.
    """
    begin, end = (_number(extra.get(key)) for key in ("begin", "end"))
    iterations = end - begin if begin is not None and end is not None and end > begin else 1.0
    rows = extra.get("operators")
    found = []
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, dict):
            continue
        name, total = row.get("name"), _number(row.get("total"))
        if isinstance(name, str) and total is not None:
            found.append(Part(_side(row.get("category")), name, total / iterations))
    lanes = extra.get("lanes")
    imbalance = _number(lanes.get("imbalance")) if isinstance(lanes, dict) else None
    if imbalance is not None:
        found.append(Part("imbalance", "imbalance", imbalance))
    return tuple(found)


def _side(category: object) -> str:
    """Which side of a benchmark a row's category belongs to."""
    sides = {"api": "api", "memory": "memory", "compile": "compile"}
    return sides.get(category, "operator") if isinstance(category, str) else "operator"


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None
