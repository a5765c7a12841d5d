"""--opbench-compare, --opbench-fail and floors, in projects of strangers."""

import json
import xml.etree.ElementTree as ET

import pytest

pytest_plugins = ["pytester"]

# Exact times, whatever the machine does: pytest-benchmark's timer is a clock of the test's own.
CLOCK = """
    import os, pytest
    now = [0.0]
    def clock():
        return now[0]
    @pytest.fixture
    def took(benchmark):
        def measure(seconds):
            def work():
                now[0] += seconds
            benchmark.pedantic(work, rounds=10, iterations=1)
        return measure
"""
TESTS = """
    import os, pytest
    import conftest
    pytestmark = pytest.mark.benchmark(timer=conftest.clock)
    SCALE = float(os.environ.get("SCALE", "1"))
    def test_quick(took): took(1e-3)
    def test_slow(took): took(2e-3 * SCALE)
"""
KEEP = "opbench_autosave = true\npythonpath = .\n"
ONLY = "--benchmark-only"


@pytest.fixture
def stored(project):
    """A project with one saved run."""
    project.ini(KEEP)
    project.file(conftest=CLOCK, test_it=TESTS)
    project.run(ONLY)
    return project


def saved(project):
    found = sorted((project.path / "results" / "runs").rglob("*.json"))
    return [json.loads(path.read_text("ascii")) for path in found]


def test_a_run_that_is_as_fast_trips_nothing_and_prints_each_ratio(stored):
    result = stored.run(ONLY, "--opbench-compare=latest", "--opbench-fail")
    result.stdout.fnmatch_lines(
        [
            "*- opbench: compared with latest -*",
            "wire*benchmark*fastest*now*ratio*",
            "* within*test_quick*1.00 ms*1.00 ms*1.00*",
            "* within*test_slow*2.00 ms*2.00 ms*1.00*",
            "a single launch is no evidence*",
            "None of 2 tripped its wire",
        ]
    )


def test_a_slower_run_trips_its_wire_and_is_advisory(stored, monkeypatch):
    monkeypatch.setenv("SCALE", "1.2")
    result = stored.run(ONLY, "--opbench-compare=0001", code=0)
    result.stdout.fnmatch_lines(
        [
            "* tripped*test_slow*2.00 ms*2.40 ms*1.20*",
            "* within*test_quick*",
            "1 of 2 tripped the wire, the worst at 1.20*",
        ]
    )
    assert len(saved(stored)) == 2


def test_opbench_fail_is_exit_1_with_a_case_of_its_own_and_no_traceback(stored, monkeypatch):
    monkeypatch.setenv("SCALE", "1.2")
    options = ("--opbench-compare=0001", "--opbench-fail", "--junitxml=j.xml")
    result = stored.run(ONLY, *options, code=1)
    text = result.stdout.str()
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text
    assert "the fastest round of test_it.py::test_slow took 2.40 ms a call, 1.20 times" in text
    assert "1 of 2 tripped the wire, the worst at 1.20× (--opbench-fail)" in text
    result.assert_outcomes(passed=2, failed=1)
    cases = ET.parse(stored.path / "j.xml").getroot().iter("testcase")  # noqa: S314 - our own file
    failed = [case for case in cases if case.find("failure") is not None]
    assert [case.get("name") for case in failed] == ["test_slow"]
    assert failed[0].get("classname").startswith("opbench-compare.")
    assert "1.20 times the 2.00 ms of 0001" in failed[0].find("failure").text
    # What was measured is no less true: it is saved, both of it.
    assert [len(run["benchmarks"]) for run in saved(stored)] == [2, 2]


def test_a_tripped_wire_is_nothing_for_last_failed(stored, monkeypatch):
    monkeypatch.setenv("SCALE", "1.2")
    stored.run(ONLY, "--opbench-compare=0001", "--opbench-fail", "--cache-clear", code=1)
    assert not (stored.path / ".pytest_cache" / "v" / "cache" / "lastfailed").exists()


def test_15_percent_is_the_limit_and_a_larger_floor_moves_it(stored, monkeypatch):
    monkeypatch.setenv("SCALE", "1.14")
    stored.run(ONLY, "--opbench-compare=0001", "--opbench-fail")
    monkeypatch.setenv("SCALE", "1.3")
    stored.ini(KEEP + "opbench_floor = test_it.py::test_slow 40%")
    stored.run(ONLY, "--opbench-compare=0001", "--opbench-fail")
    stored.ini(KEEP + "opbench_floor = test_it.py::test_slow 1%")
    stored.run(ONLY, "--opbench-compare=0001", "--opbench-fail", code=1)


def test_latest_is_the_newest_before_this_run(stored, monkeypatch):
    monkeypatch.setenv("SCALE", "2")
    stored.run(ONLY, "--opbench-compare=latest", "--opbench-fail", code=1)
    stored.run(ONLY, "--opbench-compare=latest", "--opbench-fail", code=0)


def test_a_record_that_is_not_there_is_a_usage_error_before_anything_runs(stored):
    result = stored.run(ONLY, "--opbench-compare=nope", code=4)
    result.stderr.fnmatch_lines(["ERROR: --opbench-compare=nope: 'nope' is no record*"])
    assert "passed" not in result.stdout.str()


