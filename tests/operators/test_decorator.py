"""A user's own function as an operator: its rules, its first check, its ways into nd and sym."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import opbench
from opbench import nd, operators, profiler, runtime, sym
from opbench.errors import AccuracyError, ConfigError, DTypeError, OperatorError, ShapeError
from opbench.operators import Form, registry
from opbench.operators.registry import TAKEN


@pytest.fixture(autouse=True)
def _nothing_stays_registered(monkeypatch):
    monkeypatch.setattr(registry, "_OPERATORS", dict(registry._OPERATORS))
    monkeypatch.setattr(registry, "_CASES", dict(registry._CASES))


def triad(x, y):
    return 3 * x + y


def define(function=triad, **options):
    """Register a copy of a function under the options, with sensible ones for the rest."""
    given = {"flops": lambda x, y: 2 * x.size, "reference": triad, **options}
    return opbench.operator(**given)(function)


X = np.arange(6.0).reshape(2, 3)


# ---- the function itself


def test_the_function_is_returned_unchanged_and_known_under_its_name():
    assert define() is triad
    assert operators.get("triad").function is triad
    assert operators.of_kernel(triad) is operators.get("triad")


def test_a_compiled_kernel_writes_into_the_runtimes_own_array():
    @opbench.operator(flops=lambda x, y: 2 * x.size, reference=lambda x, y: 3 * x + y)
    @numba.njit
    def fused(x, y, out):
        for i in range(x.size):
            out[i] = 3 * x[i] + y[i]

    x = nd.array(np.arange(5.0))
    assert nd.fused(x, x).asnumpy().tolist() == [0, 4, 8, 12, 16]


def test_a_ufunc_is_a_function_too():
    opbench.operator(name="plus", flops=lambda x, y: x.size, reference=np.add)(np.add)
    a = nd.array(X)
    assert nd.plus(a, a).asnumpy().tolist() == (X + X).tolist()


# ---- nd, sym, the trace


def test_it_is_used_from_nd_and_sym_and_traced_with_shapes_and_work():
    define()
    a = nd.array(X, dtype="float32")
    nd.triad(a, a).wait_to_read()
    graph = sym.triad(sym.var("a"), sym.triad(sym.var("b"), sym.var("c")), name="top")
    executor = graph.bind(opbench.cpu(), {"a": a, "b": a, "c": a})
    profiler.RECORDER.run("symbolic + imperative", "test")
    result = nd.triad(a, a).asnumpy()
    whole = executor.forward()[0].asnumpy()
    trace = profiler.RECORDER.stop("test")
    assert result.tolist() == (4 * X).tolist()
    assert whole.tolist() == (7 * X).tolist()
    events = [e for e in trace.events if e.category in ("symbolic", "imperative")]
    assert [(e.category, e.name) for e in events] == [
        ("imperative", "triad"),
        ("symbolic", "triad"),
        ("symbolic", "triad"),
    ]
    expected = {
        "operator": "triad",
        "inputs": [[2, 3], [2, 3]],
        "outputs": [[2, 3]],
        "dtype": "float32",
        "flop": 12,
        "bytes": 3 * 6 * 4,
    }
    for event in events:
        assert {key: event.args[key] for key in expected} == expected


def test_calls_of_it_are_slices_of_mode_api():
    define()
    a = nd.array(X)
    nd.triad(a, a).wait_to_read()
    profiler.RECORDER.run("api", "test")
    nd.triad(a, a)
    sym.triad(sym.var("a"), sym.var("b"))
    trace = profiler.RECORDER.stop("test")
    names = [e.name for e in trace.events if e.phase == "X" and e.category == "api"]
    parts = ["nd.triad: check", "nd.triad: dispatch"]
    assert names == ["nd.triad", *parts, "sym.var", "sym.var", "sym.triad"]


def test_what_nd_and_sym_show_is_what_they_offer():
    define()
    assert set(dir(nd)) == {*nd.__all__, "triad"}
    assert set(dir(sym)) == {*sym.__all__, "triad"}
    assert dir(runtime.random) == ["uniform"]
    assert nd.triad.__name__ == "triad"


@pytest.mark.parametrize("module", [nd, sym])
def test_an_unknown_name_is_told_with_the_nearest(module):
    define()
    with pytest.raises(AttributeError, match="has no attribute 'traid'; did you mean 'triad'"):
        _ = module.traid
    with pytest.raises(AttributeError):
        _ = module._apply_nothing


def test_wrong_operands_are_told():
    define()
    a = nd.array(X)
    with pytest.raises(ShapeError, match="triad takes 2 operands, not 1"):
        nd.triad(a)
    with pytest.raises(ShapeError, match=r"nd\.triad takes operands, and was given none"):
        nd.triad()
    with pytest.raises(DTypeError, match=r"nd\.triad takes NDArrays; operand 2 is a ndarray"):
        nd.triad(a, X)
    with pytest.raises(ShapeError, match=r"cannot broadcast \(2, 3\) and \(4,\); if its result"):
        nd.triad(a, nd.ones(4, dtype="float64"))
    with pytest.raises(DTypeError, match=r"sym\.triad takes Symbols"):
        sym.triad(a, a)


# ---- rules


def test_the_rules_get_what_the_arrays_will_be():
    seen = []

    def count(x, y):
        seen.append((x.shape, x.ndim, x.size, x.itemsize, x.nbytes, y.dtype))
        return x.size

    define(flops=count, bytes=lambda x, y: x.nbytes + y.nbytes)
    cost = operators.get("triad").cost([(4, 5), (5,)], "float64")
    assert (cost.flop, cost.bytes) == (20, 200)
    assert seen == [((4, 5), 2, 20, 8, 160, np.dtype("float64"))]


def test_without_a_rule_for_bytes_each_array_is_touched_once():
    define()
    assert operators.get("triad").cost([(4, 5), (5,)], "float32").bytes == 4 * (20 + 5 + 20)


def test_a_shape_and_a_dtype_of_its_own():
    @opbench.operator(
        flops=lambda a: a.size,
        shape=lambda a: a.shape[:1],
        dtype="int64",
        reference=lambda a: np.argmax(a, axis=1),
    )
    def best(a):
        return np.argmax(a, axis=1)

    result = nd.best(nd.array(X))
    assert (result.shape, result.dtype.name) == ((2,), "int64")
    assert result.asnumpy().tolist() == [2, 2]


def test_the_result_of_mixed_dtypes_is_numpys_unless_a_rule_says_otherwise():
    define()
    infer = operators.get("triad").infer_dtype
    assert infer(["float32", "float64"]) == "float64"
    define(name="first", dtype=lambda x, y: x.dtype)
    assert operators.get("first").infer_dtype(["float32", "float64"]) == "float32"


def test_a_form_of_a_scalar():
    assert (Form((), np.dtype("float64")).size, Form((0, 3), np.dtype("int8")).nbytes) == (1, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reference": 3}, "reference must be a function, not 3"),
        ({"flops": -1}, "flops must be a whole number of 0 or more, not -1"),
        ({"flops": 1.5}, "flops must be a whole number of 0 or more, not 1.5"),
        ({"flops": "2n"}, "flops must be a whole number of 0 or more, not '2n'"),
        ({"bytes": True}, "bytes must be a whole number of 0 or more, not True"),
        ({"tolerance": 2}, "tolerance must be from 0 up and under 1, not 2"),
        ({"name": "two words"}, "'two words' is no name that nd.NAME could have"),
        ({"name": "lambda"}, "'lambda' is no name"),
        ({"name": "zeros"}, "nd.zeros is opbench's own and would hide an operator of that name"),
        ({"name": "variable"}, "sym.variable is opbench's own and would hide an operator"),
        ({"name": "_mine"}, "nd._mine would be hidden"),
        ({"name": "dot"}, "an operator named 'dot' is registered already"),
    ],
)
def test_a_wrong_argument_is_told_at_the_decoration(options, message):
    with pytest.raises(ConfigError) as caught:
        define(**options)
    assert message in str(caught.value)


def test_a_function_whose_operands_cannot_be_told_is_refused():
    with pytest.raises(ConfigError, match=r"'anything': how many operands .* wrap it"):
        define(lambda *arrays: arrays[0], name="anything")
    with pytest.raises(ConfigError, match="'nothing': the function has no parameter that is an op"):
        define(lambda out: out, name="nothing")
    with pytest.raises(ConfigError, match="'<lambda>' is no name"):
        define(lambda x: x)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"flops": lambda x: x.size}, "its rule flops failed on operands of the shapes (2,), (2,)"),
        ({"flops": lambda x, y: x.size / 3}, "flops must be a whole number of 0 or more, not 0.66"),
        ({"bytes": lambda x, y: x.nothing}, "its rule bytes failed on operands of the shapes"),
    ],
)
def test_a_rule_that_fails_is_named(rule, message):
    define(**rule)
    with pytest.raises(ConfigError) as caught:
        operators.get("triad").cost([(2,), (2,)], "float64")
    assert message in str(caught.value)


@pytest.mark.parametrize(("name", "module"), [("nd", nd), ("sym", sym)])
def test_every_public_name_of_a_module_is_refused_to_users(name, module):
    builtin = {"dot"}  # an operator itself
    assert set(module.__all__) == {*TAKEN[name], *builtin}


@pytest.mark.parametrize("module", [nd, sym])
def test_nothing_stands_in_a_module_that_could_hide_an_operator(module):
    # pytest adds names that begin with @ to the modules of an installed plugin.
    assert {name for name in vars(module) if name[0] not in "_@"} == set(module.__all__)


@pytest.mark.parametrize("name", ["same", "annotations", "applied", "get", "finder", "Any", "np"])
def test_an_operator_may_have_the_name_of_something_inside(name):
    define(name=name)
    array, variable = nd.array(X), sym.var("x")
    assert getattr(nd, name)(array, array).asnumpy().tolist() == (4 * X).tolist()
    assert getattr(sym, name)(variable, variable).operator.name == name
    assert {name} == {*dir(nd)} - {*nd.__all__} == {*dir(sym)} - {*sym.__all__}


def test_the_same_definition_may_come_again_and_another_may_not():
    def first():
        return define()

    first()
    first()  # as a cell of a notebook that runs twice
    assert operators.get("triad").function is triad
    with pytest.raises(ConfigError, match="an operator named 'triad' is registered already"):
        define(lambda x, y: x, name="triad")


# ---- the check


def test_a_wrong_operator_fails_where_its_result_is_waited_for():
    define(lambda x, y: 3 * x + y + 1e-6, name="slightly_off")
    a = nd.array(X)
    with pytest.raises(OperatorError, match=r"slightly_off failed .*AccuracyError") as caught:
        nd.slightly_off(a, a).wait_to_read()
    assert isinstance(caught.value.__cause__, AccuracyError)
    nd.waitall()


def test_each_form_of_operands_is_checked_once():
    asked = []

    def reference(x, y):
        asked.append((x.shape, x.dtype.name))
        return 3 * x + y

    define(reference=reference)
    for shape in (2, 2, 3, 2, 3):
        for dtype in ("float32", "float64"):
            nd.triad(nd.ones(shape, dtype=dtype), nd.ones(shape, dtype=dtype)).wait_to_read()
    # Four forms; the reference is always given float64.
    assert asked == [((2,), "float64")] * 2 + [((3,), "float64")] * 2


def test_an_operator_that_was_wrong_is_checked_again():
    results = [1.0, 0.0]
    define(lambda x, y: 3 * x + y + results.pop(0), name="mended")
    a = nd.array(X)
    with pytest.raises(OperatorError):
        nd.mended(a, a).wait_to_read()
    nd.mended(a, a).wait_to_read()
    assert results == []


@pytest.mark.parametrize(
    ("off", "tolerance", "right"),
    [(0.0, None, True), (1e-3, None, False), (1e-3, 1e-2, True), (1e-3, 1e-4, False)],
)
def test_how_far_a_result_may_lie(off, tolerance, right):
    define(lambda x, y: 3 * x + y + off, name="near", tolerance=tolerance)
    verify = operators.get("near").verify
    x = np.ones(3)
    if right:
        verify((x, x), 4 * x + off)
    else:
        with pytest.raises(AccuracyError, match=r"near on \(3,\) · \(3,\) float64: 3 of 3"):
            verify((x, x), 4 * x + off)


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8", "float32"])
def test_results_of_each_kind_are_compared(dtype):
    opbench.operator(name="same", flops=0, reference=lambda x: x)(lambda x: x)
    verify = operators.get("same").verify
    values = np.array([0, 1, 1], dtype)
    verify((values,), values)
    wrong = np.array([1, 1, 1], dtype)
    with pytest.raises(AccuracyError, match="1 of 3"):
        operators.get("same").check((values,), wrong)


def test_a_result_of_another_shape_or_dtype_says_what_to_add():
    define(lambda x, y: x.sum(), name="total")
    define(lambda x, y: (3 * x + y).astype("float32"), name="narrow")
    a = nd.array(X)
    with pytest.raises(OperatorError, match=r"say .* @opbench\.operator\(shape=...\)"):
        nd.total(a, a).wait_to_read()
    with pytest.raises(OperatorError, match=r"say .* @opbench\.operator\(dtype=...\)"):
        nd.narrow(a, a).wait_to_read()


def test_the_reference_is_called_with_the_operands_of_the_kernels_call():
    seen = []

    def with_out(x, y, out=None):
        seen.append(out)
        return np.add(x, y, out=out)

    x, out, lanes = np.ones(3), np.empty(3), np.empty(0)
    define(name="plain")
    assert operators.get("plain").reference(x, x, out, lanes).tolist() == [4, 4, 4]
    define(name="writing", reference=with_out)
    for call in (((x, x, out, lanes), {}), ((x, x), {"out": out}), ((x, x, out), {})):
        assert operators.get("writing").reference(*call[0], **call[1]) is out
    assert all(given is out for given in seen)


def test_a_direct_call_is_checked_with_the_array_it_wrote():
    def into(x, y, out):
        np.multiply(x, 3, out=out)

    define(into)
    x, out = np.ones(4), np.empty(4)
    into(x, x, out)
    with pytest.raises(AccuracyError, match=r"into on .* 4 of 4"):
        operators.verify_call(into, (x, x), {"out": out}, None)
    out += x
    operators.verify_call(into, (x, x, out), {}, None)
    operators.verify_call(len, ((),), {}, 0)  # a stranger's function is nobody's operator
