"""What can be computed: each operator's name, shape rule, cost, NumPy reference and cases.

An operator says nothing about when it runs (that is the runtime's) or how (the kernels').
"""

from __future__ import annotations

from opbench.operators import dot as _dot
from opbench.operators.accuracy import BLAS_REST_SECONDS
from opbench.operators.case import Case, uniform
from opbench.operators.operator import Cost, Operator, Shape
from opbench.operators.registry import cases, get, of_kernel, register

__all__ = [
    "BLAS_REST_SECONDS",
    "Case",
    "Cost",
    "Operator",
    "Shape",
    "cases",
    "get",
    "of_kernel",
    "register",
    "uniform",
]

register(_dot.OPERATOR, _dot.CASES)
