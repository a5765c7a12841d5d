"""In somebody else's project: nothing is littered, nothing breaks, nothing heavy is loaded."""

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

FAST = "--benchmark-max-time=0.01"


def test_importing_the_plugin_loads_no_numba_scipy_or_numpy(project):
    code = (
        "import sys, opbench.plugin; "
        "print(sorted({'numba', 'scipy', 'numpy', 'llvmlite'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project.path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_a_session_without_benchmarks_loads_and_leaves_nothing(project):
    project.file(
        test_it="""
        import sys
        def test_plain():
            assert not {"numba", "scipy", "numpy", "opbench.records"} & set(sys.modules)
        """
    )
    result = project.run("-W", "error")
    assert "opbench:" not in result.stdout.str()
    assert not (project.path / "results").exists()
    assert not (project.path / ".benchmarks").exists() or not any(
        (project.path / ".benchmarks").iterdir()
    )


def test_a_strangers_numba_function_gets_timings_and_a_trace(project):
    project.file(
        test_it="""
        import numpy as np
        from numba import njit
        @njit
        def total(x):
            s = 0.0
            for v in x: s += v
            return s
        def test_total(profiler):
            assert profiler(total, np.ones(1000)) == 1000
        """
    )
    benches, result = project.bench("--benchmark-only", "-W", "error")
    summary = benches["test_total"]["extra_info"]["opbench"]
    assert summary["compiled"] >= 1
    assert summary["trace"].startswith("results/traces/test_total-")
    (call,) = (
        e
        for e in project.trace()["traceEvents"]
        if e.get("cat") == "call" and e["args"]["iteration"] == 1
    )
    assert call["args"]["arguments"] == ["float64[1000]"]
    result.stdout.fnmatch_lines(["*opbench: 1 traced, 1 timed*", "test_total*results/traces/*"])
    assert not (project.path / "results" / "runs").exists()


def test_plain_benchmarks_of_a_stranger_are_untouched(project):
    project.file(test_it="def test_it(benchmark): benchmark(lambda: None)")
    benches, result = project.bench("-W", "error", "--benchmark-min-rounds=7")
    assert benches["test_it"]["options"]["min_time"] == pytest.approx(0.000005)
    assert benches["test_it"]["extra_info"] == {}
    assert "opbench:" not in result.stdout.str()
    assert not (project.path / "results").exists()


def test_a_failed_plain_benchmark_of_a_stranger_is_saved_as_ever(project):
    project.file(test_it="def test_it(benchmark):\n    benchmark(len, ())\n    assert 0")
    benches, _ = project.bench(code=1)
    assert list(benches) == ["test_it"]


def test_without_pytest_benchmark_the_fixture_explains_itself(project):
    project.file(test_it="def test_it(profiler): profiler(len, ())\ndef test_other(): pass")
    result = project.run("-p", "no:benchmark", "-rs", "-W", "error")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*pytest-benchmark, which is not loaded*"])


def test_benchmark_skip_skips(project):
    project.file(test_it="def test_it(profiler): 1 / 0")
    project.run("--benchmark-skip", "-W", "error").assert_outcomes(skipped=1)


def test_under_xdist_every_row_and_trace_arrives_once(project):
    pytest.importorskip("xdist")
    project.file(
        test_it="""
        import pytest
        @pytest.mark.parametrize("i", range(6))
        def test_it(profiler, i):
            with profiler.window(): pass
        """
    )
    result = project.run("-n2", "--opbench-trace=on")
    assert len(project.traces()) == 6
    result.stdout.fnmatch_lines(["*opbench: 6 traced, 0 timed*"])


def test_under_xdist_each_worker_keeps_a_trace_of_a_test_that_all_run(project):
    pytest.importorskip("xdist")
    project.file(test_it="def test_it(profiler):\n    with profiler.window(): pass")
    project.run("--dist=each", "--tx=2*popen", "--opbench-trace=on")
    assert len(project.traces()) == 2


def test_under_xdist_targets_are_called_once_and_not_traced(project):
    pytest.importorskip("xdist")
    project.file(
        test_it="""
        calls = []
        def test_it(profiler):
            profiler(calls.append, 1)
            assert calls == [1]
        """
    )
    project.run("-n2")
    assert not (project.path / "results").exists()


def test_installed_and_in_tree_names_do_not_clash(project):
    project.file(conftest='pytest_plugins = ["opbench.plugin"]')
    project.file(test_it="def test_it(profiler): profiler(len, ())")
    project.run(FAST, "-W", "error")


def test_a_fixture_named_benchmark_without_stats_costs_no_test(project):
    """pytest-codspeed replaces the fixture by one that has no statistics."""
    project.file(
        conftest="""
        import pytest
        from pytest_benchmark.fixture import BenchmarkFixture
        @pytest.fixture
        def benchmark(benchmark):
            del benchmark.stats
            sink = type("Sink", (), {"update": lambda self, duration: None})
            benchmark._make_stats = lambda iterations: sink()
            return benchmark
        """,
        test_it="def test_it(profiler): assert profiler(len, ()) == 0",
    )
    project.run(FAST)
    assert project.trace()


def test_pytest_benchmark_loaded_under_another_name_is_found(project, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    project.file(test_it="def test_it(profiler): profiler(len, ())")
    project.run(FAST, "-p", "pytest_benchmark.plugin").assert_outcomes(passed=1)


def test_a_required_option_of_another_plugin_is_no_obstacle(project):
    project.file(
        conftest="def pytest_addoption(parser): parser.addoption('--must', required=True)",
        test_it="def test_it(profiler): profiler(len, ())",
    )
    project.run(FAST, "--must=1").assert_outcomes(passed=1)


def test_a_projects_own_fixture_named_profiler_is_none_of_our_business(project):
    project.file(
        conftest="""
        import pytest
        @pytest.fixture
        def profiler(): return "mine"
        """,
        test_it="""
        def test_it(profiler, benchmark):
            assert profiler == "mine"
            benchmark(len, ())
            assert 0, "and its failed numbers are saved as ever"
        """,
    )
    benches, result = project.bench(code=1)
    assert benches["test_it"]["options"]["min_time"] == pytest.approx(0.000005)
    assert "opbench:" not in result.stdout.str()
    assert not (project.path / "results").exists()


def test_a_projects_fixture_that_builds_on_ours_is_ours(project):
    project.file(
        conftest="""
        import pytest
        @pytest.fixture
        def profiler(profiler): return profiler.options(mode="api", iterations=1)
        """,
        test_it="def test_it(profiler): profiler(len, ())",
    )
    benches, _ = project.bench()
    assert benches["test_it"]["options"]["min_time"] == pytest.approx(0.001)
    assert benches["test_it"]["extra_info"]["opbench"]["mode"] == "api"


def test_a_foreign_fixture_named_benchmark_is_named(project):
    project.file(
        conftest="""
        import pytest
        @pytest.fixture
        def benchmark(): return lambda f, *a: f(*a)
        """,
        test_it="def test_it(profiler): profiler(len, ())",
    )
    result = project.run("-p", "no:benchmark", code=1)
    result.stdout.fnmatch_lines(["*the fixture 'benchmark' of this project is not*"])


def test_help_is_shown_whatever_the_ini_file_says(project):
    project.ini("opbench_iterations = none")
    project.run("--help")


def test_rows_that_would_look_alike_keep_their_own_names(project):
    project.file(
        test_it="""
        import numpy as np
        from opbench import kernels
        a = np.ones((64, 64), "f4")
        def test_one(profiler): profiler(kernels.dot, a, a)
        def test_two(profiler): profiler(kernels.dot, a, a)
        def test_big(profiler): profiler(kernels.dot, a[:32, :32], a[:32, :32])
        """
    )
    result = project.run(FAST, "--opbench-no-reference")
    result.stdout.fnmatch_lines(["test_one *", "test_two *", "dot kernel 32² f32 *"])


def test_a_warning_filter_of_ours_outlives_no_test(project):
    project.file(
        test_it="""
        def test_window(profiler):
            with profiler.window(): pass
        def test_unused(benchmark): pass
        """
    )
    result = project.run("-p", "no:warnings", "-s")
    result.stderr.fnmatch_lines(["*Benchmark fixture was not used at all*"])
