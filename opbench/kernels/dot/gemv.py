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
from opbench.kernels.dot.microkernel import TILE, emitter
from opbench.kernels.dot.tasks import end_task, new_counter, take, zeros
from opbench.kernels.lanes import lane_begin

__all__ = ["gemv", "gemv_parallel"]

TASK_ELEMENTS = 65536  # of A, in one task whose rows are contiguous
LONGEST_ROW, LONE_ROW = 16384, 65536  # k in one such task, so that x stays near where rows share it
COLUMN_ROWS, COLUMN_STEPS = 8192, 256  # rows and k in one task whose columns are contiguous
ROWS_AT_ONCE, COLUMNS_AT_ONCE, UNROLL = 4, 8, 4
SHORT, SHORT_AT_ONCE = TILE.vector * UNROLL, 8  # bytes of a row, and how many such rows at once


def horizontal_sums(e, vectors):
    """The sums of the lanes of each vector, of which there are a power of two, as one vector.

    Halves are added first, whatever the number of vectors: from then on two share one.
    """
    lanes = e.width
    while lanes > 1:
        half, shared = lanes // 2, []
        for one, other in zip(vectors[::2], vectors[1::2] or vectors, strict=True):
            low = [start + n for start in range(0, one.type.count, lanes) for n in range(half)]
            if one is not other:
                low += [one.type.count + n for n in low]
            high = [n + half for n in low]
            shared.append(e.add(e.shuffle(one, other, low), e.shuffle(one, other, high)))
        vectors, lanes = shared, half
    while len(vectors) > 1:  # more vectors than lanes: each holds its sums, side by side
        both = list(range(2 * vectors[0].type.count))
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [e.shuffle(one, other, both) for one, other in pairs]
    return vectors[0]


def reduction(e, rows, x, kc, unroll):
    """The dot products of several contiguous rows with x, as one vector.

    Each row has `unroll` accumulators, so that one addition need not wait for the one before.
    """
    b, step = e.b, e.width * unroll
    whole = b.sub(kc, b.srem(kc, e.index(step))) if unroll > 1 else e.index(0)
    sums = [[cgutils.alloca_once_value(b, e.zero()) for _ in range(unroll)] for _ in rows]

    def add(k, u, load):
        piece = load(e.at(x, k))
        for row, cells in zip(rows, sums, strict=True):
            total = e.multiply_add(load(e.at(row, k)), piece, b.load(cells[u]))
            b.store(total, cells[u])

    with cgutils.for_range_slice(b, e.index(0), whole, e.index(step)) as (k, _):
        for u in range(unroll):
            add(b.add(k, e.index(u * e.width)), u, lambda p: e.load(p, e.width))
    with cgutils.for_range_slice(b, whole, kc, e.index(e.width)) as (k, _):
        mask = e.mask(b.sub(kc, k))
        add(k, 0, lambda p: e.masked_load(p, mask))
    totals = []
    for cells in sums:
        total = b.load(cells[0])
        for cell in cells[1:]:
            total = e.add(total, b.load(cell))
        if unroll == 1:
            total = e.add(total, e.zero())  # as from idle accumulators: a sum of -0 becomes 0
        totals.append(total)
    return horizontal_sums(e, totals)


def rows_times_vector(count, unroll):
    """An intrinsic for `count` rows at once; the sums of a row do not depend on `count`.

    With `unroll` 1 it is for rows below SHORT bytes, to the same bits: they would leave the other
    accumulators at zero.
    """

    @intrinsic
    def dot_rows(_, A, i, x, y):
        """Compute y[i:i+count] = A[i:i+count]·x; A's rows and x are contiguous."""

        def codegen(context, b, signature, arguments):
            type_a, _, type_x, type_y = signature.args
            a_, i_, x_, y_ = arguments
            e = emitter(context, b, type_a)
            _, kc = e.shape(type_a, a_)
            rows = [e.pointer(type_a, a_, b.add(i_, e.index(r)), 0) for r in range(count)]
            totals = reduction(e, rows, e.pointer(type_x, x_, 0), kc, unroll)
            e.store(totals, e.pointer(type_y, y_, i_))
            return context.get_dummy_value()

        return types.void(A, types.int64, x, y), codegen

    return dot_rows


dot_row = rows_times_vector(1, UNROLL)
dot_rows = rows_times_vector(ROWS_AT_ONCE, UNROLL)
dot_short_rows = rows_times_vector(SHORT_AT_ONCE, 1)


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
def rows_task(A, x, y):
    """As `task`, where A's rows are contiguous."""
    M, K = A.shape
    short = M // SHORT_AT_ONCE * SHORT_AT_ONCE if K * A.itemsize < SHORT else 0
    for i in range(0, short, SHORT_AT_ONCE):
        dot_short_rows(A, i, x, y)
    whole = M // ROWS_AT_ONCE * ROWS_AT_ONCE
    for i in range(short, whole, ROWS_AT_ONCE):
        dot_rows(A, i, x, y)
    for i in range(whole, M):
        dot_row(A, i, x, y)


@jit
def task(A, x, y):
    """Compute y = A·x for a piece of A; x and y are contiguous."""
    M, K = A.shape
    if A.strides[1] == A.itemsize or K == 1:
        rows_task(A, x, y)
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
    columns = max(1, min(K, LONGEST_ROW if M >= ROWS_AT_ONCE else LONE_ROW))
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
    y[:] = partial[0]
    for t in range(1, partial.shape[0]):
        for i in range(y.shape[0]):
            y[i] += partial[t, i]


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
