"""How one side is launched: to collect, to warm up, to measure, to profile.

Every revision of every project understands what it is given: pytest's and pytest-benchmark's own
flags. The one plugin of ours takes part in the uncounted launches only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opbench.launch.guard import Guard
from opbench.launch.launch import Group, Launch, LaunchResult, run_launch
from opbench.launch.side import TIMING_ONLY, Side, selection
from opbench.launch.survey import PLUGIN, Survey, install_plugin, read_survey
from opbench.launch.survey_plugin import VARIABLE
from opbench.launch.turn import Turn, Value, floors_of, measuring_s, values_of

__all__ = ["ROUND_PLAN", "Judges", "Launcher", "WarmUp", "how_it_ended", "last_words"]

# 25 rounds of at least 2 ms. Warming up by a single call keeps a first call that compiles from
# being taken for the function's own time, which would end the calibration at one call a round.
# With a precision of 100 calibration aims only from a 20th of a round's length on.
ROUND_PLAN = (
    "--benchmark-enable",
    "--benchmark-min-rounds=25",
    "--benchmark-min-time=0.002",
    "--benchmark-max-time=0.05",
    "--benchmark-calibration-precision=100",
    "--benchmark-warmup=on",
    "--benchmark-warmup-iterations=1",
)
# What a project's own settings may ask for and a measurement must not have.
_CALM = {"xdist": ("-n0",), "cov": ("--no-cov",), "randomly": ("-p", "no:randomly")}
_TAIL_LINES = 12
# However little a session has left: starting an interpreter takes some of it.
_LEAST_S = 10.0
_COMPLAINTS = ("E   ", "ERROR", "FAILED", "INTERNALERROR>", "Fatal Python error")

Run = Callable[[Launch, Group | None], LaunchResult]


@dataclass(frozen=True, slots=True)
class Judges:
    """The two statistics of a launch, handed in by who knows them."""

    value: Callable[[Sequence[float]], float]
    bimodal: Callable[[Sequence[float]], bool]


@dataclass(frozen=True, slots=True)
class WarmUp:
    """What an uncounted launch of one file told."""

    seconds: float
    values: Mapping[str, Value]
    survey: Survey | None
    problem: str = ""
    floors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By test id, what the project says is the smallest change that matters."""
    measuring_s: float = 0.0
    """Of the seconds, those of the timed rounds: the rest is starting, compiling, preparing."""


