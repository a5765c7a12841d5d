"""``profiler(fn)``: one first call, timed rounds with the profiler stopped, a pass of its own."""

import numpy as np
import pytest

from opbench.plugin.target import same_layout

pytest_plugins = ["pytester"]

LOGGED = """
    from opbench import profiler as prof
    states = []
    def work(x):
        states.append(prof.RECORDER.state)
        return x + 1
"""


def kinds(trace):
    """The categories in a trace, and how many events each has."""
    counts = {}
    for event in trace["traceEvents"]:
        if event["ph"] != "M":
            counts[event["cat"]] = counts.get(event["cat"], 0) + 1
    return counts


def of(trace, category):
    return [e for e in trace["traceEvents"] if e["ph"] != "M" and e["cat"] == category]


def test_every_timed_round_runs_with_the_profiler_stopped(project):
    project.file(
        test_it=LOGGED
        + """
    def test_work(profiler, benchmark):
        assert profiler.options(iterations=5, begin=1, end=3)(work, 41) == 42
        timed = len(benchmark.stats.stats.data) * benchmark.stats.iterations
        assert timed >= 5
        # first call, calibration, rounds and pytest-benchmark's last call, then iteration 0
        assert states[-2:] == ["run", "run"]
        assert set(states[:-2]) == {"stop"}
        assert len(states) > 1 + timed + 1
    """
    )
    project.run("--benchmark-max-time=0.01")


def test_the_window_holds_its_iterations_and_nothing_else(project):
    project.file(
        test_it="""
        import numpy as np
        from opbench import nd
        def test_dot(profiler):
            a = nd.array(np.ones((8, 4), "f4")); b = nd.array(np.ones((4, 2), "f4"))
            profiler.options(iterations=5, begin=1, end=3)(nd.dot, a, b)
        """
    )
    benches, _ = project.bench()
    trace = project.trace()
    dots = [e for e in of(trace, "imperative") if e["name"] == "dot"]
    assert [e["args"]["iteration"] for e in dots] == [1, 2]
    for event in dots:
        assert event["args"]["inputs"] == [[8, 4], [4, 2]]
        assert event["args"]["outputs"] == [[8, 2]]
        assert event["args"]["dtype"] == "float32"
        assert event["args"]["flop"] == 2 * 8 * 4 * 2
        assert event["args"]["bytes"] == 4 * (8 * 4 + 4 * 2 + 8 * 2)
    assert [e["name"] for e in of(trace, "iteration")] == ["iteration 1", "iteration 2"]
    assert [e["args"]["iteration"] for e in of(trace, "call")] == [1, 2]
    summary = benches["test_dot"]["extra_info"]["opbench"]
    assert (summary["begin"], summary["end"], summary["iterations"]) == (1, 3, 5)
    assert summary["flop"] == 128
    (total,) = summary["operators"]
    assert (total["category"], total["name"], total["count"]) == ("imperative", "dot", 2)


def test_a_call_slice_lies_inside_its_iteration_and_names_the_arguments(project):
    project.file(
        test_it="""
        import numpy as np
        def mine(a, scale): return a * scale
        def test_mine(profiler):
            profiler.options(iterations=1)(mine, np.ones((3, 5), "f8"), scale=2)
        """
    )
    project.run("--benchmark-max-time=0.01")
    trace = project.trace()
    (iteration,), (call,) = of(trace, "iteration"), of(trace, "call")
    assert call["name"] == "mine"
    assert call["args"]["function"].endswith("mine")
    assert call["args"]["arguments"] == ["float64[3,5]", "scale=int"]
    assert (call["pid"], call["tid"]) == (iteration["pid"], iteration["tid"])
    assert iteration["ts"] <= call["ts"]
    assert call["ts"] + call["dur"] <= iteration["ts"] + iteration["dur"]


