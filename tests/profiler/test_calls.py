from __future__ import annotations

import functools
import json
import operator

from opbench.profiler import call_args


class Array:
    def __init__(self, dtype, *shape):
        self.dtype = dtype
        self.shape = shape


def kernel(*args, **kwargs):
    """A function to be called."""


def test_arrays_show_element_type_and_shape_and_the_rest_its_type():
    args = [Array("float32", 4096, 4096), Array("float64"), 3, "secret", None, [1]]
    told = call_args(kernel, args, {"out": Array("int8", 2)})
    assert told == {
        "function": f"{__name__}.kernel",
        "arguments": [
            "float32[4096,4096]",
            "float64[]",
            "int",
            "str",
            "NoneType",
            "list",
            "out=int8[2]",
        ],
    }


def test_an_array_of_records_is_called_so_and_not_by_its_fields():
    class Fields:
        names = ("worker", "start")

        def __str__(self):
            return "[('worker', '<i4'), ('start', '<i8')]"

    class Plain(Fields):
        names = None

        def __str__(self):
            return "int32"

    told = call_args(kernel, [Array(Fields(), 16), Array(Plain(), 2)], {})["arguments"]
    assert told == ["records[16]", "int32[2]"]


def test_the_function_is_named_whatever_it_is():
    class Callable:
        def __call__(self):
            """Nothing."""

    def told(function):
        return call_args(function, (), {})["function"]

    inside = f"{__name__}.test_the_function_is_named_whatever_it_is.<locals>.Callable"
    assert told(functools.partial(functools.partial(kernel, 1), 2)) == f"{__name__}.kernel"
    assert told(Callable()) == inside
    assert told(len) == "len"
    assert told(operator.matmul) == "_operator.matmul"
    assert told(Callable) == inside


def test_arguments_beyond_sixteen_are_counted():
    told = call_args(kernel, range(20), {"a": 1, "b": 2})["arguments"]
    assert told[:-1] == ["int"] * 16
    assert told[-1] == "… and 6 more"


def test_strangers_cannot_make_it_raise():
    class Hostile:
        def __getattr__(self, name):
            raise RuntimeError(name)

        def __call__(self):
            """Nothing."""

    told = call_args(Hostile(), [Hostile(), Array("x" * 500, 1), Array("f4", "wide")], {})
    assert told["function"].endswith("Hostile")
    first, second, third = told["arguments"]
    assert first.endswith("Hostile")
    assert len(second) < 100
    assert third == "Array"
    json.dumps(told, allow_nan=False)


def test_no_value_is_kept():
    array = Array("float32", 2)
    told = call_args(kernel, [array], {"out": array})
    assert all(isinstance(text, str) for text in told["arguments"])
