from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path

import pytest

from opbench.errors import ConfigError, RecordError
from opbench.launch import AbOptions, measure_ab
from opbench.launch import ab as sessions
from opbench.records import Floor, Verdict

EQUAL = {"t.py::x": 1e-3, "t.py::y": 2e-3, "u.py::z": 5e-6}


@pytest.fixture(autouse=True)
def _steady_controls(monkeypatch):
    monkeypatch.setattr(
        sessions.Controls, "measure", lambda self: {"compute": 1e-3, "memory": 1e-3}
    )


@pytest.fixture
def measured(project, fake, progress, tmp_path):
    """Commits base, writes head, measures both; ``fake.launches`` and ``progress`` tell how."""
    draw = random.Random(7)  # noqa: S311 - noise, no secret
    fake.noise = lambda side, number, name: draw.lognormvariate(0.0, 0.004)

    def measure(before, after=None, resume=None, commit=None, **changed):
        if before is not None:
            text = json.dumps(before)
            (project.folder / ".gitignore").write_text("/results\n")
            (project.folder / "times.json").write_text(text)
            project.commit()
        if after is not None:
            (project.folder / "times.json").write_text(json.dumps(after))
        options = AbOptions(
            project.folder,
            project.folder / "results",
            head=commit,
            **{"seed": 11, "budget_s": None, **changed},
        )
        return measure_ab(options, progress, resume, fake, fake.clock)

    return measure


def by_id(result):
    return {one.id: one for one in result.comparisons.comparisons}


def verdicts(result):
    return {name: one.verdict for name, one in by_id(result).items()}


def runs(fake, side=None):
    return [ids for who, what, ids, _ in fake.launches if what == "run" and side in {None, who}]


def test_equal_code_is_unchanged_and_each_file_is_launched_eight_times_a_side(measured, fake):
    result = measured(EQUAL, EQUAL)
    assert verdicts(result) == dict.fromkeys(EQUAL, Verdict.UNCHANGED)
    assert result.exit_code() == 0
    for side in ("base", "head"):
        files = [ids[0].partition("::")[0] for ids in runs(fake, side)]
        # One more than eight: the launch that warms up.
        assert (files.count("t.py"), files.count("u.py")) == (9, 9)


def test_a_slower_benchmark_is_confirmed_by_fresh_pairs_of_it_alone(measured, fake):
    result = measured(EQUAL, EQUAL | {"t.py::y": 2.2e-3})
    assert verdicts(result) == {
        "t.py::x": Verdict.UNCHANGED,
        "t.py::y": Verdict.REGRESSED,
        "u.py::z": Verdict.UNCHANGED,
    }
    assert result.exit_code() == 1
    assert by_id(result)["t.py::y"].ratio == pytest.approx(1.1, rel=0.01)
    # Twelve to confirm, and one that is profiled.
    assert runs(fake, "head").count(("t.py::y",)) == 13


def test_a_faster_benchmark_is_no_failure(measured):
    result = measured(EQUAL, EQUAL | {"u.py::z": 4e-6})
    assert verdicts(result)["u.py::z"] == Verdict.IMPROVED
    assert result.exit_code() == 0


def test_base_is_the_merge_base_and_head_the_working_tree(measured, project):
    old = project.folder / "times.json"
    old.write_text(json.dumps({"t.py::x": 1e-3}))
    start = project.commit()
    project.git("branch", "other")
    (project.folder / "times.json").write_text(json.dumps({"t.py::x": 2e-3}))
    project.commit()
    project.git("checkout", "--quiet", "other")
    result = measured(None, {"t.py::x": 4e-3}, base="main")
    assert by_id(result)["t.py::x"].ratio == pytest.approx(4, rel=0.02)
    assert start[:7] in result.comparisons.title
    assert "other" in result.comparisons.title
    assert "+changes" in result.comparisons.title
    exact = measured(None, base="main", exact_base=True)
    assert by_id(exact)["t.py::x"].ratio == pytest.approx(2, rel=0.02)


def test_a_named_head_is_measured_and_not_the_working_tree(measured, project):
    (project.folder / "times.json").write_text(json.dumps({"t.py::x": 1e-3}))
    project.commit()
    (project.folder / "times.json").write_text(json.dumps({"t.py::x": 2e-3}))
    project.commit()
    (project.folder / "times.json").write_text(json.dumps({"t.py::x": 9e-3}))
    result = measured(None, base="HEAD~1", commit="HEAD")
    assert by_id(result)["t.py::x"].ratio == pytest.approx(2, rel=0.02)


def test_the_turns_are_drawn_by_the_seed_which_is_told(measured, fake):
    orders = []
    for seed in (1, 1, 2):
        fake.launches.clear()
        result = measured({"t.py::x": 1e-3}, {"t.py::x": 1e-3}, seed=seed)
        assert f"seed {seed}" in result.comparisons.context[0]
        orders.append([side for side, what, _, _ in fake.launches if what == "run"][2:])
    assert orders[0] == orders[1] != orders[2]
    assert orders[0].count("base") == orders[0].count("head") == 8


def test_the_cost_is_told_before_it_is_spent(measured, fake, progress):
    seen = []
    fake.before = lambda number: seen.append((number, len(progress.said)))
    measured(EQUAL, EQUAL)
    (plan,) = progress.said
    assert plan.startswith("3 benchmarks in 2 files, 8 pairs of launches each: about 33 s")
    # Two that collect, four that warm up: it was told before the seventh launch.
    assert seen[5] == (6, 0)
    assert seen[6] == (7, 1)


