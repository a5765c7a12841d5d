"""The operator dot in its three forms; each case is checked before it is timed."""

import time

import pytest

from opbench import cpu, kernels, nd, operators, sym
from opbench.operators import Case

CASES = [
    pytest.param(case, id=case.id, marks=[pytest.mark.long] if case.long else [])
    for case in operators.cases("dot")
]


def checked(case: Case, inputs, result, *, timing):
    """Refuse a wrong result before anybody times how fast it is wrong."""
    case.check(inputs, result)
    if timing:
        time.sleep(operators.BLAS_REST_SECONDS)


@pytest.mark.parametrize("case", CASES)
def test_dot_kernel(profiler, case):
    """``kernels.dot(a, b, out=c)``: what is compared with ``np.dot(a, b, out=c)``."""
    a, b = case.inputs()
    c = kernels.dot(a, b)
    checked(case, (a, b), c, timing=profiler.timing)
    profiler(kernels.dot, a, b, out=c)


@pytest.mark.parametrize("case", CASES)
def test_dot_imperative(profiler, case):
    """``nd.dot(a, b)``: the same through the engine."""
    inputs = case.inputs()
    a, b = (nd.array(x) for x in inputs)
    checked(case, inputs, nd.dot(a, b).asnumpy(), timing=profiler.timing)
    profiler(nd.dot, a, b)


@pytest.mark.parametrize("case", CASES)
def test_dot_symbolic(profiler, case):
    """``Executor.forward()`` of a bound ``sym.dot``."""
    inputs = case.inputs()
    graph = sym.dot(sym.var("a"), sym.var("b"))
    executor = graph.bind(cpu(), dict(zip(("a", "b"), map(nd.array, inputs), strict=True)))
    checked(case, inputs, executor.forward()[0].asnumpy(), timing=profiler.timing)
    profiler(executor.forward)
