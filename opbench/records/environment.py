"""What must be equal for two records to be comparable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from opbench.errors import RecordError

__all__ = ["Environment", "brief"]

SHOWN = 60


@dataclass(frozen=True, slots=True)
class Environment:
    """The facts that two records must share before their times may be related.

    It receives facts and gathers none. None means that a fact is not known: NumPy's version in
    a session that never loaded NumPy, or most of them in a file that opbench did not write.

    Never among them: the host's name, and a measured frequency. Both differ between two
    sessions on one machine (pytest-benchmark#255), and neither makes a kernel slower.
    """

    cpu_model: str | None = None
    """The processor's marketing name, as the operating system gives it."""
    cpu_count: int | None = None
    """Logical CPUs of the machine."""
    usable_cpus: int | None = None
    """Logical CPUs that the process may run on. A count, not a set: a container runtime that
    pins each job to other cores of the same machine would otherwise split its history."""
    machine: str | None = None
    """Instruction set, such as ``x86_64``."""
    system: str | None = None
    """Operating system, such as ``Linux``."""
    python: str | None = None
    """Minor version, such as ``3.11``; ``3.13t`` for a build without the global lock."""
    implementation: str | None = None
    """Such as ``CPython``."""
    numpy: str | None = None
    numba: str | None = None
    threading_layer: str | None = None
    """Numba's: the one that runs, or the one configured as long as none was started."""
    numba_threads: int | None = None
    """Size of Numba's thread pool."""
    thread_settings: tuple[tuple[str, str], ...] = ()
    """The environment variables that set thread counts, sorted by name."""
    blas_name: str | None = None
    blas_version: str | None = None

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Environment:
        """Picks what matters out of ``facts``, as ``probes.facts()`` or ``as_dict()`` gives it.

        Facts that are not listed above are ignored, so that a newer writer can add some.

        Raises:
            RecordError: a fact has a value of the wrong kind, as only a damaged file has.
        """
        known: dict[str, Any] = {field.name: facts.get(field.name) for field in fields(cls)}
        known["thread_settings"] = _settings(facts.get("thread_settings"))
        for name in ("cpu_count", "usable_cpus", "numba_threads"):
            _expect(name, known[name], int)
        for name in known.keys() - {"cpu_count", "usable_cpus", "numba_threads", "thread_settings"}:
            _expect(name, known[name], str)
        return cls(**known)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON; ``from_facts`` makes an equal environment of them."""
        facts = {field.name: getattr(self, field.name) for field in fields(self)}
        facts["thread_settings"] = dict(self.thread_settings)
        return facts

    def differences(self, other: Environment) -> tuple[tuple[str, Any, Any], ...]:
        """Each fact that is not equal as (field, ours, theirs), in the order of the fields.

        A fact that only one side knows is among them, its other side None: the caller decides
        whether not knowing is reason enough to refuse a comparison.
        """
        pairs = (
            (field.name, getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)
        )
        return tuple((name, ours, theirs) for name, ours, theirs in pairs if ours != theirs)


def brief(value: object) -> str:
    """A value from a file in a message: its first 60 characters."""
    text = repr(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def _settings(value: object) -> tuple[tuple[str, str], ...]:
    """Thread settings as sorted pairs, from a mapping of text to text."""
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        msg = f"environment: thread_settings is {brief(value)}, expected names with their values"
        raise RecordError(msg)
    for item in value.values():
        _expect("thread_settings", item, str)
    return tuple(sorted((str(name), item) for name, item in value.items()))


def _expect(name: str, value: object, kind: type) -> None:
    """Raises unless the fact is unknown or of its kind; True is no count."""
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
        msg = f"environment: {name} is {brief(value)}, expected {kind.__name__} or null"
        raise RecordError(msg)
