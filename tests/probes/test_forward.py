"""VTune and Nsight follow the window: fakes of their packages, and the real ones if installed."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace

import pytest

from opbench.probes.around import AROUND
from opbench.probes.forward import Forward, itt, nvtx
from opbench.profiler import Profiler


@pytest.fixture
def recorder():
    return Profiler(price=lambda: 0.0)


@pytest.fixture
def log():
    return []


def fake_itt(log):
    """As ittapi 1.2.2 has it, as far as it is used."""

    def note(what):
        return lambda *given: log.append((what, *given))

    return SimpleNamespace(
        domain=lambda name: f"domain {name}",
        string_handle=lambda name: f"handle {name}",
        resume=note("resume"),
        pause=note("pause"),
        task_begin=note("task_begin"),
        task_end=note("task_end"),
    )


def fake_nvtx(log):
    """As nvtx 0.2.17 has it, as far as it is used."""

    class Domain:
        def __init__(self, name):
            self.name = name

        def get_event_attributes(self, message):
            log.append(("attributes", message))
            return message

        def push_range(self, attributes):
            log.append(("push", self.name, attributes))

        def pop_range(self):
            log.append(("pop", self.name))

        def start_range(self, attributes):
            log.append(("start", attributes))
            return 7

        def end_range(self, ident):
            log.append(("end", ident))

    return SimpleNamespace(get_domain=Domain)


def operator(name):
    """What the runtime does around an operator."""
    entered = AROUND.enter(name) if AROUND.hooks else []
    return AROUND.leave(entered) if entered else {}


def test_itt_follows_the_window_and_an_operator_is_a_task(recorder, log, monkeypatch):
    monkeypatch.setitem(sys.modules, "ittapi", fake_itt(log))
    recorder.add_listener(Forward(itt))
    assert log == []
    operator("before")
    recorder.run("all", "test")
    assert operator("dot") == {}
    recorder.pause()
    recorder.resume()
    operator("dot")
    recorder.stop("test")
    operator("after")

    task = [("task_begin", "domain opbench", "handle dot"), ("task_end", "domain opbench")]
    assert log == [("resume",), *task, ("pause",), ("resume",), *task, ("pause",)]


def test_nvtx_has_a_range_for_the_window_and_one_per_operator(recorder, log, monkeypatch):
    monkeypatch.setitem(sys.modules, "nvtx", fake_nvtx(log))
    recorder.add_listener(Forward(nvtx))
    recorder.run("all", "test")
    operator("dot")
    operator("dot")
    recorder.pause()
    recorder.stop("test")

    assert log == [
        ("attributes", "opbench window"),
        ("start", "opbench window"),
        ("attributes", "dot"),
        ("push", "opbench", "dot"),
        ("pop", "opbench"),
        ("push", "opbench", "dot"),
        ("pop", "opbench"),
        ("end", 7),
    ]
    assert AROUND.hooks == ()


def test_an_operator_that_outlives_the_window_ends_its_task(recorder, log, monkeypatch):
    monkeypatch.setitem(sys.modules, "ittapi", fake_itt(log))
    recorder.add_listener(Forward(itt))
    recorder.run("all", "test")
    entered = AROUND.enter("dot")
    recorder.stop("test")
    AROUND.leave(entered)

    assert [what for what, *_ in log] == ["resume", "task_begin", "pause", "task_end"]


def test_of_a_package_that_is_not_installed_nothing_is_asked(recorder, monkeypatch):
    for name, find in (("ittapi", itt), ("nvtx", nvtx)):
        monkeypatch.setitem(sys.modules, name, None)  # an import of it fails
        assert find() is None
        recorder.add_listener(Forward(find))
    recorder.run("all", "test")
    recorder.pause()
    recorder.resume()
    recorder.stop("test")

    assert AROUND.hooks == ()


def test_the_package_is_looked_for_at_the_first_window_and_not_again(recorder):
    asked = []
    recorder.add_listener(Forward(lambda: asked.append(1)))
    assert asked == []
    for _ in range(2):
        recorder.run("all", "test")
        recorder.stop("test")
    assert asked == [1]


def test_tasks_stand_on_the_engines_thread_around_the_kernel(log, monkeypatch):
    from opbench.runtime import nd

    threads = []
    a = nd.ones((2, 2))
    hook = SimpleNamespace(
        enter=lambda name: threads.append((name, threading.current_thread().name)),
        leave=lambda token: threads.append(threading.current_thread().name) or {"seen": True},
    )
    from opbench.profiler import RECORDER

    RECORDER.run("imperative", "test")
    AROUND.add(hook)
    try:
        nd.dot(a, a).wait_to_read()
    finally:
        AROUND.remove(hook)
        trace = RECORDER.stop("test")

    assert threads == [("dot", "opbench engine"), "opbench engine"]
    (event,) = [event for event in trace.events if event.category == "imperative"]
    assert event.args["seen"] is True


@pytest.mark.parametrize("step", ["enter", "leave"])
def test_a_hook_that_fails_is_removed_and_the_operator_says_so(step, log):
    def fail(*_):
        raise RuntimeError("no connection")

    good = SimpleNamespace(enter=log.append, leave=lambda token: log.append("left") or {"good": 1})
    bad = SimpleNamespace(enter=lambda name: None, leave=lambda token: {})
    setattr(bad, step, fail)
    AROUND.add(bad)
    AROUND.add(good)
    try:
        first, second = operator("dot"), operator("dot")
    finally:
        AROUND.remove(good)

    assert first == {"good": 1, "probe_failed": "SimpleNamespace: RuntimeError: no connection"}
    assert second == {"good": 1}
    assert log == ["dot", "left", "dot", "left"]


@pytest.mark.parametrize(("package", "find"), [("ittapi", itt), ("nvtx", nvtx)])
def test_the_real_package_without_a_collector(package, find, recorder):
    pytest.importorskip(package, reason="an optional dependency")
    recorder.add_listener(Forward(find))
    recorder.run("all", "test")
    assert len(AROUND.hooks) == 1
    assert operator("dot") == {}
    recorder.pause()
    recorder.resume()
    recorder.stop("test")
    assert AROUND.hooks == ()
