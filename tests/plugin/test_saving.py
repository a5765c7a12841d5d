"""Saved runs and traces: where they go, what they hold, what never reaches them."""

import json
import os
import subprocess
import sys

import pytest

from opbench.plugin.session import trace_name

pytest_plugins = ["pytester"]

KEEP = "opbench_autosave = true"
ONE = "def test_one(profiler): profiler(len, ())"
FAST = "--benchmark-max-time=0.01"


def runs(project, folder="results"):
    found = sorted((project.path / folder / "runs").rglob("*.json"))
    return [json.loads(path.read_text("ascii")) for path in found]


def test_each_benchmark_only_run_is_saved_with_its_values_and_an_opbench_block(project):
    project.ini(KEEP)
    project.file(test_it=ONE)
    result = project.run("--benchmark-only", FAST)
    (run,) = runs(project)
    (bench,) = run["benchmarks"]
    assert len(bench["stats"]["data"]) == bench["stats"]["rounds"]
    block = run["opbench"]
    assert block["schema_version"] == 1
    assert block["launch_id"] == block["record_id"] == bench["extra_info"]["opbench"]["run"]
    assert block["environment"]["python"]
    assert "node" not in run["machine_info"]
    assert "hz_actual" not in run["machine_info"]["cpu"]
    trace = project.trace()
    assert trace["otherData"]["metadata"]["run"] == block["launch_id"]
    assert trace["otherData"]["metadata"]["test"] == "test_it.py::test_one"
    assert bench["extra_info"]["opbench"]["trace"] == (
        "results/traces/" + trace_name("test_it.py::test_one")
    )
    result.stdout.fnmatch_lines(["saved as 0001 in results/runs*"])


@pytest.mark.parametrize("options", [[], ["--benchmark-disable"], ["--benchmark-skip"]])
def test_nothing_is_saved_unless_benchmarks_alone_are_run(project, options):
    project.ini(KEEP)
    project.file(test_it=ONE)
    project.run(FAST, *options)
    assert runs(project) == []


def test_all_documents_of_a_run_have_one_block_whose_facts_are_gathered_once(project):
    project.ini("opbench_autosave = true")
    project.file(
        test_it="def test_it(profiler): profiler(len, ())",
        conftest="""
        from opbench import probes
        gather = probes.facts
        def facts():
            print("gathering")
            return gather()
        probes.facts = facts
        """,
    )
    result = project.run("--benchmark-only", FAST, "--benchmark-json=out.json", "-s")
    assert result.stdout.str().count("gathering") == 1
    (saved,) = runs(project)
    exported = json.loads((project.path / "out.json").read_text("utf-8"))
    assert saved["opbench"] == exported["opbench"]
    assert saved["opbench"]["usage"]["after"]


def test_a_storage_of_the_users_own_is_left_alone(project):
    project.ini(KEEP)
    project.file(test_it=ONE)
    project.run("--benchmark-only", "--benchmark-storage=mine", "--benchmark-autosave", FAST)
    assert runs(project) == []
    (saved,) = (project.path / "mine").rglob("*.json")
    assert saved.name.startswith("0001_")


def test_two_runs_then_compare_in_pytest_and_in_its_own_tool_show_both(project):
    project.ini(KEEP)
    project.file(test_it=ONE)
    project.run("--benchmark-only", FAST)
    project.run("--benchmark-only", FAST)
    result = project.run("--benchmark-only", FAST, "--benchmark-compare", "-W", "error")
    for source in ("NOW", "0002_"):
        result.stdout.fnmatch_lines([f"test_one ({source}*"])
    tool = [sys.executable, "-m", "pytest_benchmark", "--storage", "results/runs", "compare"]
    out = subprocess.run(tool, cwd=project.path, capture_output=True, text=True, check=True).stdout
    assert all(f"test_one ({number:04}_" in out for number in (1, 2, 3))


def test_compare_works_from_a_folder_below_the_root_on_another_machine(project):
    project.ini(KEEP)
    project.file(test_it=ONE)
    project.run("--benchmark-only", FAST)
    (path,) = (project.path / "results" / "runs").rglob("*.json")
    changed = json.loads(path.read_text())
    changed["machine_info"]["machine"] = "pdp11"
    path.write_text(json.dumps(changed))
    (project.path / "sub").mkdir()
    project.pytester.chdir()
    os.chdir(project.path / "sub")
    result = project.run("--benchmark-only", FAST, "--benchmark-compare=0001", "..")
    result.stderr.fnmatch_lines(["*PytestBenchmarkWarning: Benchmark machine_info is different*"])
    assert len(runs(project)) == 2
    assert not (project.path / "sub" / "results").exists()


