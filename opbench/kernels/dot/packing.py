"""Micro-panels of B: packed, so that each step of k reads NR neighbours, or seen in place.

A packed block is (panels, KC, NR); beyond B's last column it holds zeros or elements of B, which
the micro-kernel computes with and does not store. A is never packed: the micro-kernel reads its few
rows one element at a time, in the order of k, wherever they lie. (Packing A as well made n <= 1000
slower, by 1 to 10 %, and 4096 faster by 0 to 3 %, on Zen 4.)
"""

# ruff: noqa: ARG001 - an intrinsic names its arguments for the caller; the IR takes them in order

from __future__ import annotations

from numba.core import cgutils, types
from numpy.lib.stride_tricks import as_strided

from opbench.kernels.cache import jit
from opbench.kernels.dot.emit import frozen, intrinsic, loose
from opbench.kernels.dot.microkernel import LINE, ROW_BYTES, emitter

__all__ = ["lay_rows", "pack", "panels_in_place"]


# Rows of B that are read side by side: panel by panel each would be on another page.
SIDE_BY_SIDE = 8


def copy_rows(e, source, target, kc, have, nr):
    """B's rows are contiguous: copy a row of the panel for each k, masked in the last panel."""
    ir, tops = e.b, range(0, nr, e.width)
    with ir.if_else(ir.icmp_signed(">=", have, e.index(nr))) as (whole, ragged):
        with whole, cgutils.for_range(ir, kc) as k:
            for top in tops:
                e.store(e.load(source(k.index, top), e.width), target(k.index, top))
        with ragged:
            masks = [e.mask(ir.sub(have, e.index(top))) for top in tops]
            with cgutils.for_range(ir, kc) as k:
                for top, mask in zip(tops, masks, strict=True):
                    row = e.masked_load(source(k.index, top), mask)
                    e.store(row, target(k.index, top))


def transpose_columns(e, source, target, last, nr):
    """B's columns are contiguous: `width` steps of k and columns at a time, through registers."""
    for top in range(0, nr, e.width):
        with cgutils.for_range_slice(e.b, e.index(0), last, e.index(e.width)) as (k, _):
            columns = [e.load(source(k, top + c), e.width) for c in range(e.width)]
            for n, row in enumerate(e.transpose(columns)):
                e.store(row, target(e.b.add(k, e.index(n)), top))


def copy_elements(e, source, target, first, kc, nr):
    """Any strides: element by element."""
    with cgutils.for_range_slice(e.b, first, kc, e.index(1)) as (k, _):
        for c in range(nr):
            e.store(e.load(source(k, c), 1), target(k, c))


@intrinsic
def pack_panel(_, B, P, q):
    """P[q, k, c] = B[k, q·NR + c]; beyond B's last column zeros or elements of B."""

    def codegen(context, b, signature, arguments):
        type_b, type_p, _ = signature.args
        b_, p_, panel = arguments
        e = emitter(context, b, type_b)
        nr, item = ROW_BYTES // e.size, e.index(e.size)
        (kc, columns), (down, along) = e.shape(type_b, b_), e.strides(type_b, b_)
        first, last = b.mul(panel, e.index(nr)), b.sub(columns, e.index(1))

        def in_row(k, c):
            return e.pointer(type_b, b_, k, b.add(first, e.index(c)))

        def clamped(k, c):
            at = b.add(first, e.index(c))
            return e.pointer(type_b, b_, k, b.select(b.icmp_signed("<", at, last), at, last))

        def target(k, c):
            return e.pointer(type_p, p_, panel, k, c)

        with b.if_else(b.icmp_signed("==", along, item)) as (rows, others):
            with rows:
                copy_rows(e, in_row, target, kc, b.sub(columns, first), nr)
            with others:
                whole = b.sub(kc, b.srem(kc, e.index(e.width)))
                whole = b.select(b.icmp_signed("==", down, item), whole, e.index(0))
                transpose_columns(e, clamped, target, whole, nr)
                copy_elements(e, clamped, target, whole, kc, nr)
        return context.get_dummy_value()

    return types.void(B, P, types.int64), codegen


@jit
def pack_panels(B, P):
    """Fill micro-panels that lie anywhere."""
    panels, K, _ = P.shape
    steps = K if B.strides[0] == B.itemsize else SIDE_BY_SIDE
    for k in range(0, K, steps):
        for q in range(panels):
            pack_panel(B[k : k + steps], P[:, k : k + steps], q)


@jit
def pack(B, scratch):
    """B's micro-panels in scratch, packed: (panels, KC, NR)."""
    (K, N), size = B.shape, B.itemsize
    NR = ROW_BYTES // size
    shape = (N + NR - 1) // NR, K, NR
    P = loose(as_strided(scratch, shape, (K * ROW_BYTES, ROW_BYTES, size)))
    pack_panels(B, P)
    return frozen(P)


@jit
def lay_rows(B, scratch):
    """B in scratch, (K, N): the rows an odd number of lines apart, so that they use all sets."""
    (K, N), size = B.shape, B.itemsize
    panels, NR = (N * size + ROW_BYTES - 1) // ROW_BYTES, ROW_BYTES // size
    apart = panels * ROW_BYTES + LINE
    pack_panels(B, loose(as_strided(scratch, (panels, K, NR), (ROW_BYTES, apart, size))))
    return frozen(as_strided(scratch, (K, N), (apart, size)))


@jit
def panels_in_place(B):
    """B's micro-panels where they lie; the last may reach beyond B, where nothing may be read."""
    (K, N), NR = B.shape, ROW_BYTES // B.itemsize
    shape = (N + NR - 1) // NR, K, NR
    return frozen(as_strided(B, shape, (ROW_BYTES, B.strides[0], B.strides[1])))
