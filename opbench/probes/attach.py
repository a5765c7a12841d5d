"""Which probes listen to a recorder."""

from __future__ import annotations

import os

from opbench.probes.collector import CollectorSlices
from opbench.probes.compiles import CompileSlices
from opbench.probes.forward import Forward, itt, nvtx
from opbench.probes.memory import PythonMemory, ResidentMemory
from opbench.probes.probe import Probe
from opbench.profiler import RECORDER, Mode, Profiler

__all__ = ["Probes", "attach", "track_python_memory"]


class Probes(Probe):
    """Those of one recorder; nothing is hooked while none of its windows is open.

    Attributes:
        collector: garbage collections; likewise ``compiles``. In every mode.
        resident: the resident set size, in mode memory.
        python: what tracemalloc sees, in mode memory, if it is asked for.
    """

    def __init__(self, recorder: Profiler) -> None:
        self._recorder = recorder
        self.collector = CollectorSlices(recorder)
        self.compiles = CompileSlices(recorder)
        self.resident = ResidentMemory(recorder)
        self.python = PythonMemory(recorder)
        self._synchronised = False
        listeners = (self.resident, self.python, Forward(itt), Forward(nvtx))
        # Last, so that a collection while the others begin is not in the trace.
        for listener in (self, *listeners, self.compiles, self.collector):
            recorder.add_listener(listener)
            if recorder.state == "run":  # autostart's, which is open before anything else is loaded
                listener.opened(Mode(recorder.mask))

    def opened(self, modes: Mode) -> None:  # noqa: ARG002 - the modes make no difference
        """Have what is left to be read be read before the window closes or pauses.

        Asked for as late as this, so that the engine, which waits for pending work, comes first.
        """
        if not self._synchronised:
            self._synchronised = True
            self._recorder.add_synchroniser(self._read)

    def _read(self) -> None:
        self.resident.read()
        self.python.read()

    def detach(self) -> None:
        """In a forked child: the window was the parent's, and so is what is attached to it."""
        self.python.detach()
        self.compiles.closed()
        self.collector.closed()


# For the life of the process, in which there is one recorder that matters.
_ATTACHED: dict[Profiler, Probes] = {}


def attach(recorder: Profiler = RECORDER) -> Probes:
    """The probes of this recorder; they listen from the first call on.

    A further call, inside a window, has them hear a Numba that was loaded since it opened.
    """
    probes = _ATTACHED.get(recorder)
    if probes is not None and recorder.state == "run":
        probes.compiles.resumed()
    if probes is None:
        probes = _ATTACHED[recorder] = Probes(recorder)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=probes.detach)
    return probes


def track_python_memory(recorder: Profiler = RECORDER, *, on: bool = True) -> None:
    """Have windows in mode memory count what Python, NumPy and compiled code allocate, or not.

    It holds from the next window on, and costs time at each allocation of the process while such a
    window is open: docs/memory.md has the figures.
    """
    attach(recorder).python.asked = on