def test_a_failed_tests_numbers_never_reach_a_saved_run_and_its_trace_is_kept(project):
    project.ini(KEEP)
    project.file(
        test_it="""
        def test_wrong(profiler):
            profiler(len, ())
            assert False, "a wrong result"
        def test_right(profiler):
            profiler(len, ())
        """
    )
    result = project.run("--benchmark-only", FAST, code=1)
    (run,) = runs(project)
    assert [bench["name"] for bench in run["benchmarks"]] == ["test_right"]
    assert len(project.traces()) == 2
    result.stdout.fnmatch_lines(["test_wrong: did not pass, so its times are not saved"])


def test_profiled_times_are_compared_neither_as_candidate_nor_as_baseline(project):
    project.ini(KEEP)
    inside = "    with profiler.window(): benchmark(len, ())"
    beside = "    benchmark(len, ())"
    head = "def test_it(profiler, benchmark):\n"
    project.file(test_it=head + inside)
    project.run("--benchmark-only", FAST)
    result = project.run("--benchmark-only", FAST, "--benchmark-compare")
    assert "(0001_" not in result.stdout.str()
    project.file(test_it=head + beside)
    result = project.run("--benchmark-only", FAST, "--benchmark-compare=0001")
    assert "(0001_" not in result.stdout.str()
    project.run("--benchmark-only", FAST)
    project.file(test_it=head + inside)
    result = project.run("--benchmark-only", FAST, "--benchmark-compare=0004")
    assert "(0004_" not in result.stdout.str()


def test_a_round_is_a_20th_of_the_time_unless_a_user_chose_its_length(project):
    project.ini(KEEP)
    project.file(
        test_it="""
        import pytest
        def test_plain(benchmark): benchmark(lambda: None)
        def test_ours(profiler): profiler(len, ())
        @pytest.mark.benchmark(min_time=0.000005, group="mine")
        def test_chosen(benchmark): benchmark(lambda: None)
        @pytest.mark.benchmark(max_time=0.04)
        def test_longer(benchmark): benchmark(lambda: None)
        @pytest.mark.benchmark(max_time=0.000001)
        def test_tiny(benchmark): benchmark(lambda: None)
        """
    )
    project.run("--benchmark-only", "--benchmark-max-time=0.02")
    (run,) = runs(project)
    lengths = {bench["name"]: bench["options"]["min_time"] for bench in run["benchmarks"]}
    assert lengths == {
        "test_plain": pytest.approx(0.001),
        "test_ours": pytest.approx(0.001),
        "test_chosen": pytest.approx(0.000005),
        "test_longer": pytest.approx(0.002),
        "test_tiny": pytest.approx(0.000005),  # never below pytest-benchmark's own
    }
    assert [b["group"] for b in run["benchmarks"] if b["name"] == "test_chosen"] == ["mine"]


def test_a_round_length_given_on_the_command_line_is_kept_also_if_it_is_the_default(project):
    project.ini(KEEP)
    project.file(test_it=ONE)
    project.run("--benchmark-only", FAST, "--benchmark-min-time=0.000005")
    (run,) = runs(project)
    assert run["benchmarks"][0]["options"]["min_time"] == pytest.approx(0.000005)


def test_numbers_of_numpy_are_saved_as_numbers_and_nan_as_null(project):
    project.ini(KEEP)
    project.file(
        test_it="""
        import numpy as np
        def test_it(benchmark):
            benchmark(len, ())
            benchmark.extra_info.update(count=np.int64(3), bad=float("nan"))
        """
    )
    project.run("--benchmark-only", FAST)
    (run,) = runs(project)
    assert run["benchmarks"][0]["extra_info"] == {"count": 3, "bad": None}


