"""The floor of a test, out of its marker or the ini file, into what is saved of it."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pytest

from opbench.errors import ConfigError

if TYPE_CHECKING:
    from opbench.records import Floor

__all__ = ["add_ini", "check", "read", "store"]

INI = "opbench_floor"
_FLOORS = pytest.StashKey[list[tuple[str, "Floor"]]]()


def add_ini(parser: pytest.Parser) -> None:
    """Register the ini key."""
    parser.addini(
        INI,
        type="linelist",
        default=[],
        help="The smallest change that counts: a line such as 2.5%, 100ns or '2% + 100ns'; or one"
        " with a pattern of test ids, or a group, before it: 'test_io.py::* 10%'. The last line"
        " that fits holds; a marker's floor comes before all of them.",
    )


def read(config: pytest.Config) -> None:
    """Read the ini key.

    Raises:
        pytest.UsageError: a line is no floor.
    """
    lines = config.getini(INI)
    found: list[tuple[str, Floor]] = []
    if lines:
        from opbench import records

        where = config.inipath.name if config.inipath else "the ini file"
        for line in lines:
            pattern, _, rest = line.strip().partition(" ")
            named = bool(rest) and not (pattern[0].isdigit() or pattern[0] == ".")
            try:
                floor = records.parse_floor(rest if named else line, f"{where}: {INI}")
            except ConfigError as error:
                raise pytest.UsageError(str(error)) from None
            found.append((pattern if named else "*", floor))
    config.stash[_FLOORS] = found


def check(item: pytest.Item) -> None:
    """Refuse a marker's bad floor before the test runs.

    Raises:
        pytest.fail.Exception: with the sentence alone.
    """
    try:
        _floor_of(item)
    except ConfigError as error:
        pytest.fail(str(error), pytrace=False)


def store(item: pytest.Item) -> None:
    """Put a test's floor where it is saved, after whatever else put something there."""
    fixture: Any = getattr(item, "funcargs", {}).get("benchmark")
    if not isinstance(getattr(fixture, "extra_info", None), dict):
        return
    try:
        floor = _floor_of(item)
    except ConfigError:
        return  # the test has failed of it, so nothing of it is saved
    if floor is None:
        return
    stored = getattr(getattr(fixture, "stats", None), "extra_info", None)
    for info in (fixture.extra_info, stored):
        if isinstance(info, dict):
            block = info.get("opbench")
            kept = block if isinstance(block, dict) else {}
            info["opbench"] = {**kept, "floor": floor.as_dict()}


def _floor_of(item: pytest.Item) -> Floor | None:
    """Marker, then the last line of the ini key that fits; None where neither says anything.

    Raises:
        ConfigError: the marker's is none; names the test.
    """
    mark = next((m for m in item.iter_markers("opbench") if "floor" in m.kwargs), None)
    if mark is not None:
        return _parsed(mark.kwargs["floor"], f"floor in the opbench marker of {item.nodeid}")
    lines = item.config.stash.get(_FLOORS, [])
    benchmark = item.get_closest_marker("benchmark")
    group = benchmark.kwargs.get("group") if benchmark else None
    return next(
        (
            floor
            for pattern, floor in reversed(lines)
            if fnmatchcase(item.nodeid, pattern) or (group is not None and pattern == group)
        ),
        None,
    )


def _parsed(value: Any, source: str) -> Floor:
    from opbench import records

    if isinstance(value, str):
        return records.parse_floor(value, source)
    try:
        return records.Floor(value)
    except ConfigError as error:
        msg = f"{source}: {error}; or text such as '2.5%', '100ns' or '2% + 100ns'"
        raise ConfigError(msg) from None
