"""What a side answers when it is asked for its benchmarks, and whether a session can go on."""

from __future__ import annotations

from opbench.errors import ConfigError
from opbench.launch.launch import LaunchResult
from opbench.launch.launcher import how_it_ended, last_words
from opbench.launch.survey import Survey

__all__ = ["NothingToCompare", "usable"]

_USAGE_ERROR = 4


class NothingToCompare(Exception):  # noqa: N818 - an end of the session, and no error of anybody
    """The session ends here, for a reason that is no verdict."""


def usable(name: str, survey: Survey | None, result: LaunchResult, timeout_s: float) -> Survey:
    """The survey of a side, unless it has none or pytest did not understand the question."""
    if result.exit_code == _USAGE_ERROR and (survey is None or not survey.items):
        msg = f"pytest does not understand this on {name}: {last_words(result, 3)}"
        raise ConfigError(msg)
    if survey is None:
        how = how_it_ended(result, timeout_s)
        raise NothingToCompare(f"{name} could not be collected: {how}\n{last_words(result)}")
    if "benchmark" not in survey.plugins:
        msg = f"pytest-benchmark is not loaded on {name}; install it, and do not switch it off"
        raise ConfigError(msg)
    return survey
