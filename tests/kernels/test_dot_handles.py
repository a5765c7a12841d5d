"""Handles: what compiled code sees of an object is what NumPy says of it."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit, types

from opbench import kernels
from opbench.kernels.cache import entry_point
from opbench.kernels.dot import door, handles, small
from opbench.kernels.dot.family import operand

FLOAT64 = types.float64
MATRIX, VECTOR, NUMBER = (handles.Handle(operand(FLOAT64, n)) for n in (2, 1, 0))
TYPE_OF_ARRAYS = id(np.ndarray)


def compiled(function, *kinds):
    """The function for handles, as the door has it."""
    return entry_point(njit(function), *kinds)


@pytest.fixture(scope="module")
def picture():
    """The view of a matrix, as numbers: shape, strides, size, item size, its last element."""

    def look(a):
        v = handles.array_of(a)
        last = v[v.shape[0] - 1, v.shape[1] - 1]
        return v.shape[0], v.shape[1], v.strides[0], v.strides[1], v.size, v.itemsize, last

    return compiled(look, MATRIX)


@pytest.fixture(scope="module")
def is_plain():
    """Whether an object is a matrix of no subclass."""

    def ask(a, ndarray):
        return handles.is_plain(a, ndarray)

    return compiled(ask, MATRIX, types.int64)


BASE = np.arange(60.0).reshape(6, 10)


@pytest.mark.parametrize(
    "array",
    [BASE, BASE.T, BASE[::-2, 1::3], np.broadcast_to(BASE[:1], (4, 10)), BASE[2:3, 4:5]],
    ids=["C", "F", "negative and sparse", "still", "one element"],
)
def test_a_view_is_the_array(picture, array):
    assert picture(array) == (
        *array.shape,
        *array.strides,
        array.size,
        array.itemsize,
        array[-1, -1],
    )


def test_a_view_of_a_vector_and_of_a_number():
    last = compiled(lambda x: handles.array_of(x)[handles.array_of(x).shape[0] - 1], VECTOR)
    only = compiled(lambda x: handles.array_of(x)[()], NUMBER)
    assert last(BASE[0, ::-3]) == BASE[0, 0]
    assert only(np.array(7.5)) == 7.5


def test_a_matrix_is_plain(is_plain):
    assert is_plain(BASE[:, ::2], TYPE_OF_ARRAYS) is True


class Derived(np.ndarray):
    """A subclass, which may mean something else by its elements."""


@pytest.mark.parametrize(
    "thing",
    [BASE[0], BASE[None], np.array(1.0), BASE.view(Derived), None, 3, "text", [[1.0]], object()],
    ids=["vector", "cube", "number", "subclass", "None", "int", "str", "list", "object"],
)
def test_what_is_no_plain_matrix_is_seen(is_plain, thing):
    assert is_plain(thing, TYPE_OF_ARRAYS) is False


def test_only_one_dtype_object_is_the_same():
    same = compiled(lambda a, b: handles.descr_of(a) == handles.descr_of(b), MATRIX, MATRIX)
    assert same(BASE, BASE.T)
    assert not same(BASE, BASE.astype("float32"))
    assert not same(BASE, BASE.astype(">f8"))


def test_writeable_is_numpys_flag():
    def ask(a):
        return handles.writeable(a)

    can = compiled(ask, MATRIX)
    frozen = BASE.copy()
    assert can(frozen)
    frozen.flags.writeable = False
    assert not can(frozen)
    assert not can(np.broadcast_to(BASE[:1], (4, 10)))


def test_facts_are_integers_side_by_side():
    third = entry_point(njit(lambda at: handles.fact(at, 2)), types.int64)
    numbers = np.array([1, 2, 3 << 40, 4])
    assert third(numbers.ctypes.data) == 3 << 40


@pytest.mark.parametrize("name", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize(("dimensions", "others"), [(2, 2), (2, 1), (1, 2), (1, 1)])
def test_the_small_kernels_leave_everything_unusual_to_the_door(name, dimensions, others):
    """Each in turn: a list, a subclass, another dtype; and an output that cannot be written."""
    family = door.FAMILIES[np.dtype(name)]
    family.load_small(dimensions, others)
    kernel = family.small[dimensions][others]
    arrays = [np.ones((3,) * n, name) for n in (dimensions, others, dimensions + others - 2)]
    assert kernel(*arrays, door.FACTS_AT) == small.DONE
    other = "float64" if name == "float32" else "float32"
    for n, array in enumerate(arrays):
        for instead in ([[1]], array.view(Derived), array.astype(other), array[None], None):
            changed = [*arrays[:n], instead, *arrays[n + 1 :]]
            assert kernel(*changed, door.FACTS_AT) == small.ASK, (n, type(instead))
    arrays[2].flags.writeable = False
    assert kernel(*arrays, door.FACTS_AT) == small.ASK


@pytest.mark.parametrize("name", ["float32", "int64"])
@pytest.mark.parametrize(("m", "n"), [(1, 5), (5, 1), (1, 1)])
def test_a_matrix_of_one_row_or_column_is_small_too(name, m, n):
    a = np.arange(m * 7).reshape(m, 7).astype(name)
    b = np.arange(7 * n).reshape(7, n).astype(name)
    family = door.FAMILIES[np.dtype(name)]
    family.load_small(2, 2)
    out = np.empty((m, n), name)
    assert family.small[2][2](a, b, out, door.FACTS_AT) == small.DONE
    np.testing.assert_array_equal(out, a @ b)
    np.testing.assert_array_equal(kernels.dot(a, b), a @ b)
