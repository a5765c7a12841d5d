"""Imperative arrays: making them, applying dot, and what a caller is told at once."""

from __future__ import annotations

import copy
import dataclasses
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

from opbench.errors import DTypeError, OperatorError, ReadOnlyError, ShapeError
from opbench.operators import registry
from opbench.operators.dot import OPERATOR
from opbench.runtime import NDArray, cpu, nd, sym


@pytest.fixture
def dot_kernel(monkeypatch):
    """Put another kernel under dot."""

    def put(kernel):
        operator = dataclasses.replace(OPERATOR, kernels={"cpu": kernel})
        monkeypatch.setitem(registry._OPERATORS, "dot", operator)

    yield put
    nd.waitall()


@pytest.fixture
def gate(dot_kernel):
    """A dot that waits for this event before it multiplies."""
    event = threading.Event()

    def kernel(a, b, out):
        event.wait()
        np.dot(a, b, out=out)

    dot_kernel(kernel)
    yield event
    event.set()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shapes", [((3, 4), (4, 5)), ((3, 4), (4,)), ((4,), (4, 5)), ((4,), (4,)), ((0, 3), (3, 2))]
)
def test_dot(shapes, dtype):
    a, b = (np.random.default_rng(0).uniform(-1, 1, shape).astype(dtype) for shape in shapes)
    c = nd.dot(nd.array(a), nd.array(b))

    assert (c.shape, c.dtype) == (np.dot(a, b).shape, np.dtype(dtype))
    np.testing.assert_allclose(c.asnumpy(), np.dot(a, b), rtol=1e-5, atol=1e-6)


def test_dot_returns_a_pending_array_of_known_shape(gate):
    a = nd.ones((3, 4))
    c = nd.dot(a, nd.ones((4, 5)))

    assert (c.shape, c.dtype, c.ctx, c.ndim, c.size, c.nbytes) == ((3, 5), "f4", cpu(), 2, 15, 60)
    assert repr(c) == "<NDArray 3×5 float32 @cpu(0) pending>"
    gate.set()
    c.wait_to_read()
    assert repr(c) == "<NDArray 3×5 float32 @cpu(0)>"


class TestCopies:
    @pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
    def test_of_a_pending_array_are_itself(self, gate, make):
        c = nd.dot(nd.ones((2, 2)), nd.ones((2, 2)))
        threading.Timer(0.05, gate.set).start()
        same = make(c)

        assert same is c
        assert same.asnumpy().tolist() == [[2, 2], [2, 2]]

    def test_a_pickle_waits_for_its_values(self, gate):
        c = nd.dot(nd.ones((2, 2), cpu(1)), nd.ones((2, 2), cpu(1)))
        threading.Timer(0.05, gate.set).start()
        restored = pickle.loads(pickle.dumps(c))  # noqa: S301 - bytes of our own

        assert (type(restored), restored.context, restored.dtype) == (NDArray, cpu(1), "f4")
        assert restored.asnumpy().tolist() == [[2, 2], [2, 2]]
        with pytest.raises(ValueError, match="read-only"):
            np.asarray(restored)[0] = 1

    def test_a_pickle_of_an_array_without_dimensions(self):
        assert pickle.loads(pickle.dumps(nd.array(3.0))).shape == ()  # noqa: S301 - bytes of our own


def test_a_pending_array_is_an_operand(gate):
    a = nd.array(np.diag([1.0, 2.0]))
    c = nd.dot(nd.dot(nd.dot(a, a), a), a)
    gate.set()

    assert c.asnumpy().tolist() == [[1, 0], [0, 16]]


@pytest.mark.parametrize(
    ("operands", "error", "words"),
    [
        ((nd.ones((2, 3)), nd.ones((2, 3))), ShapeError, "3, must equal .* 2"),
        ((nd.ones(2), nd.ones(2, dtype="float64")), DTypeError, "float32 and float64"),
        ((nd.ones(2, dtype="int64"), nd.ones(2, dtype="int64")), DTypeError, "not int64"),
        ((np.ones(2), nd.ones(2)), DTypeError, "operand 1 is a ndarray, which nd.array turns"),
        ((nd.ones(2), [1, 2]), DTypeError, "operand 2 is a list, which nd.array turns"),
        ((nd.ones(2), None), DTypeError, "operand 2 is a NoneType$"),
        ((sym.var("x"), nd.ones(2)), DTypeError, "operand 1 is a Symbol$"),
    ],
)
def test_a_call_that_cannot_work_is_refused_before_anything_is_queued(
    dot_kernel, operands, error, words
):
    called = []
    dot_kernel(lambda *_, **__: called.append(1))

    with pytest.raises(error, match=words):
        nd.dot(*operands)
    nd.waitall()
    assert not called


