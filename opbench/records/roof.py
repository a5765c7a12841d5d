"""The machine's roof: what it reaches at most, kept beside the runs, good for one environment."""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from opbench.errors import RecordError
from opbench.records.environment import brief
from opbench.records.strict import strict_json

__all__ = ["Ceiling", "Roof", "load_roof", "save_roof"]

SCHEMA_VERSION = 1
COMPUTE, MEMORY = "compute", "memory"


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most that one operator can reach, and what bounds it.

    Attributes:
        flops: FLOP/s.
        bound: ``compute`` (multiply-adds) or ``memory`` (bandwidth times intensity).
    """

    flops: float
    bound: str


@dataclass(frozen=True, slots=True)
class Roof:
    """What a number of threads reach together on one machine.

    Attributes:
        environment: the facts that must be equal for the roof to hold, as plain values.
        threads: how many ran at the same time.
        measured: when, in ISO 8601 with a time zone.
        peaks: FLOP/s by dtype.
        bandwidth: (bytes of the working set, bytes/s), ascending in the working set; the last one
            is larger than the caches.
        quiet: whether other processes left the machine alone meanwhile; if not, the roof may be
            too low.
    """

    environment: Mapping[str, Any]
    threads: int
    measured: str
    peaks: Mapping[str, float] = field(default_factory=dict)
    bandwidth: tuple[tuple[int, float], ...] = ()
    quiet: bool = True

    def ceiling(self, flop: float, nbytes: float, dtype: str) -> Ceiling | None:
        """The roofline's height for one operator, or None where it is not known.

        The bandwidth is that of the smallest measured working set that holds the operator's bytes,
        or of a larger one that is faster: operands that fit a cache are read from it, as benchmarks
        use the same ones again and again.

        Args:
            flop: operations of one call.
            nbytes: bytes of one call, every operand once.
            dtype: whose peak counts.
        """
        peak = self.peaks.get(dtype)
        if peak is None or flop <= 0:
            return None
        if not self.bandwidth or nbytes <= 0:
            return Ceiling(peak, COMPUTE)
        last = self.bandwidth[-1][1]
        fitting = (rate for size, rate in self.bandwidth if size >= nbytes)
        slope = max(fitting, default=last) * flop / nbytes
        return Ceiling(peak, COMPUTE) if peak <= slope else Ceiling(slope, MEMORY)

    def best_of(self, newer: Roof) -> Roof:
        """The newer roof, each rate the higher of the two; what only one knows is kept.

        A rate that was reached once can be reached: a lower one was a disturbed measurement.
        """
        peaks = {
            dtype: max(self.peaks.get(dtype, 0.0), newer.peaks.get(dtype, 0.0))
            for dtype in (*self.peaks, *newer.peaks)
        }
        ours, theirs = dict(self.bandwidth), dict(newer.bandwidth)
        points = tuple(
            (size, max(ours.get(size, 0.0), theirs.get(size, 0.0)))
            for size in sorted({*ours, *theirs})
        )
        all_anew = peaks.keys() == newer.peaks.keys() and len(points) == len(theirs)
        quiet = newer.quiet and (all_anew or self.quiet)
        return replace(newer, peaks=peaks, bandwidth=points, quiet=quiet)


def _path(folder: Path, environment: Mapping[str, Any], threads: int) -> Path:
    """One file for each environment and number of threads, so that none replaces another."""
    text = json.dumps(environment, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return folder / f"{digest}-{threads}-threads.json"


def load_roof(folder: Path | str, environment: Mapping[str, Any], threads: int) -> Roof | None:
    """The stored roof of this environment and number of threads, or None if none is stored.

    Raises:
        RecordError: there is a file, and it cannot be read or is no roof of this environment.
    """
    path = _path(Path(folder), environment, threads)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        _refuse(path, f"cannot be read: {reason}", error)
    if not isinstance(document, Mapping) or document.get("schema_version") != SCHEMA_VERSION:
        _refuse(path, f"is no roof of schema {SCHEMA_VERSION}")
    if document.get("environment") != dict(environment) or document.get("threads") != threads:
        _refuse(path, "holds the roof of another environment than its name says")
    peaks, points = document.get("peaks"), document.get("bandwidth")
    if not isinstance(peaks, Mapping) or not isinstance(points, list):
        _refuse(path, "lacks its peaks or its bandwidth")
    return Roof(
        environment=dict(environment),
        threads=threads,
        measured=str(document.get("measured")),
        peaks={str(name): _rate(path, value) for name, value in peaks.items()},
        bandwidth=tuple(_point(path, point) for point in points),
        quiet=document.get("quiet") is True,
    )


def save_roof(folder: Path | str, roof: Roof) -> Path:
    """Store a roof over the one of the same environment and threads; written whole or not at all.

    Raises:
        RecordError: the folder cannot be written. What lay there is unchanged.
    """
    path = _path(Path(folder), roof.environment, roof.threads)
    text = strict_json(
        {
            "schema_version": SCHEMA_VERSION,
            "measured": roof.measured,
            "environment": dict(roof.environment),
            "threads": roof.threads,
            "peaks": dict(roof.peaks),
            "bandwidth": [list(point) for point in roof.bandwidth],
            "quiet": roof.quiet,
        }
    )
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            # A roof is good for one machine, so no repository wants it.
            (path.parent / ".gitignore").write_text("*\n", encoding="ascii")
        try:
            partial.write_text(text, encoding="ascii")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        msg = f"cannot save the roof as {path}: {error.strerror or error}; choose another folder"
        raise RecordError(msg) from error
    return path


def _rate(path: Path, value: object) -> float:
    """A rate as a file holds it: a positive number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse(path, f"has {brief(value)} where a rate stands")
    if not (math.isfinite(value) and value > 0):
        _refuse(path, f"has {brief(value)} where a positive rate stands")
    return float(value)


def _point(path: Path, value: object) -> tuple[int, float]:
    """A working set and its bandwidth."""
    if not isinstance(value, list) or len(value) != 2:  # noqa: PLR2004 - bytes and bytes/s
        _refuse(path, f"has {brief(value)} where a working set and its bandwidth stand")
    return int(_rate(path, value[0])), _rate(path, value[1])


def _refuse(path: Path, what: str, cause: BaseException | None = None) -> NoReturn:
    msg = f"{path} {what}; measure the roof again with: opbench roof --measure"
    raise RecordError(msg) from cause
