"""Each tuned piece against its scalar twin in `reference`, of the same signature."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from opbench.kernels.dot import gemv, loops, microkernel, reference

MR, ROW_BYTES = microkernel.MR, microkernel.ROW_BYTES


@njit
def micro_kernel(A, p, B, q, C, i, j, add):
    """The intrinsic, callable from Python."""
    microkernel.micro_kernel(A, p, B, q, C, i, j, add)


@njit
def dot_rows(A, i, x, y):
    """The intrinsic for several rows, callable from Python."""
    gemv.dot_rows(A, i, x, y)


@njit
def dot_row(A, i, x, y):
    """The intrinsic for one row, callable from Python."""
    gemv.dot_row(A, i, x, y)


@njit
def add_columns(A, k, x, y):
    """The intrinsic for several columns, callable from Python."""
    gemv.add_columns(A, k, x, y)


@njit
def add_column(A, k, x, y):
    """The intrinsic for one column, callable from Python."""
    gemv.add_column(A, k, x, y)


@njit
def count_up(counter):
    """The atomic counter, callable from Python."""
    return microkernel.take(counter)


@pytest.fixture(params=["float32", "int64"])
def dtype(request):
    return request.param


def whole(shape, dtype, seed=0):
    """Small whole numbers: products and sums of them are exact in every dtype."""
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


@pytest.mark.parametrize("kc", [1, 2, 3, 33])
@pytest.mark.parametrize("add", [True, False])
def test_the_micro_kernel_writes_or_adds_one_micro_tile_and_nothing_else(dtype, kc, add):
    nr = ROW_BYTES // np.dtype(dtype).itemsize
    a, b = whole((3, kc, MR), dtype), whole((2, kc, nr), dtype, 1)
    results = [whole((MR + 4, nr + 6), dtype, 2) for _ in range(2)]
    for kernel, c in zip((micro_kernel, reference.micro_kernel), results, strict=True):
        kernel(a, 2, b, 1, c, 3, 5, add)
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("rows", [1, MR - 1, MR, MR + 1, 2 * MR, 3 * MR - 1])
@pytest.mark.parametrize("kc", [1, 15, 16, 17, 18, 40])
def test_packing_a_fills_the_panels_and_nothing_else(dtype, rows, kc):
    source = whole((rows, 2 * kc), dtype)
    views = {
        "rows": np.ascontiguousarray(source[:, :kc]),
        "columns": np.asfortranarray(source[:, :kc]),
        "neither": source[:, ::2],
        "backwards": source[::-1, kc:],
    }
    panels = -(-rows // MR)
    for name, view in views.items():
        results = [np.full((panels + 1, kc, MR), 77, dtype) for _ in range(2)]
        for pack, into in zip((loops.pack_a, reference.pack_a), results, strict=True):
            pack(view, into[:panels])
        np.testing.assert_array_equal(*results, err_msg=name)


@pytest.mark.parametrize("kc", [1, 17, 40])
def test_packing_b_fills_the_panels_and_nothing_else(dtype, kc):
    nr = ROW_BYTES // np.dtype(dtype).itemsize
    for columns in (1, nr - 1, nr, nr + 1, 2 * nr):
        panels = -(-columns // nr)
        for order in "CF":
            view = np.asarray(whole((kc, columns), dtype), order=order).T
            results = [np.full((panels + 1, kc, nr), 77, dtype) for _ in range(2)]
            for pack, into in zip((loops.pack_b, reference.pack_b), results, strict=True):
                pack(view, into[:panels])
            np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("add", [True, False])
@pytest.mark.parametrize("spread", [1, 2])
def test_the_macro_kernel_fills_c_and_nothing_else(dtype, add, spread):
    nr, kc = ROW_BYTES // np.dtype(dtype).itemsize, 5
    a, b = whole((2, kc, MR), dtype), whole((3, kc, nr), dtype, 1)
    edges = [np.empty((MR, nr), dtype) for _ in range(2)]
    results = [whole((2 * MR + 3, spread * 3 * nr + 3), dtype, 2) for _ in range(2)]
    for kernel, c, edge in zip(
        (loops.macro_kernel, reference.macro_kernel), results, edges, strict=True
    ):
        kernel(a, b, c[1 : 2 * MR - 2, 1 : spread * (3 * nr - 4) : spread], add, edge)
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("k", [1, 15, 31, 32, 33, 100])
def test_rows_times_a_vector(dtype, k):
    a, x = whole((9, k), dtype), whole(k, dtype, 1)
    for kernel, count in ((dot_rows, gemv.ROWS_AT_ONCE), (dot_row, 1)):
        results = [np.full(9, 77, dtype) for _ in range(2)]
        kernel(a, 2, x, results[0])
        reference.dot_rows(a, 2, x, results[1], count)
        np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("rows", [1, 15, 16, 17, 100])
def test_columns_times_scalars(dtype, rows):
    a, x = np.asfortranarray(whole((rows, 20), dtype)), whole(20, dtype, 1)
    for kernel, count in ((add_columns, gemv.COLUMNS_AT_ONCE), (add_column, 1)):
        results = [whole(rows, dtype, 2) for _ in range(2)]
        kernel(a, 3, x, results[0])
        reference.add_columns(a, 3, x, results[1], count)
        np.testing.assert_array_equal(*results)


def test_the_counter_hands_out_each_number_once():
    counter = np.array([5, 9])
    assert [count_up(counter) for _ in range(3)] == [5, 6, 7]
    assert counter.tolist() == [8, 9]


@pytest.mark.parametrize(
    ("length", "most", "unit", "expected"),
    [(10, 4, 1, 4), (9, 4, 1, 3), (4, 4, 1, 4), (1, 4, 1, 1), (13, 6, 4, 8), (12, 6, 6, 6)],
)
def test_even_pieces_cover_the_length(length, most, unit, expected):
    piece = loops.even(length, most, unit)
    assert piece == expected
    assert piece % unit == 0


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 7, 64])
@pytest.mark.parametrize("shape", [(1, 1), (5, 9000), (9000, 5), (4096, 4096), (100, 2049)])
def test_tiles_are_whole_micro_tiles_and_no_wider_than_nc(shape, workers):
    rows, columns = loops.grid(*shape, 2048, workers)
    assert rows > 0
    assert rows % MR == 0
    assert columns <= 2048
    assert -(-shape[0] // rows) >= 1
