"""Dot products of vectors and matrices: packed, blocked, around a micro-kernel, in Numba alone."""

from __future__ import annotations

from opbench.kernels.dot.door import dot

__all__ = ["dot"]
