"""Products y = A·x: matrix·vector, vector·matrix (A transposed) and vector·vector (one row).

These are bound by memory: every element of A is used once. What counts is to read A in the order in
which it lies, on as many threads as it takes to saturate the memory.

Assumed of the operands (the door, `opbench.kernels.dot`, sees to it):
- A is (M, K), x is (K,), y is (M,), of one dtype out of float32, float64, int32, int64;
- any strides, also negative and zero, and any alignment; y overlaps neither itself, nor A, nor x;
- M >= 1; K may be 0.

A is cut into tasks of some rows and some columns by its shape and strides alone; each gives partial
sums, which are added in the order of k. So the result does not depend on the number of threads.
"""

# ruff: noqa: ARG001 - an intrinsic names its arguments for the caller; the IR takes them in order

from __future__ import annotations

import numpy as np
from numba import prange, types
from numba.core import cgutils

from opbench.kernels.cache import jit
from opbench.kernels.dot.emit import frozen, intrinsic, loose
from opbench.kernels.dot.microkernel import emitter
from opbench.kernels.dot.tasks import end_task, new_counter, take, zeros
from opbench.kernels.lanes import lane_begin

__all__ = ["gemv", "gemv_parallel"]

TASK_ELEMENTS = 65536  # of A, in one task whose rows are contiguous
LONGEST_ROW = 16384  # k in one such task
COLUMN_ROWS, COLUMN_STEPS = (
    2048,
    512,
)  # rows and k in one task whose columns are contiguous
ROWS_AT_ONCE, COLUMNS_AT_ONCE, UNROLL = 4, 8, 4


def horizontal_sum(e, vector):
    """The sum of a vector's lanes, halves first."""
    lanes = e.width
    while lanes > 1:
        lanes //= 2
        low = e.shuffle(vector, vector, list(range(lanes)))
        high = e.shuffle(vector, vector, list(range(lanes, 2 * lanes)))
        vector = e.add(low, high)
    return vector


def reduction(e, rows, x, kc):
    """The dot products of several contiguous rows with x, as vectors of one lane.

    Each row has UNROLL accumulators, so that one addition need not wait for the one before.
    """
    b, step = e.b, e.width * UNROLL
    whole = b.sub(kc, b.srem(kc, e.index(step)))
    sums = [[cgutils.alloca_once_value(b, e.zero()) for _ in range(UNROLL)] for _ in rows]

    def add(k, u, load):
        piece = load(e.at(x, k))
        for row, cells in zip(rows, sums, strict=True):
            total = e.multiply_add(load(e.at(row, k)), piece, b.load(cells[u]))
            b.store(total, cells[u])

    with cgutils.for_range_slice(b, e.index(0), whole, e.index(step)) as (k, _):
        for u in range(UNROLL):
            add(b.add(k, e.index(u * e.width)), u, lambda p: e.load(p, e.width))
    with cgutils.for_range_slice(b, whole, kc, e.index(e.width)) as (k, _):
        mask = e.mask(b.sub(kc, k))
        add(k, 0, lambda p: e.masked_load(p, mask))
    totals = []
    for cells in sums:
        total = b.load(cells[0])
        for cell in cells[1:]:
            total = e.add(total, b.load(cell))
        totals.append(horizontal_sum(e, total))
    return totals


def rows_times_vector(count):
    """An intrinsic for `count` rows at once; the sums of a row do not depend on `count`."""

    @intrinsic
    def dot_rows(_, A, i, x, y):
        """Compute y[i:i+count] = A[i:i+count]·x; A's rows and x are contiguous."""

        def codegen(context, b, signature, arguments):
            type_a, _, type_x, type_y = signature.args
            a_, i_, x_, y_ = arguments
            e = emitter(context, b, type_a)
            _, kc = e.shape(type_a, a_)
            rows = [e.pointer(type_a, a_, b.add(i_, e.index(r)), 0) for r in range(count)]
            for r, total in enumerate(reduction(e, rows, e.pointer(type_x, x_, 0), kc)):
                e.store(total, e.pointer(type_y, y_, b.add(i_, e.index(r))))
            return context.get_dummy_value()

        return types.void(A, types.int64, x, y), codegen

    return dot_rows


dot_row = rows_times_vector(1)
dot_rows = rows_times_vector(ROWS_AT_ONCE)