def test_an_interrupted_run_is_not_saved(project):
    project.ini(KEEP)
    project.file(
        test_it="""
        def test_done(profiler): profiler(len, ())
        def test_interrupted(profiler):
            calls = []
            def work():
                calls.append(1)
                if len(calls) > 3: raise KeyboardInterrupt
            profiler(work)
        """
    )
    result = project.run("--benchmark-only", FAST, "--benchmark-json=out.json", code=2)
    assert runs(project) == []
    document = json.loads((project.path / "out.json").read_text("utf-8"))
    assert [bench["name"] for bench in document["benchmarks"]] == ["test_done"]
    result.stdout.fnmatch_lines(["not saved: the run was interrupted"])


def test_times_of_a_test_that_did_not_pass_for_any_reason_are_not_saved(project):
    project.ini(KEEP)
    project.file(
        test_it="""
        import pytest
        @pytest.mark.xfail
        def test_xfail(profiler): profiler(len, ()); assert 0
        def test_skip(profiler): profiler(len, ()); pytest.skip("later")
        @pytest.fixture
        def breaks():
            yield
            assert 0
        def test_teardown(breaks, profiler): profiler(len, ())
        def test_right(profiler): profiler(len, ())
        def test_plain_wrong(benchmark): benchmark(len, ()); assert 0
        """
    )
    project.run("--benchmark-only", FAST, code=1)
    (run,) = runs(project)
    assert [bench["name"] for bench in run["benchmarks"]] == ["test_right"]


def test_a_run_in_which_nothing_passed_is_no_baseline(project):
    project.ini(KEEP)
    project.file(test_it="def test_wrong(profiler): profiler(len, ()); assert 0")
    result = project.run("--benchmark-only", FAST, code=1)
    assert runs(project) == []
    result.stdout.fnmatch_lines(["not saved: no benchmark passed, so there is nothing to save"])


@pytest.mark.parametrize("options", [["--collect-only"], ["-k", "nothing"]])
def test_a_run_without_benchmarks_says_nothing_of_saving(project, options):
    project.ini(KEEP)
    project.file(test_it=ONE)
    code = 0 if "--collect-only" in options else 5
    result = project.run("--benchmark-only", "-W", "error", *options, code=code)
    assert "timed -" not in result.stdout.str()
    assert not (project.path / "results" / "traces").exists()


def test_a_storage_given_with_the_value_of_the_default_is_the_users(project):
    project.ini(KEEP)
    project.file(test_it=ONE)
    storage = "--benchmark-storage=file://./.benchmarks"
    project.run("--benchmark-only", storage, "--benchmark-autosave", FAST)
    assert runs(project) == []
    assert list((project.path / ".benchmarks").rglob("0001_*.json"))


def test_enable_wins_over_disable_for_saving_too(project):
    project.ini(KEEP)
    project.file(test_it=ONE)
    project.run("--benchmark-only", "--benchmark-disable", "--benchmark-enable", FAST)
    assert len(runs(project)) == 1


def test_a_summary_survives_a_new_extra_info(project):
    project.file(
        test_it="""
        def test_it(profiler, benchmark):
            profiler(len, ())
            benchmark.extra_info = {"mine": 1}
        """
    )
    benches, _ = project.bench()
    assert benches["test_it"]["extra_info"]["opbench"]["first_call"] > 0


@pytest.mark.parametrize(("share", "said"), [(0.4, True), (0.02, False), (None, False)])
def test_a_run_beside_other_work_is_called_disturbed(project, share, said):
    project.ini(KEEP)
    project.file(
        test_it=ONE,
        conftest=f"""
        from opbench import probes
        probes.cpu_reading = lambda: "a reading"
        probes.cpu_busy_elsewhere = lambda before, after: {share}
        """,
    )
    out = project.run("--benchmark-only", FAST).stdout.str()
    assert ("disturbed: other processes used 40% of the CPUs" in out) is said


# ---- folders that cannot be written


def test_a_file_where_the_folder_should_be_is_said_at_the_start_and_timings_go_on(project):
    project.ini(KEEP)
    project.file(test_it=ONE)
    (project.path / "results").write_text("mine")
    result = project.run("--benchmark-only", FAST, "-W", "error")
    out = result.stdout.str()
    early = out.index("results/traces cannot be written")
    assert early < out.index("test_it.py .")
    result.stdout.fnmatch_lines(
        [
            "opbench: results/traces cannot be written (*), so traces are not kept; timings go*",
            "*opbench: 0 traced, 1 timed*",
            "not saved: results/runs cannot be written (*), so this run is not saved*",
        ]
    )
    assert (project.path / "results").read_text() == "mine"


