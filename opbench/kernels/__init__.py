"""HOW is it computed? Numeric loops over plain arrays; numba only here; profiled from outside."""

from __future__ import annotations

from opbench.kernels import roof
from opbench.kernels.dot import dot

__all__ = ["dot", "roof"]
