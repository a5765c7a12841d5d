"""Windows that a test draws itself: a trace, no statistics."""

import pytest

pytest_plugins = ["pytester"]


def names(trace, *categories):
    return [
        event["name"]
        for event in trace["traceEvents"]
        if event["ph"] == "X" and event["cat"] in categories
    ]


DOTS = """
    import numpy as np
    import pytest
    from opbench import nd
    from opbench.errors import StateError, WindowError
    a = nd.array(np.ones((4, 4), "f4"))
    def dots(n):
        for _ in range(n): nd.dot(a, a)
"""


def test_a_drawn_loop_runs_all_iterations_and_records_the_window(project):
    project.file(
        test_it=DOTS
        + """
    def test_loop(profiler):
        seen = []
        for i in profiler.iterations(5, begin=1, end=3):
            dots(i)
            seen.append(i)
        assert seen == [0, 1, 2, 3, 4]
        assert profiler.trace.events
    """
    )
    result = project.run("-W", "error")
    trace = project.trace()
    assert names(trace, "iteration") == ["iteration 1", "iteration 2"]
    assert names(trace, "imperative") == ["dot"] * 3  # one in iteration 1, two in iteration 2
    result.stdout.fnmatch_lines(["*opbench: 1 traced, 0 timed*", "*test_loop*trace only*"])


def test_pending_work_from_before_stays_out_and_work_inside_stays_in(project):
    project.file(
        test_it=DOTS
        + """
    def test_window(profiler):
        dots(50)
        with profiler.window():
            dots(3)
        dots(50)
    """
    )
    project.run("-W", "error")
    assert names(project.trace(), "imperative") == ["dot"] * 3


def test_all_windows_of_a_test_are_in_its_trace_and_trace_is_the_last(project):
    project.file(
        test_it=DOTS
        + """
    def test_two(profiler):
        profiler.run(); dots(1); first = profiler.stop()
        with profiler.window(mode="memory"): dots(1)
        assert profiler.trace is not first
        assert first.windows[0][1] <= profiler.trace.windows[0][0]
    """
    )
    project.run()
    trace = project.trace()
    assert names(trace, "imperative") == ["dot"]
    assert len(trace["otherData"]["windows_ns"]) == 2


def test_what_is_paused_is_not_recorded(project):
    project.file(
        test_it=DOTS
        + """
    def test_pause(profiler):
        profiler.run()
        dots(1)
        profiler.pause()
        dots(10)
        profiler.resume()
        dots(2)
        profiler.stop()
    """
    )
    project.run()
    assert names(project.trace(), "imperative") == ["dot"] * 3


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ("profiler.stop()", "no window is open (state 'stop')"),
        ("profiler.pause()", "no window is open (state 'stop')"),
        ("profiler.run(); profiler.run()", "a window of this test is open (state 'run')"),
        ("profiler.run(); profiler(len, ())", "close it with profiler.stop() first"),
        ("profiler.run(); profiler.resume()", "cannot resume the profiler"),
    ],
)
def test_a_wrong_transition_names_the_state(project, calls, words):
    project.file(
        test_it=DOTS
        + f"""
    def test_wrong(profiler):
        with pytest.raises(StateError) as caught:
            {calls}
        assert {words!r} in str(caught.value)
        print(caught.value)
        if "run()" in {calls!r}: profiler.stop()
        else:
            with profiler.window(): pass
    """
    )
    project.run()


@pytest.mark.parametrize(
    "window", ["-1, 1", "2, 1", "1, 1", "0, 6"], ids=["negative", "reversed", "empty", "beyond"]
)
def test_an_impossible_window_is_refused_at_the_call(project, window):
    begin, end = window.split(",")
    project.file(
        test_it=DOTS
        + f"""
    def test_wrong(profiler):
        with pytest.raises(WindowError, match="begin .*, end .*, iterations 5"):
            profiler.iterations(5, begin={begin}, end={end})
        with profiler.window(): pass
    """
    )
    project.run()


def test_the_trace_is_written_when_the_test_fails_inside_its_window(project):
    project.file(
        test_it=DOTS
        + """
    def test_fails(profiler):
        for i in profiler.iterations(3, begin=0):
            dots(1)
            assert i < 1
    def test_next(profiler):
        with profiler.window(): dots(1)
    """
    )
    project.run(code=1)
    failed, following = project.traces()
    assert names(failed, "imperative") == ["dot", "dot"]
    assert names(following, "imperative") == ["dot"]


def test_a_window_left_open_is_closed_written_and_warned_about(project):
    project.file(
        test_it=DOTS
        + """
    def test_forgets(profiler):
        profiler.run()
        dots(1)
    """
    )
    result = project.run()
    assert names(project.trace(), "imperative") == ["dot"]
    result.stdout.fnmatch_lines(["*OpbenchWarning: test_it.py::test_forgets: the test ended with*"])


def test_breaking_out_of_a_drawn_loop_closes_the_window(project):
    project.file(
        test_it=DOTS
        + """
    def test_break(profiler):
        for i in profiler.iterations(5, begin=0):
            dots(1)
            break
        dots(7)
        with profiler.window(): dots(1)
    """
    )
    project.run("-W", "error")
    assert names(project.trace(), "imperative") == ["dot"] * 2


