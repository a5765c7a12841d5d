"""``@opbench.operator``, here called `define`: a user's function becomes an operator."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, TypeVar

import numpy as np

from opbench.errors import ConfigError, DTypeError, OpbenchError, ShapeError
from opbench.operators.lane_argument import LANES, lanes_optional
from opbench.operators.operator import Cost, Operator, Shape
from opbench.operators.registry import of_kernel, register
from opbench.operators.verification import Verification

__all__ = ["Form", "call_event", "define", "verify_call"]

F = TypeVar("F", bound=Callable[..., Any])

OUT = "out"


@dataclass(frozen=True, slots=True)
class Form:
    """What is known of an operand before there are any values: what an array says of itself.

    Attributes:
        shape: the length of each dimension.
        dtype: the type of the elements.
    """

    shape: Shape
    dtype: np.dtype[Any]

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
    def itemsize(self) -> int:
        """The bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.size * self.itemsize


Count = int | Callable[..., int]


def define(
    *,
    name: str | None = None,
    flops: Count,
    reference: Callable[..., Any],
    bytes: Count | None = None,  # noqa: A002 - the word that the cost has too
    shape: Callable[..., Shape] | None = None,
    dtype: str | Callable[..., Any] | None = None,
    tolerance: float | None = None,
    lanes: Count | None = None,
) -> Callable[[F], F]:
    """Make a function of arrays an operator: checked, traced, and usable from ``nd`` and ``sym``.

    ::

        @opbench.operator(flops=lambda x, y: 2 * x.size, reference=lambda x, y: 3 * x + y)
        @numba.njit(parallel=True, cache=True)
        def triad(x, y, out):
            for i in numba.prange(x.size):
                out[i] = 3 * x[i] + y[i]

    The function itself is returned unchanged. Its operands are its parameters without a default,
    ``out`` apart, and are arrays that it only reads. With a parameter ``out`` it writes its result
    there; else it returns a new array, which ``nd`` and ``sym`` then copy into theirs, and the copy
    counts as the operator's time.

    The rules below are called with one `Form` per operand, which has the ``shape``, ``dtype``,
    ``size``, ``ndim`` and ``nbytes`` that the array will have.

    Args:
        name: the word that ``nd``, ``sym``, traces and tables use; the function's name if None.
        flops: floating-point operations of one call, a multiply-add counting as two: a number, or a
            rule that gives one. 0 where it computes none.
        reference: the obviously right version in NumPy; called with the operands alone, floating
            ones in float64.
        bytes: of one call, likewise; every operand read once and the result written once if None.
        shape: from the operands to the shape of the result; that of NumPy's broadcasting if None.
        dtype: of the result, or a rule that gives it; NumPy's result type of the operands if None.
        tolerance: how far the result may lie from the reference, relative to the reference's
            largest element; 100 times the rounding error of the result's dtype if None.
        lanes: the most records that the workers of one call write, likewise; the function then has
            a parameter ``lanes``, which it gives to ``lane_begin`` and ``lane_end``.

    Raises:
        ConfigError: a wrong argument; at the decoration, a name that is taken or a function whose
            operands cannot be told.
    """
    if not callable(reference):
        raise ConfigError(f"operator: reference must be a function, not {reference!r}")
    for what, rule in (("flops", flops), ("bytes", bytes), ("lanes", lanes)):
        if rule is not None and not callable(rule):
            _count(f"operator: {what}", rule)
    if tolerance is not None and not 0 <= tolerance < 1:
        raise ConfigError(f"operator: tolerance must be from 0 up and under 1, not {tolerance!r}")

    def decorate(function: F) -> F:
        word = _checked_name(name if name is not None else getattr(function, "__name__", ""))
        rules = _Rules(word, _operands(word, function), flops, bytes, shape, dtype, lanes)
        verification = Verification(word, reference, tolerance)
        register(
            Operator(
                name=word,
                infer_shape=rules.infer_shape,
                infer_dtype=rules.infer_dtype,
                cost=rules.cost,
                reference=_as_called(reference, rules.operands),
                kernels={"cpu": _kernel(word, function, told=lanes is not None)},
                label=_label,
                check=verification.check,
                function=function,
                verify=verification,
                lanes=None if lanes is None else rules.records,
            )
        )
        return function

    return decorate


