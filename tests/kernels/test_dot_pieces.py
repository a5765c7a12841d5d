"""Each tuned piece against its scalar twin in `reference`, of the same signature."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from opbench.kernels.dot import (
    gemv,
    loops,
    microkernel,
    packing,
    parallel,
    reference,
    small,
    tasks,
)

MR, ROW_BYTES = microkernel.MR, microkernel.ROW_BYTES


@njit
def micro_kernel(A, B, q, C, i, j, rows, columns, add):
    """The intrinsic, callable from Python."""
    microkernel.micro_kernel(A, B, q, C, i, j, rows, columns, add)


@njit
def dot_rows(A, i, x, y):
    """The intrinsic for several rows, callable from Python."""
    gemv.dot_rows(A, i, x, y)


@njit
def dot_row(A, i, x, y):
    """The intrinsic for one row, callable from Python."""
    gemv.dot_row(A, i, x, y)


@njit
def dot_short_rows(A, i, x, y):
    """The intrinsic for several short rows, callable from Python."""
    gemv.dot_short_rows(A, i, x, y)


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
    return tasks.take(counter)


@pytest.fixture(params=["float32", "int64"])
def dtype(request):
    return request.param


def whole(shape, dtype, seed=0):
    """Small whole numbers: products and sums of them are exact in every dtype."""
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


def columns_of(dtype):
    """NR for that dtype."""
    return ROW_BYTES // np.dtype(dtype).itemsize


@pytest.mark.parametrize("kc", [1, 2, 33])
@pytest.mark.parametrize("add", [True, False])
def test_the_micro_kernel_fills_its_part_of_a_micro_tile_and_nothing_else(dtype, kc, add):
    nr = columns_of(dtype)
    a, b = whole((MR + 9, kc), dtype), whole((2, kc, nr), dtype, 1)
    for rows in range(1, MR + 1):
        for columns in range(1, nr + 1):
            results = [whole((MR + 9, nr + 6), dtype, 2) for _ in range(2)]
            for kernel, c in zip((micro_kernel, reference.micro_kernel), results, strict=True):
                if kernel is micro_kernel or columns in {1, 2, nr // 2 + 1, nr - 1, nr}:
                    kernel(a, b, 1, c, 3, 5, rows, columns, add)
                else:
                    product = a[3 : 3 + rows] @ b[1][:, :columns]
                    part = c[3 : 3 + rows, 5 : 5 + columns]
                    part[...] = part + product if add else product
            np.testing.assert_array_equal(*results, err_msg=f"{rows} x {columns}")


@pytest.mark.parametrize("layout", ["C", "F", "backwards", "spread", "still"])
def test_the_micro_kernel_reads_a_in_any_layout(dtype, layout):
    nr, base = columns_of(dtype), whole((2 * MR, 40), dtype)
    a = {
        "C": base[:MR, :20],
        "F": np.asfortranarray(base)[:MR, :20],
        "backwards": base[MR - 1 :: -1, 19::-1],
        "spread": base[::2, ::2],
        "still": np.broadcast_to(base[:1, :1], (MR, 20)),
    }[layout]
    b = whole((1, 20, nr), dtype, 1)
    results = [np.zeros((MR, nr), dtype) for _ in range(2)]
    for kernel, c in zip((micro_kernel, reference.micro_kernel), results, strict=True):
        kernel(a, b, 0, c, 0, 0, MR, nr, False)
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("kc", [1, 15, 16, 17, 40])
@pytest.mark.parametrize("layout", ["C", "F", "backwards", "spread"])
def test_packing_fills_the_panels_and_nothing_else(dtype, kc, layout):
    nr = columns_of(dtype)
    for columns in (1, nr - 1, nr, nr + 1, 2 * nr, 3 * nr - 2):
        base = whole((2 * kc, 2 * columns), dtype)
        view = {
            "C": base[:kc, :columns],
            "F": np.asfortranarray(base)[:kc, :columns],
            "backwards": base[kc - 1 :: -1, columns - 1 :: -1],
            "spread": base[::2, ::2],
        }[layout]
        padded = np.zeros((kc, -(-columns // nr) * nr), dtype)
        buffers = [np.full(padded.size + 7, 77, dtype) for _ in range(2)]
        packed, expected = (
            packing.pack(view, buffers[0]),
            reference.pack(view, buffers[1], nr),
        )
        padded[:, :columns] = view
        valid = np.arange(expected.shape[0])[:, None, None] * nr + np.arange(nr) < columns
        np.testing.assert_array_equal(np.where(valid, packed, 0), expected)
        np.testing.assert_array_equal(buffers[0][padded.size :], 77)
        assert np.isin(packed[~np.broadcast_to(valid, packed.shape)], [0, *view.flat]).all()


def test_panels_in_place_are_bs_own_memory(dtype):
    nr = columns_of(dtype)
    b = whole((5, 3 * nr), dtype)
    panels = packing.panels_in_place(b)
    np.testing.assert_array_equal(panels, reference.pack(b, np.empty(b.size, dtype), nr))
    assert np.shares_memory(panels, b)


def test_few_rows_read_b_in_place_unless_its_rows_throw_each_other_out():
    for columns, few in ((1000, 8 * MR), (1024, 2 * MR)):
        b = np.zeros((600, columns), "float32")
        assert loops.in_place(b, few, 0)
        assert not loops.in_place(b, few + 1, 0)
        assert loops.in_place(b, few + 1, b.nbytes)
        assert not loops.in_place(np.asfortranarray(b), few, b.nbytes)


def test_laid_rows_hold_the_matrix_an_odd_number_of_lines_apart(dtype):
    b = whole((5, 3 * columns_of(dtype) + 1), dtype)
    for view in (b, np.asfortranarray(b), b[::-1, ::-1]):
        laid = packing.lay_rows(view, np.full(8 * b.size, 7, dtype))
        np.testing.assert_array_equal(laid, view)
        assert laid.strides[0] // microkernel.LINE % 2 == 1
        assert laid.strides[0] % microkernel.LINE == 0


@pytest.mark.parametrize("add", [True, False])
def test_the_macro_kernel_fills_c_and_nothing_else(dtype, add):
    nr, kc = columns_of(dtype), 5
    a, b = whole((2 * MR + 3, kc), dtype), whole((3, kc, nr), dtype, 1)
    results = [whole((2 * MR + 5, 3 * nr), dtype, 2) for _ in range(2)]
    for kernel, c in zip((loops.macro_kernel, reference.macro_kernel), results, strict=True):
        kernel(a, b, c[1 : 2 * MR + 4, 1 : 3 * nr - 3], add)
    np.testing.assert_array_equal(*results)


def test_the_classical_loops_are_numpys_product(dtype):
    a, b = whole((5, 7), dtype), whole((7, 4), dtype, 1)
    np.testing.assert_array_equal(reference.gemm(a, b), a @ b)
    y = np.empty(5, dtype)
    reference.gemv(a, b[:, 0], y)
    np.testing.assert_array_equal(y, a @ b[:, 0])


@pytest.mark.parametrize("k", [1, 15, 31, 32, 33, 100])
def test_rows_times_a_vector(dtype, k):
    a, x = whole((9, k), dtype), whole(k, dtype, 1)
    for kernel, count in ((dot_rows, gemv.ROWS_AT_ONCE), (dot_row, 1)):
        results = [np.full(9, 77, dtype) for _ in range(2)]
        kernel(a, 2, x, results[0])
        reference.dot_rows(a, 2, x, results[1], count)
        np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("k", [1, 3, 15, 16, 17])
def test_short_rows_have_the_bits_of_one_row_at_a_time(dtype, k):
    if k * np.dtype(dtype).itemsize >= gemv.SHORT:
        k = gemv.SHORT // np.dtype(dtype).itemsize - 1
    rng = np.random.default_rng(k)
    a = (rng.uniform(-100, 100, (13, k))).astype(dtype)
    x, results = rng.uniform(-100, 100, k).astype(dtype), [np.full(13, 77, dtype) for _ in range(2)]
    dot_short_rows(a, 2, x, results[0])
    for i in range(2, 2 + gemv.SHORT_AT_ONCE):
        dot_row(a, i, x, results[1])
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("m", [1, 7, 8, 12, 13, 21])
@pytest.mark.parametrize("k", [1, 5, 40, 200])
def test_rows_of_any_number_and_length(dtype, m, k):
    a, x = whole((m, k), dtype), whole(k, dtype, 1)
    y = np.full(m, 77, dtype)
    gemv.gemv(a, x, y)
    np.testing.assert_array_equal(y, a @ x)


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
    [
        (10, 4, 1, 4),
        (9, 4, 1, 3),
        (4, 4, 1, 4),
        (1, 4, 1, 1),
        (13, 6, 4, 8),
        (12, 6, 6, 6),
    ],
)
def test_even_pieces_cover_the_length(length, most, unit, expected):
    piece = loops.even(length, most, unit)
    assert piece == expected
    assert piece % unit == 0


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 7, 64])
@pytest.mark.parametrize("shape", [(1, 1), (5, 9000), (9000, 5), (4096, 4096), (100, 2049)])
@pytest.mark.parametrize("k", [1, 300, 10_000])
@pytest.mark.parametrize("preferred", parallel.PREFERENCES)
def test_tiles_are_whole_micro_tiles_and_no_wider_than_nc(shape, workers, k, preferred):
    rows, columns = parallel.grid(*shape, k, 1024, 4, workers, preferred)
    assert rows >= MR
    assert rows % MR == 0
    assert columns * 4 % microkernel.TILE.vector == 0
    assert rows <= 1024 + MR
    assert columns <= 1024


def test_a_large_product_gives_each_worker_several_tiles():
    rows, columns = parallel.grid(2048, 2048, 2048, 1024, 4, 2, (4, 1))
    assert -(-2048 // rows) * -(-2048 // columns) == 2 * parallel.TILES_EACH


def test_tiles_are_fewer_where_a_is_laid_out_and_high_where_b_is_scattered():
    a, b = np.zeros((1024, 1024), "float32"), np.zeros((1024, 2048), "float32")
    cases = {
        (False, False): ((4, 1), (516, 256)),
        (True, False): ((2, 1), (516, 512)),
        (False, True): ((4, 6), (1026, 128)),
        (True, True): ((2, 6), (1026, 256)),
    }
    for (laid, scattered), (preferred, shape) in cases.items():
        left, right = (a.T if laid else a), (b[:, ::2] if scattered else b[:, :1024])
        assert parallel.preference(left, right) == preferred
        assert parallel.grid(1024, 1024, 1024, 1024, 4, 2, preferred) == shape


def test_a_product_just_worth_two_threads_gives_each_one_tile():
    rows, columns = parallel.grid(128, 128, 128, 1024, 4, 2, (4, 1))
    assert -(-128 // rows) * -(-128 // columns) == 2


@pytest.mark.parametrize(
    ("shift", "expected"), [(0, False), (8, False), (9, True), (-8, False), (-9, True)]
)
def test_arrays_that_overlap_are_not_apart(shift, expected):
    base = np.zeros(40, "float32")
    x, y = base[15:24].reshape(3, 3), base[15 + shift : 24 + shift].reshape(3, 3)
    assert small.apart(x, y) is expected
    assert small.apart(x[::-1, ::-1], y.T) is expected