@pytest.mark.parametrize(
    ("mode", "kept"),
    [
        ("symbolic", {"symbolic"}),
        ("imperative", {"imperative"}),
        ("api", {"api"}),
        ("memory", {"memory"}),
        ("symbolic+imperative", {"symbolic", "imperative"}),
        ("all", {"symbolic", "imperative", "api", "memory"}),
    ],
)
def test_a_mode_asked_for_gives_that_mode_only(project, mode, kept):
    project.file(
        test_it="""
        import numpy as np
        from opbench import cpu, nd, sym
        def test_both(profiler):
            x = np.ones((4, 4), "f4")
            a = nd.array(x)
            executor = sym.dot(sym.var("a"), sym.var("b")).bind(cpu(), {"a": a, "b": a})
            def both():
                return [nd.dot(a, a), executor.forward()[0]]
            profiler(both)
        """
    )
    project.run("--benchmark-max-time=0.01", f"--opbench-mode={mode}")
    # Collections and compilations are in every mode, whenever they happen.
    found = set(kinds(project.trace())) - {"gc", "compile"}
    assert found == kept | {"iteration", "call"}


def test_disabled_means_exactly_one_call_and_no_trace(project):
    project.file(
        test_it=LOGGED
        + """
    def test_work(profiler):
        assert profiler(work, 1) == 2
        assert states == ["stop"]
        assert profiler.trace is None
    """
    )
    project.run("--benchmark-disable")
    assert not (project.path / "results").exists()


def test_disabled_with_tracing_on_records_that_one_call(project):
    project.file(
        test_it=LOGGED
        + """
    def test_work(profiler):
        assert profiler(work, 1) == 2
        assert states == ["run"]
    """
    )
    project.run("--benchmark-disable", "--opbench-trace=on")
    assert [e["name"] for e in of(project.trace(), "call")] == ["work"]


def test_a_pending_result_is_waited_for_inside_the_timed_call(project):
    project.file(
        test_it="""
        log = []
        class Pending:
            def wait_to_read(self): log.append("wait")
        def start(): log.append("call"); return Pending()
        def test_pending(profiler):
            assert isinstance(profiler(start), Pending)
            assert log[0::2] == ["call"] * (len(log) // 2), "each call"
            assert log[1::2] == ["wait"] * (len(log) // 2), "is followed by its wait"
        """
    )
    project.run("--benchmark-max-time=0.01", "-W", "error")


def test_a_plain_function_goes_into_the_rounds_unwrapped(project):
    project.file(
        test_it="""
        import inspect
        callers = set()
        def plain(): callers.add(inspect.currentframe().f_back.f_code.co_name)
        def test_plain(profiler):
            profiler.options(iterations=1)(plain)
            # pytest-benchmark's runner calls it directly: no wrapper of ours stands between
            assert "runner" in callers and "call_and_wait" not in callers
        """
    )
    project.run("--benchmark-max-time=0.01")


def test_a_cold_fast_function_gets_20_rounds_of_many_iterations(project):
    project.file(
        test_it="""
        import time
        from numba import njit
        @njit
        def tiny(x): return x + 1
        def test_tiny(profiler, benchmark):
            profiler(tiny, 1)
            assert len(benchmark.stats.stats.data) <= 21
        """
    )
    benches, result = project.bench("--benchmark-max-time=0.2")
    # The compilation was not part of calibration: a round is full of iterations, 10 ms of them.
    stats, options = benches["test_tiny"]["stats"], benches["test_tiny"]["options"]
    assert options["min_time"] == pytest.approx(0.01)
    assert stats["iterations"] > 10
    summary = benches["test_tiny"]["extra_info"]["opbench"]
    assert summary["compiled"] >= 1
    assert summary["first_call"] > benches["test_tiny"]["stats"]["max"]
    result.stdout.fnmatch_lines(["first call: test_tiny * (compiled)*"])


