"""What an uncounted launch found: benchmarks, failures, and where its modules came from."""

from __future__ import annotations

import json
import os
import shutil
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opbench.launch import survey_plugin

__all__ = ["Item", "Misplaced", "Survey", "install_plugin", "misplaced", "read_survey"]

PLUGIN = "opbench_survey"
_SITES = {"site-packages", "dist-packages"}
# Folders whose packages are samples or copies, and are not meant to be imported by their names.
_ASIDE = {"doc", "docs", "example", "examples", "test", "tests", "testing", "third_party", "vendor"}


@dataclass(frozen=True, slots=True)
class Item:
    """One benchmark as collected."""

    id: str
    file: Path
    long: bool


@dataclass(frozen=True, slots=True)
class Survey:
    """What one launch found."""

    root: Path
    """pytest's root folder, to which ids are relative."""
    items: tuple[Item, ...] = ()
    errors: tuple[tuple[str, str], ...] = ()
    """What could not be collected, with the end of the reason."""
    outcomes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """For each test that ran ``passed``, ``failed`` or ``skipped``, and why."""
    modules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each loaded module its file, or its folders."""
    plugins: frozenset[str] = frozenset()
    """Of xdist, cov, randomly and benchmark those that were loaded."""
    operators: Mapping[str, str] = field(default_factory=dict)
    """A fingerprint of each operator's source."""
    prefixes: tuple[str, ...] = ()
    """Where the interpreter is installed."""


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A package that was not imported from the checkout."""

    package: str
    path: str
    expected: str


def install_plugin(folder: Path) -> Path:
    """Put the plugin into a folder that ``PYTHONPATH`` will name."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(survey_plugin.__file__, folder / f"{PLUGIN}.py")
    return folder


def read_survey(path: Path) -> Survey | None:
    """What the plugin wrote; None if the launch died before it could."""
    try:
        noted: dict[str, Any] = json.loads(path.read_bytes())
        return Survey(
            root=Path(noted["root"]),
            items=tuple(Item(name, Path(file), long) for name, file, long in noted["items"]),
            errors=tuple((name, text) for name, text in noted["errors"]),
            outcomes={name: (how, why) for name, (how, why, _) in noted["outcomes"].items()},
            modules={name: tuple(places) for name, places in noted["modules"].items()},
            plugins=frozenset(noted["plugins"]),
            operators=noted["operators"],
            prefixes=tuple(noted["prefixes"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def misplaced(
    survey: Survey,
    tree: Path,
    roots: Sequence[Path],
    allowed: Path,
    original: Path,
    elsewhere: Iterable[str] = (),
) -> tuple[Misplaced, ...]:
    """Packages of a checkout that came from another place, each once.

    Args:
        survey: of the first launches of a side.
        tree: the checkout.
        roots: its import roots.
        allowed: the side's folder, from which everything of the project must come.
        original: the user's own working tree, from which nothing may come but what is installed
            in an environment that lies in it.
        elsewhere: top-level packages that are meant to come from the environment.
    """
    found: dict[str, Misplaced] = {}
    strays = dict(_stray_packages(tree, roots))
    for name, places in sorted(survey.modules.items()):
        top = name.partition(".")[0]
        if top in found or top in elsewhere or top == "__main__" or not places:
            continue
        real = [os.path.realpath(place) for place in places]
        if any(_below(place, allowed) for place in real):
            continue
        here = _in_checkout(name, roots) or strays.get(name)
        borrowed = any(_of_working_tree(place, original, survey.prefixes) for place in real)
        if here or borrowed:
            found[top] = Misplaced(top, places[0], str(here or tree))
    return tuple(found.values())


def _below(path: str, folder: Path) -> bool:
    return Path(path).is_relative_to(os.path.realpath(folder))


def _of_working_tree(path: str, original: Path, prefixes: Sequence[str]) -> bool:
    """Whether a file is the user's own source, and not of an environment inside the project."""
    if not _below(path, original) or _SITES & set(Path(path).parts):
        return False
    # An interpreter around the project, such as / for a system's own, says nothing.
    inside = [prefix for prefix in prefixes if _below(os.path.realpath(prefix), original)]
    return not any(_below(path, Path(prefix)) for prefix in inside)


def _in_checkout(module: str, roots: Sequence[Path]) -> Path | None:
    """The file of the checkout that this module's name means, or None."""
    extension = sysconfig.get_config_var("EXT_SUFFIX") or ".so"
    for root in roots:
        place = root.joinpath(*module.split("."))
        for file in (place / "__init__.py", place.with_name(f"{place.name}.py")):
            if file.is_file():
                return file
        compiled = place.with_name(place.name + extension)
        if compiled.is_file():
            return compiled
    return None


def _stray_packages(tree: Path, roots: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Packages one folder deep in the checkout, beside its import roots: ``python/pkg``, say."""
    for folder in _folders(tree):
        if folder in roots or folder.name in _ASIDE or (folder / "__init__.py").exists():
            continue
        for inner in _folders(folder):
            if (inner / "__init__.py").is_file():
                yield inner.name, inner / "__init__.py"


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and path.name[0] not in "._")
