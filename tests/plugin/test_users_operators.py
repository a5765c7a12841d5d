"""The example project beside this opbench, and what happens to a kernel that is wrong."""

import shutil
from pathlib import Path

from opbench import profiler

pytest_plugins = ["pytester"]

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "kernels"
WRONG = """
    import numpy as np, opbench

    @opbench.operator(flops=lambda x: x.size, reference=lambda x: 2 * x)
    def double(x):
        calls.append(1)
        return 2 * x + 1e-3

    calls = []

    def test_double(profiler):
        profiler(double, np.ones(100))

    def test_calls():
        assert len(calls) == 1
"""


def slices(trace, category):
    return [e for e in trace["traceEvents"] if e.get("cat") == category and e["ph"] == "X"]


def test_the_example_project_runs_and_its_kernels_are_operators(project):
    shutil.copytree(EXAMPLE, project.path, dirs_exist_ok=True)
    benchmarks, result = project.bench("--benchmark-only", "--opbench-iterations=3")
    expected = {
        "test_triad": ("triad", "kernel", [[100_000], [100_000]], 200_000),
        "test_triad_from_nd": ("triad", "imperative", [[100_000], [100_000]], 200_000),
        "test_row_norms": ("row_norms", "kernel", [[300, 200]], 120_300),
        "test_row_norms_in_a_graph": ("row_norms", "symbolic", [[300, 200]], 120_300),
    }
    assert set(benchmarks) == set(expected)
    for name, (operator, form, shapes, flop) in expected.items():
        stored = benchmarks[name]["extra_info"]["opbench"]
        assert (stored["operator"], stored["form"]) == (operator, form)
        assert (stored["shapes"], stored["flop"]) == (shapes, flop)
        assert [row["name"] for row in stored["operators"]] == [operator]
        trace = project.path / stored["trace"]
        assert profiler.check(trace) == []
        category = "symbolic" if form == "symbolic" else "imperative"
        events = slices(profiler.read(trace), category)
        assert [e["name"] for e in events] == [operator] * stored["operators"][0]["count"]
        assert all(e["args"]["inputs"] == shapes and e["args"]["flop"] == flop for e in events)
    # Directly called kernels stand beside their reference.
    assert benchmarks["test_row_norms"]["extra_info"]["opbench"]["reference"]["name"] == "numpy"
    (row,) = [line for line in result.outlines if line.startswith("row_norms kernel 300×200 f64")]
    assert "GFLOP/s" in result.stdout.str()
    assert float(row.split()[6]) > 0


def test_a_wrong_kernel_fails_before_its_first_timing(project):
    project.file(test_wrong=WRONG)
    result = project.run(code=1)
    result.stdout.fnmatch_lines(["*AccuracyError: double on (100,) float64: 100 of 100 elements*"])
    result.assert_outcomes(failed=1, passed=1)


def test_the_example_is_described_in_its_readme():
    text = (EXAMPLE / "README.md").read_text("utf-8")
    assert "pytest --benchmark-only" in text
    assert "@opbench.operator" in (EXAMPLE / "kernels.py").read_text("utf-8")


COLLECTS = """
    import gc
    import numpy as np, opbench

    @opbench.operator(flops=lambda x: x.size, reference=lambda x: 2 * x)
    def double(x):
        gc.collect()
        return 2 * x

    def test_double(profiler):
        profiler.pedantic(double, (np.ones(100),), rounds=1)
"""


def test_a_collection_does_not_hide_in_an_operator_that_is_called_directly(project):
    project.file(test_it=COLLECTS)
    project.run("--benchmark-only", "--opbench-iterations=2")
    trace = project.trace()
    (operator,) = slices(trace, "imperative")
    collected = [e for e in slices(trace, "gc") if e["args"]["generation"] == 2]
    assert len(collected) == 1
    paused_ns = round(collected[0]["dur"] * 1000)
    assert operator["args"]["gc_ns"] >= paused_ns > 0
    assert operator["dur"] * 1000 >= operator["args"]["gc_ns"]
    assert slices(trace, "call")[0]["args"]["gc_ns"] == operator["args"]["gc_ns"]