def test_the_command_that_measures_the_same_again_holds_what_verdicts_hang_on(measured, project):
    result = measured(EQUAL, EQUAL, floor=Floor(0.05), threads=2, paths=(".",))
    commit = project.git("rev-parse", "HEAD")[:12]
    assert result.comparisons.reproduce == (
        f"opbench ab --base {commit} --exact-base --head {commit} --seed 11 --floor 5% "
        "--threads 2 ."
    )
    assert "--floor" not in measured(None).comparisons.reproduce


def test_nothing_is_left_of_a_session_but_its_results(measured, project, fake):
    before = project.git("status", "--porcelain", "--ignored"), project.git("branch", "--all")
    measured(EQUAL)
    folder = Path(fake.launches[0][3].scratch)
    assert not folder.exists()
    assert project.git("worktree", "list").count("\n") == 0
    after = project.git("status", "--porcelain", "--ignored"), project.git("branch", "--all")
    assert after[1] == before[1] or before[1] == ""
    assert "times.json" not in after[0]


def test_both_sides_are_given_the_same_but_for_their_names(measured, fake):
    measured(EQUAL, EQUAL, threads=3, words=("-p", "no:cacheprovider"))
    counted = [entry for entry in fake.launches if entry[1] == "run"][-2:]
    both = {side: launch for side, _, _, launch in counted}
    base, head = both["base"], both["head"]
    swapped = {k: v.replace("/base/", "/head/") for k, v in base.environment.items()}
    assert swapped == head.environment
    assert [w.replace("/base/", "/head/") for w in base.arguments] == list(head.arguments)
    environment = head.environment
    assert [environment[f"{name}_NUM_THREADS"] for name in ("NUMBA", "OMP", "OPENBLAS", "MKL")] == (
        ["3"] * 4
    )
    assert environment["NUMBA_CACHE_DIR"] == str(Path(head.cwd).parent / "numba")
    assert environment["OPBENCH_TIMING_ONLY"] == "1"
    assert environment["PYTHONPATH"].split(os.pathsep)[0] == str(head.cwd)
    assert "OPBENCH_SURVEY" not in environment
    assert "opbench_survey" not in head.arguments
    assert "--benchmark-min-rounds=25" in head.arguments
    assert "--benchmark-min-time=0.002" in head.arguments
    assert head.arguments[1:3] == ("-p", "no:cacheprovider")


def test_without_threads_the_variables_are_left_alone(measured, fake, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    result = measured(EQUAL, EQUAL)
    environment = fake.launches[-1][3].environment
    assert environment["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in environment
    assert "threads as configured" in result.comparisons.context[0]


def test_what_a_project_switches_on_is_calmed(measured, fake):
    fake.plugins = ["benchmark", "cov", "randomly", "xdist"]
    measured(EQUAL, EQUAL)
    arguments = fake.launches[-1][3].arguments
    assert {"-n0", "--no-cov", "no:randomly"} <= set(arguments)


def test_src_comes_first_on_the_path_where_there_is_one(measured, fake, project):
    project.write(**{"src.pkg.__init__": ""})
    measured(EQUAL, EQUAL)
    path = fake.launches[-1][3].environment["PYTHONPATH"].split(os.pathsep)
    cwd = Path(fake.launches[-1][3].cwd)
    assert path[:2] == [str(cwd / "src"), str(cwd)]
    project.commit(**{"lib.pkg.__init__": ""})
    measured(None, import_roots=("lib",))
    cwd = Path(fake.launches[-1][3].cwd)
    assert fake.launches[-1][3].environment["PYTHONPATH"].split(os.pathsep)[0] == str(cwd / "lib")


def test_an_import_root_that_one_side_lacks_is_refused(measured):
    with pytest.raises(ConfigError, match="--import-root 'lib': base has no such folder"):
        measured(EQUAL, EQUAL, import_roots=("lib",))


def test_a_benchmarks_own_floor_comes_before_the_sessions(measured, fake):
    entry = fake._entry

    def with_floor(side, name, seconds):
        made = entry(side, name, seconds)
        if name == "t.py::y" and side == "head":
            made["extra_info"] = {"opbench": {"floor": {"relative": 0.3}}}
        return made

    fake._entry = with_floor
    slower = {name: 1.2 * seconds for name, seconds in EQUAL.items()}
    result = measured(EQUAL, slower)
    assert verdicts(result) == {
        "t.py::x": Verdict.REGRESSED,
        "t.py::y": Verdict.UNCHANGED,
        "u.py::z": Verdict.REGRESSED,
    }


def test_why_comes_from_one_profiled_launch_of_each_side_for_what_is_confirmed(measured, fake):
    entry = fake._entry

    def traced(side, name, seconds):
        made = entry(side, name, seconds)
        if "OPBENCH_TIMING_ONLY" not in fake.launches[-1][3].environment:
            row = {"category": "symbolic", "name": "dot", "total": seconds, "count": 1}
            made["extra_info"] = {"opbench": {"begin": 0, "end": 1, "operators": [row]}}
        return made

    fake._entry = traced
    result = measured(EQUAL, EQUAL | {"t.py::y": 2.4e-3})
    profiled = [
        (side, ids)
        for side, what, ids, launch in fake.launches
        if what == "run" and "OPBENCH_TIMING_ONLY" not in launch.environment
    ]
    assert profiled == [("base", ("t.py::y",)), ("head", ("t.py::y",))]
    (why,) = by_id(result)["t.py::y"].attributions
    assert (why.side, why.name) == ("operator", "dot")
    assert why.change == pytest.approx(0.4e-3)
    assert by_id(result)["t.py::x"].attributions == ()


# what cannot be compared


def test_what_one_side_lacks_or_fails_is_listed_and_the_rest_is_judged(measured):
    base = EQUAL | {"t.py::old": 1e-3, "t.py::bad": 1e-3, "b.py::gone": "broken"}
    head = EQUAL | {"t.py::new": 1e-3, "t.py::bad": "fail", "b.py::gone": 1e-3}
    result = measured(base, head)
    assert verdicts(result) == dict.fromkeys(EQUAL, Verdict.UNCHANGED) | {
        "t.py::new": Verdict.ADDED,
        "t.py::old": Verdict.REMOVED,
        "t.py::bad": Verdict.INCOMPARABLE,
        "b.py::gone": Verdict.INCOMPARABLE,
    }
    assert by_id(result)["t.py::bad"].warnings == ("failed (boom) on head",)
    assert "could not be collected on base" in by_id(result)["b.py::gone"].warnings[0]
    assert result.exit_code() == 0


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("crash", "the launch was ended by signal 11"),
        ("hang", "the launch took longer than 600 s"),
        ("garbage", "its report cannot be read|no benchmark passed"),
        ("fail", "failed \\(boom\\) on head"),
        ("skip", "skipped \\(not here\\) on head"),
    ],
)
def test_a_launch_that_goes_wrong_costs_its_own_file_only(measured, word, reason):
    result = measured(EQUAL | {"v.py::w": 1e-3}, EQUAL | {"v.py::w": word})
    wrong = by_id(result)["v.py::w"]
    assert wrong.verdict == Verdict.INCOMPARABLE
    assert re.search(reason, wrong.warnings[0])
    assert verdicts(result)["t.py::x"] == Verdict.UNCHANGED
    assert result.exit_code() == 0


