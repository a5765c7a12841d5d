"""Whose code is measured? Real launches, in environments that hold the user's own copy as well."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from opbench.errors import ConfigError
from opbench.launch import AbOptions, measure_ab
from opbench.launch.guard import Guard
from opbench.launch.launcher import Judges, Launcher
from opbench.launch.revision import Repository
from opbench.launch.side import SideOptions, make_side
from opbench.launch.survey import misplaced

# A package whose clock ticks as it is called: what is measured is exact, on any machine.
PACKAGE = """
now = 0.0

def timer():
    global now
    now += 2**-20
    return now

def work():
    global now
    now += {seconds}
"""
TESTS = """
import pytest
from pkg import timer, work

@pytest.mark.benchmark(timer=timer)
def test_work(benchmark):
    benchmark(work)
"""
FINDER = """
import importlib.machinery, importlib.util, sys

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "pkg":
            return importlib.util.spec_from_file_location("pkg", {path!r})

sys.meta_path.insert(0, Finder)
"""
JUDGES = Judges(min, lambda values: False)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment with what ours has; a function empties it for the next test."""
    folder = tmp_path_factory.mktemp("environment")
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    paths = sysconfig.get_path("purelib", "posix_prefix", vars={"base": str(folder)})
    site = Path(paths)
    parents = [path for path in sys.path if "site-packages" in path]
    # By a call, so that the .pth files there count as well: opbench itself is installed by one.
    lines = [f"import site; site.addsitedir({path!r})\n" for path in parents]
    (site / "parent.pth").write_text("".join(lines))
    return folder / "bin" / "python", site


@pytest.fixture
def install(environment):
    """Puts files into the environment, and takes them out again."""
    python, site = environment
    made = []

    def put(**files):
        for name, text in files.items():
            path = site / name.replace("_dot_", ".").replace("_in_", "/")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            made.append(path)
        return str(python)

    yield put
    for path in made:
        path.unlink()


def lay_out(project, where, seconds):
    project.write(**{f"{where}pkg.__init__": PACKAGE.format(seconds=seconds)})
    project.write(**{"tests.test_work": TESTS})


def surveyed(project, python, tmp_path, where=""):
    """The survey of base, and what of it is in a wrong place."""
    lay_out(project, where, 2.0)
    project.commit()
    lay_out(project, where, 1.0)
    repository = Repository(project.folder)
    with Guard(tmp_path) as guard:
        tree = guard.worktree(repository, guard.folder / "base" / "tree", "HEAD")
        options = SideOptions(python=python)
        side = make_side("base", "HEAD", tree, options, guard, os.environ)
        survey, result = Launcher(guard, JUDGES).collect(side, ["tests"])
        assert survey is not None, result.stdout + result.stderr
        found = misplaced(survey, tree, side.roots, side.folder, repository.root)
        (origin,) = survey.modules["pkg"]
        return [item.id for item in survey.items], origin.removeprefix(str(tree)), found


def test_beside_an_editable_src_layout_the_checkout_is_measured(project, install, tmp_path):
    python = install(pkg_dot_pth=f"{project.folder}/src\n")
    assert surveyed(project, python, tmp_path, "src.") == (
        ["tests/test_work.py::test_work"],
        "/src/pkg/__init__.py",
        (),
    )


def test_beside_an_editable_flat_layout_the_checkout_is_measured(project, install, tmp_path):
    python = install(pkg_dot_pth=f"{project.folder}\n")
    assert surveyed(project, python, tmp_path)[1:] == ("/pkg/__init__.py", ())


@pytest.mark.parametrize("where", ["", "src."])
def test_beside_an_installed_wheel_the_checkout_is_measured(project, install, tmp_path, where):
    python = install(pkg_in___init___dot_py=PACKAGE.format(seconds=5.0))
    origin = f"/{where.replace('.', '/')}pkg/__init__.py"
    assert surveyed(project, python, tmp_path, where)[1:] == (origin, ())


def test_an_editable_installation_that_comes_first_is_found(project, install, tmp_path):
    path = str(project.folder / "src" / "pkg" / "__init__.py")
    python = install(finder_dot_py=FINDER.format(path=path), finder_dot_pth="import finder\n")
    ids, origin, (found,) = surveyed(project, python, tmp_path, "src.")
    assert ids
    assert origin == path
    assert (found.package, found.path) == ("pkg", path)


def test_a_wheel_of_a_layout_without_a_root_is_found(project, install, tmp_path):
    python = install(pkg_in___init___dot_py=PACKAGE.format(seconds=5.0))
    _, _, (found,) = surveyed(project, python, tmp_path, "python.")
    assert found.package == "pkg"
    assert found.expected.endswith("/base/tree/python/pkg/__init__.py")


def test_the_code_of_each_side_is_measured(project, tmp_path, progress, monkeypatch):
    """A stranger's repository: src layout, plain pytest-benchmark, no word of opbench."""
    monkeypatch.setattr("opbench.records.pairs.SCREEN_LOOKS", (1,))
    lay_out(project, "src.", 2.0)
    project.commit()
    lay_out(project, "src.", 1.0)
    project.commit()
    options = AbOptions(project.folder, tmp_path / "results", base="HEAD~1")
    result = measure_ab(options, progress)
    (journal,) = (tmp_path / "results" / "ab").glob("*/turns.jsonl")
    turns = [json.loads(line) for line in journal.read_text().splitlines()]
    values = {turn["side"]: turn["values"] for turn in turns}
    name = "tests/test_work.py::test_work"
    assert values["base"][name]["quartile"] == pytest.approx(2, rel=1e-5)
    assert values["head"][name]["quartile"] == pytest.approx(1, rel=1e-5)
    assert values["head"][name]["rounds"] == 25
    assert [one.id for one in result.comparisons.comparisons] == [name]
    assert {turn["involuntary_switches"] is not None for turn in turns} == {True}
    assert project.git("status", "--porcelain") == ""


def test_a_real_front_finder_ends_the_session_by_exit_code_2(project, progress, tmp_path):
    # The project's own conftest does what a hand-made editable installation does.
    lay_out(project, "src.", 2.0)
    path = str(project.folder / "src" / "pkg" / "__init__.py")
    project.write(**{"tests.conftest": FINDER.format(path=path)})
    project.commit()
    options = AbOptions(project.folder, tmp_path / "results")
    with pytest.raises(ConfigError, match=f"base imported package pkg from {path}"):
        measure_ab(options, progress)
