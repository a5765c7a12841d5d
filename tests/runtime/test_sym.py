"""Symbols, binding and executors."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from opbench.errors import BindError, DTypeError, OperatorError, ShapeError, StateError
from opbench.operators import Cost, Operator, get
from opbench.runtime import NDArray, Symbol, cpu, nd, sym


def operator(kernel, name="twice"):
    """An elementwise operator of one input, as a stranger would write it."""
    return Operator(
        name=name,
        infer_shape=lambda shapes: shapes[0],
        infer_dtype=lambda dtypes: dtypes[0],
        cost=lambda shapes, dtype: Cost(1, 1),
        reference=kernel,
        kernels={"cpu": kernel},
        label=str,
        check=lambda inputs, result: None,
    )


def twice(x, out):
    np.multiply(x, 2, out=out)


DOT = get("dot")
A, B = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)


def test_forward_computes_the_graph():
    graph = sym.dot(sym.dot(sym.var("a"), sym.var("b")), sym.var("c"))
    c = np.ones((4, 2))
    (out,) = graph.bind(cpu(), {"a": A, "b": [B], "c": [nd.array(c)]}).forward()

    assert isinstance(out, NDArray)
    np.testing.assert_array_equal(out, A @ B @ c)


def test_variable_is_another_word_for_var():
    assert sym.variable is sym.var


def test_arguments_come_once_in_the_order_of_the_graph():
    a, b = sym.var("a"), sym.var("b")

    assert sym.dot(sym.dot(b, a), b).list_arguments() == ["b", "a"]
    assert a.list_arguments() == ["a"]


def test_names_of_nodes():
    a = sym.var("a")
    first, second = sym.dot(a, a), sym.dot(a, a)

    assert int(second.name.removeprefix("dot")) == int(first.name.removeprefix("dot")) + 1
    assert sym.dot(a, a, name="mine").name == "mine"
    assert repr(sym.dot(a, a, name="mine")) == "<Symbol mine = dot(a, a)>"
    assert repr(a) == "<Symbol a>"


@pytest.mark.parametrize("name", ["", None, 3])
def test_a_symbol_has_a_name(name):
    with pytest.raises(BindError, match="name is a text"):
        sym.var(name)
    with pytest.raises(BindError, match="name is a text"):
        Symbol(name, DOT, (sym.var("a"), sym.var("b")))


def test_a_symbol_never_changes_and_equals_itself_only():
    a = sym.var("a")
    for attribute in ("name", "operator", "inputs", "other"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(a, attribute, "b")

    assert (a.name, a.operator, a.inputs) == ("a", None, ())
    assert a != sym.var("a")
    assert len({a, sym.var("a")}) == 2


def test_operands_are_symbols():
    with pytest.raises(DTypeError, match=r"sym.dot takes Symbols; operand 2 is a ndarray"):
        sym.dot(sym.var("a"), A)


GRAPH = sym.dot(sym.var("left"), sym.var("right"))


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"left": A}, "no array was given for 'right'; the arguments are left, right"),
        ({}, "for 'left', 'right'"),
        ({"left": A, "right": B, "rigth": B}, "no argument 'rigth'; did you mean 'right'"),
        ({"left": A, "right": [B, B]}, "'right' is a list of 2"),
        ({"left": [], "right": B}, "'left' is a list of 0"),
        ({"left": A, "right": [[1.0, 2.0]]}, "'right' is a list; give an NDArray"),
        ({"left": 3, "right": B}, "'left' is a int"),
        ([A, B], "a dictionary of name to array, not a list; the arguments are left, right"),
    ],
)
def test_bind_refuses_wrong_arguments(args, words):
    with pytest.raises(BindError, match=words):
        GRAPH.bind(cpu(), args)


def test_bind_refuses_two_variables_of_one_name():
    graph = sym.dot(sym.var("x"), sym.var("x"))

    with pytest.raises(BindError, match="2 variables are called 'x'; make one and use it twice"):
        graph.bind(cpu(), {"x": np.eye(2)})


def test_bind_infers_shapes_and_dtypes_and_names_the_node():
    a, b = sym.var("a"), sym.var("b")
    graph = sym.dot(sym.dot(a, b, name="inner"), b, name="outer")

    with pytest.raises(ShapeError, match="node 'outer': dot cannot multiply"):
        graph.bind(cpu(), {"a": A, "b": B})
    with pytest.raises(DTypeError, match=r"node 'inner': .*float64 and float32"):
        graph.bind(cpu(), {"a": A, "b": B.astype("float32")})


def test_bind_copies_numpy_arrays_and_takes_ndarrays_as_they_are():
    a = A.copy()
    executor = GRAPH.bind(None, {"left": a, "right": nd.array(B)})
    a[...] = 0

    np.testing.assert_array_equal(executor.forward()[0], A @ B)


def test_a_pending_array_can_be_bound():
    product = nd.dot(nd.array(A), nd.array(B))
    executor = GRAPH.bind(cpu(), {"left": product, "right": np.eye(4)})

    np.testing.assert_array_equal(executor.forward()[0], A @ B)


def test_forward_returns_at_once_and_runs_in_order():
    gate = threading.Event()

    def kernel(x, out):
        gate.wait()
        twice(x, out)

    executor = Symbol("n", operator(kernel), (sym.var("x"),)).bind(cpu(), {"x": A})
    first, second = executor.forward()[0], executor.forward()[0]

    assert "pending" in repr(first)
    assert "pending" in repr(second)
    gate.set()
    np.testing.assert_array_equal(second, 2 * A)
    np.testing.assert_array_equal(first, 2 * A)


def test_a_pass_may_be_read_after_the_next_one_was_started():
    passes = []

    def kernel(x, out):
        passes.append(1)
        out[...] = len(passes)

    executor = Symbol("n", operator(kernel), (sym.var("x"),)).bind(cpu(), {"x": A})
    outputs = [executor.forward()[0] for _ in range(5)]

    assert [out.asnumpy()[0, 0] for out in outputs] == [1, 2, 3, 4, 5]


def test_a_view_keeps_its_values_when_the_ndarray_is_gone():
    passes = []

    def kernel(x, out):
        passes.append(1)
        out[...] = len(passes)

    executor = Symbol("n", operator(kernel), (sym.var("x"),)).bind(cpu(), {"x": A})
    views = [np.asarray(executor.forward()[0])[1:].T for _ in range(6)]
    nd.waitall()

    assert [view[0, 0] for view in views] == [1, 2, 3, 4, 5, 6]


def test_a_loop_that_reads_each_result_works_on_two_blocks():
    addresses = set()

    def kernel(x, out):
        addresses.add(out.__array_interface__["data"][0])
        twice(x, out)

    executor = Symbol("n", operator(kernel), (sym.var("x"),)).bind(cpu(), {"x": A})
    for _ in range(10):
        outputs = executor.forward()
        outputs[0].wait_to_read()

    assert len(addresses) <= 2
    assert all(address % 64 == 0 for address in addresses)


def test_intermediate_results_take_turns_too():
    blocks = set()

    def kernel(x, out):
        blocks.add(out.__array_interface__["data"][0])
        twice(x, out)

    node = sym.var("x")
    for number in range(20):
        node = Symbol(f"n{number}", operator(kernel), (node,))
    executor = node.bind(cpu(), {"x": A})

    np.testing.assert_array_equal(executor.forward()[0], A * 2.0**20)
    assert len(blocks) == 2


def test_a_shared_expression_is_computed_once():
    calls = []

    def kernel(x, out):
        calls.append(1)
        twice(x, out)

    shared = Symbol("shared", operator(kernel), (sym.var("x"),))
    graph = sym.dot(sym.dot(shared, shared), shared)
    out = graph.bind(cpu(), {"x": np.eye(2)}).forward()[0]

    np.testing.assert_array_equal(out, 8 * np.eye(2))
    assert len(calls) == 1


def test_a_graph_may_be_deeper_than_pythons_stack():
    node = sym.var("x")
    for number in range(10_000):
        node = Symbol(f"n{number}", operator(lambda x, out: np.add(x, 1, out=out)), (node,))

    assert node.list_arguments() == ["x"]
    assert node.bind(cpu(), {"x": np.zeros(2)}).forward()[0].asnumpy().tolist() == [1e4, 1e4]
    assert repr(node) == "<Symbol n9999 = twice(n9998)>"


def test_a_graph_that_doubles_at_each_level_is_walked_once_per_node():
    node = sym.var("x")
    for number in range(200):
        node = sym.dot(node, node, name=f"n{number}")

    assert node.bind(cpu(), {"x": np.eye(1)}).forward()[0].asnumpy().tolist() == [[1]]


def test_a_variable_alone_is_its_own_output():
    out = sym.var("x").bind(cpu(), {"x": A}).forward()[0]

    np.testing.assert_array_equal(out, A)


def test_outputs_are_the_last_passes():
    executor = GRAPH.bind(cpu(), {"left": A, "right": B})
    with pytest.raises(StateError, match="before its first forward"):
        _ = executor.outputs
    executor.forward()
    last = executor.forward()

    assert executor.outputs[0] is last[0]
    executor.outputs.clear()
    assert len(executor.outputs) == 1


def test_a_failing_node_fails_the_pass_and_not_the_next_one():
    fail = [True]

    def kernel(x, out):
        if fail.pop():
            raise ValueError("first time")
        twice(x, out)

    fail[:] = [False, True]
    node = Symbol("n", operator(kernel), (sym.var("x"),))
    executor = sym.dot(node, sym.var("y")).bind(cpu(), {"x": A, "y": B})
    bad, good = executor.forward()[0], executor.forward()[0]

    with pytest.raises(
        OperatorError, match=r"^node 'n': twice failed on float64 \(2, 3\): .*first time"
    ):
        bad.wait_to_read()
    np.testing.assert_array_equal(good, 2 * A @ B)


def test_a_pass_on_a_failed_argument_fails_with_the_first_cause():
    def kernel(x, out):
        raise ValueError("the cause")

    bad = Symbol("n", operator(kernel), (sym.var("x"),)).bind(cpu(), {"x": A}).forward()[0]
    executor = GRAPH.bind(cpu(), {"left": bad, "right": B})

    with pytest.raises(OperatorError, match=r"twice failed .*the cause"):
        executor.forward()[0].asnumpy()