class Launcher:
    """Starts the launches of a session."""

    def __init__(
        self,
        guard: Guard,
        judges: Judges,
        words: Sequence[str] = (),
        timeout_s: float = 600.0,
        run: Run = run_launch,
        controls: Callable[[], Mapping[str, float]] = dict,
        left: Callable[[], float] = lambda: float("inf"),
    ) -> None:
        """Get ready.

        Args:
            guard: owns the folder in which everything lies.
            judges: make a launch's value of its rounds.
            words: options for pytest, from the user.
            timeout_s: the longest that a launch may take.
            run: starts a process and waits for it.
            controls: times the control kernels.
            left: seconds that the session still has, beyond which no launch is waited for.
        """
        self._guard, self._judges, self._words = guard, judges, tuple(words)
        self._run, self._controls = run, controls
        self._plugin = install_plugin(guard.folder / "plugin")
        self._calm: dict[str, tuple[str, ...]] = {}
        self._roots: dict[str, Path] = {}
        self._left = left
        self.timeout_s = self.allowed_s = timeout_s

    def collect(self, side: Side, paths: Sequence[str]) -> tuple[Survey | None, LaunchResult]:
        """Ask a side for its benchmarks; None with what the process said if it cannot tell.

        Args:
            side: which one.
            paths: files and folders that it has.
        """
        survey, result = self._surveyed(side, ("--collect-only", "-q", *paths))
        if survey is not None:
            self._roots[side.name] = survey.root
            self._calm[side.name] = tuple(
                word for name in sorted(survey.plugins) for word in _CALM.get(name, ())
            )
        return survey, result

    def warm_up(self, side: Side, ids: Sequence[str]) -> WarmUp:
        """Run benchmarks once as they will be measured, and count nothing."""
        survey, result = self._surveyed(side, (*ROUND_PLAN, *self._selected(side, ids)))
        values, problem = self._judged(result, ids)
        if not values or result.document is None:
            return WarmUp(result.seconds, values, survey, problem)
        floors, measuring = floors_of(result.document), measuring_s(result.document)
        return WarmUp(result.seconds, values, survey, problem, floors, measuring)

    def measure(self, stage: int, pair: int, file: str, side: Side, ids: Sequence[str]) -> Turn:
        """One counted launch."""
        controls = dict(self._controls())
        arguments = (*ROUND_PLAN, *self._selected(side, ids))
        result = self._launch(side, arguments, side.environment)
        values, problem = self._judged(result, ids)
        return Turn(
            stage=stage,
            pair=pair,
            file=file,
            side=side.name,
            seconds=result.seconds,
            values=values,
            problem=problem,
            controls=controls,
            busy_elsewhere=result.busy_elsewhere,
            steal=result.noise.steal,
            load=result.noise.load_before,
            voluntary_switches=result.noise.voluntary_switches,
            involuntary_switches=result.noise.involuntary_switches,
        )

    def profile(self, side: Side, ids: Sequence[str]) -> dict[str, Any] | None:
        """The document of a launch in which opbench's plugin traces as well, if it is there."""
        environment = {k: v for k, v in side.environment.items() if k != TIMING_ONLY}
        arguments = (*ROUND_PLAN, *self._selected(side, ids))
        return self._launch(side, arguments, environment).document

    # inside

    def _selected(self, side: Side, ids: Sequence[str]) -> tuple[str, ...]:
        root = self._roots.get(side.name, side.cwd)
        return (f"--rootdir={root}", *self._calm.get(side.name, ()), *selection(side, root, ids))

    def _launch(
        self, side: Side, arguments: Sequence[str], environment: Mapping[str, str]
    ) -> LaunchResult:
        self.allowed_s = min(self.timeout_s, max(_LEAST_S, self._left()))
        launch = Launch(
            arguments=("--maxfail=0", *self._words, *arguments),
            cwd=side.cwd,
            environment=environment,
            timeout_s=self.allowed_s,
            python=side.python,
            scratch=self._guard.folder,
        )
        return self._run(launch, self._guard.group)

    def _surveyed(self, side: Side, arguments: Sequence[str]) -> tuple[Survey | None, LaunchResult]:
        path = self._guard.folder / f"survey-{side.name}.json"
        path.unlink(missing_ok=True)
        before = side.environment.get("PYTHONPATH")
        places = [*([before] if before else []), str(self._plugin)]
        environment = {
            **side.environment,
            "PYTHONPATH": os.pathsep.join(places),
            VARIABLE: str(path),
        }
        result = self._launch(side, ("-p", PLUGIN, *arguments), environment)
        return read_survey(path), result

    def _judged(self, result: LaunchResult, ids: Sequence[str]) -> tuple[dict[str, Value], str]:
        """The values of a launch, and why there are none at all."""
        if result.document is None:
            return {}, how_it_ended(result, self.allowed_s)
        try:
            values = values_of(result.document, self._judges.value, self._judges.bimodal)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return {}, f"its report cannot be read: {error!r}"
        wanted = set(ids)
        values = {name: value for name, value in values.items() if name in wanted}
        return values, "" if values else how_it_ended(result, self.allowed_s)


def how_it_ended(result: LaunchResult, timeout_s: float) -> str:
    """One line that says why a launch measured nothing."""
    if result.timed_out:
        return f"the launch took longer than {timeout_s:.0f} s and was ended"
    if result.exit_code < 0:
        return f"the launch was ended by signal {-result.exit_code}"
    if result.exit_code in {0, 1}:
        return f"no benchmark passed: {last_words(result, 1)}"
    return f"pytest ended with exit code {result.exit_code}: {last_words(result, 1)}"


def last_words(result: LaunchResult, lines: int = _TAIL_LINES) -> str:
    """What a launch complained of, or else the end of what it said.

    One line is that of an exception, where pytest showed one.
    """
    said = [line for line in f"{result.stdout}\n{result.stderr}".splitlines() if line.strip()]
    raised = [line.removeprefix("E ").strip() for line in said if line.startswith("E   ")]
    if lines == 1 and raised:
        return raised[-1]
    complaints = [line.strip() for line in said if line.startswith(_COMPLAINTS)]
    return "\n".join((complaints or said)[-lines:]) or "it said nothing"
