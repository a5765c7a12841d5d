"""A wrapper that has the parameters of its function."""

from __future__ import annotations

import functools
import inspect

import pytest

from opbench.profiler import Mode, Profiler
from opbench.profiler.wrapping import forwarding

API = int(Mode.API)


def nothing():
    return ()


def plain(a, b=2):
    return a, b


def positional(a, b=2, /, c=3):
    return a, b, c


def keywords(a, *, b, c=3):
    return a, b, c


def everything(a, /, b, *rest, c, d=4, **more):
    return a, b, rest, c, d, more


def clash(_opbench_recorder, function=1):
    return _opbench_recorder, function


FUNCTIONS = [
    (nothing, [((), {})]),
    (plain, [((1,), {}), ((1, 5), {}), ((1,), {"b": 6}), ((), {"a": 1})]),
    (positional, [((1,), {}), ((1, 2, 9), {}), ((1,), {"c": 9})]),
    (keywords, [((1,), {"b": 2}), ((), {"a": 1, "b": 2, "c": 9})]),
    (everything, [((1, 2, 3, 4), {"c": 5, "x": 6}), ((1,), {"b": 2, "c": 3})]),
    (clash, [((1,), {}), ((1, 2), {})]),
    (functools.partial(plain, 7), [((), {}), ((8,), {})]),
    (max, [((1, 5), {}), (([3, 1],), {"key": abs})]),
    (lambda *names: names, [((1, 2), {})]),
]


@pytest.mark.parametrize(("function", "calls"), FUNCTIONS)
@pytest.mark.parametrize("on", [False, True])
def test_arguments_and_results_are_those_of_the_function(function, calls, on):
    recorder = Profiler()
    seen = []

    def recorded(*args, **kwargs):
        seen.append("recorded")
        return function(*args, **kwargs)

    entry = forwarding(function, recorded, recorder, API)
    if on:
        recorder.run("api", "test")
    for args, kwargs in calls:
        assert entry(*args, **kwargs) == function(*args, **kwargs)
    assert seen == ["recorded"] * (len(calls) * on)
    if on:
        recorder.stop("test")


@pytest.mark.parametrize("function", [plain, positional, keywords, everything, clash])
def test_it_looks_like_the_function(function):
    entry = forwarding(function, function, Profiler(), API)
    assert inspect.signature(entry) == inspect.signature(function)
    assert (entry.__name__, entry.__doc__, entry.__module__) == (
        function.__name__,
        function.__doc__,
        function.__module__,
    )
    with pytest.raises(TypeError, match=function.__name__):
        entry()


def test_a_default_is_the_very_object_of_the_function():
    default = object()

    def function(a=default):
        return a

    assert forwarding(function, function, Profiler(), API)() is default


def test_a_method_stays_one():
    class Owner:
        def method(self, x, *, y=2):
            return self, x, y

    Owner.method = forwarding(Owner.method, Owner.method, Profiler(), API)
    owner = Owner()
    assert owner.method(1) == (owner, 1, 2)
