"""Call, marker, command line, ini, default: who wins, and what a bad value is told."""

import pytest

from opbench.errors import ConfigError, WindowError
from opbench.plugin.settings import Level, resolve
from opbench.profiler import Mode

pytest_plugins = ["pytester"]

SHOWS = """
    import pytest
    def test_it(profiler):
        s = profiler.settings
        print("SEEN", s.iterations, s.begin, s.end, s.modes)
        with profiler.window(): pass
"""


def level(source="somewhere", **values):
    return Level(values, source)


def test_defaults_record_iterations_1_to_3_of_4_without_the_api_mode():
    settings = resolve([])
    assert (settings.iterations, settings.begin, settings.end) == (4, 1, 4)
    assert settings.modes == Mode.SYMBOLIC | Mode.IMPERATIVE | Mode.MEMORY
    assert (settings.trace, settings.reference) == ("auto", True)


def test_the_window_follows_the_number_of_iterations():
    assert (resolve([level(iterations=1)]).begin, resolve([level(iterations=1)]).end) == (0, 1)
    assert (resolve([level(iterations=9)]).begin, resolve([level(iterations=9)]).end) == (1, 9)


def test_the_first_level_that_gives_a_value_wins_for_that_value_alone():
    settings = resolve([level(begin=2), level(begin=0, end=3), level(iterations=7, mode="api")])
    assert (settings.iterations, settings.begin, settings.end) == (7, 2, 3)
    assert settings.modes == Mode.API


def test_none_means_not_given():
    assert resolve([level(iterations=None), level(iterations=2)]).iterations == 2


def test_a_slow_call_gets_2_iterations_unless_somebody_chose():
    slow = resolve([]).for_slow_call()
    assert (slow.iterations, slow.begin, slow.end) == (2, 1, 2)
    assert resolve([level(end=3)]).for_slow_call().iterations == 4


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"iterations": "many"}, "iterations in the marker must be a whole number, not 'many'"),
        ({"iterations": 2.5}, "must be a whole number, not 2.5"),
        ({"iterations": float("inf")}, "must be a whole number, not inf"),
        ({"begin": True}, "begin in the marker must be a whole number, not True"),
        ({"mode": "symbolc"}, "symbolic"),
        ({"trace": "yes"}, "trace in the marker is 'yes'"),
        ({"reference": 1}, "reference in the marker must be True or False, not 1"),
    ],
)
def test_a_bad_value_names_its_place_and_what_is_valid(values, words):
    with pytest.raises(ConfigError) as caught:
        resolve([level("the marker", **values)])
    assert words in str(caught.value)
    assert "the marker" in str(caught.value)


def test_a_window_that_does_not_fit_names_every_level_that_gave_a_part():
    levels = [
        Level({"begin": 5}, "the command line", "--opbench-"),
        Level({"iterations": 3}, "tox.ini", "tox.ini: opbench_"),
    ]
    with pytest.raises(WindowError) as caught:
        resolve(levels)
    assert "tox.ini: opbench_iterations, --opbench-begin" in str(caught.value)


@pytest.mark.parametrize(
    ("ini", "options", "marker", "seen"),
    [
        ("", [], "", "4 1 4 11"),
        ("opbench_iterations = 6\nopbench_mode = api", [], "", "6 1 6 4"),
        ("opbench_iterations = 6", ["--opbench-iterations=7"], "", "7 1 7 11"),
        ("", ["--opbench-iterations=7", "--opbench-begin=2"], "iterations=8", "8 2 8 11"),
    ],
    ids=["default", "ini", "command line over ini", "marker over command line"],
)
def test_each_level_reaches_the_fixture(project, ini, options, marker, seen):
    project.ini(ini)
    mark = f"    @pytest.mark.opbench({marker})\n" if marker else ""
    project.file(test_it=SHOWS.replace("    def test_it", mark + "    def test_it"))
    project.run("-s", *options).stdout.fnmatch_lines([f"*SEEN {seen}"])


def test_the_call_wins_over_the_marker(project):
    project.file(
        test_it="""
        import pytest
        @pytest.mark.opbench(iterations=8, mode="api")
        def test_it(profiler):
            profiler.options(iterations=3)
            assert profiler.settings.iterations == 3
            assert profiler.settings.modes == 4
            assert len(list(profiler.iterations(2))) == 2
        """
    )
    project.run()


@pytest.mark.parametrize(
    ("ini", "options", "words"),
    [
        ("", ["--opbench-mode=symbolc"], "*--opbench-mode*symbolic*"),
        ("", ["--opbench-begin=-1"], "*--opbench-begin*begin -1*"),
        ("", ["--opbench-begin=3", "--opbench-end=2"], "*--opbench-begin, --opbench-end*"),
        ("", ["--opbench-end=9"], "*end 9, iterations 4*"),
        ("", ["--opbench-trace=maybe"], "*--opbench-trace is 'maybe'*auto, off, on*"),
        ("opbench_iterations = 0", [], "*tox.ini: opbench_iterations*at least 1, not 0*"),
    ],
)
def test_a_bad_session_value_is_a_usage_error_before_any_test(project, ini, options, words):
    project.ini(ini)
    project.file(test_it="def test_it(profiler): raise SystemExit('must not run')")
    result = project.run(*options, code=4)
    result.stderr.fnmatch_lines(["ERROR: " + words])
    assert "Traceback" not in result.stderr.str()


@pytest.mark.parametrize(
    ("marker", "words"),
    [
        ("itertions=3", "*the opbench marker of test_it.py::test_it*'itertions'*'iterations'*"),
        ("'symbolic'", "*has positional arguments ('symbolic',)*"),
        ("begin=3, end=2", "*begin in the opbench marker of test_it.py::test_it*"),
        ("mode='fast'", "*mode in the opbench marker of test_it.py::test_it*"),
    ],
)
def test_a_bad_marker_fails_its_test_with_the_sentence_alone(project, marker, words):
    project.file(
        test_it=f"""
        import pytest
        @pytest.mark.opbench({marker})
        def test_it(profiler): raise SystemExit("must not run")
        def test_other(profiler): profiler(len, ())
        """
    )
    result = project.run("--benchmark-max-time=0.01", "--strict-markers", code=1)
    result.stdout.fnmatch_lines([words])
    result.assert_outcomes(passed=1, errors=1)
    assert "Traceback" not in result.stdout.str()
    assert "settings.py" not in result.stdout.str()


def test_the_options_stand_in_help_with_their_defaults(project):
    out = project.run("--help").stdout.str()
    for option in (
        "mode",
        "iterations",
        "begin",
        "end",
        "results",
        "trace",
        "no-reference",
        "continuous-dump",
        "dump-period",
    ):
        assert f"--opbench-{option}" in out
    assert "opbench_autosave" in out


def test_the_marker_stands_in_pytests_list_with_every_keyword(project):
    (line,) = (line for line in project.run("--markers").outlines if "opbench(" in line)
    keywords = line.partition("opbench(")[2].partition(")")[0].split(", ")
    # Each has a value of its own, and is taken by a test that has the marker; no other is.
    values = {"mode": "'api'", "iterations": 3, "begin": 1, "end": 2, "trace": "'off'"}
    values |= {"continuous_dump": True, "dump_period": 2, "reference": False, "floor": 0.1}
    assert set(keywords) == set(values)
    given = ", ".join(f"{key}={values[key]}" for key in keywords)
    project.file(
        test_it=f"""
        import pytest
        @pytest.mark.opbench({given})
        def test_it(profiler): profiler(len, ())
        """
    )
    project.run("--benchmark-max-time=0.01").assert_outcomes(passed=1)
