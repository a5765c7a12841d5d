"""The ``profiler`` fixture: a first call, the timed rounds, and a profiled pass of its own.

The three never overlap. pytest-benchmark times with the profiler stopped; the profiled pass comes
after it and opens its window only when nothing is pending (DESIGN, principle 2).
"""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from opbench import profiler
from opbench.errors import OpbenchWarning, StateError
from opbench.plugin import summary
from opbench.plugin.reference import compare
from opbench.plugin.settings import SLOW_CALL_SECONDS, Level, Settings, resolve
from opbench.plugin.target import Pedantic, Target, wait_for_all
from opbench.plugin.windows import Prepared, Windows, mark_used, waiting

if TYPE_CHECKING:
    from opbench.plugin.session import Session

__all__ = ["ProfilerFixture"]


class ProfilerFixture:
    """Times a function through pytest-benchmark and traces it in a pass of its own.

    Use one of these in a test, once:

    - ``profiler(fn, *args, **kwargs)``: statistics and a trace;
    - ``profiler.pedantic(target, ...)``: the same with pytest-benchmark's exact counts and setup.

    Or draw the window yourself (a trace, no statistics), as often as you like:

    - ``for i in profiler.iterations(20, begin=5, end=15): ...``
    - ``with profiler.window(): ...``
    - ``profiler.run()`` ... ``profiler.stop()``, with ``pause()`` and ``resume()`` between.

    ``profiler.options(mode=..., iterations=..., begin=..., end=...)`` sets what the next call uses,
    and with ``continuous_dump=True`` the trace is in its file while it is recorded.
    ``profiler.lanes(pieces)`` is a buffer to pass to a kernel whose workers the trace shall show.
    """

    def __init__(self, item: pytest.Item, benchmark: Any, session: Session) -> None:
        self._item = item
        self._benchmark = benchmark
        self._session = session
        self._call: dict[str, Any] = {}
        self._summary: dict[str, Any] = {"run": session.run_id}
        self._origin = {"test": item.nodeid, **self._summary}
        place, timed = (lambda: session.trace_path(item)), (lambda: self._timed)
        self._windows = Windows(self._origin, place, timed, session.raise_failures)
        self.lanes = self._windows.lanes
        self._used = ""
        self._drawn = False
        self._operator: Any = None
        self._notes: list[str] = []
        self.settings  # noqa: B018 - a wrong marker is refused before the test body runs

    # what a test reads and sets

    @property
    def settings(self) -> Settings:
        """What applies now: call, marker, command line, ini, default."""
        return self._resolve({})

    @property
    def trace(self) -> profiler.Trace | None:
        """The last finished window's trace; None before one, or while tracing is off."""
        return self._windows.traces[-1] if self._windows.traces else None

    @property
    def timing(self) -> bool:
        """Whether pytest-benchmark measures, and does not only call (``--benchmark-disable``)."""
        return not self._benchmark.disabled

    @property
    def tracing(self) -> bool:
        """Whether this test writes a trace (``--opbench-trace``)."""
        return self._session.tracing(self.settings)

    def options(
        self,
        *,
        mode: str | int | None = None,
        iterations: int | None = None,
        begin: int | None = None,
        end: int | None = None,
        continuous_dump: bool | None = None,
        dump_period: float | None = None,
    ) -> ProfilerFixture:
        """Set what this test's profiled pass uses; returns the fixture, to be called.

        Raises:
            ConfigError: an unknown mode, or a number that is none.
            WindowError: a window that is negative, reversed or beyond the iterations.
        """
        given: dict[str, Any] = {"mode": mode, "iterations": iterations, "begin": begin, "end": end}
        given |= {"continuous_dump": continuous_dump, "dump_period": dump_period}
        self._resolve(given)
        self._call = {**self._call, **{k: v for k, v in given.items() if v is not None}}
        return self

    # statistics and a trace

    def __call__(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Time ``function(*args, **kwargs)``, then trace it; returns its result.

        One untimed call comes first: it compiles, and shows whether the result is pending.
        Under ``--benchmark-disable`` there is exactly one call.

        Raises:
            StateError: the test timed something already, or a window is open.
        """
        settings = self.settings
        target = Target(function, args, kwargs)
        self._claim("profiler(...)")
        if not self.timing:
            result = self._only_call(settings, lambda: contextlib.nullcontext(target))
            # pytest-benchmark must learn that its fixture was used; the one call has been made.
            self._benchmark(lambda: None)
            return result
        target = self._first_call(target)
        with self._measuring():
            result = self._benchmark(target.timed(), *args, **target.timed_kwargs)
        self._profiled_pass(settings, lambda: contextlib.nullcontext(target))
        self._compare_with_reference(settings, target)
        return result

    def pedantic(
        self,
        target: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        setup: Callable[[], Any] | None = None,
        teardown: Callable[..., Any] | None = None,
        rounds: int = 1,
        warmup_rounds: int = 0,
        iterations: int = 1,
    ) -> Any:
        """Exact counts, and a fresh ``setup`` for each call, in both passes; returns the result.

        The arguments mean what they mean in ``benchmark.pedantic``: ``setup`` may return
        ``(args, kwargs)``, ``teardown`` gets the arguments, ``iterations`` above 1 excludes
        ``setup``. One untimed call comes first, and the profiled pass runs ``setup`` and
        ``teardown`` outside its slices. Under ``--benchmark-disable`` there is exactly one call,
        with its ``setup`` and its ``teardown``.

        Raises:
            ValueError, TypeError: as ``benchmark.pedantic`` does, before anything is called.
            StateError: the test timed something already, or a window is open.
        """
        settings = self.settings
        plan = Pedantic(target, tuple(args), dict(kwargs or {}), setup, teardown)
        plan.check(rounds, iterations, warmup_rounds)
        self._claim("profiler.pedantic(...)")
        if not self.timing:
            result = self._only_call(settings, plan.prepared)
            self._benchmark.pedantic(lambda: None)
            return result
        with plan.prepared() as once:
            first = self._first_call(once)
        plan = dataclasses.replace(plan, finish=first.finish)
        with self._measuring():
            result = self._benchmark.pedantic(
                first.timed(),
                args=plan.args,
                kwargs=plan.kwargs,
                setup=setup,
                teardown=teardown,
                rounds=rounds,
                warmup_rounds=warmup_rounds,
                iterations=iterations,
            )
        self._profiled_pass(settings, plan.prepared)
        return result

    # a trace, no statistics

    def iterations(
        self,
        iterations: int | None = None,
        begin: int | None = None,
        end: int | None = None,
        mode: str | int | None = None,
    ) -> Iterator[int]:
        """Yield ``0 .. iterations-1``; record from ``begin`` up to, not including, ``end``.

        Each recorded iteration is a slice of category ``iteration``.

        Raises:
            ConfigError, WindowError: a bad value; raised here, not at the first iteration.
            StateError: a window is open already.
        """
        given = {"iterations": iterations, "begin": begin, "end": end, "mode": mode}
        settings = self._resolve(given)
        self._windows.refuse_open("profiler.iterations(...)")
        self._drawn = True
        if not self._session.tracing(settings):
            return iter(range(settings.iterations))
        return self._windows.loop(settings)

    @contextlib.contextmanager
    def window(self, mode: str | int | None = None) -> Iterator[None]:
        """Record what happens inside the ``with`` block.

        Raises:
            ConfigError: an unknown mode.
            StateError: a window is open already.
        """
        self.run(mode)
        try:
            yield
        except BaseException:
            # What went wrong in the block is what the user must see, not what it left pending.
            self._windows.close()
            raise
        if self._windows.open:
            self.stop()

    def run(self, mode: str | int | None = None) -> None:
        """Open a window, after waiting for what is pending.

        Raises:
            ConfigError: an unknown mode.
            StateError: a window is open already.
        """
        settings = self._resolve({"mode": mode})
        self._windows.refuse_open("profiler.run()")
        self._drawn = True
        window = self._windows.draw(settings, 1, 0, 1)
        if self._session.tracing(settings):
            next(window)

    def stop(self) -> profiler.Trace | None:
        """Close the window, after waiting for what is pending; its trace, or None with tracing off.

        Raises:
            StateError: no window is open.
            OperatorError: an operator failed inside the window, and no wait has said so.
        """
        self._windows.require_open("stop")
        trace = self._windows.close()
        self._session.raise_failures()
        return trace

    def pause(self) -> None:
        """Suspend recording inside the open window.

        Raises:
            StateError: no window is open, or it is paused already.
        """
        self._inside("pause", profiler.RECORDER.pause)

    def resume(self) -> None:
        """Go on recording inside the open window.

        Raises:
            StateError: no window is open, or it is not paused.
        """
        self._inside("resume", profiler.RECORDER.resume)

    def _inside(self, verb: str, transition: Callable[[], None]) -> None:
        self._windows.require_open(verb)
        if self.tracing:
            transition()

    # the end of the test

    def finish(self) -> None:
        """Close what is open, write the trace, and store the summary. Called at teardown."""
        left_open = self._windows.open
        self._windows.close()
        traces = self._windows.traces
        if traces:
            self._keep(profiler.merge(traces).with_metadata(self._origin))
        if self._used or self._drawn:
            mark_used(self._benchmark)
        if self._used or traces:
            self._summary.update(self._session.size_of(self._summary))
            if self._windows.profiled:
                self._summary["profiled"] = True
            self._store()
            self._session.finished(self._item, self._benchmark, self._summary, self._notes)
        for complaint in self._windows.complaints(left_open=left_open):
            warnings.warn(complaint, OpbenchWarning, stacklevel=2)
        if left_open:
            self._session.raise_failures()

    # inside

    @property
    def _stats(self) -> Any:
        # pytest-codspeed puts a fixture without statistics in the place of pytest-benchmark's.
        return getattr(self._benchmark, "stats", None)

    @property
    def _timed(self) -> bool:
        return self._stats is not None

    def _resolve(self, given: Mapping[str, Any]) -> Settings:
        where = self._item.nodeid
        return resolve(
            [
                Level(given, f"the call in {where}"),
                Level(self._call, f"profiler.options(...) in {where}"),
                *self._session.levels(self._item),
            ]
        )

    def _claim(self, call: str) -> None:
        """One timed call a test: said before anything runs, as pytest-benchmark drops both."""
        self._windows.refuse_open(call)
        if self._used or self._timed:
            raise StateError(
                f"{call} in {self._item.nodeid}: this test has timed already "
                f"({self._used or 'benchmark(...)'}); a test times once, so split it in two"
            )
        self._windows.refuse_others(call)
        self._used = call

    @contextlib.contextmanager
    def _measuring(self) -> Iterator[None]:
        """Keep the times of an interrupted benchmark, too, out of saved runs.

        pytest-benchmark itself does so for exceptions, and an interrupt is none.
        """
        try:
            yield
        except BaseException:
            self._benchmark.has_error = True
            raise

    def _first_call(self, target: Target) -> Target:
        """One call before the timed ones: it compiles, and shows how such a call is waited for."""
        self._session.references.settle()
        with self._session.compile_watch() as compiles:
            target, _, seconds = target.first_call(self._session.unfinished)
        self._summary.update(first_call=seconds, compiled=compiles.count)
        self._operator = self._session.operator_of(target.function)
        self._summary.update(summary.of_kernel(self._operator, target.args))
        if target.finish is wait_for_all:
            self._notes.append("timed with a wait for all pending work, which its result hides")
        return target

    def _only_call(self, settings: Settings, prepared: Prepared) -> Any:
        """The single call of a disabled benchmark, recorded if tracing is on."""
        waited_for = waiting(prepared)
        if self._session.tracing(settings):
            return self._windows.record(settings, 1, 0, waited_for)
        with waited_for() as target:
            return target.call()

    def _profiled_pass(self, settings: Settings, prepared: Prepared) -> None:
        """Run iterations ``0 .. end-1`` of the target, recording from ``begin`` on."""
        if not self._session.tracing(settings):
            return
        seconds = self._stats.stats.median if self._timed else self._summary["first_call"]
        if seconds > SLOW_CALL_SECONDS and not settings.fixed:
            settings = settings.for_slow_call()
            self._notes.append(
                f"{settings.iterations} profiled iterations only, as a call takes over "
                f"{SLOW_CALL_SECONDS:g} s"
            )
        self._summary.update(iterations=settings.iterations, begin=settings.begin, end=settings.end)
        self.lanes.prepare(self._operator, self._summary)
        self._windows.record(settings, settings.end, settings.begin, prepared)

    def _keep(self, trace: profiler.Trace) -> None:
        """Write the trace of all windows, and note what it says."""
        self._summary.update(summary.of_trace(trace, self._windows.measured or trace))
        path, problem = self._session.write_trace(self._item, trace)
        self._summary["trace"] = None if path is None else self._session.shown(path)
        if path is not None:
            self._windows.growing.replaced_by(path)
        for notes in (summary.notes(trace), self.lanes.notes(), self._windows.growing.notes):
            self._notes += notes
        self._notes += filter(None, [problem])

    def _store(self) -> None:
        """Put the summary where it is saved, also if the test replaced ``extra_info``."""
        self._benchmark.extra_info["opbench"] = self._summary
        stored = getattr(self._stats, "extra_info", None)
        if isinstance(stored, dict):
            stored["opbench"] = self._summary

    def _compare_with_reference(self, settings: Settings, target: Target) -> None:
        if self._operator is not None and self._timed and settings.reference:
            operands = len(self._summary.get("shapes", ()))
            found = compare(self._session.references, self._operator, target, operands, self._stats)
            self._summary.update(found)