def test_a_file_that_crashes_later_is_told(measured, fake):
    fake.instead = lambda side, counted, ids: (
        fake.result(-11) if counted and side == "head" and "u.py::z" in ids else None
    )
    result = measured(EQUAL, EQUAL)
    assert verdicts(result)["u.py::z"] == Verdict.INCOMPARABLE
    assert by_id(result)["u.py::z"].warnings == ("head: the launch was ended by signal 11",)
    assert verdicts(result)["t.py::x"] == Verdict.UNCHANGED


def test_a_benchmark_that_fails_now_and_then_is_judged_by_the_pairs_that_it_has(measured, fake):
    # Every other launch of head lacks y: four pairs are left of eight.
    entry = fake._entry
    count = iter(range(1000))
    fake._entry = lambda side, name, seconds: (
        {}
        if name == "t.py::y" and side == "head" and next(count) % 2
        else entry(side, name, seconds)
    )
    result = measured(EQUAL, EQUAL)
    assert verdicts(result)["t.py::y"] == Verdict.INCONCLUSIVE
    assert any("launches of head gave no value" in w for w in by_id(result)["t.py::y"].warnings)
    assert verdicts(result)["t.py::x"] == Verdict.UNCHANGED


@pytest.mark.parametrize(
    ("base", "head", "reason"),
    [
        ({"t.py::x": 1e-3}, {"u.py::x": 1e-3}, "1 only on head, 1 only on base"),
        ({"t.py::x": 1e-3}, {"t.py::x": "crash"}, "1 fail or cannot be run"),
        ({"t.py::long": 1e-3}, {"t.py::long": 1e-3}, "1 marked long and not named"),
        ({}, {}, "none was collected"),
    ],
)
def test_zero_matches_are_never_green(measured, base, head, reason):
    result = measured(base, head)
    assert result.exit_code() == 3
    assert reason in result.comparisons.reason


def test_a_side_that_cannot_be_collected_is_no_verdict(measured, fake):
    fake._survey = lambda *arguments: None
    fake.instead = lambda side, counted, ids: fake.result(-6, stderr="Fatal Python error: x")
    result = measured(EQUAL, EQUAL)
    assert result.exit_code() == 3
    assert "base could not be collected" in result.comparisons.reason


def test_options_that_pytest_does_not_know_are_a_mistake(measured, fake):
    fake._survey = lambda *arguments: None
    fake.instead = lambda side, counted, ids: fake.result(4, stderr="ERROR: no such option: --x")
    with pytest.raises(ConfigError, match=r"pytest does not understand this on base: .*--x"):
        measured(EQUAL, EQUAL, words=("--x",))


def test_without_pytest_benchmark_it_is_told(measured, fake):
    fake.plugins = []
    with pytest.raises(ConfigError, match="pytest-benchmark is not loaded on base"):
        measured(EQUAL, EQUAL)


def test_a_package_from_elsewhere_ends_it_without_a_verdict(measured, fake, project, tmp_path):
    package = tmp_path / "site" / "pkg" / "__init__.py"
    package.parent.mkdir(parents=True)
    package.write_text("")
    project.write(**{"pkg.__init__": ""})
    fake.modules = {"pkg": str(package)}
    with pytest.raises(ConfigError) as told:
        measured(EQUAL, EQUAL)
    assert f"base imported package pkg from {package}" in str(told.value)
    assert "pip uninstall pkg" in str(told.value)
    assert "--setup 'pip install .'" in str(told.value)
    assert runs(fake) == []
    assert measured(None, elsewhere=("pkg",)).exit_code() == 0
    fake.modules = {"pkg": "{tree}/pkg/__init__.py"}
    assert measured(None).exit_code() == 0


