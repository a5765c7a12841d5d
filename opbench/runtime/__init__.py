"""When it runs: one worker thread, pending arrays, symbols and their executors.

MXNet's words. ``nd.dot(a, b)`` returns at once; the product is computed on the worker, first in
first out, and an error there is raised where the result is waited for.
"""

from __future__ import annotations

from opbench import probes
from opbench.runtime import nd, random, roof, sym
from opbench.runtime.context import Context, cpu, gpu
from opbench.runtime.engine import idle
from opbench.runtime.executor import Executor
from opbench.runtime.ndarray import NDArray
from opbench.runtime.symbol import Symbol

__all__ = [
    "Context",
    "Executor",
    "NDArray",
    "Symbol",
    "cpu",
    "gpu",
    "idle",
    "nd",
    "random",
    "roof",
    "sym",
]

# By now Numba is loaded: in autostart's window, which is open before it, it is heard from here on.
probes.attach()
