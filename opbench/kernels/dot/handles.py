"""Arrays handed to compiled code as they are, for it to look at and to check.

numba's own way in takes an array apart (60 ns each), and leaves type, dtype and writability to be
asked for in Python (20 to 60 ns each); a product of 16 × 16 takes 100 ns. A handle is the bare
reference to the object. What is read from it is NumPy's C structure of an array, which extension
modules are compiled against: NumPy's C API, "PyArrayObject" (data, nd, dimensions, strides, base,
descr, flags).
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending
from numba.core import cgutils, types
from numba.np import arrayobj

from opbench.kernels.dot.emit import I32, I64, intrinsic

__all__ = ["Handle", "array_of", "descr_of", "fact", "is_plain", "known_layout", "writeable"]

I1 = ir.IntType(1)
all_types: Any = types  # some of which type checkers do not see
WORD = 8
# Offsets in bytes. The object's head is longer in builds without the interpreter lock.
HEAD = object.__basicsize__
KIND = HEAD - WORD  # the address of the object's type ends the head
DATA, ND, DIMENSIONS, STRIDES, BASE, DESCR, FLAGS = (HEAD + WORD * n for n in range(7))
WRITEABLE = 0x0400


def known_layout() -> bool:
    """Whether arrays lie in memory as this module reads them, and the interpreter has its lock."""
    probe = np.empty((2, 3))
    addresses = [ctypes.c_ssize_t.from_address(id(probe) + at).value for at in (KIND, DATA, DESCR)]
    numbers = [ctypes.c_int.from_address(id(probe) + at).value for at in (ND, FLAGS)]
    as_read = addresses == [id(np.ndarray), probe.ctypes.data, id(probe.dtype)]
    locked: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
    return as_read and numbers == [probe.ndim, probe.flags.num] and locked


class Handle(all_types.Type):  # type: ignore[misc] # numba is untyped here
    """A reference to what should be an array of the type `array`."""

    def __init__(self, array: Any) -> None:
        self.array = array
        super().__init__(f"handle({array})")


extending.register_model(Handle)(extending.models.OpaqueModel)


@extending.unbox(Handle)
def unbox_handle(_: Any, reference: Any, __: Any) -> Any:
    """The reference itself; the caller of the compiled function holds the object."""
    return extending.NativeValue(reference)


def field(builder: Any, handle: Any, offset: int, kind: Any) -> Any:
    """A field of the object behind a handle."""
    place = builder.gep(handle, [I64(offset)])
    return builder.load(builder.bitcast(place, kind.as_pointer()))


@intrinsic
def is_plain(_: Any, handle: Any, ndarray: Any) -> Any:
    """Whether there is an array, of no subclass, with the number of dimensions of its type."""

    def codegen(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        reference, ndarray_ = arguments
        kind = field(builder, reference, KIND, I64)
        result = cgutils.alloca_once_value(builder, I1(0))
        with builder.if_then(builder.icmp_unsigned("==", kind, ndarray_)):
            dimensions = field(builder, reference, ND, I32)
            wanted = I32(signature.args[0].array.ndim)
            builder.store(builder.icmp_unsigned("==", dimensions, wanted), result)
        return builder.load(result)

    return types.boolean(handle, ndarray), codegen


@intrinsic
def descr_of(_: Any, handle: Any) -> Any:
    """The address of the dtype object of what is known to be an array."""

    def codegen(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return field(builder, arguments[0], DESCR, I64)

    return types.int64(handle), codegen


@intrinsic
def writeable(_: Any, handle: Any) -> Any:
    """Whether what is known to be an array can be written."""

    def codegen(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        flags = field(builder, arguments[0], FLAGS, I32)
        return builder.icmp_unsigned("!=", builder.and_(flags, I32(WRITEABLE)), I32(0))

    return types.boolean(handle), codegen


@intrinsic
def array_of(_: Any, handle: Any) -> Any:
    """The array behind a handle, borrowed: it keeps nothing alive."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, (reference,) = signature.return_type, arguments
        array = context.make_array(kind)(context, builder)
        numbers = [
            [
                builder.load(builder.gep(field(builder, reference, at, I64.as_pointer()), [I64(n)]))
                for n in range(kind.ndim)
            ]
            for at in (DIMENSIONS, STRIDES)
        ]
        element = context.get_data_type(kind.dtype)
        arrayobj.populate_array(
            array,
            data=field(builder, reference, DATA, element.as_pointer()),
            shape=numbers[0],
            strides=numbers[1],
            itemsize=I64(kind.dtype.bitwidth // 8),
            meminfo=None,
        )
        return array._getvalue()  # noqa: SLF001 - as numba's own intrinsics

    return handle.array(handle), codegen


@intrinsic
def fact(_: Any, address: Any, index: Any) -> Any:
    """The integer at an address, so many integers on."""

    def codegen(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        start = builder.inttoptr(arguments[0], I64.as_pointer())
        return builder.load(builder.gep(start, [arguments[1]]))

    return types.int64(address, index), codegen