def test_calibration_does_not_overshoot_the_length_of_a_round(project):
    """By a fake timer: with pytest-benchmark's own precision this is 5 rounds of 10,000."""
    project.file(
        clock="""
        now = 0
        def timer():
            global now
            now += 1
            return now / 1e9
        def work():
            global now
            now += 24_000
        """,
        test_it="""
        import clock
        def test_it(profiler, benchmark):
            profiler(clock.work)
            assert benchmark.stats.iterations == 2084
            assert len(benchmark.stats.stats.data) == 20
        """,
    )
    project.run("--benchmark-timer=clock.timer", "--benchmark-max-time=1", "--opbench-trace=off")


def test_a_function_over_5_seconds_gets_2_iterations_and_the_section_says_so(project):
    project.file(
        conftest="""
        import opbench.plugin.fixture
        opbench.plugin.fixture.SLOW_CALL_SECONDS = 0
        """,
        test_it="""
        calls = []
        def test_slow(profiler): profiler(calls.append, 1)
        def test_chosen(profiler): profiler.options(iterations=3)(calls.append, 1)
        """,
    )
    benches, result = project.bench()
    slow, chosen = (benches[name]["extra_info"]["opbench"] for name in ("test_slow", "test_chosen"))
    assert (slow["iterations"], slow["begin"], slow["end"]) == (2, 1, 2)
    assert chosen["iterations"] == 3
    result.stdout.fnmatch_lines(["test_slow: 2 profiled iterations only, as a call takes over *"])


def test_the_three_forms_of_a_case_are_told_apart_and_compared(project):
    project.file(
        test_it="""
        import numpy as np
        from opbench import cpu, kernels, nd, sym
        x = np.ones((8, 8), "f4")
        def test_imperative(profiler): profiler(nd.dot, nd.array(x), nd.array(x))
        def test_symbolic(profiler):
            args = {"a": x, "b": x}
            profiler(sym.dot(sym.var("a"), sym.var("b")).bind(cpu(), args).forward)
        def test_kernel(profiler): profiler(kernels.dot, x, x, out=x.copy())
        """
    )
    benches, result = project.bench()
    forms = [bench["extra_info"]["opbench"]["form"] for bench in benches.values()]
    assert forms == ["imperative", "symbolic", "kernel"]
    assert {bench["extra_info"]["opbench"]["flop"] for bench in benches.values()} == {1024}
    assert "ratio" in benches["test_kernel"]["extra_info"]["opbench"]["reference"]
    result.stdout.fnmatch_lines(
        [
            "benchmark *median *GFLOP/s *vs NumPy*",
            "dot imperative 8² f32 *[+-]* *s",
            "dot symbolic 8² f32 *[+-]* *s",
            "dot kernel 8² f32 *×",
        ]
    )


def test_pedantic_sets_up_each_call_and_records_only_the_call(project):
    project.file(
        test_it="""
        import numpy as np
        log = []
        def setup(): log.append("setup"); return (np.zeros(2),), {}
        def change(x): log.append("call"); assert x[0] == 0; x[0] = 1; return x
        def teardown(x): log.append("teardown"); assert x[0] == 1
        def test_change(profiler, benchmark):
            result = profiler.options(iterations=3, begin=1).pedantic(
                change, setup=setup, teardown=teardown, rounds=4, warmup_rounds=1)
            assert result[0] == 1
            assert log == ["setup", "call", "teardown"] * (1 + 1 + 4 + 3)
            assert len(benchmark.stats.stats.data) == 4
        """
    )
    project.run()
    assert [e["args"]["iteration"] for e in of(project.trace(), "call")] == [1, 2]