def verify_call(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
) -> None:
    """Check one call of a user's operator, unless it was right on operands of this form before.

    Args:
        function: what was called; nothing happens if it is no user's operator.
        args: its positional arguments.
        kwargs: its keyword arguments.
        result: what it returned; of a function that has an ``out`` that is looked at instead.

    Raises:
        AccuracyError: the result is further from the reference than it may be.
    """
    __tracebackhide__ = True
    made = of_kernel(function)
    if made is None or made.verify is None:
        return
    operands, written = _given(function, args, kwargs)
    made.verify(operands, result if written is None else written)


def call_event(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[str, dict[str, Any]] | None:
    """Name and arguments of the event of one direct call of a user's operator; None for others."""
    made = of_kernel(function)
    if made is None or made.function is None:
        return None
    operands, _ = _given(function, args, kwargs)
    shapes = [operand.shape for operand in operands]
    dtype = made.infer_dtype([operand.dtype.name for operand in operands])
    cost = made.cost(shapes, dtype)
    return made.name, {
        "operator": made.name,
        "form": "kernel",
        "inputs": [list(shape) for shape in shapes],
        "outputs": [list(made.infer_shape(shapes))],
        "dtype": dtype,
        "flop": cost.flop,
        "bytes": cost.bytes,
    }


def _given(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[np.ndarray[Any, Any]], Any]:
    """The operands of a call, and the array that it writes to, or None."""
    if isinstance(function, np.ufunc):
        return [np.asarray(operand) for operand in args[: function.nin]], kwargs.get(OUT)
    given = inspect.signature(function).bind(*args, **kwargs).arguments
    return [np.asarray(given[word]) for word in _operand_names(function)], given.get(OUT)


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise ConfigError(
            f"operator: {name!r} is no name that nd.NAME could have; give name='...', "
            "one word of letters, digits and underscores"
        )
    if name.startswith("_"):
        raise ConfigError(f"operator: nd.{name} would be hidden; give name='...', another one")
    return name


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}


def _operands(name: str, function: Callable[..., Any]) -> int:
    """How many arrays the function reads."""
    if isinstance(function, np.ufunc):
        return function.nin
    parameters = _parameters(function)
    kinds = {parameter.kind for parameter in parameters.values()}
    operands = _operand_names(function)
    if parameters and not operands:
        raise ConfigError(f"operator {name!r}: the function has no parameter that is an operand")
    if not parameters or inspect.Parameter.VAR_POSITIONAL in kinds:
        raise ConfigError(
            f"operator {name!r}: how many operands {function!r} takes cannot be told; wrap it in a "
            "function that names each of them"
        )
    return len(operands)


def _operand_names(function: Callable[..., Any]) -> list[str]:
    return [
        word
        for word, parameter in _parameters(function).items()
        if parameter.default is parameter.empty and word not in (OUT, LANES)
    ]


def _kernel(name: str, function: Callable[..., Any], *, told: bool) -> Callable[..., Any]:
    """The function as the runtime calls it: ``kernel(*operands, out=out)``, also with lanes."""
    function = lanes_optional(name, function, _parameters(function), told=told)
    if isinstance(function, np.ufunc) or OUT in _parameters(function):
        return function

    def kernel(*operands: Any, out: Any = None, **lanes: Any) -> Any:
        result = np.asarray(function(*operands, **lanes))
        if out is None:
            return result
        if result.shape != out.shape:
            raise ShapeError(
                f"{name} returned the shape {result.shape} where {out.shape} was expected; "
                "say which it is with @opbench.operator(shape=...)"
            )
        if result.dtype != out.dtype:
            raise DTypeError(
                f"{name} returned {result.dtype} where {out.dtype} was expected; "
                "say which it is with @opbench.operator(dtype=...)"
            )
        np.copyto(out, result)
        return out

    return kernel