def test_an_unwritable_results_folder_costs_the_traces_and_not_the_timings(project):
    project.file(test_it=ONE)
    benches, result = project.bench("--opbench-results=/proc/opbench")
    assert benches["test_one"]["stats"]["rounds"] >= 5
    assert benches["test_one"]["extra_info"]["opbench"]["trace"] is None
    result.stdout.fnmatch_lines(["opbench: /proc/opbench/traces cannot be written*"])


def test_a_full_disk_keeps_the_old_trace_and_says_so(project, monkeypatch):
    project.file(
        test_it=ONE,
        conftest="""
        import errno, os, pytest
        real = os.replace
        @pytest.fixture(autouse=True)
        def full(monkeypatch):
            def replace(source, destination):
                if os.environ.get("FULL") and str(destination).endswith(".trace.json"):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(source))
                return real(source, destination)
            monkeypatch.setattr(os, "replace", replace)
        """,
    )
    project.run(FAST)
    folder = project.path / "results" / "traces"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setenv("FULL", "1")
    result = project.run(FAST)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    result.stdout.fnmatch_lines(["test_one: *No space left on device*"])


def test_a_link_to_nowhere_and_a_file_are_said_as_what_they_are(project):
    project.file(test_it=ONE)
    (project.path / "gone").symlink_to("nowhere")
    result = project.run(FAST, "--opbench-results=gone")
    result.stdout.fnmatch_lines(["opbench: *(gone is a link to nowhere, which does not exist)*"])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("~no-such-user/x", "*--opbench-results is '~no-such-user/x'*name a folder*"),
        (" ", "*--opbench-results is blank*"),
    ],
)
def test_a_results_folder_that_is_none_is_a_usage_error(project, given, words):
    project.file(test_it=ONE)
    result = project.run(f"--opbench-results={given}", code=4)
    result.stderr.fnmatch_lines(["ERROR: " + words])


def test_traces_and_runs_carry_their_own_ignore_file(project):
    project.ini(KEEP)
    project.file(test_it=ONE)
    project.run("--benchmark-only", FAST)
    for folder in ("traces", "runs"):
        assert (project.path / "results" / folder / ".gitignore").read_text() == "*\n"
    assert not (project.path / "results" / ".gitignore").exists()


# ---- names


def test_a_name_is_the_slug_and_8_hex_digits():
    name = trace_name("tests/bench/test_dot.py::test_dot_imperative[4096-f32]")
    assert name.startswith("test_dot_imperative_4096-f32-")
    assert len(name) == len("test_dot_imperative_4096-f32-") + 8 + len(".trace.json")


@pytest.mark.parametrize(
    "nodeid",
    [
        'a.py::test["quotes\'and\\\\slashes/../.."]',
        "a.py::test[\N{SNOWMAN}\N{PILE OF POO}]",
        "a.py::test[" + "x" * 300 + "]",
        "a.py::test[\udcff]",
        "a.py::[]",
        "a.py::test[a::b]",
        "a.py::TestIt::test[b]",
    ],
)
def test_any_test_id_gives_a_short_ascii_name_in_the_folder(nodeid):
    name = trace_name(nodeid)
    assert name.isascii()
    assert len(name) <= 100 + 1 + 8 + len(".trace.json")
    assert not set(name) & set("/\\'\" :")
    assert not name.startswith(".")


def test_a_parameter_with_colons_does_not_hide_the_test():
    assert trace_name("a.py::TestIt::test_it[a::b]").startswith("test_it_a_b-")


def test_ids_that_differ_only_in_lost_characters_keep_apart():
    assert trace_name("a.py::test[a/b]") != trace_name("a.py::test[a:b]")
    assert trace_name("a.py::test[a]") != trace_name("b.py::test[a]")


def test_odd_test_ids_give_loadable_traces(project):
    project.file(
        test_it="""
        import pytest
        ODD = ["a'b\\"c", "x/../y", "\\N{SNOWMAN}", "z" * 300, "tab\\there"]
        @pytest.mark.parametrize("odd", ODD)
        def test_odd(profiler, odd): profiler(len, odd)
        """
    )
    project.run(FAST)
    assert len(project.traces()) == 5
