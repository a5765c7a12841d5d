"""What dot takes, what it refuses, and the sentences it refuses with."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from opbench import kernels
from opbench.errors import AliasError, DTypeError, ReadOnlyError, ShapeError


def matrix(m=3, n=3, dtype="float32"):
    return np.arange(m * n, dtype=dtype).reshape(m, n)


@pytest.mark.parametrize(
    ("a", "b", "shape"),
    [
        ((2, 3), (3, 4), (2, 4)),
        ((2, 3), (3,), (2,)),
        ((3,), (3, 4), (4,)),
        ((3,), (3,), ()),
        ((0, 3), (3, 4), (0, 4)),
        ((2, 0), (0, 4), (2, 4)),
        ((2, 3), (3, 0), (2, 0)),
        ((0,), (0, 4), (4,)),
        ((2, 0), (0,), (2,)),
        ((0,), (0,), ()),
        ((1, 1), (1, 1), (1, 1)),
        ((1, 5), (5, 1), (1, 1)),
        ((5, 1), (1, 5), (5, 5)),
        ((1,), (1,), ()),
    ],
)
def test_the_result_has_numpys_shape_dtype_and_value(a, b, shape):
    x, y = np.ones(a, "float32"), np.ones(b, "float32")
    result = kernels.dot(x, y)
    assert type(result) is np.ndarray
    assert (result.shape, result.dtype) == (shape, np.dtype("float32"))
    np.testing.assert_array_equal(result, np.full(shape, a[-1], "float32"))


@pytest.mark.parametrize(
    ("a", "b", "sentence"),
    [
        (
            (2, 3),
            (4, 5),
            r"shapes \(2, 3\) and \(4, 5\).*\(3\) must equal.*\(4\).*transposed",
        ),
        ((3,), (4,), r"\(3\) must equal"),
        ((2, 3), (2,), r"\(3\) must equal"),
        ((), (3,), r"a has 0 dimensions"),
        ((3,), (), r"b has 0 dimensions"),
        ((2, 3, 4), (4, 5), r"a has 3 dimensions \(shape \(2, 3, 4\)\)"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(a, b, sentence):
    with pytest.raises(ShapeError, match=sentence):
        kernels.dot(np.ones(a, "float32"), np.ones(b, "float32"))


@pytest.mark.parametrize(
    ("dtype", "sentence"),
    [
        ("complex64", "a is complex64; multiply real and imaginary parts"),
        ("object", r"a is object; convert it with .astype\('float64'\)"),
        ("float16", r"a is float16; convert it with .astype\('float32'\)"),
        ("longdouble", "convert it with .astype"),
        ("bool", r"a is bool; convert it with .astype\('int32'\)"),
        ("int8", r"convert it with .astype\('int32'\)"),
        ("uint32", r"convert it with .astype\('int64'\)"),
        ("U3", r"float32, float64, int32, int64, and a is <U3"),
    ],
)
def test_other_dtypes_are_refused_with_what_to_do(dtype, sentence):
    array = np.zeros((2, 2), dtype)
    with pytest.raises(DTypeError, match=sentence):
        kernels.dot(array, array)


def test_mixed_dtypes_are_refused_from_either_side():
    with pytest.raises(DTypeError, match="float32 and float64: both operands need one dtype"):
        kernels.dot(matrix(), matrix(dtype="float64"))
    with pytest.raises(DTypeError, match="int64 and int32"):
        kernels.dot(matrix(dtype="int64"), matrix(dtype="int32"))


@pytest.mark.parametrize("operand", [[[1.0]], 3.0, None])
def test_what_is_no_array_is_refused(operand):
    with pytest.raises(DTypeError, match="NumPy arrays, and b is of type"):
        kernels.dot(matrix(), operand)


def test_a_masked_array_is_refused_rather_than_unmasked():
    masked = np.ma.masked_array(matrix(), mask=np.eye(3))
    with pytest.raises(DTypeError, match="mask"):
        kernels.dot(masked, matrix())


def test_other_subclasses_give_plain_arrays(tmp_path):
    mapped = np.memmap(tmp_path / "m", np.float32, "w+", shape=(3, 3))
    mapped[:] = matrix()
    assert type(kernels.dot(mapped, matrix())) is np.ndarray
    np.testing.assert_array_equal(kernels.dot(mapped, matrix()), matrix() @ matrix())


def test_a_dtype_that_is_equal_but_not_identical_is_taken():
    stored = pickle.loads(pickle.dumps(matrix()))  # noqa: S301 - our own bytes
    np.testing.assert_array_equal(kernels.dot(stored, matrix()), matrix() @ matrix())
    alias = np.ones((2, 2), np.longlong)
    np.testing.assert_array_equal(kernels.dot(alias, np.ones((2, 2), np.int64)), alias * 2)


@pytest.mark.parametrize("name", ["a", "b", "both"])
def test_swapped_bytes_are_computed_with(name):
    swapped = matrix().astype(matrix().dtype.newbyteorder())
    kernels.dot(matrix(), matrix())  # loads the path for small products, which must not take these
    a = matrix() if name == "b" else swapped
    b = matrix() if name == "a" else swapped
    result = kernels.dot(a, b)
    assert result.dtype == np.dtype("float32")
    np.testing.assert_array_equal(result, matrix() @ matrix())


def test_read_only_operands_are_taken():
    a, x = matrix(), np.ones(3, "float32")
    a.flags.writeable = x.flags.writeable = False
    np.testing.assert_array_equal(kernels.dot(a, a), a @ a)
    np.testing.assert_array_equal(kernels.dot(a, x), a @ x)


# ---- out -----------------------------------------------------------------------------------------


def outs(shape):
    """Outputs of one shape in different layouts, by name."""
    m, n = shape
    return {
        "C": np.empty((m, n), "float32"),
        "F": np.empty((n, m), "float32").T,
        "columns apart": np.empty((m, 2 * n), "float32")[:, ::2],
        "rows apart": np.empty((3 * m, n), "float32")[::3],
        "backwards": np.empty((m, n), "float32")[::-1, ::-1],
        "backwards F": np.empty((n, m), "float32")[:, ::-1].T,
        "misaligned": np.empty(4 * m * n + 1, "uint8")[1:].view("float32").reshape(m, n),
    }


@pytest.mark.parametrize("layout", outs((1, 1)))
@pytest.mark.parametrize("shape", [(5, 7), (40, 70), (1, 9), (9, 1), (1, 1)])
def test_out_is_filled_and_returned_whatever_its_layout(layout, shape):
    a, b = matrix(shape[0], 4) % 7, matrix(4, shape[1]) % 5
    out = outs(shape)[layout]
    out[...] = np.nan
    assert kernels.dot(a, b, out=out) is out
    np.testing.assert_array_equal(out, a @ b)


def test_out_around_its_view_stays_as_it_was():
    whole = np.full((20, 30), 9, "float32")
    kernels.dot(matrix(5, 4), matrix(4, 7), out=whole[3:8, 4:18:2])
    expected = np.full((20, 30), 9, "float32")
    expected[3:8, 4:18:2] = matrix(5, 4) @ matrix(4, 7)
    np.testing.assert_array_equal(whole, expected)


def test_out_of_two_vectors_has_no_dimension():
    x, out = np.ones(3, "float32"), np.empty((), "float32")
    assert kernels.dot(x, x, out=out) is out
    assert out == 3


def test_out_of_a_product_over_nothing_is_zeroed():
    out = np.full((2, 3), 9, "float32")
    kernels.dot(np.ones((2, 0), "float32"), np.ones((0, 3), "float32"), out=out)
    np.testing.assert_array_equal(out, np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("out", "error", "sentence"),
    [
        ([[1.0]], DTypeError, "out must be a NumPy array"),
        (
            np.empty((3, 3)),
            DTypeError,
            r"out is float64 and the result float32.*numpy.empty",
        ),
        (np.empty((3, 3), ">f4"), DTypeError, "out is >f4"),
        (np.empty((3, 4), "float32"), ShapeError, r"\(3, 4\) and the result \(3, 3\)"),
        (np.empty((9,), "float32"), ShapeError, "the result"),
        (np.broadcast_to(np.float32(0), (3, 3)), ReadOnlyError, "read-only"),
    ],
)
def test_an_out_that_does_not_fit_is_refused(out, error, sentence):
    with pytest.raises(error, match=sentence):
        kernels.dot(matrix(), matrix(), out=out)


def test_an_out_that_shares_memory_with_an_operand_is_refused():
    a, b = matrix(), matrix()
    with pytest.raises(AliasError, match="out shares memory with a"):
        kernels.dot(a, b, out=a)
    with pytest.raises(AliasError, match="out shares memory with b"):
        kernels.dot(a, b, out=b.T)
    base = np.ones(20, "float32")
    with pytest.raises(AliasError):
        kernels.dot(base[:9].reshape(3, 3), b, out=base[8:17].reshape(3, 3))


def test_an_out_that_only_interleaves_with_an_operand_is_taken():
    base = np.zeros((3, 6), "float32")
    a, out = base[:, ::2], base[:, 1::2]
    a[...] = matrix()
    kernels.dot(a, matrix(), out=out)
    np.testing.assert_array_equal(out, matrix() @ matrix())
    np.testing.assert_array_equal(a, matrix())


@pytest.mark.parametrize("strides", [(0, 4), (4, 0), (4, 4), (2, 12), (8, 4)])
def test_an_out_whose_elements_overlap_is_refused(strides):
    base = np.zeros(64, "float32")
    out = np.lib.stride_tricks.as_strided(base, (3, 3), strides)
    with pytest.raises(AliasError, match="share memory with each other"):
        kernels.dot(matrix(), matrix(), out=out)


class Lazy:
    """What looks like a matrix and is none: a table on disk, or one of zeros."""

    dtype, ndim = np.dtype("float64"), 2

    def __init__(self, side):
        self.shape = side, side

    def __len__(self):
        return self.shape[0]


class Broken:
    """An object whose attributes cannot be asked for."""

    @property
    def dtype(self):
        raise RuntimeError("closed")


@pytest.mark.parametrize("thing", [Lazy(3), Lazy(10**7), Broken(), type("", (), {"dtype": []})()])
def test_what_only_looks_like_an_array_is_refused_and_nothing_is_allocated_for_it(thing):
    a = matrix(dtype="float64")
    for x, y in ((a, thing), (thing, a), (thing, thing)):
        with pytest.raises(DTypeError, match="dot takes NumPy arrays"):
            kernels.dot(x, y)


def test_a_result_that_no_memory_could_hold_does_not_hide_what_is_wrong():
    with pytest.raises(ShapeError, match=r"\(1\) must equal"):
        kernels.dot(np.ones((10**7, 1)), np.ones((2, 10**7)))
