"""A pytest plugin that notes what a launch collected, imported and failed; it measures nothing.

The launcher copies this file under another name into a folder of its own, puts that folder on
``PYTHONPATH`` and names the plugin by ``-p``. So it runs beside code that knows nothing of
opbench, or another version of it, and must import nothing but the standard library. It takes
part in uncounted launches only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

__all__: list[str] = []

VARIABLE = "OPBENCH_SURVEY"
TAIL = 2_000
_NOTED: dict[str, Any] = {"items": [], "outcomes": {}, "errors": [], "plugins": []}
_PLUGINS = {"xdist": "xdist", "_cov": "cov", "randomly": "randomly", "benchmark": "benchmark"}


def pytest_configure(config: Any) -> None:
    """Note where pytest stands, and which plugins it has that a launch must calm."""
    _NOTED["root"] = str(config.rootpath)
    named = {name for name, _ in config.pluginmanager.list_name_plugin()}
    modules = {getattr(plugin, "__name__", "") for plugin in config.pluginmanager.get_plugins()}
    tops = {module.partition(".")[0] for module in modules}
    found = {short for name, short in _PLUGINS.items() if name in named}
    for top, short in (("xdist", "xdist"), ("pytest_cov", "cov"), ("pytest_randomly", "randomly")):
        found |= {short} if top in tops else set()
    _NOTED["plugins"] = sorted(found)


def pytest_collectreport(report: Any) -> None:
    """Note what could not be collected."""
    if report.failed:
        _NOTED["errors"].append([report.nodeid, str(report.longrepr)[-TAIL:]])


def pytest_collection_finish(session: Any) -> None:
    """Note the benchmarks, in the order in which they would run."""
    for item in session.items:
        if "benchmark" in getattr(item, "fixturenames", ()):
            long = item.get_closest_marker("long") is not None
            _NOTED["items"].append([item.nodeid, str(item.path), long])


def pytest_runtest_logreport(report: Any) -> None:
    """Note how each test ended; a failure in any phase is its end."""
    noted = _NOTED["outcomes"].setdefault(report.nodeid, ["passed", "", 0.0])
    noted[2] += report.duration
    if report.outcome != "passed" and noted[0] != "failed":
        noted[0] = report.outcome
        crash = getattr(report.longrepr, "reprcrash", None)
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        noted[1] = str(getattr(crash, "message", text))[-TAIL:]


def pytest_unconfigure(config: Any) -> None:  # noqa: ARG001 - pytest calls it by name
    """Write what was noted; the modules first, before anything here could load one."""
    _NOTED["modules"] = _origins()
    _NOTED["operators"] = _fingerprints()
    _NOTED["prefixes"] = [sys.prefix, sys.base_prefix]
    path = os.environ.get(VARIABLE)
    if path:
        Path(path).write_text(json.dumps(_NOTED), encoding="utf-8")


def _origins() -> dict[str, list[str]]:
    """Each loaded module with the files or folders that it was made of."""
    found: dict[str, list[str]] = {}
    for name, module in list(sys.modules.items()):
        # A lazy stranger may raise anything when it is looked at.
        with contextlib.suppress(Exception):
            origin = getattr(module, "__file__", None)
            places = [origin] if origin else list(getattr(module, "__path__", []))
            found[str(name)] = [str(place) for place in places]
    return found


# A fingerprint of an operator: a digest over the text of every module of its package that its
# kernel's module reaches by a global name. Too wide rather than too narrow: two equal prints must
# mean equal code.


def _fingerprints() -> dict[str, str]:
    registry = sys.modules.get("opbench.operators.registry")
    try:
        operators = dict(registry._OPERATORS)  # type: ignore[union-attr] # noqa: SLF001 - no door
        return {name: _fingerprint(operator) for name, operator in operators.items()}
    except Exception:  # noqa: BLE001 - no opbench, or one of another version
        return {}


def _fingerprint(operator: Any) -> str:
    seen: dict[str, str] = {}
    waiting = [_module_of(kernel) for kernel in operator.kernels.values()]
    while waiting:
        name = waiting.pop()
        module = sys.modules.get(name)
        if name in seen or module is None:
            continue
        origin = getattr(module, "__file__", None)
        seen[name] = hashlib.sha256(Path(origin).read_bytes()).hexdigest() if origin else ""
        package = name.partition(".")[0]
        reached = map(_module_of, vars(module).values())
        waiting += [other for other in reached if other.partition(".")[0] == package]
    text = "\n".join(f"{name} {seen[name]}" for name in sorted(seen))
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _module_of(value: Any) -> str:
    """The name of a module, or of the one in which a value was made; numba keeps the function."""
    if isinstance(value, ModuleType):
        return value.__name__
    name = getattr(getattr(value, "py_func", value), "__module__", None)
    return name if isinstance(name, str) else ""