def test_opbench_fail_alone_is_a_usage_error(stored):
    result = stored.run("--opbench-fail", code=4)
    result.stderr.fnmatch_lines(["ERROR: --opbench-fail has nothing to compare with*"])


def test_nothing_compared_is_never_green(stored):
    stored.file(test_other="def test_new(benchmark): benchmark(len, ())")
    fast = "--benchmark-max-time=0.01"
    result = stored.run(fast, "--opbench-compare=0001", "--opbench-fail", "test_other.py", code=1)
    result.stdout.fnmatch_lines(
        [
            "not compared: test_other.py::test_new: not in the baseline",
            "2 of the baseline were not run",
            "Nothing was compared with *: no benchmark on both sides (--opbench-fail)",
        ]
    )
    stored.run(fast, "--opbench-compare=0001", "test_other.py", code=0)


def test_another_environment_is_no_regression_and_no_green(stored, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("SCALE", "2")
    result = stored.run(ONLY, "--opbench-compare=0001", "--opbench-fail", code=1)
    result.stdout.fnmatch_lines(["Nothing was compared with *: another environment: thread_set*"])
    result.assert_outcomes(passed=2)


@pytest.mark.parametrize("off", ["--benchmark-disable", "--benchmark-skip"])
def test_benchmarks_that_are_switched_off_fail_nothing(stored, off):
    stored.file(test_plain="def test_plain(): pass")
    result = stored.run(off, "--opbench-compare=0001", "--opbench-fail", code=0)
    result.stdout.fnmatch_lines(["Nothing was compared: benchmarks are switched off"])


def test_a_failed_tests_times_are_not_compared(stored):
    broken = TESTS.replace("took(2e-3 * SCALE)", "took(9.0); assert False")
    stored.file(test_it=broken)
    result = stored.run(ONLY, "--opbench-compare=0001", code=1)
    result.stdout.fnmatch_lines(["1 of the baseline were not run", "None of 1 tripped its wire"])


def test_no_traceback_under_xdist_where_nothing_is_timed(stored):
    pytest.importorskip("xdist")
    result = stored.run("-n1", "--opbench-compare=0001", "--opbench-fail", code=1)
    result.stdout.fnmatch_lines(["Nothing was compared with *: no benchmark was timed*"])


# floors


def floors(project):
    benches, _ = project.bench()
    return {name: b["extra_info"].get("opbench", {}).get("floor") for name, b in benches.items()}


def test_floors_of_marker_ini_and_group_reach_what_is_saved(project):
    project.ini("opbench_floor =\n  3%\n  tiny 100ns\n  *::test_by_id 0.5% + 1us\n")
    project.file(
        test_it="""
        import pytest
        @pytest.mark.opbench(floor=0.002)
        def test_number(profiler): profiler(len, ())
        @pytest.mark.opbench(floor="12.5%")
        @pytest.mark.benchmark(group="tiny")
        def test_marked(benchmark): benchmark(len, ())
        @pytest.mark.benchmark(group="tiny")
        def test_in_group(benchmark): benchmark(len, ())
        def test_by_id(benchmark): benchmark(len, ())
        def test_default(profiler): profiler(len, ())
        """
    )
    tick = 20e-9
    assert floors(project) == {
        "test_number": {"relative": 0.002, "absolute": tick},
        "test_marked": {"relative": 0.125, "absolute": tick},
        "test_in_group": {"relative": 0.0, "absolute": pytest.approx(100e-9)},
        "test_by_id": {"relative": 0.005, "absolute": pytest.approx(1e-6)},
        "test_default": {"relative": 0.03, "absolute": tick},
    }


def test_without_a_floor_nothing_is_saved_of_one(project):
    project.file(test_it="def test_one(benchmark): benchmark(len, ())")
    benches, _ = project.bench()
    assert benches["test_one"]["extra_info"] == {}


def test_the_fixtures_summary_stays_beside_the_floor(project):
    project.ini("opbench_floor = 7%")
    project.file(test_it="def test_one(profiler): profiler(len, ())")
    benches, _ = project.bench()
    block = benches["test_one"]["extra_info"]["opbench"]
    assert block["floor"]["relative"] == 0.07
    assert block["iterations"] == 4


@pytest.mark.parametrize(
    ("floor", "told"),
    [
        ("'much'", "floor 'much' (floor in the opbench marker of test_it.py::test_one) is none"),
        ("5", "marker of test_it.py::test_one: a relative floor of 5 is none"),
        ("True", "a relative floor of True is none"),
        ("None", "a relative floor of None is none"),
    ],
)
def test_a_markers_bad_floor_fails_its_test_before_it_runs(project, floor, told):
    project.file(
        test_it=f"""
        import pytest
        @pytest.mark.opbench(floor={floor})
        def test_one(benchmark): assert False, "ran"
        """
    )
    result = project.run(code=1)
    text = result.stdout.str()
    assert told in text
    assert "AssertionError" not in text
    assert "Traceback" not in text


def test_an_ini_files_bad_floor_is_a_usage_error(project):
    project.ini("opbench_floor = lots")
    result = project.run(code=4)
    result.stderr.fnmatch_lines(["ERROR: floor 'lots' (tox.ini: opbench_floor) is none*"])