def test_pedantic_disabled_is_one_call_with_setup_and_teardown(project):
    project.file(
        test_it="""
        log = []
        def test_it(profiler):
            profiler.pedantic(lambda: log.append("call"), setup=lambda: log.append("setup"),
                              teardown=lambda: log.append("teardown"), rounds=9)
            assert log == ["setup", "call", "teardown"]
        """
    )
    project.run("--benchmark-disable", "-W", "error")


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("rounds=0", "rounds must be a whole number from 1 up, not 0"),
        ("iterations=2, setup=lambda: None", "iterations=2 goes with no setup"),
        ("warmup_rounds=-1", "warmup_rounds must be a whole number from 0 up, not -1"),
    ],
)
def test_pedantic_refuses_wrong_counts_before_the_first_call(project, call, error):
    project.file(
        test_it=f"""
        import pytest
        def test_it(profiler):
            with pytest.raises(ValueError) as caught:
                profiler.pedantic(lambda: 1/0, {call})
            assert {error!r} in str(caught.value)
            profiler(lambda: 1)
        """
    )
    project.run("--benchmark-max-time=0.01")


@pytest.mark.parametrize("out", ["c", "out=c"])
def test_an_out_array_is_not_overwritten_by_the_reference(project, out):
    project.file(
        test_it=f"""
        import numpy as np
        from opbench import kernels, operators
        def test_dot(profiler, monkeypatch):
            a = np.ones((4, 4)); c = np.zeros((4, 4))
            def wrong(a, b, out=None):
                out[...] = -1
                return out
            import dataclasses
            dot = operators.get("dot")
            other = dataclasses.replace(dot, reference=wrong)
            monkeypatch.setattr(operators, "of_kernel", lambda function: other)
            profiler(kernels.dot, a, a, {out})
            assert (c == 4).all()
        """
    )
    benches, _ = project.bench()
    assert benches["test_dot"]["extra_info"]["opbench"]["reference"]["ratio"] > 0


def test_the_reference_can_be_switched_off(project):
    project.file(
        test_it="""
        import numpy as np
        from opbench import kernels
        def test_dot(profiler):
            profiler(kernels.dot, np.ones((4, 4)), np.ones((4, 4)))
        """
    )
    benches, _ = project.bench("--opbench-no-reference")
    summary = benches["test_dot"]["extra_info"]["opbench"]
    assert "reference" not in summary
    assert (summary["form"], summary["operator"], summary["flop"]) == ("kernel", "dot", 128)


def test_timing_twice_is_refused_before_anything_runs(project):
    project.file(
        test_it="""
        import pytest
        from opbench.errors import StateError
        def test_it(profiler, benchmark):
            profiler(lambda: 1)
            with pytest.raises(StateError, match="has timed already"):
                profiler(lambda: 1 / 0)
            assert benchmark.has_error is False
        """
    )
    benches, _ = project.bench()
    assert list(benches) == ["test_it"]


def test_a_recorder_driven_by_somebody_else_is_named(project):
    project.file(
        test_it="""
        import pytest
        from opbench import profiler as prof
        from opbench.errors import StateError
        def test_it(profiler):
            prof.RECORDER.run("all", "my own script")
            with pytest.raises(StateError, match="driven by my own script"):
                profiler(lambda: 1)
            prof.RECORDER.stop("my own script")
            profiler(lambda: 1)
        """
    )
    project.run("--benchmark-max-time=0.01")


@pytest.mark.parametrize(
    "result", ["{'y': p}", "[[p]]", "({'deep': [p]},)"], ids=["dict", "nested", "deep"]
)
def test_pending_parts_are_found_inside_lists_and_dictionaries(project, result):
    project.file(
        test_it=f"""
        waits = []
        class Pending:
            def wait_to_read(self): waits.append(1)
        def start():
            p = Pending()
            return {result}
        def test_pending(profiler):
            calls = []
            def counted(): calls.append(1); return start()
            profiler(counted)
            assert len(waits) == len(calls)
        """
    )
    project.run("--benchmark-max-time=0.01")


