"""Functions that users mark for mode api: they stay what they were, and each call is a slice."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import itertools
import threading

import pytest

from opbench.errors import ConfigError
from opbench.profiler import RECORDER, api, traced


@contextlib.contextmanager
def recording(modes="api"):
    traces = []
    RECORDER.run(modes, "test")
    try:
        yield traces
    finally:
        trace = RECORDER.stop("test")
        traces.append([e for e in trace.events if e.category == "api" and e.phase != "C"])


# ---- whatever is marked is called as before


def plain(a, b=2):
    return a, b


def positional_only(a, b=2, /, c=3):
    return a, b, c


def keyword_only(a, *, key, other=5):
    return a, key, other


def everything(a, /, b, *rest, key=1, **more):
    return a, b, rest, key, more


def nothing():
    return ()


def mutable(found=[]):  # noqa: B006 - the very same object must come through
    return found


CALLS = [
    (plain, (1,), {}),
    (plain, (1, 3), {}),
    (plain, (), {"b": 1, "a": 7}),
    (positional_only, (1,), {}),
    (positional_only, (1, 9), {"c": 4}),
    (keyword_only, (1,), {"key": 2}),
    (keyword_only, (), {"other": 2, "key": 3, "a": 4}),
    (everything, (1, 2, 3, 4), {"key": 5, "x": 6, "a": 7}),
    (everything, (1,), {"b": 2}),
    (nothing, (), {}),
    (mutable, (), {}),
]


@pytest.mark.parametrize("modes", ["none", "api"])
@pytest.mark.parametrize(("function", "args", "kwargs"), CALLS)
def test_a_marked_function_takes_and_gives_what_it_did(function, args, kwargs, modes):
    marked = api("name")(function)
    expected = function(*args, **kwargs)
    with recording(modes):
        assert marked(*args, **kwargs) == expected
    assert inspect.signature(marked) == inspect.signature(function)
    assert marked.__wrapped__ is function
    if function is mutable:
        assert marked() is mutable()


@pytest.mark.parametrize("modes", ["none", "api"])
@pytest.mark.parametrize(
    ("function", "args", "kwargs"),
    [
        (plain, (), {}),
        (plain, (1, 2, 3), {}),
        (positional_only, (), {"a": 1}),
        (keyword_only, (1, 2), {}),
        (nothing, (1,), {}),
    ],
)
def test_a_wrong_call_is_a_type_error_as_before(function, args, kwargs, modes):
    with recording(modes), pytest.raises(TypeError):
        api("name")(function)(*args, **kwargs)


def test_a_parameter_may_have_a_name_that_the_wrapper_uses():
    @traced
    def function(_opbench_function, _opbench_switch=3):
        return _opbench_function + _opbench_switch

    with recording() as traces:
        assert function(1) == 4
    assert len(traces[0]) == 1


def test_methods_and_objects_that_are_called():
    class Layer:
        @api("Layer.forward")
        def forward(self, x):
            return self, x

        @classmethod
        @api("Layer.make")
        def make(cls):
            return cls()

        def __call__(self, x, *, y=2):
            return x + y

    layer = Layer()
    with recording() as traces:
        assert layer.forward(3) == (layer, 3)
        assert isinstance(Layer.make(), Layer)
        assert traced(layer)(1, y=4) == 5
        assert api("partial")(functools.partial(plain, 1))(b=3) == (1, 3)
    names = [event.name for event in traces[0]]
    assert names == ["Layer.forward", "Layer.make", f"{__name__}.{Layer.__qualname__}", "partial"]


# ---- what is recorded


def test_a_function_marked_without_a_name_has_its_own():
    @traced
    def work():
        """Doc."""

    with recording() as traces:
        work()
    (event,) = traces[0]
    assert event.name == f"{__name__}.{work.__qualname__}"
    assert (event.phase, event.tid) == ("X", threading.get_native_id())
    assert work.__doc__ == "Doc."


def test_a_coroutine_function_lasts_until_it_was_awaited_and_may_overlap():
    @traced
    async def fetch():
        await asyncio.sleep(0)
        return 3

    async def both():
        return await asyncio.gather(fetch(), fetch())

    assert asyncio.run(both()) == [3, 3]
    with recording() as traces:
        assert asyncio.run(both()) == [3, 3]
    first, second = traces[0]
    assert (first.phase, second.phase) == ("b", "b")
    assert second.start_ns < first.end_ns


def test_recursion_nests():
    @api("down")
    def down(n):
        return down(n - 1) if n else "ground"

    with recording() as traces:
        assert down(3) == "ground"
    events = traces[0]
    assert len(events) == 4
    for outer, inner in itertools.pairwise(events):
        assert outer.start_ns <= inner.start_ns
        assert inner.end_ns <= outer.end_ns


@pytest.mark.parametrize("name", ["", None, 3, plain])
def test_a_name_that_is_none_is_told(name):
    with pytest.raises(ConfigError, match="api takes the name that the trace shows, not"):
        api(name)


def test_a_generator_is_refused():
    def produce():
        yield

    with pytest.raises(ConfigError, match="is a generator: its call returns before any"):
        traced(produce)


def test_after_a_pause_without_calls_none_is_in_flight_until_the_first():
    call = api("call")(plain)
    RECORDER.run("api", "test")
    RECORDER.pause()
    RECORDER.resume()
    call(1)
    trace = RECORDER.stop("test")
    told = [e for e in trace.events if e.name == "api calls in flight"]
    assert [e.args["calls"] for e in told] == [0, 1, 0]
    assert told[0].start_ns == trace.pauses[0][1]
