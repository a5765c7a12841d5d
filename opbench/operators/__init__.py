"""What can be computed: each operator's name, shape rule, cost, NumPy reference and cases.

An operator says nothing about when it runs (that is the runtime's) or how (the kernels').
"""

from __future__ import annotations

from opbench.kernels import lanes
from opbench.operators import dot as _dot
from opbench.operators import roof
from opbench.operators.accuracy import BLAS_REST_SECONDS
from opbench.operators.case import Case, uniform
from opbench.operators.decorator import Form, call_event, define, verify_call
from opbench.operators.operator import Cost, Operator, Shape
from opbench.operators.registry import cases, get, names, of_kernel, register
from opbench.operators.verification import verified

__all__ = [
    "BLAS_REST_SECONDS",
    "Case",
    "Cost",
    "Form",
    "Operator",
    "Shape",
    "call_event",
    "cases",
    "define",
    "get",
    "lanes",
    "names",
    "of_kernel",
    "register",
    "roof",
    "uniform",
    "verified",
    "verify_call",
]

register(_dot.OPERATOR, _dot.CASES)
