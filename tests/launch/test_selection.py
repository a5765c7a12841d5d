from __future__ import annotations

from pathlib import Path

import pytest

from opbench.launch.launcher import WarmUp
from opbench.launch.selection import Selection, after_warm_up, select
from opbench.launch.survey import Item, Survey
from opbench.launch.turn import Value

VALUE = Value(1.0, 1.0, 1.0, 22, bimodal=False)


def survey(side, ids, errors=()):
    root = Path("/s") / side / "tree"
    items = tuple(Item(name, root / name.partition("::")[0], "long" in name) for name in ids)
    return Survey(root=root, items=items, errors=tuple(errors))


def chosen(base, head, paths=(), cwd=".", long=False, errors=()):
    surveys = {"base": survey("base", base, errors), "head": survey("head", head)}
    folders = {side: Path("/s") / side / "tree" / cwd for side in surveys}
    return select(surveys, folders, paths, long=long)


def test_what_both_sides_have_is_measured_file_by_file():
    both = ["b/test_1.py::x", "test_2.py::y[a/b]", "b/test_1.py::z"]
    assert chosen(both, both).work == {
        "b/test_1.py": ["b/test_1.py::x", "b/test_1.py::z"],
        "test_2.py": ["test_2.py::y[a/b]"],
    }


def test_what_one_side_lacks_is_listed():
    selection = chosen(["t.py::x", "t.py::old"], ["t.py::x", "t.py::new"])
    assert (selection.added, selection.removed) == (["t.py::new"], ["t.py::old"])
    assert selection.count == 1


def test_a_file_that_one_side_cannot_read_is_a_problem_and_no_addition():
    errors = [("t.py", "t.py:1: in <module>\nE   ModuleNotFoundError: No module named 'x'")]
    selection = chosen([], ["t.py::x"], errors=errors)
    assert selection.added == []
    assert selection.problems == {
        "t.py::x": "could not be collected on base: ModuleNotFoundError: No module named 'x'"
    }


@pytest.mark.parametrize(
    ("paths", "cwd", "long", "measured"),
    [
        ((), ".", False, False),
        (("b/t.py",), ".", False, False),
        (("b",), ".", False, False),
        (("b", "b/t.py::long"), ".", False, True),
        ((), ".", True, True),
        (("b/t.py::long",), ".", False, True),
        (("./b/t.py::long[1]",), ".", False, True),
        (("t.py::long",), "b", False, True),
        (("b/t.py::other",), ".", False, False),
    ],
)
def test_a_long_benchmark_is_measured_only_when_it_is_named(paths, cwd, long, measured):
    selection = chosen(["b/t.py::long[1]"], ["b/t.py::long[1]"], paths, cwd, long)
    listed = 0 if measured or paths == ("b/t.py::other",) else 1
    assert (selection.count, len(selection.long)) == (int(measured), listed)


@pytest.mark.parametrize(
    ("paths", "cwd", "chosen_ids"),
    [
        ((), ".", "a/t.py::x a/t.py::x[1] a/t.py::xy b.py::x"),
        ((".",), ".", "a/t.py::x a/t.py::x[1] a/t.py::xy b.py::x"),
        (("a",), ".", "a/t.py::x a/t.py::x[1] a/t.py::xy"),
        (("a/t.py::x",), ".", "a/t.py::x a/t.py::x[1]"),
        (("a/t.py::x[1]", "b.py"), ".", "a/t.py::x[1] b.py::x"),
        (("t.py::xy",), "a", "a/t.py::xy"),
        (("../b.py",), "a", "b.py::x"),
    ],
)
def test_what_is_named_is_what_is_measured(paths, cwd, chosen_ids):
    ids = ["a/t.py::x", "a/t.py::x[1]", "a/t.py::xy", "b.py::x"]
    selection = chosen(ids, ids, paths, cwd)
    assert [name for names in selection.work.values() for name in names] == chosen_ids.split()


def test_a_benchmark_that_became_long_is_long():
    base = Survey(Path("/s/base/tree"), (Item("t.py::x", Path("/s/base/tree/t.py"), long=False),))
    head = Survey(Path("/s/head/tree"), (Item("t.py::x", Path("/s/head/tree/t.py"), long=True),))
    folders = {"base": base.root, "head": head.root}
    assert select({"base": base, "head": head}, folders, (), long=False).long == ["t.py::x"]


def warm(values, outcomes=None, problem=""):
    known = Survey(Path("/s"), outcomes=outcomes or {})
    return WarmUp(1.0, dict.fromkeys(values, VALUE), known, problem)


def test_what_fails_on_one_side_is_a_problem_of_that_side():
    selection = Selection({"t.py": ["t.py::x", "t.py::y", "t.py::z"]})
    both = {
        "base": warm(["t.py::x", "t.py::z"], {"t.py::y": ("skipped", "no GPU here")}),
        "head": warm(["t.py::x"], {"t.py::z": ("failed", "E   assert 1 == 2\nmore")}),
    }
    left = after_warm_up(selection, {"t.py": both})
    assert left.work == {"t.py": ["t.py::x"]}
    assert left.problems == {
        "t.py::y": "skipped (no GPU here) on base; its times are not in the report on head",
        "t.py::z": "failed (assert 1 == 2) on head",
    }


def test_a_crash_of_a_file_is_a_problem_of_each_of_its_benchmarks():
    selection = Selection({"t.py": ["t.py::x", "t.py::y"]})
    crashed = WarmUp(1.0, {}, None, "the launch was ended by signal 11")
    left = after_warm_up(
        selection, {"t.py": {"base": crashed, "head": warm(selection.work["t.py"])}}
    )
    assert left.work == {}
    assert set(left.problems.values()) == {"the launch was ended by signal 11 on base"}