def test_a_benchmark_inside_an_open_window_is_marked_and_warned_about(project):
    project.file(
        test_it="""
        def test_inside(profiler, benchmark):
            with profiler.window():
                benchmark(lambda: 1)
        def test_beside(profiler, benchmark):
            with profiler.window():
                pass
            benchmark(lambda: 1)
        """
    )
    benches, result = project.bench()
    assert benches["test_inside"]["extra_info"]["opbench"]["profiled"] is True
    assert "profiled" not in benches["test_beside"]["extra_info"]["opbench"]
    result.stdout.fnmatch_lines(["*OpbenchWarning: test_it.py::test_inside: benchmark(...) ran*"])
    result.stdout.fnmatch_lines(["test_inside: profiled: timed inside an open window*"])


def test_a_benchmark_inside_a_window_that_records_nothing_is_a_clean_one(project):
    project.file(
        test_it="""
        def test_inside(profiler, benchmark):
            with profiler.window():
                benchmark(lambda: 1)
        """
    )
    benches, _ = project.bench("--opbench-trace=off", "-W", "error")
    assert "opbench" not in benches["test_inside"]["extra_info"]


def test_an_unused_fixture_still_gets_pytest_benchmarks_warning(project):
    project.file(test_it="def test_unused(profiler): pass")
    result = project.run()
    result.stdout.fnmatch_lines(["*Benchmark fixture was not used at all*"])
    assert project.traces() == []


def test_with_tracing_off_a_drawn_window_records_nothing_and_the_test_runs(project):
    project.file(
        test_it=DOTS
        + """
    def test_off(profiler):
        assert list(profiler.iterations(3)) == [0, 1, 2]
        profiler.run(); profiler.pause(); profiler.resume()
        assert profiler.stop() is None
        assert profiler.trace is None
        profiler(dots, 1)
    """
    )
    project.run("--opbench-trace=off", "--benchmark-max-time=0.01")
    assert not (project.path / "results").exists()


@pytest.mark.parametrize("options", [["--benchmark-disable"], ["--opbench-trace=off"], ["-n2"]])
def test_a_trace_only_test_is_a_use_of_the_fixture_also_with_tracing_off(project, options):
    if "-n2" in options:
        pytest.importorskip("xdist")
    project.file(
        test_it=DOTS
        + """
    def test_loop(profiler):
        for i in profiler.iterations(3): pass
    def test_window(profiler):
        with profiler.window(): pass
    def test_broken_off(profiler):
        for i in profiler.iterations(3, begin=2): break
    """
    )
    result = project.run("-W", "error", *options)
    result.assert_outcomes(passed=3)
    assert "trace only" not in result.stdout.str()


def test_a_failure_that_nobody_read_fails_the_test_at_the_end_of_its_window(project):
    project.file(
        test_it=DOTS
        + """
    from opbench import kernels, operators
    b = nd.array(np.ones((5, 5), "f4"))  # what is run for a shape is kept with its kernel
    @pytest.fixture
    def broken(monkeypatch):
        def fail(*arrays, out=None): raise ArithmeticError("deep inside")
        monkeypatch.setitem(operators.get("dot").kernels, "cpu", fail)
    def test_window(profiler, broken):
        with profiler.window(): nd.dot(b, b)
    def test_loop(profiler, broken):
        for i in profiler.iterations(2): nd.dot(b, b)
    def test_forgotten(profiler, broken):
        profiler.run(); nd.dot(b, b)
    def test_own_error_comes_first(profiler, broken):
        with profiler.window():
            nd.dot(b, b)
            raise KeyError("mine")
    def test_next_is_not_to_blame(profiler):
        with profiler.window(): dots(1)
    """
    )
    result = project.run(code=1)
    result.assert_outcomes(passed=2, failed=3, errors=1)
    result.stdout.fnmatch_lines(
        [
            "E *OperatorError: dot failed on float32 (5, 5) · float32 (5, 5)*deep inside*",
            "E *KeyError: 'mine'",
            "*OpbenchWarning: test_it.py::test_next_is_not_to_blame: dot failed on*",
        ]
    )


def test_stopping_inside_a_drawn_loop_lets_the_loop_run_on(project):
    project.file(
        test_it=DOTS
        + """
    def test_stop(profiler):
        seen = []
        for i in profiler.iterations(5, begin=0):
            seen.append(i)
            if i == 1: profiler.stop()
        assert seen == [0, 1, 2, 3, 4]
    """
    )
    project.run()
    assert names(project.trace(), "iteration") == ["iteration 0", "iteration 1"]


def test_a_wrong_nesting_is_refused_with_tracing_off_too(project):
    project.file(
        test_it=DOTS
        + """
    def test_nested(profiler):
        with profiler.window():
            with pytest.raises(StateError): profiler.iterations(2)
    """
    )
    project.run("--opbench-trace=off")


def test_a_window_beside_a_timed_kernel_is_none_of_its_work(project):
    project.file(
        test_it=DOTS
        + """
    from opbench import kernels
    def test_both(profiler):
        b = np.ones((8, 8), "f4")
        with profiler.window(): dots(1)
        profiler(kernels.dot, b, b)
        with profiler.window(): dots(1)
    """
    )
    benchmarks, result = project.bench("--benchmark-only")
    summary = benchmarks["test_both"]["extra_info"]["opbench"]
    assert (summary["form"], summary["shapes"]) == ("kernel", [[8, 8], [8, 8]])
    assert summary["flop"] == 2 * 8**3
    assert [row["name"] for row in summary["operators"]] == ["dot"]
    result.stdout.fnmatch_lines(["dot kernel 8² f32 *"])
