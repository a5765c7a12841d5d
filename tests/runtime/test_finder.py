"""How `nd` and `sym` find an operator that a user registered."""

from __future__ import annotations

import pytest

from opbench.operators import get
from opbench.runtime import finder as module
from opbench.runtime.finder import finder


@pytest.fixture
def listed(monkeypatch):
    """How often the names of all operators were asked for."""
    asked = []
    names = module.names
    monkeypatch.setattr(module, "names", lambda: asked.append(1) or names())
    return asked


def test_an_operator_is_found_without_the_list_of_all(listed):
    find, _ = finder("nd", [], lambda operator: operator)
    assert find("dot") is find("dot") is get("dot")
    assert listed == []


def test_a_name_that_is_none_is_told_by_the_nearest_of_the_module_and_the_operators(listed):
    find, known = finder("nd", ["array"], lambda operator: operator)
    assert known() == ["array", "dot"]
    for wrong, right in (("dto", "dot"), ("aray", "array")):
        told = f"module 'nd' has no attribute '{wrong}'; did you mean '{right}'"
        with pytest.raises(AttributeError, match=told) as caught:
            find(wrong)
        # Nothing of how it was looked for: a user asked the module for a name.
        assert caught.value.__suppress_context__
    listed.clear()
    with pytest.raises(AttributeError, match=r"has no attribute '_dot'$"):
        find("_dot")
    assert listed == []