def test_a_package_in_another_folder_is_told_which_root_to_name(measured, fake, project, tmp_path):
    project.write(**{"python.pkg.__init__": ""})
    fake.modules = {"pkg": str(tmp_path / "site-packages" / "pkg" / "__init__.py")}
    with pytest.raises(ConfigError, match="give --import-root python"):
        measured(EQUAL, EQUAL)


def test_a_file_that_only_head_has_may_be_named(measured, fake, project):
    (project.folder / "t.py").write_text("")
    project.commit()
    (project.folder / "u.py").write_text("")
    old, new = {"t.py::x": 1e-3}, {"t.py::x": 1e-3, "u.py::z": 1e-3}
    (project.folder / "times.json").write_text(json.dumps(old))
    project.commit()
    project.git("rm", "--quiet", "--cached", "u.py")
    project.git("commit", "--quiet", "-m", "x")
    result = measured(None, new, paths=("t.py", "u.py::z"))
    assert verdicts(result) == {"t.py::x": Verdict.UNCHANGED, "u.py::z": Verdict.ADDED}
    assert [w for w in fake.launches[0][3].arguments if w.endswith(".py")] == ["t.py"]
    assert [w for w in fake.launches[1][3].arguments if w.endswith(".py")] == ["t.py", "u.py"]
    only = measured(None, paths=("u.py",))
    assert (only.exit_code(), only.comparisons.reason) == (3, "base has none of u.py")


def test_a_file_that_neither_side_has_is_a_mistake(measured):
    with pytest.raises(ConfigError, match=r"neither side has gone.py; name test files"):
        measured(EQUAL, EQUAL, paths=("gone.py::x",))


# noise


def test_a_bimodal_benchmark_is_not_decided(measured, fake):
    entry = fake._entry

    def two_modes(side, name, seconds):
        made = entry(side, name, seconds)
        if name == "t.py::y":
            data = made["stats"]["data"]
            made["stats"]["data"] = [v * (1 if n % 2 else 30) for n, v in enumerate(data)]
        return made

    fake._entry = two_modes
    result = measured(EQUAL, EQUAL | {"t.py::y": 4e-3})
    assert verdicts(result)["t.py::y"] == Verdict.INCONCLUSIVE
    assert any(warning.startswith("bimodal") for warning in by_id(result)["t.py::y"].warnings)
    assert result.exit_code() == 0
    assert result.exit_code(strict=True) == 3


def noisy(fake, spread, seed=5):
    """Only ``t.py::y`` is; every launch of it draws its own speed."""
    draw = random.Random(seed)  # noqa: S311 - noise, no secret
    fake.noise = lambda side, number, name: draw.lognormvariate(
        0.0, spread if name == "t.py::y" else 0.004
    )


def test_what_is_too_noisy_for_eight_pairs_gets_more_and_nothing_else_does(measured, fake):
    measured(EQUAL)
    fake.launches.clear()
    noisy(fake, 0.12, seed=9)
    result = measured(None)
    # The launch that warms up, eight to screen all of t.py, and sixteen of the noisy one alone.
    assert runs(fake, "head").count(("t.py::x", "t.py::y")) == 9
    assert runs(fake, "head").count(("t.py::y",)) == 16
    assert runs(fake, "head").count(("u.py::z",)) == 9
    assert verdicts(result)["t.py::x"] == Verdict.UNCHANGED
    assert by_id(result)["t.py::x"].warnings == ()
    assert by_id(result)["t.py::y"].baseline.n == 24


def test_a_slowdown_in_noise_is_confirmed_by_more_fresh_pairs(measured, fake):
    measured(EQUAL, EQUAL | {"t.py::y": 2.24e-3})
    fake.launches.clear()
    noisy(fake, 0.08, seed=3)
    result = measured(None)
    fresh = runs(fake, "head").count(("t.py::y",))
    assert verdicts(result)["t.py::y"] == Verdict.REGRESSED
    # 8 more to screen, then three looks of twelve to confirm, and one that is profiled.
    assert fresh == 8 + 36 + 1


def test_the_budget_bounds_what_the_noisy_get(measured, fake):
    measured(EQUAL)
    noisy(fake, 0.12)
    start = fake.now
    result = measured(None, budget_s=50.0)
    assert fake.now - start <= 50.0
    assert by_id(result)["t.py::y"].baseline.n == 8
    assert result.comparisons.unfinished == ("t.py::y",)
    assert result.resumable


def test_what_no_suspect_needs_of_the_budget_goes_to_the_noisy(measured, fake):
    # 38 s to the end of the first look; a quarter of 60 s is kept, until nothing is to confirm.
    measured(EQUAL)
    noisy(fake, 0.12)
    start = fake.now
    assert by_id(measured(None, budget_s=60.0))["t.py::y"].baseline.n == 16
    assert fake.now - start <= 60.0


