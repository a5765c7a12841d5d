"""The registry: by name, and by kernel."""

from __future__ import annotations

import numpy as np
import pytest

from opbench import kernels
from opbench.errors import ConfigError
from opbench.operators import Case, cases, get, of_kernel, register, registry
from opbench.operators.dot import OPERATOR


@pytest.fixture
def empty_registry(monkeypatch):
    monkeypatch.setattr(registry, "_OPERATORS", {})
    monkeypatch.setattr(registry, "_CASES", {})


def test_dot_is_there():
    assert get("dot").name == "dot"


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="no operator is named 'dit'; did you mean 'dot'"):
        get("dit")


def test_a_name_is_given_once():
    with pytest.raises(ConfigError, match="'dot' is registered already"):
        register(get("dot"))


def test_a_case_belongs_to_its_operator(empty_registry):
    stray = Case("sum", ((3,),), "float32")

    with pytest.raises(ConfigError, match="'sum', not of 'dot'"):
        register(OPERATOR, [stray])
    with pytest.raises(ConfigError):
        get("dot")


def test_cases_come_in_the_order_given(empty_registry):
    given = [Case("dot", ((n,), (n,)), "float32") for n in (3, 1, 2)]
    register(OPERATOR, given)

    assert cases("dot") == tuple(given)


def test_of_kernel_knows_kernels_by_identity():
    assert of_kernel(kernels.dot) is get("dot")
    assert of_kernel(np.dot) is None
    assert of_kernel(lambda a, b, out=None: kernels.dot(a, b, out)) is None
