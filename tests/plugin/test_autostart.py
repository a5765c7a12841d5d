"""A test session under OPBENCH_PROFILER_AUTOSTART: what is timed is not recorded."""

import json

pytest_plugins = ["pytester"]

TESTS = """
    from opbench import nd
    from opbench.profiler import RECORDER

    def test_plain():
        nd.ones(3)
        assert RECORDER.recording

    def test_timed(benchmark):
        assert RECORDER.state == "stop"
        benchmark(lambda: nd.ones(3).wait_to_read())

    def test_traced(profiler):
        profiler(lambda: nd.zeros(3))

    def test_drawn(profiler):
        for _ in profiler.iterations(2, begin=1):
            nd.zeros(3)

    def test_left_open(profiler):
        profiler.run()
"""


def test_the_fixture_works_and_timed_rounds_are_not_recorded(project, monkeypatch):
    project.file(test_it=TESTS)
    project.ini("filterwarnings = ignore:.*window open")
    monkeypatch.setenv("OPBENCH_PROFILER_AUTOSTART", "1")
    monkeypatch.setenv("OPBENCH_PROFILER_MODE", "api")
    benchmarks, _ = project.bench()
    assert {"test_timed", "test_traced"} <= set(benchmarks)
    document = json.loads((project.path / "profile.json").read_text("ascii"))
    events = document["traceEvents"]
    names = [e["name"] for e in events if e["ph"] == "X" and e["cat"] == "api"]
    assert names == ["nd.ones"]
    ours = {trace["otherData"]["metadata"]["test"].partition("::")[2] for trace in project.traces()}
    assert ours == {"test_traced", "test_drawn", "test_left_open"}