def test_an_undecided_suspect_gets_more_fresh_pairs_and_a_decided_one_does_not(measured, fake):
    measured(EQUAL, EQUAL | {"t.py::x": 1.2e-3, "t.py::y": 2.2e-3})
    # Three of the first twelve fresh pairs of y show a head that is faster.
    seen = iter(range(10_000))
    entry = fake._entry

    def disturbed(side, name, seconds):
        fresh = name == "t.py::y" and side == "head" and next(seen)
        return entry(side, name, seconds * (0.8 if fresh and 9 <= fresh <= 11 else 1))

    fake._entry = disturbed
    fake.launches.clear()
    result = measured(None)
    assert verdicts(result)["t.py::x"] == Verdict.REGRESSED
    assert verdicts(result)["t.py::y"] == Verdict.REGRESSED
    both, alone = (runs(fake, "head").count(ids) for ids in (("t.py::x", "t.py::y"), ("t.py::y",)))
    # One to warm up, 8 to screen, 12 to confirm both and one profiled; then 12 of y alone.
    assert (both, alone) == (1 + 8 + 12 + 1, 12)
    assert by_id(result)["t.py::x"].baseline.n == 20
    assert by_id(result)["t.py::y"].baseline.n == 32
    # The interval of 24 pairs, of which four may differ.
    assert by_id(result)["t.py::y"].confidence == pytest.approx(0.99846, abs=1e-5)
    assert not result.resumable


def test_a_machine_that_is_slower_beside_one_side_confirms_nothing(measured, fake, monkeypatch):
    # As it is drawn, every launch of head meets a slow phase; the control kernels meet it too.
    slow = [1.0]
    memory = lambda self: {"compute": 1e-3, "memory": 1e-3 * slow[0]}  # noqa: E731 - a stub
    monkeypatch.setattr(sessions.Controls, "measure", memory)
    measure = sessions.Launcher.measure

    def beside(self, stage, pair, file, side, ids):
        slow[0] = 1.1 if side.name == "head" else 1.0
        return measure(self, stage, pair, file, side, ids)

    monkeypatch.setattr(sessions.Launcher, "measure", beside)
    result = measured(EQUAL, {name: 1.1 * seconds for name, seconds in EQUAL.items()})
    assert set(verdicts(result).values()) == {Verdict.INCONCLUSIVE}
    assert result.comparisons.reason.startswith("machine moved: the memory control")
    assert result.exit_code() == 3
    # What looks unchanged may be slower by what the machine gave it.
    result = measured(EQUAL, EQUAL)
    assert set(verdicts(result).values()) == {Verdict.INCONCLUSIVE}
    assert result.exit_code() == 3


def test_a_drift_of_the_machine_moves_nothing(measured, fake):
    # 0.3 % slower from launch to launch: 15 % over the session, for both sides alike.
    draw = random.Random(3)  # noqa: S311 - noise, no secret
    fake.noise = lambda side, number, name: 1.003**number * draw.lognormvariate(0, 0.003)
    result = measured(EQUAL, EQUAL)
    assert Verdict.REGRESSED not in verdicts(result).values()
    assert Verdict.IMPROVED not in verdicts(result).values()


# budget


def test_a_budget_that_ends_before_anything_is_decided_is_exit_3(measured, fake):
    fake.slow = {"t.py": 50.0, "u.py": 50.0}
    result = measured(EQUAL, EQUAL, budget_s=300.0)
    assert result.exit_code() == 3
    assert any("no room for t.py, u.py" in line for line in result.comparisons.context)
    assert "give more with --budget" in by_id(result)["u.py::z"].warnings[0]


def test_a_budget_that_ends_while_warming_up_is_exit_3(measured, fake):
    fake.slow = {"t.py": 50.0}
    result = measured(EQUAL, EQUAL, budget_s=60.0)
    assert result.exit_code() == 3
    assert "spent while warming up" in result.comparisons.reason


def test_what_the_budget_leaves_out_is_listed_beside_what_it_decides(measured, fake):
    fake.slow = {"u.py": 20.0}
    result = measured(EQUAL, EQUAL, budget_s=150.0)
    assert verdicts(result)["t.py::x"] == Verdict.UNCHANGED
    assert verdicts(result)["u.py::z"] == Verdict.INCOMPARABLE
    assert any(
        "the budget of 2 min 30 s had no room for u.py" in c for c in result.comparisons.context
    )
    assert fake.now <= 150.0


def test_a_suspect_that_the_budget_does_not_confirm_is_not_decided(measured, fake):
    # Six launches before, 32 to screen; then the machine slows down, and 5 pairs take 20 s.
    fake.before = lambda number: fake.slow.update({"t.py": 1.0} if number > 38 else {})
    result = measured(EQUAL, EQUAL | {"t.py::y": 2.2e-3}, budget_s=58.0)
    assert verdicts(result)["t.py::y"] == Verdict.INCONCLUSIVE
    assert fake.now <= 58.0
    assert any("for want of time: t.py::y; give" in line for line in result.comparisons.context)
    assert result.exit_code() == 0


def test_when_nothing_but_an_unconfirmed_suspect_is_left_it_is_exit_3(measured, fake):
    # 4 launches before and 16 to screen; then 6 fresh pairs, the least for a verdict, take 24 s.
    fake.before = lambda number: fake.slow.update({"t.py": 1.0} if number > 20 else {})
    head = {"t.py::x": 2e-3}
    short = measured({"t.py::x": 1e-3}, head, budget_s=42.0)
    assert verdicts(short) == {"t.py::x": Verdict.INCONCLUSIVE}
    assert short.exit_code() == 3
    fake.slow.clear()
    fake.before = lambda number: None
    assert measured(None, head, budget_s=42.0 + fake.now).exit_code() == 1


