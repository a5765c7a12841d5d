"""The micro-kernel and the packing of panels, as vector IR: what plain numba cannot say.

Packed micro-panels: A as (panels, KC, MR), B as (panels, KC, NR), so that each step of k reads MR
and NR neighbouring elements. A ragged last panel is filled up with zeros.
"""

# ruff: noqa: ARG001 - an intrinsic names its arguments for the caller; the IR takes them in order

from __future__ import annotations

from numba.core import cgutils, types

from opbench.kernels.dot.emit import I64, Emit, intrinsic
from opbench.kernels.dot.machine import host_tile

__all__ = [
    "MR",
    "ROW_BYTES",
    "micro_kernel",
    "pack_a_panel",
    "pack_b_panel",
    "prefetch_row",
    "take",
]

TILE = host_tile()
MR = TILE.rows
ROW_BYTES = TILE.vector * TILE.vectors
LINE = 64


def emitter(context, builder, array_type):
    """An Emit for the array's element type and the host's vectors."""
    return Emit(context, builder, array_type.dtype, TILE.vector)


def accumulate(e, pa, pb, kc):
    """The loop over k: MR × NV accumulators += A's column · B's row. Returns the accumulators."""
    b, width = e.b, e.width
    entry, loop, done = b.block, b.append_basic_block("k"), b.append_basic_block("k.done")
    b.branch(loop)
    b.position_at_end(loop)
    k = b.phi(I64)
    sums = [b.phi(e.vector(width)) for _ in range(MR * TILE.vectors)]
    a_k = e.at(pa, b.mul(k, e.index(MR)))
    b_k = e.at(pb, b.mul(k, e.index(width * TILE.vectors)))
    row = [e.load(e.at(b_k, v * width), width) for v in range(TILE.vectors)]
    steps = []
    for r in range(MR):
        a_rk = e.splat(e.at(a_k, r))
        steps += [
            e.multiply_add(a_rk, row[v], sums[r * TILE.vectors + v]) for v in range(TILE.vectors)
        ]
    following = b.add(k, e.index(1))
    for phi, start, step in zip(
        [k, *sums], [e.index(0)] + [e.zero()] * len(sums), [following, *steps], strict=True
    ):
        phi.add_incoming(start, entry)
        phi.add_incoming(step, loop)
    b.cbranch(b.icmp_signed("<", following, kc), loop, done)
    b.position_at_end(done)
    return steps


@intrinsic
def micro_kernel(_, A, p, B, q, C, i, j, add):
    """C[i:i+MR, j:j+NR] = A[p].T @ B[q], or += where `add`; KC >= 1, C's rows contiguous."""

    def codegen(context, b, signature, arguments):
        type_a, _, type_b, _, type_c, *_ = signature.args
        a_, p_, b_, q_, c_, i_, j_, add_ = arguments
        e = emitter(context, b, type_a)
        rows = [e.pointer(type_c, c_, b.add(i_, e.index(r)), j_) for r in range(MR)]
        for row in rows:  # C arrives while the loop computes; a row may straddle lines
            e.prefetch(row)
            e.prefetch(e.at(row, e.width * TILE.vectors - 1))
        _, kc, _ = e.shape(type_a, a_)
        pa, pb = e.pointer(type_a, a_, p_, 0, 0), e.pointer(type_b, b_, q_, 0, 0)
        sums = accumulate(e, pa, pb, kc)
        targets = [e.at(row, v * e.width) for row in rows for v in range(TILE.vectors)]
        with b.if_else(add_) as (adding, writing):
            with adding:
                for value, target in zip(sums, targets, strict=True):
                    e.store(e.add(e.load(target, e.width), value), target)
            with writing:
                for value, target in zip(sums, targets, strict=True):
                    e.store(value, target)
        return context.get_dummy_value()

    n = types.int64
    return types.void(A, n, B, n, C, n, n, types.boolean), codegen


def pack_columns(e, source, target, kc, rows):
    """The panel's rows are neighbours in memory: copy `rows` elements for each k."""
    with cgutils.for_range(e.b, kc) as k:
        e.store(e.load(source(0, k.index), rows), target(k.index, 0))


def pack_rows(e, source, target, first, last, rows):
    """Elements along k are neighbours: `width` steps of k at a time, transposed in registers.

    Stores may run past a column's end into the next, which is written afterwards; the panel's very
    last column is left to `pack_scalars`, so that nothing beyond the panel is touched.
    """
    b, width = e.b, e.width
    with cgutils.for_range_slice(b, first, last, e.index(width)) as (k, _):
        blocks = []
        for top in range(0, rows, width):
            lines = [source(min(top + r, rows - 1), k) for r in range(width)]
            blocks.append(e.transpose([e.load(line, width) for line in lines]))
        for c in range(width):
            for n, block in enumerate(blocks):
                e.store(block[c], target(b.add(k, e.index(c)), n * width))


def pack_scalars(e, source, target, first, last, rows):
    """Any strides: element by element."""
    b = e.b
    with cgutils.for_range_slice(b, first, last, e.index(1)) as (k, _):
        for r in range(rows):
            e.store(e.load(source(r, k), 1), target(k, r))


def panel_packer(panel_rows):
    """An intrinsic that packs a whole panel; `panel_rows` tells its height for an item size."""

    @intrinsic
    def pack_panel(_, X, x, P, p):
        """P[p, k, r] = X[x + r, k] for all k and r of a panel; X has any strides."""

        def codegen(context, b, signature, arguments):
            type_x, _, type_p, _ = signature.args
            x_, first, p_, panel = arguments
            e = emitter(context, b, type_x)
            rows = panel_rows(e.size)
            _, kc = e.shape(type_x, x_)
            down, along = e.strides(type_x, x_)

            def source(r, k):
                return e.pointer(type_x, x_, b.add(first, e.index(r)), k)

            def target(k, r):
                return e.pointer(type_p, p_, panel, k, r)

            one = e.index(e.size)
            with b.if_else(b.icmp_signed("==", down, one)) as (columns, others):
                with columns:
                    pack_columns(e, source, target, kc, rows)
                with others:
                    whole = b.sub(kc, e.index(1))  # the last column apart: see pack_rows
                    whole = b.sub(whole, b.srem(whole, e.index(e.width)))
                    whole = b.select(b.icmp_signed("==", along, one), whole, e.index(0))
                    pack_rows(e, source, target, e.index(0), whole, rows)
                    pack_scalars(e, source, target, whole, kc, rows)
            return context.get_dummy_value()

        return types.void(X, types.int64, P, types.int64), codegen

    return pack_panel


pack_a_panel = panel_packer(lambda _: MR)
pack_b_panel = panel_packer(lambda itemsize: ROW_BYTES // itemsize)


@intrinsic
def prefetch_row(_, P, p, k):
    """Ask for the cache lines of P[p, k], a row of a packed panel of B."""

    def codegen(context, b, signature, arguments):
        e = emitter(context, b, signature.args[0])
        row = e.pointer(signature.args[0], *arguments, 0)
        for offset in range(0, ROW_BYTES, LINE):
            e.prefetch(e.at(row, offset // e.size))
        return context.get_dummy_value()

    return types.void(P, types.int64, types.int64), codegen


@intrinsic
def take(_, counter):
    """counter[0]++, atomically: the value before."""

    def codegen(context, b, signature, arguments):
        e = Emit(context, b, types.int64, 8)
        cell = e.pointer(signature.args[0], arguments[0], 0)
        return b.atomic_rmw("add", cell, e.index(1), "monotonic")

    return types.int64(counter), codegen
