"""Dot products of vectors and matrices: packed, blocked, around a micro-kernel, in Numba alone."""

from __future__ import annotations

from opbench.kernels.dot.door import dot
from opbench.kernels.dot.records import dot_records

__all__ = ["dot", "dot_records"]
