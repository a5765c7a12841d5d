"""``--opbench-compare`` and ``--opbench-fail``: this launch beside a stored record."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from opbench.errors import OpbenchError
from opbench.plugin.section import style_of
from opbench.plugin.session import Session

if TYPE_CHECKING:
    from opbench.records import RunRecord, Tripwires, Wire

__all__ = ["add_options", "register"]

CASE = "opbench-compare"
# A test of this name never runs, so their memory of it would never be cleared.
_REMEMBERING = ("lfplugin", "nfplugin", "stepwiseplugin")


def add_options(parser: pytest.Parser) -> None:
    """Register both options."""
    group = parser.getgroup("opbench")
    group.addoption(
        "--opbench-compare",
        metavar="NAME",
        default=None,
        help="Compare the fastest rounds of this run with a stored record: a baseline's name, a"
        " record's id or number, files, a folder, or latest. Advisory: to judge, use opbench ab.",
    )
    group.addoption(
        "--opbench-fail",
        action="store_true",
        default=False,
        help="Exit status 1 if a benchmark's fastest round took over 1.15 times as long as the"
        " record's (or its floor, if that is more), or if nothing could be compared.",
    )


def register(config: pytest.Config, session: Session) -> None:
    """Start the comparison where it was asked for.

    Raises:
        pytest.UsageError: the record cannot be read, or there is none to fail against.
    """
    name, fail = config.getoption("opbench_compare"), config.getoption("opbench_fail")
    if hasattr(config, "workerinput") or config.option.help or config.option.collectonly:
        return
    if name is None:
        if fail:
            raise pytest.UsageError(
                "--opbench-fail has nothing to compare with; give --opbench-compare=NAME as well"
            )
        return
    config.pluginmanager.register(Verdicts(config, session, name, fail=fail), "opbench-verdicts")


class Verdicts:
    """Compares once the last test has run, before anything is saved, and prints at the end."""

    def __init__(self, config: pytest.Config, session: Session, name: str, *, fail: bool) -> None:
        """Read the record now: what is wrong with it is to be known before minutes of measuring.

        And ``latest`` is the newest record before this run is saved.
        """
        from opbench import records

        self._config, self._session, self._name, self._fail = config, session, name, fail
        try:
            self._baseline: RunRecord = records.Library(session.results).find(name)
        except OpbenchError as error:
            raise pytest.UsageError(f"--opbench-compare={name}: {error}") from None
        self._found: Tripwires | None = None
        self._problem = ""

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(
        self, session: pytest.Session, exitstatus: int
    ) -> Generator[None, None, None]:
        """Compare, and report each tripped wire as a failed case of its own where that is asked."""
        try:
            self._compare()
        except (OpbenchError, ValueError) as error:
            self._problem = str(error)
        ended = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if self._fail and exitstatus in ended and not self._switched_off():
            wires = self._found.tripped if self._found else ()
            for wire in wires:
                self._report(wire)
            if wires or self._problem or (self._found and self._found.reason):
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
        yield

    def _switched_off(self) -> bool:
        """Whether somebody asked for no timing; that nothing is compared is then no surprise."""
        option = self._config.option
        return bool(
            getattr(option, "benchmark_disable", False) or getattr(option, "benchmark_skip", False)
        )

    def _compare(self) -> None:
        from opbench import records

        benchmarks = getattr(self._config, "_benchmarksession", None)
        entries = [
            {
                "fullname": bench.fullname,
                "group": bench.group,
                "extra_info": bench.extra_info,
                "stats": {"data": list(bench.stats.data)},
            }
            for bench in (benchmarks.benchmarks if benchmarks else ())
            if bench and not bench.has_error
        ]
        live = records.live_record(entries, self._session.run_id, self._session.environment)
        self._found = records.tripwires(self._baseline, live)

    def _report(self, wire: Wire) -> None:
        """One failed case, as the terminal and the junit file show it."""
        from opbench import report

        text = report.tripwire_failure(wire, self._name)
        case = pytest.TestReport(
            nodeid=f"{CASE}::{wire.id}",
            location=(wire.id.partition("::")[0], None, f"{wire.id} ({CASE}={self._name})"),
            keywords={},
            outcome="failed",
            longrepr=text,
            when="call",
        )
        manager = self._config.pluginmanager
        terminal = manager.get_plugin("terminalreporter")
        skipped = [manager.get_plugin(name) for name in _REMEMBERING]
        tell: Any = manager.subset_hook_caller(
            "pytest_runtest_logreport", [one for one in (terminal, *skipped) if one is not None]
        )
        tell(report=case)
        if terminal is not None:
            # Past its progress, which has been at 100 %: only what it lists at the end.
            terminal.stats.setdefault("failed", []).append(case)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Generator[None, None, None]:
        """Print the section last, also when another one raises."""
        try:
            yield
        finally:
            self._write(terminalreporter)

    def _write(self, reporter: pytest.TerminalReporter) -> None:
        from opbench import report

        style = style_of(reporter)
        lines = [f"Nothing was compared: {self._problem}"]
        bad = True
        if self._found is not None:
            lines = report.tripwire_lines(self._found, style)
            bad = bool(self._found.tripped or self._found.reason)
        if self._switched_off():
            lines, bad = ["Nothing was compared: benchmarks are switched off"], False
        reporter.ensure_newline()
        reporter.section(style(f"opbench: compared with {self._name}"), sep="-")
        for line in lines[:-1]:
            reporter.write_line(style(line))
        end = " (--opbench-fail)" if bad and self._fail else ""
        reporter.write_line(style(lines[-1] + end), red=bad, green=not bad)
