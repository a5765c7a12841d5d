"""What is profiled, and where that was said: call, marker, command line, ini, default.

Each level becomes one frozen :class:`Level`; :func:`resolve` folds them into one frozen
:class:`Settings`. A bad value is refused with the level it came from.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from opbench import profiler
from opbench.errors import ConfigError, WindowError, nearest

__all__ = [
    "DEFAULT_ITERATIONS",
    "SLOW_CALL_SECONDS",
    "Level",
    "Settings",
    "add_options",
    "check",
    "command_line",
    "ini",
    "marker",
    "resolve",
]

DEFAULT_ITERATIONS = 4
DEFAULT_MODES = profiler.Mode.SYMBOLIC | profiler.Mode.IMPERATIVE | profiler.Mode.MEMORY
DEFAULT_PERIOD = 1.0
LONGEST_PERIOD = 1e9  # as that of set_config
SLOW_CALL_SECONDS = 5.0
SLOW_CALL_ITERATIONS = 2

PREFIX = "--opbench-"

TIMING_ONLY = "OPBENCH_TIMING_ONLY"
"""Set in the launches of ``opbench ab`` that count: they time, and do nothing else."""

# What can be chosen, the default first.
CHOICES = {"trace": ("auto", "on", "off"), "roof": ("auto", "off")}
KEYS = (
    "mode",
    "iterations",
    "begin",
    "end",
    "trace",
    "continuous_dump",
    "dump_period",
    "reference",
    "floor",
)
# On the command line by their mere presence: the key that each sets, to what, and its help.
FLAGS = {
    "no_reference": ("reference", False, "Do not time NumPy beside the kernels."),
    "continuous_dump": (
        "continuous_dump",
        True,
        "Let each trace grow while it is recorded: a test that kills the process leaves one.",
    ),
}

_HELP = {
    "mode": "What the profiled pass records: symbolic, imperative, api, memory, joined by + or ,"
    " (or all). Default: symbolic+imperative+memory.",
    "iterations": f"Iterations of the profiled pass. Default: {DEFAULT_ITERATIONS}"
    f" ({SLOW_CALL_ITERATIONS} for a function over {SLOW_CALL_SECONDS:g} s a call).",
    "begin": "First iteration that is recorded. Default: 1 (0 if there is only one).",
    "end": "The iteration before which recording stops; later ones are not run."
    " Default: the number of iterations.",
    "dump_period": "Seconds from an event to its line in the file of a continuous dump, at most."
    f" Default: {DEFAULT_PERIOD:g}.",
    "results": "Folder for traces and saved runs, relative to pytest's root. Default: results.",
    "roof": "Show the share of the machine's roof, measured once after a --benchmark-only run:"
    " auto, off. Default: auto.",
    "trace": "Write a trace per test: auto (off when benchmarks are disabled), on, off."
    " Default: auto.",
}


@dataclass(frozen=True, slots=True)
class Level:
    """Values that one place gave, and the words that name that place in an error."""

    values: Mapping[str, Any]
    source: str
    prefix: str = ""

    def name(self, key: str) -> str:
        """The words for one value of this level, such as ``--opbench-begin``."""
        if self.prefix == PREFIX:
            return _option(key)
        return f"{self.prefix}{key}" if self.prefix else f"{key} in {self.source}"


@dataclass(frozen=True, slots=True)
class Settings:
    """How one test is profiled, every value checked.

    ``modes`` is the bit sum of :class:`opbench.profiler.Mode`; the window is
    ``begin <= iteration < end``. ``fixed`` is false while the number of iterations is the default,
    which a slow function may still lower.
    """

    modes: int = int(DEFAULT_MODES)
    iterations: int = DEFAULT_ITERATIONS
    begin: int = 1
    end: int = DEFAULT_ITERATIONS
    trace: str = "auto"
    continuous_dump: bool = False
    dump_period: float = DEFAULT_PERIOD
    roof: str = "auto"
    reference: bool = True
    fixed: bool = False
    source: str = "the defaults"

    def for_slow_call(self) -> Settings:
        """The same with fewer iterations, unless somebody chose their number or window."""
        if self.fixed:
            return self
        return replace(self, iterations=SLOW_CALL_ITERATIONS, begin=1, end=SLOW_CALL_ITERATIONS)


def add_options(parser: pytest.Parser) -> None:
    """Register the ``--opbench-*`` options and the ini keys of the same names."""
    group = parser.getgroup("opbench", "opbench: traces and references for benchmarks")
    for key, text in _HELP.items():
        group.addoption(
            _option(key),
            metavar="|".join(CHOICES[key]) if key in CHOICES else key.upper(),
            default=None,
            help=text,
        )
        parser.addini(f"opbench_{key}", help=text, default=None)
    for flag, (_, _, text) in FLAGS.items():
        group.addoption(_option(flag), action="store_true", default=False, help=text)
        parser.addini(f"opbench_{flag}", help=text, type="bool", default=False)
    parser.addini(
        "opbench_autosave",
        help="Save each --benchmark-only run into RESULTS/runs, every round's time with it.",
        type="bool",
        default=False,
    )


def _option(key: str) -> str:
    return PREFIX + key.replace("_", "-")


def _raised(given: Callable[[str], Any]) -> dict[str, Any]:
    """What the flags set that one place gave."""
    return {key: value for flag, (key, value, _) in FLAGS.items() if given(flag)}


def command_line(config: pytest.Config) -> Level:
    """The level of the command line; only what was given."""
    values = {
        key: value
        for key in _HELP
        if (value := config.getoption(f"opbench_{key}", None)) is not None
    }
    values |= _raised(lambda flag: config.getoption(f"opbench_{flag}", default=False))
    return Level(values, "the command line", PREFIX)


def ini(config: pytest.Config) -> Level:
    """The level of the ini file; only what was given."""
    values: dict[str, Any] = {
        key: value for key in _HELP if (value := config.getini(f"opbench_{key}")) not in (None, "")
    }
    values |= _raised(lambda flag: config.getini(f"opbench_{flag}"))
    where = config.inipath.name if config.inipath else "the ini file"
    return Level(values, where, f"{where}: opbench_")


def marker(item: pytest.Item) -> Level:
    """The level of the ``opbench`` marks on a test, the nearest one winning for each keyword.

    Raises:
        ConfigError: a positional argument or an unknown keyword.
    """
    values: dict[str, Any] = {}
    where = f"the opbench marker of {item.nodeid}"
    for mark in item.iter_markers("opbench"):
        if mark.args:
            raise ConfigError(
                f"{where} has positional arguments {mark.args!r}; it takes keywords: "
                f"{', '.join(KEYS)}"
            )
        for key, value in mark.kwargs.items():
            if key not in KEYS:
                raise ConfigError(f"{where} has an unknown keyword {key!r}{nearest(key, KEYS)}")
            values.setdefault(key, value)
    return Level(values, where)


def _whole_number(value: Any, name: str) -> int:
    if isinstance(value, bool) or (isinstance(value, str) and not value.strip().isascii()):
        raise ConfigError(f"{name} must be a whole number, not {value!r}")
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"{name} must be a whole number, not {value!r}") from None
    if not isinstance(value, str) and number != value:
        raise ConfigError(f"{name} must be a whole number, not {value!r}")
    return number


def _choice(value: Any, name: str, choices: Sequence[str]) -> str:
    if value not in choices:
        raise ConfigError(f"{name} is {value!r}{nearest(str(value), choices)}")
    return str(value)


def _boolean(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{name} must be True or False, not {value!r}")
    return value


def _seconds(value: Any, name: str) -> float:
    try:
        seconds = 0.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = 0.0
    if not 0 < seconds < LONGEST_PERIOD:
        raise ConfigError(
            f"{name} must be a number of seconds, more than 0 and under 1e9, not {value!r}"
        )
    return seconds


def resolve(levels: Sequence[Level]) -> Settings:
    """Fold levels, the first that gives a value winning, into checked settings.

    Raises:
        ConfigError: an unknown mode, a number that is none, an unknown choice; names the level.
        WindowError: a window that is negative, reversed or beyond the iterations; names the levels.
    """
    chosen: dict[str, tuple[Any, str]] = {}
    for level in levels:
        for key, value in level.values.items():
            if value is not None:
                chosen.setdefault(key, (value, level.name(key)))

    def number(key: str, default: int) -> int:
        return _whole_number(*chosen[key]) if key in chosen else default

    def choice(key: str) -> str:
        return _choice(*chosen[key], CHOICES[key]) if key in chosen else CHOICES[key][0]

    def boolean(key: str, *, default: bool) -> bool:
        return _boolean(*chosen[key]) if key in chosen else default

    timing_only = bool(os.environ.get(TIMING_ONLY))
    reference = boolean("reference", default=True)
    period = _seconds(*chosen["dump_period"]) if "dump_period" in chosen else DEFAULT_PERIOD

    modes = DEFAULT_MODES
    if "mode" in chosen:
        modes = profiler.parse_modes(chosen["mode"][0], source=chosen["mode"][1])
    iterations = number("iterations", DEFAULT_ITERATIONS)
    begin = number("begin", max(0, min(1, iterations - 1)))
    end = number("end", iterations)
    given = [chosen[key][1] for key in ("iterations", "begin", "end") if key in chosen]
    source = ", ".join(given) or "the defaults"
    profiler.window_bounds(iterations, begin, end, source)
    return Settings(
        modes=int(modes),
        iterations=iterations,
        begin=begin,
        end=end,
        trace="off" if timing_only else choice("trace"),
        continuous_dump=boolean("continuous_dump", default=False),
        dump_period=period,
        roof="off" if timing_only else choice("roof"),
        reference=reference and not timing_only,
        fixed=bool(given),
        source=source,
    )


def check(levels: Sequence[Level]) -> None:
    """Refuse a session's bad values at once, as a usage error (exit status 4).

    Raises:
        pytest.UsageError: with the sentence of the error.
    """
    try:
        resolve(levels)
    except (ConfigError, WindowError) as error:
        raise pytest.UsageError(str(error)) from None
