"""HOW is it computed? Numeric loops over plain arrays; numba only here; profiled from outside."""

from __future__ import annotations

from opbench.kernels import lanes, roof
from opbench.kernels.dot import dot, dot_records
from opbench.kernels.lanes import lane_begin, lane_end

__all__ = ["dot", "dot_records", "lane_begin", "lane_end", "lanes", "roof"]