class TestFailure:
    @pytest.fixture
    def broken(self, dot_kernel):
        def kernel(a, b, out):
            if a[0, 0] < 0:
                raise FloatingPointError("negative corner")
            np.dot(a, b, out=out)

        dot_kernel(kernel)
        return nd.array([[-1.0, 0.0], [0.0, 1.0]]), nd.ones((2, 2))

    @pytest.mark.parametrize(
        "read",
        [
            lambda c: c.wait_to_read(),
            lambda c: c.asnumpy(),
            np.asarray,
            np.abs,
            lambda c: c + 1,
        ],
    )
    def test_is_raised_at_the_wait_every_time(self, broken, read):
        c = nd.dot(*broken)
        for _ in range(2):
            with pytest.raises(OperatorError) as caught:
                read(c)
            assert str(caught.value) == (
                "dot failed on float32 (2, 2) · float32 (2, 2): FloatingPointError: negative corner"
            )
            assert isinstance(caught.value.__cause__, FloatingPointError)

    def test_reaches_whatever_depends_on_it_as_the_first_cause(self, broken):
        _, good = broken
        bad = nd.dot(*broken)
        dependent = nd.dot(nd.dot(good, bad), good)
        independent = nd.dot(good, good)

        with pytest.raises(OperatorError, match="negative corner") as caught:
            dependent.wait_to_read()
        assert isinstance(caught.value.__cause__, FloatingPointError)
        assert independent.asnumpy().tolist() == [[2, 2], [2, 2]]

    def test_that_nobody_waited_for_is_raised_by_waitall_once(self, broken):
        nd.dot(*broken)

        with pytest.raises(OperatorError, match="negative corner"):
            nd.waitall()
        nd.waitall()

    def test_that_a_wait_has_raised_is_not_raised_by_waitall_again(self, broken):
        with pytest.raises(OperatorError):
            nd.dot(*broken).wait_to_read()
        nd.waitall()

    def test_keeps_no_operand_alive(self, dot_kernel):
        watches = []

        def kernel(a, b, out):
            watches.extend((weakref.ref(a), weakref.ref(out)))
            raise MemoryError

        dot_kernel(kernel)
        c = nd.dot(nd.ones((4, 4)), nd.ones((4, 4)))
        with pytest.raises(OperatorError) as caught:
            c.wait_to_read()
        nd.dot(nd.ones(0), nd.ones(0))
        with pytest.raises(OperatorError):
            nd.waitall()
        gc.collect()

        assert [watch() for watch in watches] == [None] * 4
        assert caught.value.__cause__ is not None


def test_operands_are_let_go_when_the_operator_ends(dot_kernel):
    watches = []

    def kernel(a, b, out):
        watches.append(weakref.ref(a))
        out[...] = 0

    dot_kernel(kernel)
    c = nd.dot(nd.ones((4, 4)), nd.ones((4, 4)))
    nd.waitall()

    assert watches[0]() is None
    assert c.asnumpy().sum() == 0


def test_a_result_that_nobody_holds_is_let_go_at_once(dot_kernel):
    watches = []

    def kernel(a, b, out):
        watches.append(weakref.ref(out))

    dot_kernel(kernel)
    a = nd.ones((4, 4))
    nd.dot(a, a)
    nd.waitall()

    assert watches[0]() is None