def columns_times_scalars(count):
    """An intrinsic for `count` columns at once."""

    @intrinsic
    def add_columns(_, A, k, x, y):
        """Add A[:, k:k+count]·x[k:k+count] to y in the order of k; A's columns, y contiguous."""

        def codegen(context, b, signature, arguments):
            type_a, _, type_x, type_y = signature.args
            a_, k_, x_, y_ = arguments
            e = emitter(context, b, type_a)
            rows, _ = e.shape(type_a, a_)
            tops = [e.pointer(type_a, a_, 0, b.add(k_, e.index(c))) for c in range(count)]
            factors = [e.splat(e.pointer(type_x, x_, b.add(k_, e.index(c)))) for c in range(count)]
            target = e.pointer(type_y, y_, 0)
            whole = b.sub(rows, b.srem(rows, e.index(e.width)))

            def add(i, load, store):
                total = load(e.at(target, i))
                for top, factor in zip(tops, factors, strict=True):
                    total = e.multiply_add(load(e.at(top, i)), factor, total)
                store(total, e.at(target, i))

            with cgutils.for_range_slice(b, e.index(0), whole, e.index(e.width)) as (i, _):
                add(i, lambda p: e.load(p, e.width), e.store)
            with cgutils.for_range_slice(b, whole, rows, e.index(e.width)) as (i, _):
                mask = e.mask(b.sub(rows, i))
                add(i, lambda p: e.masked_load(p, mask), lambda v, p: e.masked_store(v, p, mask))
            return context.get_dummy_value()

        return types.void(A, types.int64, x, y), codegen

    return add_columns


add_column = columns_times_scalars(1)
add_columns = columns_times_scalars(COLUMNS_AT_ONCE)


@jit
def task(A, x, y):
    """Compute y = A·x for a piece of A; x and y are contiguous."""
    M, K = A.shape
    if A.strides[1] == A.itemsize or K == 1:
        whole = M // ROWS_AT_ONCE * ROWS_AT_ONCE
        for i in range(0, whole, ROWS_AT_ONCE):
            dot_rows(A, i, x, y)
        for i in range(whole, M):
            dot_row(A, i, x, y)
        return
    for i in range(M):
        y[i] = 0
    if A.strides[0] == A.itemsize or M == 1:
        whole = K // COLUMNS_AT_ONCE * COLUMNS_AT_ONCE
        for k in range(0, whole, COLUMNS_AT_ONCE):
            add_columns(A, k, x, y)
        for k in range(whole, K):
            add_column(A, k, x, y)
        return
    for i in range(M):
        total = y[i]
        for k in range(K):
            total += A[i, k] * x[k]
        y[i] = total


@jit
def cut(A):
    """Rows and columns of a task."""
    M, K = A.shape
    if A.strides[0] == A.itemsize and A.strides[1] != A.itemsize and M > 1:
        return min(M, COLUMN_ROWS), min(K, COLUMN_STEPS)
    columns = max(1, min(K, LONGEST_ROW))
    return min(M, max(ROWS_AT_ONCE, TASK_ELEMENTS // columns)), columns


@jit
def contiguous(x):
    """A copy of x with unit stride, or x itself."""
    if x.shape[0] <= 1 or x.strides[0] == x.itemsize:
        return frozen(x)
    copy = np.empty(x.shape[0], x.dtype)
    for k in range(x.shape[0]):
        copy[k] = x[k]
    return frozen(copy)


@jit
def add_up(partial, y):
    """Sum the partial sums into y, first to last."""
    for i in range(y.shape[0]):
        total = partial[0, i]
        for t in range(1, partial.shape[0]):
            total += partial[t, i]
        y[i] = total


@jit(nogil=True)
def gemv(A, x, y):
    """Compute y = A·x on the calling thread."""
    M, K = A.shape
    rows, columns = cut(A)
    xs = contiguous(x)
    if 0 < K <= columns and y.strides[0] == y.itemsize:
        for i in range(0, M, rows):
            task(A[i : i + rows, :], xs, y[i : i + rows])
        return
    partial = loose(zeros(max(1, -(-K // columns)), M, A))
    for k in range(0, K, columns):
        for i in range(0, M, rows):
            y_k = partial[k // columns, i : i + rows]
            task(A[i : i + rows, k : k + columns], xs[k : k + columns], y_k)
    add_up(partial, y)


@jit(nogil=True, parallel=True)
def gemv_parallel(A, x, y, workers, lanes):
    """Compute y = A·x by so many workers, which take tasks as they come.

    `lanes` is the address of a buffer for a lane record of each task, or 0.
    """
    M, K = A.shape
    rows, columns = cut(A)
    xs = contiguous(x)
    partial = loose(zeros(max(1, -(-K // columns)), M, A))
    down = -(-M // rows)
    tasks = down * -(-K // columns)
    counter = new_counter()
    for _ in prange(workers):
        t = take(counter)
        while t < tasks:
            i, k = t % down * rows, t // down * columns
            y_k, x_k = partial[k // columns, i : i + rows], xs[k : k + columns]
            lane_begin(lanes, t)
            task(A[i : i + rows, k : k + columns], x_k, y_k)
            end_task(lanes, t, y_k.shape[0], x_k.shape[0], 1, A.itemsize)
            t = take(counter)
    add_up(partial, y)