def test_no_launch_is_waited_for_beyond_the_budget(measured, fake):
    fake.slow = {"t.py": 9.0}
    measured({"t.py::x": 1e-3}, budget_s=250.0)
    patience = {
        what: [one.timeout_s for _, kind, _, one in fake.launches if kind == what]
        for what in ("collect", "run")
    }
    assert patience["collect"] == [250.0, 249.0]
    # To warm up, what is left; then what five warm-ups take, or a minute.
    assert patience["run"][:3] == [248.0, 238.0, 60.0]


# resuming with a larger budget


def test_a_session_whose_budget_is_spent_goes_on_with_a_larger_one(measured, fake, progress):
    """Two files; u.py is left out at first, and y is suspected and not confirmed."""
    fake.slow = {"u.py": 20.0}
    head = EQUAL | {"t.py::y": 2.2e-3}
    # 46 s to warm up, 42 for the pair that tells what u.py costs, 16 to screen t.py. Then t.py
    # becomes slower as well, so that there is room for one pair of twelve.
    fake.before = lambda number: fake.slow.update({"t.py": 3.0} if number > 24 else {})
    first = measured(EQUAL, head, budget_s=126.0)
    fake.before = lambda number: None
    fake.slow = {"u.py": 20.0}
    assert first.resumable
    assert first.comparisons.unfinished == ("t.py::y", "u.py::z")
    assert verdicts(first)["t.py::y"] == Verdict.INCONCLUSIVE
    assert verdicts(first)["u.py::z"] == Verdict.INCOMPARABLE
    kept = [one for one in fake.launches if "OPBENCH_SURVEY" not in one[3].environment]
    fake.launches.clear()
    second = measured(None, resume="", budget_s=1000.0)
    assert second.session == first.session
    assert (second.resumable, second.comparisons.unfinished) == (False, ())
    assert verdicts(second) == {
        "t.py::x": Verdict.UNCHANGED,
        "t.py::y": Verdict.REGRESSED,
        "u.py::z": Verdict.UNCHANGED,
    }
    again = [one for one in fake.launches if "OPBENCH_SURVEY" not in one[3].environment]
    # In both together: 16 launches of each file to screen, 24 to confirm y, and 2 profiled.
    assert len(kept) + len(again) == 16 + 16 + 24 + 2
    assert by_id(second)["t.py::y"].baseline.n == 20
    assert any(f"{len(kept)} launches of which are done" in line for line in progress.said)
    # What is left to screen, and not all of it: 7 pairs of u.py of 42 s.
    plan = [line for line in progress.said if "pairs of launches each" in line][-1]
    assert "about 4 min 54 s" in plan
    with pytest.raises(ConfigError, match="no unfinished session"):
        measured(None, resume="")


def test_what_stays_decided_is_not_measured_again_for_more_budget(measured, fake):
    fake.slow = {"u.py": 20.0}
    measured(EQUAL, EQUAL, budget_s=126.0)
    fake.launches.clear()
    result = measured(None, resume="", budget_s=1000.0)
    assert set(verdicts(result).values()) == {Verdict.UNCHANGED}
    # The launch that warms up, and no other one of t.py.
    assert runs(fake, "head").count(("t.py::x", "t.py::y")) == 1
    assert runs(fake, "head").count(("u.py::z",)) == 1 + 7


def test_more_budget_gives_the_noisy_more_pairs(measured, fake):
    measured(EQUAL)
    noisy(fake, 0.12)
    assert by_id(measured(None, budget_s=50.0))["t.py::y"].baseline.n == 8
    result = measured(None, resume="", budget_s=1000.0)
    assert by_id(result)["t.py::y"].baseline.n == 24
    assert by_id(result)["t.py::x"].baseline.n == 8
    # Open still, and more time would change nothing.
    assert verdicts(result)["t.py::y"] == Verdict.INCONCLUSIVE
    assert (result.resumable, result.comparisons.unfinished) == (False, ())


def test_a_suspect_found_after_resuming_is_confirmed_beside_an_older_one(measured, fake):
    """The pairs that another suspect of the file had do not count for it."""
    head = EQUAL | {"t.py::x": 1.2e-3, "t.py::y": 2.24e-3}
    measured(EQUAL, head)
    fake.launches.clear()
    noisy(fake, 0.08, seed=3)  # y is open after eight pairs, and suspected after sixteen
    # 38 s to the first look, 24 to confirm x; nothing is left for y.
    first = measured(None, budget_s=66.0)
    assert verdicts(first)["t.py::x"] == Verdict.REGRESSED
    assert verdicts(first)["t.py::y"] == Verdict.INCONCLUSIVE
    result = measured(None, resume="", budget_s=1000.0)
    assert verdicts(result)["t.py::x"] == Verdict.REGRESSED
    assert by_id(result)["t.py::x"].baseline.n == 20
    assert verdicts(result)["t.py::y"] == Verdict.REGRESSED
    assert by_id(result)["t.py::y"].baseline.n >= 16 + 12


def test_a_budget_spent_while_warming_up_goes_on_with_more(measured, fake):
    fake.slow = {"t.py": 50.0}
    assert measured(EQUAL, EQUAL, budget_s=60.0).resumable
    fake.slow.clear()
    assert verdicts(measured(None, resume="")) == dict.fromkeys(EQUAL, Verdict.UNCHANGED)