class TestArray:
    def test_copies_at_once(self):
        source = np.ones((2, 2))
        a = nd.array(source)
        source[...] = 7

        assert a.asnumpy().tolist() == [[1, 1], [1, 1]]

    @pytest.mark.parametrize(
        ("source", "dtype"),
        [
            ([1, 2], "float32"),
            (3, "float32"),
            ([[1.5]], "float32"),
            (np.ones(2), "float64"),
            (np.ones(2, "float16"), "float16"),
            (np.ones(2, ">f8"), "float64"),
            (np.arange(3), "int64"),
            (np.array([True]), "bool"),
        ],
    )
    def test_dtype(self, source, dtype):
        a = nd.array(source)

        assert a.dtype == np.dtype(dtype)
        assert a.dtype.isnative
        np.testing.assert_array_equal(a, source)

    def test_dtype_asked_for(self):
        assert nd.array(np.ones(2), dtype="float32").dtype == np.float32
        assert nd.array([1, 2], dtype=np.float64).dtype == np.float64

    def test_layout_is_c_order_whatever_the_source(self):
        source = np.arange(12.0).reshape(3, 4)[::-1, ::2].T
        a = nd.array(source)

        assert np.asarray(a).flags.c_contiguous
        np.testing.assert_array_equal(a, source)

    def test_of_a_pending_array(self, gate):
        a = nd.ones((2, 2))
        c = nd.dot(a, a)
        gate.set()

        assert nd.array(c).asnumpy().tolist() == [[2, 2], [2, 2]]

    @pytest.mark.parametrize(
        ("source", "words"),
        [
            (np.ones(2, complex), "not complex128"),
            (np.array([object()]), "not object"),
            (np.ones(2, np.longdouble), "at most 64 bits"),
            (["a"], "can be made of a list, which NumPy reads as str"),
            ({1, 2}, "no array of numbers can be made of a set"),
            (np.array(["a"]), "not str"),
            ([[1], [1, 2]], "no array can be made of this list"),
            (None, "can be made of a NoneType"),
        ],
    )
    def test_refuses_what_is_no_array_of_real_numbers(self, source, words):
        with pytest.raises(DTypeError, match=words):
            nd.array(source)

    def test_refuses_a_dtype_that_is_none(self):
        with pytest.raises(DTypeError, match="'flote32' is no dtype"):
            nd.array([1], dtype="flote32")
        with pytest.raises(DTypeError, match="not complex64"):
            nd.zeros(2, dtype="complex64")


def test_zeros_ones_empty():
    assert nd.zeros((2, 3)).asnumpy().tolist() == [[0] * 3] * 2
    assert nd.ones(3, dtype="float64").asnumpy().tolist() == [1, 1, 1]
    assert nd.ones([2, 0]).shape == (2, 0)
    assert nd.empty(np.int64(4)).shape == (4,)
    assert nd.empty(()).shape == ()
    assert nd.zeros(2).dtype == np.float32
    assert nd.zeros(2, dtype=None).dtype == nd.ones(2, dtype=None).dtype == np.float32
    assert nd.zeros(2, dtype=">f4").dtype.isnative


@pytest.mark.parametrize("shape", [-1, (2, -1), 1.5, (2, 1.5), "ab", None])
def test_shapes_that_are_none(shape):
    with pytest.raises(ShapeError):
        nd.zeros(shape)


@pytest.mark.parametrize("shape", [(1,) * 70, (10**30,), (2**62,), (2**40, 2**40)])
def test_shapes_that_no_array_can_have(shape):
    with pytest.raises(ShapeError, match="no array can have the shape"):
        nd.empty(shape)


class TestAstype:
    def test_waits_and_gives_a_new_array(self, gate):
        c = nd.dot(nd.ones((2, 2), cpu(1)), nd.ones((2, 2), cpu(1)))
        threading.Timer(0.05, gate.set).start()
        wide = c.astype("float64")

        assert (type(wide), wide.dtype, wide.context) == (NDArray, "f8", cpu(1))
        assert wide.asnumpy().tolist() == [[2, 2], [2, 2]]
        assert not np.shares_memory(c, c.astype(c.dtype))

    def test_refuses_what_no_array_holds(self):
        with pytest.raises(DTypeError, match="not complex64"):
            nd.ones(2).astype("complex64")

    def test_makes_operands_fit_as_the_error_advises(self):
        a, b = nd.ones(2), nd.ones(2, dtype="float64")
        with pytest.raises(DTypeError, match="convert one of them with astype"):
            nd.dot(a, b)

        assert float(nd.dot(a.astype("float64"), b)) == 2


