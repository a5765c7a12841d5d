"""The few vector operations that the dot kernels' intrinsics are written in, as LLVM IR."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import extending
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed

__all__ = ["I32", "I64", "Emit", "frozen", "intrinsic", "loose", "pointer_to"]

I32, I64 = ir.IntType(32), ir.IntType(64)
BYTE_POINTER = ir.IntType(8).as_pointer()
# Any, since numba's own types count the typing context among the arguments of a call.
intrinsic: Any = extending.intrinsic
all_types: Any = types  # some of which type checkers do not see


class Emit:
    """Vector IR for one element type: `width` lanes to a vector of `vector` bytes.

    Loads and stores assume no alignment, so that misaligned operands are as good as others; on the
    targets in question an unaligned access to aligned data costs nothing.
    """

    def __init__(self, context: Any, builder: Any, dtype: Any, vector: int) -> None:
        self.context, self.b, self.dtype = context, builder, dtype
        self.size, self.element = dtype.bitwidth // 8, context.get_value_type(dtype)
        self.width = vector // self.size
        self.real = isinstance(dtype, types.Float)

    def vector(self, lanes: int) -> Any:
        """The type of a vector of so many elements."""
        return ir.VectorType(self.element, lanes)

    def zero(self, lanes: int | None = None) -> Any:
        """A vector of zeros."""
        return ir.Constant(self.vector(lanes or self.width), None)

    def index(self, value: Any) -> Any:
        """A 64-bit constant; IR values pass through."""
        return ir.Constant(I64, value) if isinstance(value, int) else value

    def pointer(self, array_type: Any, array: Any, *index: Any) -> Any:
        """The address of an element; indices count from the front, never wrapping around."""
        struct = self.context.make_array(array_type)(self.context, self.b, array)
        return cgutils.get_item_pointer(
            self.context, self.b, array_type, struct, [self.index(i) for i in index]
        )

    def shape(self, array_type: Any, array: Any) -> Any:
        """An array's dimensions."""
        struct = self.context.make_array(array_type)(self.context, self.b, array)
        return cgutils.unpack_tuple(self.b, struct.shape)

    def strides(self, array_type: Any, array: Any) -> Any:
        """An array's strides in bytes."""
        struct = self.context.make_array(array_type)(self.context, self.b, array)
        return cgutils.unpack_tuple(self.b, struct.strides)

    def at(self, pointer: Any, index: Any) -> Any:
        """The address so many elements further on."""
        return self.b.gep(pointer, [self.index(index)])

    def past(self, pointer: Any, offset: Any) -> Any:
        """The address so many bytes further on."""
        start = self.b.bitcast(pointer, BYTE_POINTER)
        return self.b.bitcast(self.b.gep(start, [self.index(offset)]), self.element.as_pointer())

    def mask(self, count: Any) -> Any:
        """Lanes below `count`, as a vector of bits."""
        lanes = ir.VectorType(I32, self.width)
        one = self.b.insert_element(
            ir.Constant(lanes, ir.Undefined), self.b.trunc(count, I32), I32(0)
        )
        limit = self.shuffle(one, one, [0] * self.width)
        return self.b.icmp_signed("<", ir.Constant(lanes, list(range(self.width))), limit)

    def masked_load(self, pointer: Any, mask: Any) -> Any:
        """A vector, zero and not read where the mask is off."""
        lanes = mask.type.count
        vector = self.vector(lanes)
        kind, pointer_type = self.kind(), vector.as_pointer()
        function = ir.FunctionType(vector, [pointer_type, I32, mask.type, vector])
        name = f"llvm.masked.load.v{lanes}{kind}.p0"
        return self.b.call(
            cgutils.get_or_insert_function(self.b.module, function, name),
            [self.b.bitcast(pointer, pointer_type), I32(1), mask, self.zero(lanes)],
        )

    def masked_store(self, value: Any, pointer: Any, mask: Any) -> None:
        """Write a vector where the mask is on."""
        kind, pointer_type = self.kind(), value.type.as_pointer()
        function = ir.FunctionType(ir.VoidType(), [value.type, pointer_type, I32, mask.type])
        name = f"llvm.masked.store.v{mask.type.count}{kind}.p0"
        self.b.call(
            cgutils.get_or_insert_function(self.b.module, function, name),
            [value, self.b.bitcast(pointer, pointer_type), I32(1), mask],
        )

    def kind(self) -> str:
        """The element type's name in intrinsics."""
        return f"{'f' if self.real else 'i'}{8 * self.size}"

    def load(self, pointer: Any, lanes: int) -> Any:
        """So many neighbouring elements."""
        return self.b.load(self.b.bitcast(pointer, self.vector(lanes).as_pointer()), align=1)

    def store(self, value: Any, pointer: Any) -> None:
        """Write neighbouring elements."""
        self.b.store(value, self.b.bitcast(pointer, value.type.as_pointer()), align=1)

    def shuffle(self, low: Any, high: Any, lanes: list[int]) -> Any:
        """Lanes of two vectors; those of `high` are numbered after those of `low`."""
        mask = ir.Constant(ir.VectorType(I32, len(lanes)), lanes)
        return self.b.shuffle_vector(low, high, mask)

    def first_lanes(self, vector: Any, lanes: int) -> Any:
        """A vector's first lanes, which lie in the same register."""
        wanted = list(range(lanes))
        return vector if vector.type.count == lanes else self.shuffle(vector, vector, wanted)

    def splat(self, pointer: Any) -> Any:
        """One element, in every lane."""
        one = self.load(pointer, 1)
        return self.shuffle(one, one, [0] * self.width)

    def add(self, x: Any, y: Any) -> Any:
        """The sum x + y."""
        return self.b.fadd(x, y) if self.real else self.b.add(x, y)

    def multiply_add(self, x: Any, y: Any, z: Any) -> Any:
        """x·y + z, fused where the target can."""
        if not self.real:
            return self.b.add(self.b.mul(x, y), z)
        name = f"llvm.fmuladd.v{z.type.count}f{8 * self.size}"
        function = ir.FunctionType(z.type, [z.type] * 3)
        return self.b.call(cgutils.get_or_insert_function(self.b.module, function, name), [x, y, z])

    def prefetch(self, pointer: Any, near: int) -> None:
        """Ask for the cache line at an address, to be read: 3 into L1, 2 into L2."""
        function = ir.FunctionType(ir.VoidType(), [BYTE_POINTER, I32, I32, I32])
        name = f"llvm.prefetch.{BYTE_POINTER.intrinsic_name}"
        self.b.call(
            cgutils.get_or_insert_function(self.b.module, function, name),
            [self.b.bitcast(pointer, BYTE_POINTER), I32(0), I32(near), I32(1)],
        )

    def transpose(self, rows: list[Any]) -> list[Any]:
        """Rows to columns, `width` by `width`: each stage swaps one bit of row and lane numbers."""
        rows, half = list(rows), 1
        lanes = range(self.width)
        while half < self.width:
            even = [n if not n & half else self.width + n - half for n in lanes]
            odd = [n + half if not n & half else self.width + n for n in lanes]
            for i in (i for i in lanes if not i & half):
                low, high = rows[i], rows[i + half]
                rows[i], rows[i + half] = (
                    self.shuffle(low, high, even),
                    self.shuffle(low, high, odd),
                )
            half *= 2
        return rows


def retag(*, readonly: bool) -> Any:
    """An intrinsic that gives an array the type of an operand, so that callees compile once."""

    @intrinsic
    def as_operand(_: Any, array: Any) -> Any:
        """The same array, as one of any layout and alignment."""

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return impl_ret_borrowed(context, builder, signature.return_type, arguments[0])

        kind = types.Array(array.dtype, array.ndim, "A", readonly=readonly, aligned=False)
        return kind(array), codegen

    return as_operand


frozen = retag(readonly=True)
loose = retag(readonly=False)


@intrinsic
def pointer_to(_: Any, address: Any) -> Any:
    """The bytes at an address, for `numba.carray`."""

    def codegen(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], BYTE_POINTER)

    return all_types.CPointer(types.uint8)(address), codegen