def test_a_confirmed_change_that_no_time_was_left_to_explain_is_explained_later(measured, fake):
    # 22 s to the end of screening, 24 to confirm; two more for the launches that tell why.
    first = measured({"t.py::x": 1e-3}, {"t.py::x": 2e-3}, budget_s=45.0)
    assert verdicts(first)["t.py::x"] == Verdict.REGRESSED
    assert any("no room to profile t.py" in line for line in first.comparisons.context)
    assert (first.resumable, first.comparisons.unfinished) == (True, ())
    fake.launches.clear()
    second = measured(None, resume="")
    assert len(runs(fake)) == 2 + 2
    assert not any("no room to profile" in line for line in second.comparisons.context)
    assert not second.resumable


CONFIRMED = {"t.py::x": 1e-3, "t.py::y": 2e-3}


def confirmed_and_unfinished(measured):
    """A session that has confirmed x and has no time to profile it; y is slower by 20 % as well."""
    # 20 s to the end of screening, 24 to confirm; two more for the launches that tell why.
    head = {name: 1.2 * seconds for name, seconds in CONFIRMED.items()}
    first = measured(CONFIRMED, head, budget_s=45.0)
    assert verdicts(first)["t.py::x"] == Verdict.REGRESSED
    assert first.resumable
    return first


# 2 s to collect, 2 to warm up: the budget ends before, within, or after warming up.
@pytest.mark.parametrize("budget_s", [2.0, 2.5, 3.0, 4.0])
def test_a_resume_that_ends_while_warming_up_keeps_what_is_decided(measured, fake, budget_s):
    first = confirmed_and_unfinished(measured)
    began = fake.now
    # As a launch is ended that has no time left.
    fake.instead = lambda side, counted, ids: (
        fake.result(-9, timed_out=True) if ids and fake.now - began > budget_s else None
    )
    second = measured(None, resume=first.session, budget_s=budget_s)
    assert verdicts(second) == verdicts(first)
    assert second.exit_code() == 1
    assert (second.resumable, second.comparisons.unfinished) == (True, ())
    spent = any("spent while warming up" in line for line in second.comparisons.context)
    assert spent == (budget_s < 4.0)
    fake.instead = lambda side, counted, ids: None
    assert not measured(None, resume=first.session).resumable


def test_a_resume_that_cannot_ask_for_floors_judges_by_those_of_then(measured, fake):
    entry = fake._entry

    def with_floor(side, name, seconds):
        made = entry(side, name, seconds)
        if name == "t.py::y" and side == "head":
            made["extra_info"] = {"opbench": {"floor": {"relative": 0.3}}}
        return made

    fake._entry = with_floor
    first = confirmed_and_unfinished(measured)
    assert verdicts(first)["t.py::y"] == Verdict.UNCHANGED
    second = measured(None, resume=first.session, budget_s=2.0)
    assert verdicts(second) == verdicts(first)


def test_what_a_resume_has_no_time_for_is_named_and_what_is_measured_is_judged(measured, fake):
    fake.slow = {"u.py": 20.0}
    first = measured(EQUAL, EQUAL, budget_s=126.0)
    assert first.comparisons.unfinished == ("u.py::z",)
    second = measured(None, resume=first.session, budget_s=2.0)
    assert verdicts(second) == verdicts(first)
    assert second.comparisons.unfinished == ("u.py::z",)
    assert second.exit_code() == 0


def test_what_is_open_yet_stays_named_where_a_resume_has_no_time(measured, fake):
    measured(EQUAL)
    noisy(fake, 0.12)
    first = measured(None, budget_s=50.0)
    second = measured(None, resume=first.session, budget_s=2.0)
    assert second.comparisons.unfinished == first.comparisons.unfinished == ("t.py::y",)
    told = by_id(second)["t.py::y"].warnings
    assert "the budget ended before it was decided; give more with --budget" in told


@pytest.mark.parametrize("stage", ["screening", "confirming"])
def test_a_value_that_one_launch_did_not_give_is_measured_again(measured, fake, stage):
    entry = fake._entry
    count = iter(range(1000))
    lost = 5 if stage == "screening" else 8 + 5  # the launch that warms up is number 0
    fake._entry = lambda side, name, seconds: (
        {}
        if name == "t.py::y" and side == "head" and next(count) == lost
        else entry(side, name, seconds)
    )
    result = measured(CONFIRMED, {"t.py::x": 1.2e-3, "t.py::y": 2.4e-3})
    assert verdicts(result) == dict.fromkeys(CONFIRMED, Verdict.REGRESSED)
    assert by_id(result)["t.py::y"].baseline.n == 8 + 12
    assert not result.resumable


def test_a_report_tells_the_pairs_that_were_used(measured, fake):
    facts = lambda result: result.comparisons.context[0].split("   ")[0]  # noqa: E731 - short
    assert facts(measured(EQUAL)) == "8 pairs"
    fake.launches.clear()
    noisy(fake, 0.08, seed=3)
    told = facts(measured(None, EQUAL | {"t.py::y": 2.24e-3}))
    assert told == "8 to 16 pairs, 36 fresh ones"


# interruption