def test_shape_dtype_and_context_never_change():
    a = nd.ones((2, 3))
    for attribute in ("shape", "dtype", "context", "ctx"):
        with pytest.raises(AttributeError):
            setattr(a, attribute, getattr(a, attribute))


class TestToNumPy:
    values = np.array([[1.0, -2.0], [3.0, 4.0]])

    @pytest.fixture
    def a(self):
        return nd.array(self.values)

    def test_asnumpy_is_ones_own_copy(self, a):
        mine = a.asnumpy()
        mine[0, 0] = 9

        assert mine.flags.owndata
        assert a.asnumpy()[0, 0] == 1

    def test_asarray_is_a_read_only_view(self, a):
        view = np.asarray(a)

        assert np.shares_memory(view, np.asarray(a))
        with pytest.raises(ValueError, match="read-only"):
            view[0, 0] = 9

    def test_array_protocol_copies_as_asked(self, a):
        assert not np.shares_memory(a.__array__(copy=True), np.asarray(a))
        assert a.__array__(copy=True).flags.writeable
        assert np.shares_memory(a.__array__(copy=False), np.asarray(a))
        assert a.__array__("float32").dtype == np.float32
        with pytest.raises(ValueError, match="without a copy"):
            a.__array__("float32", copy=False)

    def test_functions_and_arithmetic_give_numpys_results(self, a):
        np.testing.assert_array_equal(np.abs(a), np.abs(self.values))
        np.testing.assert_array_equal(np.concatenate([a, a]), np.concatenate([self.values] * 2))
        np.testing.assert_allclose(a, self.values)
        assert np.mean(a) == np.mean(self.values)
        for result, right in (
            (a + 1, self.values + 1),
            (1 - a, 1 - self.values),
            (self.values * a, self.values**2),
            (-a, -self.values),
            (a @ a, self.values @ self.values),
            (a == self.values, np.ones((2, 2), bool)),
            (np.add.reduce(a), self.values.sum(axis=0)),
        ):
            assert type(result) is np.ndarray
            np.testing.assert_array_equal(result, right)

    def test_an_array_of_numpys_own_can_be_the_output(self, a):
        out = np.zeros((2, 2))
        np.add(a, 1, out=out)
        out += a

        np.testing.assert_array_equal(out, 2 * self.values + 1)

    def test_an_ndarray_cannot_be_written(self, a):
        with pytest.raises(ReadOnlyError, match="add cannot write into an NDArray"):
            a += 1
        with pytest.raises(ReadOnlyError, match="add cannot write into an NDArray"):
            np.add.at(a, 0, 5)
        np.testing.assert_array_equal(a, self.values)

    def test_a_ufunc_reads_it_wherever_it_stands(self, a):
        mask, out = nd.array(self.values > 0), np.zeros((2, 2))
        np.add(self.values, 1, where=mask, out=out)
        np.add.at(out, 0, nd.array([1, -2]))

        assert out.tolist() == [[3, -2], [4, 5]]
        assert np.sum(self.values, where=mask) == 8
        assert np.sum(a, where=mask) == 8

    def test_indexing_length_and_scalars(self, a):
        assert len(a) == 2
        assert a[1, 0] == 3
        assert a[0].tolist() == [1, -2]
        assert [row.tolist() for row in a] == self.values.tolist()
        scalar = nd.dot(nd.ones(3), nd.ones(3))
        assert float(scalar) == 3.0
        assert bool(scalar)
        assert int(scalar) == 3
        with pytest.raises(TypeError, match="no length"):
            len(scalar)
        with pytest.raises(TypeError, match="0-d"):
            list(scalar)
        with pytest.raises(ValueError, match="ambiguous"):
            bool(a)


def test_nan_and_infinity_pass_through():
    a = np.array([[np.nan, 1.0], [np.inf, 0.0], [1.0, 1.0]])
    b = np.array([[1.0, 0.0], [0.0, 1.0]])

    with np.errstate(invalid="ignore"):
        right = np.dot(a, b)

    np.testing.assert_array_equal(nd.dot(nd.array(a), nd.array(b)), right)


def test_an_ndarray_is_made_by_nd():
    assert nd.NDArray is NDArray
