"""The few vector operations that the dot kernels' intrinsics are written in, as LLVM IR."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import extending
from numba.core import cgutils, types

__all__ = ["I64", "Emit", "intrinsic"]

I32, I64 = ir.IntType(32), ir.IntType(64)
BYTE_POINTER = ir.IntType(8).as_pointer()
# Any, since numba's own types count the typing context among the arguments of a call.
intrinsic: Any = extending.intrinsic


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

    def zero(self) -> Any:
        """A vector of zeros."""
        return ir.Constant(self.vector(self.width), None)

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

    def prefetch(self, pointer: Any) -> None:
        """Ask for the cache line at an address: to be read, kept near."""
        function = ir.FunctionType(ir.VoidType(), [BYTE_POINTER, I32, I32, I32])
        name = f"llvm.prefetch.{BYTE_POINTER.intrinsic_name}"
        self.b.call(
            cgutils.get_or_insert_function(self.b.module, function, name),
            [self.b.bitcast(pointer, BYTE_POINTER), I32(0), I32(3), I32(1)],
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
