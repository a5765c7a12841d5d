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
AHEAD = 8  # steps of k: B's rows may lie a page apart, where the hardware fetches nothing early
TO_L1, TO_L2 = (
    3,
    2,
)  # a prefetch's nearness: C's rows may share one set of L1 and throw each other out


def emitter(context, builder, array_type):
    """An Emit for the array's element type and the host's vectors."""
    return Emit(context, builder, array_type.dtype, TILE.vector)


def load_row(e, pointer, vectors, mask):
    """One row of B's micro-panel; the last vector under the mask where that is free."""
    row = [e.load(e.at(pointer, v * e.width), e.width) for v in range(vectors)]
    if TILE.free_masks:
        row[-1] = e.masked_load(e.at(pointer, (vectors - 1) * e.width), mask)
    return row


def accumulate(e, a, b, kc, rows, vectors, mask):
    """The loop over k: rows × vectors accumulators += A's column · B's row.

    `a` is (pointer, row stride, step of k), `b` is (pointer, step of k), in bytes.
    """
    ir, (a_0, a_row, a_step), (b_0, b_step) = e.b, a, b
    offsets = [ir.mul(e.index(r), a_row) for r in range(rows)]
    entry, loop, done = (
        ir.block,
        ir.append_basic_block("k"),
        ir.append_basic_block("k.done"),
    )
    ir.branch(loop)
    ir.position_at_end(loop)
    k, a_k, b_k = ir.phi(I64), ir.phi(a_0.type), ir.phi(b_0.type)
    sums = [ir.phi(e.vector(e.width)) for _ in range(rows * vectors)]
    row, steps = load_row(e, b_k, vectors, mask), []
    ahead = e.past(b_k, ir.mul(b_step, e.index(AHEAD)))
    for v in range(vectors):
        e.prefetch(e.at(ahead, v * e.width), TO_L1)
    for r in range(rows):
        a_rk = e.splat(e.past(a_k, offsets[r]))
        steps += [e.multiply_add(a_rk, row[v], sums[r * vectors + v]) for v in range(vectors)]
    following = ir.add(k, e.index(1))
    starts = [e.index(0), a_0, b_0] + [e.zero()] * len(sums)
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
                old = e.masked_load(target, mask) if masked else e.load(target, e.width)
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


@intrinsic
def micro_kernel(_, A, B, q, C, i, j, rows, columns, add):
    """C[i:i+rows, j:j+columns] = A[i:i+rows]·B[q], or += where `add`.

    A is (M, KC) of any strides, B (panels, KC, NR) and C (M, N) with contiguous rows; KC >= 1,
    1 <= rows <= MR, 1 <= columns <= NR. There is one loop for each pair of rows and vectors.
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
        vectors = b.udiv(before, e.index(e.width))
        mask = e.mask(b.add(b.urem(before, e.index(e.width)), e.index(1)))
        never, end = (
            b.append_basic_block("tile.never"),
            b.append_basic_block("tile.end"),
        )
        choice = b.add(b.mul(b.sub(rows_, e.index(1)), e.index(NV)), vectors)
        switch = b.switch(choice, never)
        for n in range(MR * NV):
            block, height, width = b.append_basic_block("tile"), n // NV + 1, n % NV + 1
            switch.add_case(e.index(n), block)
            b.position_at_end(block)
            lines = [e.past(corner, b.mul(e.index(r), c_row)) for r in range(height)]
            for line in lines:  # C arrives while the loop computes; a row may straddle lines
                for byte in [
                    *range(0, width * TILE.vector, LINE),
                    width * TILE.vector - e.size,
                ]:
                    e.prefetch(e.past(line, byte), TO_L2)
            sums = accumulate(e, from_a, from_b, kc, height, width, mask)
            update(e, sums, lines, width, mask, add_)
            b.branch(end)
        b.position_at_end(never)
        b.unreachable()
        b.position_at_end(end)
        return context.get_dummy_value()

    n = types.int64
    return types.void(A, B, n, C, n, n, n, n, types.boolean), codegen