def test_work_that_a_result_hides_is_waited_for_and_said(project):
    project.file(
        test_it="""
        import threading
        import numpy as np
        from opbench import nd, runtime
        def test_hidden(profiler):
            a = nd.array(np.ones((600, 600)))
            calls = []
            def hidden():
                assert runtime.idle(), "the call before was waited for"
                nd.dot(a, a)
            profiler(hidden)
        """
    )
    result = project.run("--benchmark-max-time=0.01")
    result.stdout.fnmatch_lines(
        ["dot imperative 600² f64: timed with a wait for all pending work*"]
    )


def test_the_search_for_pending_parts_is_in_no_slice(project):
    project.file(
        test_it="""
        from opbench.plugin import target
        def test_it(profiler, monkeypatch):
            looked = []
            real = target.wait
            monkeypatch.setattr(target, "wait", lambda result: looked.append(1) or real(result))
            profiler(lambda: [0] * 10)
            assert looked == [1], "after the first call only"
        """
    )
    project.run("--benchmark-max-time=0.01")


def test_an_object_that_makes_up_attributes_is_not_pending(project):
    project.file(
        test_it="""
        class Strange:
            def __getattr__(self, name): raise RuntimeError(name)
        def test_it(profiler):
            profiler(Strange)
        """
    )
    project.run("--benchmark-max-time=0.01")


def test_keywords_that_pytest_benchmark_takes_itself_reach_the_function(project):
    project.file(
        test_it="""
        def test_it(profiler):
            assert profiler(dict, self=1, function_to_benchmark=2) == {
                "self": 1, "function_to_benchmark": 2}
        """
    )
    project.run("--benchmark-max-time=0.01")


def test_a_failing_function_fails_its_test_and_adds_no_warning(project):
    project.file(
        test_it="""
        def test_first_call(profiler): profiler(lambda: 1 / 0)
        def test_profiled_pass_only(profiler):
            from opbench import profiler as prof
            profiler(lambda: 1 / (prof.RECORDER.state == "stop"))
        """
    )
    result = project.run("--benchmark-max-time=0.01", "-W", "error", code=1)
    result.assert_outcomes(failed=2)


def test_pedantic_of_a_kernel_knows_its_work(project):
    project.file(
        test_it="""
        import numpy as np
        from opbench import kernels
        def test_dot(profiler):
            profiler.pedantic(kernels.dot, args=(np.ones((4, 4)), np.ones((4, 4))), rounds=3)
        """
    )
    benches, _ = project.bench()
    summary = benches["test_dot"]["extra_info"]["opbench"]
    assert (summary["form"], summary["flop"]) == ("kernel", 128)


def test_a_new_output_has_the_layout_of_the_old_one_and_none_of_its_memory():
    base = np.arange(48.0).reshape(6, 8)
    for view in (base, base.T, base[::2, ::-1], base[:, 3], base[::-1], base[:0]):
        new = same_layout(view)
        assert (new.shape, new.dtype) == (view.shape, view.dtype)
        if view.size:
            assert new.strides == view.strides
        assert not np.shares_memory(new, view)
        new[...] = 7
        assert (new == 7).all()


@pytest.mark.parametrize("trace", ["auto", "on"])
def test_the_single_call_of_a_disabled_benchmark_is_waited_for(project, trace):
    project.file(
        test_it="""
        log = []
        class Pending:
            def wait_to_read(self): log.append("wait")
        def start(): log.append("call"); return Pending()
        def test_pending(profiler):
            profiler(start)
            assert log == ["call", "wait"]
        """
    )
    project.run("--benchmark-disable", f"--opbench-trace={trace}")


@pytest.mark.parametrize("made", ["(1.0,)", "[1], 2.0", "3", "{'a': 1}"])
def test_a_setup_that_returns_no_arguments_is_told_the_form(project, made):
    project.file(
        test_it=f"""
        import pytest
        def test_it(profiler):
            with pytest.raises(TypeError, match="setup must return .args, kwargs."):
                profiler.pedantic(len, setup=lambda: ({made}))
        """
    )
    project.run("-W", "error")