@pytest.mark.parametrize("number", [1, 2, 3, 6, 7, 8, 12, 23, 30, 47])
def test_an_interrupted_session_leaves_nothing_and_goes_on(
    measured, fake, project, progress, number
):
    head = EQUAL | {"t.py::y": 2.2e-3}

    def interrupt(launches):
        if launches == number:
            raise KeyboardInterrupt

    fake.before = interrupt
    with pytest.raises(KeyboardInterrupt):
        measured(EQUAL, head)
    assert not Path(fake.launches[0][3].scratch).exists()
    assert project.git("worktree", "list").count("\n") == 0
    fake.before = lambda number: None
    counted = len([one for one in fake.launches if "OPBENCH_SURVEY" not in one[3].environment])
    result = measured(None, resume="")
    assert verdicts(result)["t.py::y"] == Verdict.REGRESSED
    assert verdicts(result)["t.py::x"] == Verdict.UNCHANGED
    counted = len([one for one in fake.launches if "OPBENCH_SURVEY" not in one[3].environment])
    # 32 to screen, 24 to confirm, 2 to profile; of the interrupted pair at most 2 more.
    assert 58 <= counted <= 60
    assert any(f"going on with session {result.session}" in line for line in progress.said)


def test_a_resumed_session_measures_the_snapshot_of_then(measured, fake, project, progress):
    def interrupt(launches):
        if launches == 9:
            raise KeyboardInterrupt

    fake.before = interrupt
    with pytest.raises(KeyboardInterrupt):
        measured({"t.py::x": 1e-3}, {"t.py::x": 1.2e-3}, threads=2)
    fake.before = lambda number: None
    (project.folder / "times.json").write_text(json.dumps({"t.py::x": 9.0}))
    result = measured(None, resume="", threads=5)
    assert by_id(result)["t.py::x"].ratio == pytest.approx(1.2, rel=0.02)
    assert fake.launches[-1][3].environment["OMP_NUM_THREADS"] == "2"
    assert "the working tree has changed since; what is measured is that of then" in progress.said


def test_a_finished_session_is_not_resumed(measured):
    measured(EQUAL)
    with pytest.raises(ConfigError, match="no unfinished session"):
        measured(None, resume="")


def test_a_session_whose_plan_is_damaged_is_told(measured, fake, project):
    def interrupt(launches):
        raise KeyboardInterrupt

    fake.before = interrupt
    with pytest.raises(KeyboardInterrupt):
        measured(EQUAL)
    (plan,) = (project.folder / "results" / "ab").glob("*/plan.json")
    plan.write_text('{"schema_version": 2}')
    with pytest.raises(RecordError, match="its plan lacks 'options'; start a new session"):
        measured(None, resume="")


# the sides' own environments


def test_a_setup_command_runs_once_in_each_checkout(measured, fake, tmp_path):
    log = tmp_path / "log"
    command = f"pwd >> {log}; echo $VIRTUAL_ENV >> {log}; which python >> {log}"
    measured(EQUAL, EQUAL, setup=command)
    lines = log.read_text().split()
    session = Path(fake.launches[0][3].scratch)
    assert lines == [
        str(session / side / part)
        for side in ("base", "head")
        for part in ("tree", "env", "env/bin/python")
    ]
    launch = fake.launches[-1][3]
    assert launch.python == str(Path(launch.cwd).parent / "env" / "bin" / "python")


def test_a_setup_command_that_fails_is_told_with_what_it_said(measured, fake):
    words = r"--setup 'echo broken; exit 3' ended with exit code 3 for base; it said:\nbroken"
    with pytest.raises(ConfigError, match=words):
        measured(EQUAL, EQUAL, setup="echo broken; exit 3")
    assert fake.launches == []
    assert not any(p.name.startswith("opbench-") and p.is_dir() for p in Path().glob("opbench-*"))


def test_a_session_runs_in_the_folder_that_it_was_asked_from(measured, fake, project):
    (project.folder / "python").mkdir()
    (project.folder / "python" / "times.json").write_text(json.dumps({"t.py::x": 1e-3}))
    (project.folder / "times.json").write_text("{}")
    project.commit()
    from opbench.launch import AbOptions, measure_ab

    options = AbOptions(project.folder / "python", project.folder / "results", budget_s=None)
    from tests.launch.conftest import Quiet

    result = measure_ab(options, Quiet(), None, fake, fake.clock)
    assert verdicts(result) == {"t.py::x": Verdict.UNCHANGED}
    assert Path(fake.launches[-1][3].cwd).name == "python"


# self-check


def test_a_self_check_measures_base_against_base(measured, fake):
    result = measured(EQUAL, EQUAL | {"t.py::x": 9.0}, self_check=True)
    check = result.check
    assert (check.benchmarks, check.suspects, check.alarms) == (3, (), ())
    assert {one.id for one in check.spreads} == set(EQUAL)
    # A pair's ratio spreads by the square root of two more than a launch.
    for one in check.spreads:
        assert one.pairs == 8
        assert 0.001 < one.between_launches < 0.012
        assert 0.001 < one.between_pairs < 0.017
    assert result.comparisons.title.startswith("opbench self-check")


def test_a_self_check_counts_its_false_alarms(measured, fake):
    # Something that repeats, and is not the code: head's launches are slower.
    fake.noise = lambda side, number, name: (
        (1.2 if side == "head" and name == "t.py::y" else 1.0) * (1 + number % 7 / 1000)
    )
    check = measured(EQUAL, self_check=True).check
    assert check.alarms == ("t.py::y",)
    assert check.suspects == ("t.py::y",)
