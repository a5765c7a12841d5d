"""opbench: how fast is a numerical operator, did it get slower, and what happened inside.

The public names load on first use: importing this package loads neither NumPy nor Numba, since
its pytest plugin is imported by every pytest of the environment it is installed in.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from opbench.version import __version__

if TYPE_CHECKING:
    from opbench import profiler
    from opbench.kernels import lane_begin, lane_end
    from opbench.operators import define as operator
    from opbench.runtime import cpu, gpu, nd, random, sym

__all__ = [
    "__version__",
    "cpu",
    "gpu",
    "lane_begin",
    "lane_end",
    "nd",
    "operator",
    "profiler",
    "random",
    "sym",
]

_HOMES = {
    "cpu": "opbench.runtime",
    "gpu": "opbench.runtime",
    "lane_begin": "opbench.kernels",
    "lane_end": "opbench.kernels",
    "nd": "opbench.runtime",
    "operator": "opbench.operators",
    "profiler": "opbench",
    "random": "opbench.runtime",
    "sym": "opbench.runtime",
}
# In its room the decorator has another name, since a module there is called operator.
_THERE = {"operator": "define"}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if home == __name__:
        # With it come the probes, which listen to its windows: compilations and collections are in
        # a trace whether or not anything of the runtime is loaded.
        importlib.import_module("opbench.probes")
        return importlib.import_module(f"{home}.{name}")
    value = getattr(importlib.import_module(home), _THERE.get(name, name))
    # Kept, so that the second use is a plain attribute.
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
