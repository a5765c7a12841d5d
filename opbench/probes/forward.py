"""An attached VTune or Nsight follows the window: through ittapi or nvtx, where they are installed.

The window resumes and pauses ITT's collector; for NVTX, which has no such call, it is a range that
Nsight Systems can capture by. Each recorded operator is a task, or a range, on its own thread.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from opbench.probes.around import AROUND
from opbench.probes.probe import Probe
from opbench.profiler import Mode

__all__ = ["Forward", "itt", "nvtx"]

DOMAIN = "opbench"
WINDOW = "opbench window"
NOTHING: dict[str, Any] = {}


class _Itt:
    """ITT: tasks that nest on their thread."""

    def __init__(self, package: ModuleType) -> None:
        self._package = package
        self._domain = package.domain(DOMAIN)
        self._names: dict[str, Any] = {}

    def begin(self) -> None:
        self._package.resume()

    def end(self) -> None:
        self._package.pause()

    def enter(self, name: str) -> None:
        handle = self._names.get(name)
        if handle is None:
            handle = self._names[name] = self._package.string_handle(name)
        self._package.task_begin(self._domain, handle)

    def leave(self, token: Any) -> dict[str, Any]:  # noqa: ARG002 - a hook's signature
        self._package.task_end(self._domain)
        return NOTHING


class _Nvtx:
    """NVTX: ranges that nest on their thread, with registered strings."""

    def __init__(self, package: ModuleType) -> None:
        self._domain = package.get_domain(DOMAIN)
        self._names: dict[str, Any] = {}
        self._window: Any = None

    def begin(self) -> None:
        self._window = self._domain.start_range(self._attributes(WINDOW))

    def end(self) -> None:
        if self._window is not None:
            self._domain.end_range(self._window)
        self._window = None

    def enter(self, name: str) -> None:
        self._domain.push_range(self._attributes(name))

    def leave(self, token: Any) -> dict[str, Any]:  # noqa: ARG002 - a hook's signature
        self._domain.pop_range()
        return NOTHING

    def _attributes(self, name: str) -> Any:
        known = self._names.get(name)
        if known is None:
            known = self._names[name] = self._domain.get_event_attributes(message=name)
        return known


def itt() -> _Itt | None:
    """The collector of VTune, or None where ittapi is not installed."""
    try:
        import ittapi
    except ImportError:
        return None
    return _Itt(ittapi)


def nvtx() -> _Nvtx | None:
    """The collector of Nsight, or None where nvtx is not installed."""
    try:
        import nvtx as package
    except ImportError:
        return None
    return _Nvtx(package)


class Forward(Probe):
    """A listener of the recorder that passes its transitions on to one collector.

    Args:
        find: gives the collector, or None; asked once, when the first window opens.
    """

    def __init__(self, find: Any) -> None:
        self._find = find
        self._found: Any = None

    def opened(self, modes: Mode) -> None:  # noqa: ARG002 - the modes make no difference
        """Look for the collector, and let it run."""
        if self._find is not None:
            find, self._find = self._find, None
            self._found = find()
        if self._found is not None:
            self._found.begin()
            AROUND.add(self._found)

    def closed(self) -> None:
        """Pause it; an operator that is under way ends its range."""
        if self._found is not None:
            AROUND.remove(self._found)
            self._found.end()

    def paused(self) -> None:
        """Pause it."""
        if self._found is not None:
            self._found.end()

    def resumed(self) -> None:
        """Let it run again."""
        if self._found is not None:
            self._found.begin()
