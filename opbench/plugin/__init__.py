"""pytest's door: options, the ``profiler`` fixture, and what is printed and saved at the end.

Loaded in every pytest of its environment, so importing it loads neither numba, scipy nor numpy:
the rooms that need them are imported inside hooks and fixtures.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from opbench import profiler as opbench_profiler
from opbench.errors import ConfigError, WindowError
from opbench.plugin import floors, roof, saving, section, settings, verdicts
from opbench.plugin.fixture import ProfilerFixture
from opbench.plugin.session import ROW, Session
from opbench.plugin.windows import mark_used

__all__: list[str] = []

SESSION = pytest.StashKey[Session]()
MARKER = (
    f"opbench({', '.join(settings.KEYS)}): how the profiler fixture "
    "traces this test, and the smallest change of it that counts; all keywords are optional."
)


class _NoBenchmark:
    """Stands in for pytest-benchmark where it is switched off, and says so."""

    @pytest.fixture
    def benchmark(self) -> Any:
        """Skip the test, with the reason."""
        pytest.skip(
            "opbench times through pytest-benchmark, which is not loaded (-p no:benchmark, or "
            "plugin autoloading is off); load it, or use --benchmark-disable to run each once"
        )


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register opbench's options and ini keys."""
    settings.add_options(parser)
    verdicts.add_options(parser)
    floors.add_ini(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Check the session's settings, and send saved runs to the results folder."""
    config.addinivalue_line("markers", MARKER)
    session = config.stash[SESSION] = Session(config)
    config.pluginmanager.register(section.Rows(session), "opbench-rows")
    # pytest-benchmark's options, and not its name: it can be loaded under another one.
    if hasattr(config.option, "benchmark_storage"):
        saving.disable_in_worker(config)
        saving.redirect(config, session)
    else:
        config.pluginmanager.register(_NoBenchmark(), "opbench-no-benchmark")
    floors.read(config)
    verdicts.register(config, session)


def pytest_report_header(config: pytest.Config) -> str | None:
    """One line that says what is profiled, where benchmarks are what is run."""
    if not config.getoption("benchmark_only", default=False):
        return None
    return section.header(config.stash[SESSION])


def pytest_sessionstart(session: pytest.Session) -> None:
    """Take over the saving, once pytest-benchmark's session stands."""
    ours = session.config.stash[SESSION]
    saving.take_over(session.config, ours)
    ours.started()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Say at once that traces will not be kept, instead of after minutes of measuring."""
    ours, option = session.config.stash[SESSION], session.config.option
    if option.collectonly or getattr(option, "benchmark_skip", False):
        return
    uses = any(saving.uses_fixture(item) for item in session.items)
    problems = [ours.trace_problem()] if uses and not ours.traces_off else []
    for problem in filter(None, (*problems, ours.save_problem)):
        section.say(session.config, f"opbench: {problem}")


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, None, None]:
    """Keep the window that OPBENCH_PROFILER_AUTOSTART opened out of whatever is timed."""
    times = "benchmark" in getattr(item, "fixturenames", ())
    with opbench_profiler.autostart_suspended() if times else contextlib.nullcontext():
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Bound the rounds of each benchmark that opbench keeps; refuse a floor that is none."""
    floors.check(item)
    saving.bound_rounds(item, item.config.stash[SESSION])


@pytest.fixture
def profiler(request: pytest.FixtureRequest, benchmark: Any) -> Iterator[ProfilerFixture]:
    """Time a function through pytest-benchmark, then trace it in a pass of its own.

    ``profiler(fn, *args)`` is the whole use of it; ``profiler.iterations``, ``profiler.window``,
    ``profiler.run`` and ``profiler.stop`` draw the window by hand.
    """
    session = request.config.stash[SESSION]
    mistake = ""
    if not hasattr(benchmark, "disabled"):
        mistake = (
            "the fixture 'benchmark' of this project is not pytest-benchmark's, which opbench "
            "times through; give it another name"
        )
    else:
        try:
            fixture = ProfilerFixture(request.node, benchmark, session)
        except (ConfigError, WindowError) as error:
            mistake = str(error)
            mark_used(benchmark)
    if mistake:
        # The sentence alone: a mistake in a marker needs no traceback of ours.
        pytest.fail(mistake, pytrace=False)
    yield fixture
    fixture.finish()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, None]:
    """Keep a failed test's numbers out of saved runs; hand its row to the report."""
    outcome = yield
    report = outcome.get_result()
    unwell = report.failed or call.excinfo is not None
    if call.when in ("call", "teardown") and unwell:
        saving.drop_failed(item, item.config.stash[SESSION])
    if call.when == "teardown":
        floors.store(item)
    if call.when == "teardown" and ROW in item.stash:
        row = item.stash[ROW]
        # Attributes of a report travel from an xdist worker to the controller.
        report.opbench = {**row, "failed": item.stash.get(saving.FAILED, False)}


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Generator[None, None, None]:
    """Before pytest-benchmark saves and compares: decide on both."""
    config = session.config
    interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
    only = config.getoption("benchmark_only", default=False)
    roof.apply(config.stash[SESSION], may_measure=only and not interrupted)
    saving.decide(config, config.stash[SESSION], interrupted=interrupted)
    saving.leave_out_profiled(config)
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> Generator[None, None, None]:
    """Print the section after pytest-benchmark's table, also when that one raises."""
    try:
        yield
    finally:
        section.write(terminalreporter, config.stash[SESSION])


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell an xdist worker whose run it is part of."""
    session = node.config.stash[SESSION]
    node.workerinput["opbench"] = session.for_worker(node.workerinput["workerid"])


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_json(config: pytest.Config, output_json: dict[str, Any]) -> None:
    """Add the ``opbench`` block to what pytest-benchmark saves."""
    output_json["opbench"] = config.stash[SESSION].document_block


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_machine_info(
    config: pytest.Config, machine_info: dict[str, Any]
) -> None:
    """Drop what changes between two runs on one machine, where opbench keeps the runs."""
    saving.stable_machine_info(config.stash[SESSION], machine_info)


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_benchmark_compare_machine_info(config: pytest.Config, benchmarksession: Any) -> None:
    """Take over the storage before its location is printed (it fails outside the root)."""
    if config.stash[SESSION].keeps_runs:
        saving.adopt(benchmarksession)
