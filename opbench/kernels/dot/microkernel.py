"""The micro-kernel, as vector IR: what plain numba cannot say."""

# ruff: noqa: ARG001 - an intrinsic names its arguments for the caller; the IR takes them in order

from __future__ import annotations

from numba.core import types

from opbench.kernels.dot.emit import I32, I64, Emit, intrinsic
from opbench.kernels.dot.machine import host_tile

__all__ = ["LINE", "MR", "ROW_BYTES", "TILE", "emitter", "micro_kernel"]

TILE = host_tile()
MR, NV = TILE.rows, TILE.vectors
ROW_BYTES = TILE.vector * NV
LINE = 64
# Rows of A below this tile, which come next: their first lines, so that the hardware only follows.
FIRST_LINES = 2
AHEAD = 8  # steps of k: B's rows may lie a page apart, where the hardware fetches nothing early
# A prefetch's nearness: C's rows may share one set of L1 and throw each other out.
TO_L1, TO_L2 = 3, 2


def emitter(context, builder, array_type):
    """An Emit for the array's element type and the host's vectors."""
    return Emit(context, builder, array_type.dtype, TILE.vector)


def load_row(e, pointer, vectors, mask):
    """One row of B's micro-panel; the last vector under the mask where that is free."""
    starts = [e.at(pointer, v * e.width) for v in range(vectors)]
    if not TILE.free_masks:
        return [e.load(start, e.width) for start in starts]
    return [e.load(start, e.width) for start in starts[:-1]] + [e.masked_load(starts[-1], mask)]


def accumulate(e, a, b, kc, rows, vectors, mask):
    """The loop over k: rows × vectors accumulators += A's column · B's row.

    `a` is (pointer, row stride, step of k), `b` is (pointer, step of k), in bytes.
    """
    ir, (a_0, a_row, a_step), (b_0, b_step) = e.b, a, b
    offsets = [ir.mul(e.index(r), a_row) for r in range(rows)]
    entry, loop, done = ir.block, ir.append_basic_block("k"), ir.append_basic_block("k.done")
    ir.branch(loop)
    ir.position_at_end(loop)
    k, a_k, b_k = ir.phi(I64), ir.phi(a_0.type), ir.phi(b_0.type)
    sums = [ir.phi(e.vector(n)) for n in [*[e.width] * (vectors - 1), mask.type.count] * rows]
    row, steps = load_row(e, b_k, vectors, mask), []
    ahead = e.past(b_k, ir.mul(b_step, e.index(AHEAD)))
    for v in range(vectors):
        e.prefetch(e.at(ahead, v * e.width), TO_L1)
    for r in range(rows):
        a_rk = e.splat(e.past(a_k, offsets[r]))
        for v, piece in enumerate(row):
            a_rv = e.first_lanes(a_rk, piece.type.count)
            steps.append(e.multiply_add(a_rv, piece, sums[r * vectors + v]))
    following = ir.add(k, e.index(1))
    starts = [e.index(0), a_0, b_0] + [e.zero(s.type.count) for s in sums]
    steps = [following, e.past(a_k, a_step), e.past(b_k, b_step), *steps]
    for phi, start, step in zip([k, a_k, b_k, *sums], starts, steps, strict=True):
        phi.add_incoming(start, entry)
        phi.add_incoming(step, loop)
    ir.cbranch(ir.icmp_signed("<", following, kc), loop, done)
    ir.position_at_end(done)
    return steps[3:]


def update(e, sums, rows, vectors, mask, add):
    """Write the accumulators to C's rows, or add them where `add`; the last vector masked."""
    targets = [(e.at(row, v * e.width), v == vectors - 1) for row in rows for v in range(vectors)]

    def put(*, adding, masking):
        for value, (target, last) in zip(sums, targets, strict=True):
            masked = masking and last
            if adding:
                old = e.masked_load(target, mask) if masked else e.load(target, value.type.count)
                value = e.add(value, old)  # noqa: PLW2901 - the value that is stored
            if masked:
                e.masked_store(value, target, mask)
            else:
                e.store(value, target)

    def put_or_add(*, masking):
        with e.b.if_else(add) as (adding, writing):
            with adding:
                put(adding=True, masking=masking)
            with writing:
                put(adding=False, masking=masking)

    if TILE.free_masks:
        put_or_add(masking=True)
        return
    with e.b.if_else(e.b.extract_element(mask, I32(e.width - 1))) as (whole, ragged):
        with whole:
            put_or_add(masking=False)
        with ragged:
            put_or_add(masking=True)