def _as_called(reference: Callable[..., Any], count: int) -> Callable[..., Any]:
    """The reference as the fixture calls it, with all that the kernel was given.

    Args:
        reference: the user's; one that takes no ``out`` is spared a copy.
        count: of operands; an output array, and what else the kernel takes, may follow them.
    """
    writes = isinstance(reference, np.ufunc) or OUT in _parameters(reference)

    def called(*given: Any, out: Any = None, **_others: Any) -> Any:
        if not writes:
            return reference(*given[:count])
        return reference(*given[:count], out=given[count] if len(given) > count else out)

    return called


def _label(shapes: Sequence[Shape]) -> str:
    texts = ["×".join(map(str, shape)) or "scalar" for shape in shapes]
    return texts[0] if len(set(texts)) == 1 else " · ".join(texts)


@dataclass(frozen=True, slots=True)
class _Rules:
    """What a user said of an operator, with the defaults filled in."""

    name: str
    operands: int
    flops: Count
    moved: Count | None
    shape: Callable[..., Shape] | None
    dtype: str | Callable[..., Any] | None
    lanes: Count | None

    def infer_shape(self, shapes: Sequence[Shape]) -> Shape:
        if len(shapes) != self.operands:
            raise ShapeError(f"{self.name} takes {self.operands} operands, not {len(shapes)}")
        if self.shape is None:
            try:
                return tuple(np.broadcast_shapes(*shapes))
            except ValueError:
                raise ShapeError(
                    f"{self.name} cannot broadcast {' and '.join(map(str, shapes))}; if its result "
                    "has another shape, say so with @opbench.operator(shape=...)"
                ) from None
        forms = [Form(tuple(shape), np.dtype("float32")) for shape in shapes]
        found = self._asked("shape", self.shape, forms)
        try:
            return tuple(index(length) for length in (found if _is_tuple(found) else (found,)))
        except TypeError:
            raise ShapeError(
                f"operator {self.name!r}: shape must give a tuple of whole numbers, not {found!r}"
            ) from None

    def infer_dtype(self, dtypes: Sequence[str]) -> str:
        kinds = [np.dtype(dtype) for dtype in dtypes]
        if callable(self.dtype) and not isinstance(self.dtype, type):
            given = self._asked("dtype", self.dtype, [Form((), kind) for kind in kinds])
        else:
            given = self.dtype
        try:
            kind: np.dtype[Any] = np.result_type(*kinds) if given is None else np.dtype(given)
        except TypeError as error:
            raise DTypeError(
                f"operator {self.name!r}: no dtype for {', '.join(dtypes)}: {error}"
            ) from None
        return str(kind.name)

    def cost(self, shapes: Sequence[Shape], dtype: str) -> Cost:
        kind = np.dtype(dtype)
        forms = [Form(tuple(shape), kind) for shape in shapes]
        if self.moved is None:
            result = Form(self.infer_shape(shapes), kind)
            moved = sum(form.nbytes for form in (*forms, result))
        else:
            moved = self._number("bytes", self.moved, forms)
        return Cost(flop=self._number("flops", self.flops, forms), bytes=moved)

    def records(self, shapes: Sequence[Shape], dtype: str) -> int:
        forms = [Form(tuple(shape), np.dtype(dtype)) for shape in shapes]
        return 0 if self.lanes is None else self._number("lanes", self.lanes, forms)

    def _number(self, what: str, rule: Count, forms: list[Form]) -> int:
        given = self._asked(what, rule, forms) if callable(rule) else rule
        return _count(f"operator {self.name!r}: {what}", given)

    def _asked(self, what: str, rule: Callable[..., Any], forms: list[Form]) -> Any:
        try:
            return rule(*forms)
        except OpbenchError:
            raise
        except Exception as error:
            shapes = ", ".join(str(form.shape) for form in forms)
            raise ConfigError(
                f"operator {self.name!r}: its rule {what} failed on operands of the shapes "
                f"{shapes}: {type(error).__name__}: {error}"
            ) from error


def _is_tuple(value: Any) -> bool:
    return isinstance(value, (tuple, list))


def _count(what: str, value: Any) -> int:
    """A whole number of 0 or more; a float that is one counts, as division makes them."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        number = -1 if isinstance(value, bool) else index(value)
    except TypeError:
        number = -1
    if number < 0:
        raise ConfigError(f"{what} must be a whole number of 0 or more, not {value!r}")
    return number
