"""NDArray: the result of an operator, perhaps still pending.

To NumPy it is an array: every NumPy function takes it, waits for it, and gives a NumPy result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from opbench.errors import ReadOnlyError
from opbench.runtime.context import Context
from opbench.runtime.dtypes import real
from opbench.runtime.engine import Failure, Task
from opbench.runtime.recording import api, part, part_begins
from opbench.runtime.storage import Array, adopt

__all__ = ["NDArray", "owning"]


class NDArray(NDArrayOperatorsMixin):
    """An array that the runtime owns; its values never change once they are there.

    Make one with :mod:`opbench.nd`, not with this class. Shape, dtype and context are known at
    once, the values after the wait.

    A copy of it is itself, and a pickle holds its values, for which pickling waits.
    """

    __slots__ = ("__weakref__", "_context", "_data", "_dtype", "_shape", "_task")

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        context: Context,
        data: Array | None = None,
    ) -> None:
        self._shape = shape
        self._dtype = dtype
        self._context = context
        self._data = data
        self._task: Task | None = None

    def pend(self, task: Task) -> None:
        """Make the values the business of ``task``; for the submitter."""
        self._task = task

    def fill(self, values: Array) -> None:
        """Give the values; for the worker."""
        self._data = values

    def produced(self) -> Array | Failure:
        """The values, or why there are none; for the worker, which has run their producer."""
        if self._data is not None:
            return self._data
        if self._task is None or self._task.failure is None:
            raise AssertionError("a finished task left neither values nor a failure")
        return self._task.failure

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each dimension."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return self._dtype

    @property
    def context(self) -> Context:
        """Where it lies."""
        return self._context

    @property
    def ctx(self) -> Context:
        """The context, by MXNet's short name."""
        return self._context

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        count = 1
        for length in self.shape:
            count *= length
        return count

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.size * self.dtype.itemsize

    @api("NDArray.wait_to_read")
    def wait_to_read(self) -> None:
        """Return when the values are there.

        Raises:
            OperatorError: the operator, or one that it depends on, failed; the cause is attached.
            ForkError: it was pending when this process was forked.
        """
        self._wait()

    @api("NDArray.asnumpy")
    def asnumpy(self) -> Array:
        """Wait, and copy the values into a NumPy array of one's own, in C order.

        Raises:
            OperatorError: as `wait_to_read`.
            ForkError: as `wait_to_read`.
        """
        values: Array = self._wait().copy(order="C")
        return values

    @api("NDArray.astype")
    def astype(self, dtype: Any) -> NDArray:
        """Wait, and convert the values into a new array on the same context.

        Args:
            dtype: of the result; float32 if None.

        Raises:
            DTypeError: not a dtype of real numbers.
            OperatorError: as `wait_to_read`.
            ForkError: as `wait_to_read`.
        """
        return owning(self._wait(), self._context, real(dtype), "NDArray.astype")

    @api("NDArray.__array__")
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Wait, and give NumPy a read-only view of the values, or a copy where it asks for one.

        Raises:
            OperatorError: as `wait_to_read`.
            ForkError: as `wait_to_read`.
            ValueError: ``copy=False`` with another dtype.
        """
        return self._as_array(dtype, copy=copy)

    @api("NDArray.__array_ufunc__")
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's own result, computed on the waiting thread: arithmetic here is NumPy's.

        Raises:
            ReadOnlyError: the result would be written into an NDArray.
            OperatorError: as `wait_to_read`.
            ForkError: as `wait_to_read`.
        """
        # The method at adds in place, to its first operand.
        written = inputs[:1] if method == "at" else kwargs.get("out", ())
        if any(isinstance(out, NDArray) for out in written):
            raise ReadOnlyError(
                f"{ufunc.__name__} cannot write into an NDArray, whose values never change;"
                " take a copy with asnumpy and write into that"
            )
        plain = {name: _plain(value) for name, value in kwargs.items()}
        return getattr(ufunc, method)(*map(_plain, inputs), **plain)

    def __copy__(self) -> NDArray:
        return self

    def __deepcopy__(self, memo: Any) -> NDArray:
        return self

    @api("NDArray.__reduce__")
    def __reduce__(self) -> tuple[Any, ...]:
        return owning, (self._wait(), self._context)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an NDArray without dimensions has no length")
        return self.shape[0]

    @api("NDArray.__iter__")
    def __iter__(self) -> Iterator[Any]:
        return iter(self._as_array())

    @api("NDArray.__bool__")
    def __bool__(self) -> bool:
        return bool(self._as_array())

    @api("NDArray.__float__")
    def __float__(self) -> float:
        return float(self._as_array())

    @api("NDArray.__int__")
    def __int__(self) -> int:
        return int(self._as_array())

    @api("NDArray.__getitem__")
    def __getitem__(self, key: Any) -> Any:
        return self._as_array()[key]

    def __repr__(self) -> str:
        # Never waits: a debugger that shows it must not hang, nor raise the operator's error.
        pending = self._task is not None and not self._task.done
        shape = "×".join(str(length) for length in self.shape) or "scalar"
        return f"<NDArray {shape} {self.dtype.name} @{self.context}{' pending' if pending else ''}>"

    def _as_array(self, dtype: Any = None, *, copy: bool | None = None) -> Array:
        data = self._wait()
        wanted = data.dtype if dtype is None else np.dtype(dtype)
        if wanted != data.dtype:
            if copy is False:
                raise ValueError(
                    f"an NDArray of {data.dtype} cannot be seen as {wanted} without a copy"
                )
            converted: Array = data.astype(wanted)
            return converted
        plain: Array = data.copy() if copy else data.view()
        if not copy:
            plain.flags.writeable = False
        return plain

    def _wait(self) -> Array:
        task = self._task
        if task is not None:
            since = 0 if task.done else part_begins()
            task.wait()
            part("NDArray", "wait", since)
            if task.failure is not None:
                raise task.failure.error() from task.failure.cause
            self._task = None
        if self._data is None:
            raise AssertionError("a finished task left no values")
        return self._data


def owning(
    values: Array, context: Context, dtype: np.dtype[Any] | None = None, maker: str = ""
) -> NDArray:
    """A new NDArray with a copy of ``values`` in C order; ``dtype`` is theirs if None.

    ``maker`` is who asked for it, for the books of memory.
    """
    own: Array = np.array(values, dtype=dtype, order="C", copy=True)
    return NDArray(own.shape, own.dtype, context, adopt(own, context, maker))


def _plain(value: Any) -> Any:
    return value._as_array() if isinstance(value, NDArray) else value  # noqa: SLF001 - of this module