def fetch(e, lines, span, a):
    """Ask for what comes after the loop over k: C's rows, of `span` bytes, and the next rows of A.

    A row of C may straddle lines.
    """
    for line in lines:
        for byte in [*range(0, span, LINE), span - e.size]:
            e.prefetch(e.past(line, byte), TO_L2)
    a_0, a_row, _ = a
    for r in range(len(lines)):
        below = e.past(a_0, e.b.mul(e.index(MR + r), a_row))
        for n in range(FIRST_LINES):
            e.prefetch(e.past(below, n * LINE), TO_L2)


@intrinsic
def micro_kernel(_, A, B, q, C, i, j, rows, columns, add):
    """C[i:i+rows, j:j+columns] = A[i:i+rows]·B[q], or += where `add`.

    A is (M, KC) of any strides, B (panels, KC, NR) and C (M, N) with contiguous rows; KC >= 1,
    1 <= rows <= MR, 1 <= columns <= NR. There is one loop for each pair of rows and vectors; where
    masks are free, MR rows have another for each number of vectors whose last is half empty: half
    a vector costs half as much where the units are half as wide (Zen 4).
    """

    def codegen(context, b, signature, arguments):
        type_a, type_b, _, type_c, *_ = signature.args
        a_, b_, q_, c_, i_, j_, rows_, columns_, add_ = arguments
        e = emitter(context, b, type_a)
        (_, kc), (a_row, a_step) = e.shape(type_a, a_), e.strides(type_a, a_)
        from_a = (e.pointer(type_a, a_, i_, 0), a_row, a_step)
        from_b = (e.pointer(type_b, b_, q_, 0, 0), e.strides(type_b, b_)[1])
        corner, (c_row, _) = e.pointer(type_c, c_, i_, j_), e.strides(type_c, c_)
        before = b.sub(columns_, e.index(1))
        vectors, last = b.udiv(before, e.index(e.width)), b.urem(before, e.index(e.width))
        mask = e.mask(b.add(last, e.index(1)))
        tiles = [(height, width, mask) for height in range(1, MR + 1) for width in range(1, NV + 1)]
        choice = b.add(b.mul(b.sub(rows_, e.index(1)), e.index(NV)), vectors)
        if TILE.free_masks:
            half = e.width // 2
            tiles += [(MR, width, e.first_lanes(mask, half)) for width in range(1, NV + 1)]
            narrow = b.and_(
                b.icmp_signed("==", rows_, e.index(MR)), b.icmp_signed("<", last, e.index(half))
            )
            choice = b.add(choice, b.select(narrow, e.index(NV), e.index(0)))
        never, end = b.append_basic_block("tile.never"), b.append_basic_block("tile.end")
        switch = b.switch(choice, never)
        for n, (height, width, kept) in enumerate(tiles):
            block = b.append_basic_block("tile")
            switch.add_case(e.index(n), block)
            b.position_at_end(block)
            lines = [e.past(corner, b.mul(e.index(r), c_row)) for r in range(height)]
            fetch(e, lines, ((width - 1) * e.width + kept.type.count) * e.size, from_a)
            sums = accumulate(e, from_a, from_b, kc, height, width, kept)
            update(e, sums, lines, width, kept, add_)
            b.branch(end)
        b.position_at_end(never)
        b.unreachable()
        b.position_at_end(end)
        return context.get_dummy_value()

    n = types.int64
    return types.void(A, B, n, C, n, n, n, n, types.boolean), codegen
