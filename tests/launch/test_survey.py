from __future__ import annotations

from pathlib import Path

import pytest

from opbench.launch.survey import Misplaced, Survey, misplaced, read_survey


@pytest.fixture
def places(tmp_path):
    """A side's folder with its checkout, the user's own tree, and an environment."""
    tree = tmp_path / "session" / "base" / "tree"
    for name in ("src/pkg/__init__", "src/pkg/inner", "src/one", "src/space/part/__init__"):
        for root in (tree, tmp_path / "user"):
            path = root / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
    return tmp_path


def found(places, modules, roots=("src", "."), **changed):
    tree = places / "session" / "base" / "tree"
    survey = Survey(
        root=tree,
        modules={
            name: () if path is None else (str(places / path),) for name, path in modules.items()
        },
        prefixes=("/usr", str(places / "user" / ".venv")),
    )
    return misplaced(
        survey,
        tree,
        [(tree / root).resolve() for root in roots],
        tree.parent,
        places / "user",
        **changed,
    )


def test_what_comes_from_the_checkout_is_in_its_place(places):
    modules = {
        "pkg": "session/base/tree/src/pkg/__init__.py",
        "pkg.inner": "session/base/tree/src/pkg/inner.py",
        "one": "session/base/tree/src/one.py",
        "built": "session/base/env/lib/python3/site-packages/pkg/__init__.py",
        "json": "../usr/lib/json/__init__.py",
        "builtin": None,
        "__main__": "env/lib/site-packages/pytest/__main__.py",
    }
    assert found(places, modules) == ()


@pytest.mark.parametrize(
    "path",
    [
        "user/src/pkg/__init__.py",  # an editable installation
        "env/lib/python3/site-packages/pkg/__init__.py",  # an installed wheel
        "session/head/tree/src/pkg/__init__.py",  # the other side
    ],
)
def test_a_package_from_elsewhere_is_found(places, path):
    (one,) = found(places, {"pkg": path, "pkg.inner": path, "numpy": "env/numpy/__init__.py"})
    expected = str(places / "session/base/tree/src/pkg/__init__.py")
    assert one == Misplaced("pkg", str(places / path), expected)


def test_a_module_and_a_part_of_a_namespace_are_found_too(places):
    modules = {
        "one": "env/site-packages/one.py",
        "space": None,
        "space.part": "env/site-packages/space/part/__init__.py",
        "space.foreign": "env/site-packages/space/foreign.py",
    }
    assert [one.package for one in found(places, modules)] == ["one", "space"]
    assert found(places, {"space.foreign": "env/site-packages/space/foreign.py"}) == ()


def test_the_users_own_tree_is_wrong_whatever_the_layout(places):
    # The checkout keeps it in a folder that is no import root, and so does the user's tree.
    (one,) = found(places, {"other": "user/deep/down/other/__init__.py"})
    assert (one.package, one.expected) == ("other", str(places / "session/base/tree"))


def test_an_environment_inside_the_project_is_none_of_its_source(places):
    modules = {
        "numpy": "user/.venv/lib/python3/site-packages/numpy/__init__.py",
        "json": "user/.venv/lib/python3/json/__init__.py",
    }
    assert found(places, modules) == ()


def test_a_package_beside_the_import_roots_is_found(places):
    package = places / "session/base/tree/python/odd"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (one,) = found(places, {"odd": "env/lib/site-packages/odd/__init__.py"})
    assert one.expected == str(package / "__init__.py")


@pytest.mark.parametrize("aside", ["tests", "docs", "examples", "vendor"])
def test_a_sample_of_the_same_name_is_not_taken_for_the_package(places, aside):
    package = places / "session/base/tree" / aside / "numpy"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    assert found(places, {"numpy": "env/lib/site-packages/numpy/__init__.py"}) == ()


def test_what_is_meant_to_come_from_elsewhere_may(places):
    modules = {"pkg": "env/lib/site-packages/pkg/__init__.py"}
    assert found(places, modules, elsewhere=["pkg"]) == ()


def test_a_link_to_the_checkout_is_the_checkout(places):
    (places / "link").symlink_to(places / "session/base/tree/src", target_is_directory=True)
    assert found(places, {"pkg": "link/pkg/__init__.py"}) == ()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"root": 3}', "null"])
def test_a_survey_that_does_not_read_is_none(tmp_path, text):
    path = tmp_path / "survey.json"
    path.write_text(text)
    assert read_survey(path) is None
    assert read_survey(Path(tmp_path / "none")) is None
