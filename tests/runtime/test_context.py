"""Contexts: what there is, and what is a known gap."""

from __future__ import annotations

import numpy as np
import pytest

from opbench.errors import ContextError
from opbench.runtime import Context, cpu, gpu, nd, random, sym


def test_cpu_is_a_value():
    assert cpu() == cpu(0) == Context("cpu", 0)
    assert hash(cpu()) == hash(cpu(0))
    assert cpu(1) != cpu(0)
    assert (cpu(3).device_type, cpu(3).device_id, str(cpu(3))) == ("cpu", 3, "cpu(3)")


def test_gpu_says_what_to_use_instead():
    with pytest.raises(ContextError, match=r"gpu\(2\) is not available.*use opbench.cpu\(\)"):
        gpu(2)


@pytest.mark.parametrize(
    ("device", "number", "words"),
    [
        ("cpuu", 0, "did you mean 'cpu'"),
        ("cpu", -1, "not -1"),
        ("cpu", "a", "not 'a'"),
        ("cpu", 1.0, "not 1.0"),
        ("cpu", True, "not True"),
    ],
)
def test_devices_that_are_none(device, number, words):
    with pytest.raises(ContextError, match=words):
        Context(device, number)


def test_a_number_of_numpys_is_a_number():
    assert cpu(np.int64(2)) == cpu(2)
    assert type(cpu(np.int64(2)).device_id) is int
    assert str(cpu(np.int64(2))) == "cpu(2)"


@pytest.mark.parametrize(
    "use",
    [
        lambda: nd.array([1], ctx="cpu"),
        lambda: nd.zeros(3, ctx=0),
        lambda: random.uniform(ctx="gpu"),
        lambda: sym.var("a").bind("cpu", {"a": nd.zeros(3)}),
    ],
)
def test_a_context_is_made_by_cpu(use):
    with pytest.raises(ContextError, match="is no context"):
        use()


def test_swapped_arguments_of_bind_are_told_by_their_types():
    with pytest.raises(ContextError, match=r"^a dict is no context; give opbench.cpu\(\)"):
        sym.var("a").bind({"a": np.zeros(3)}, cpu())


def test_operands_lie_on_one_device():
    with pytest.raises(ContextError, match=r"nd.dot .* not on cpu\(0\) and cpu\(1\)"):
        nd.dot(nd.zeros(3, cpu(0)), nd.zeros(3, cpu(1)))


def test_the_result_lies_where_the_operands_lie():
    a = nd.zeros((2, 2), cpu(1))

    assert nd.dot(a, a).ctx == cpu(1)


def test_a_bound_array_lies_where_the_graph_runs():
    with pytest.raises(ContextError, match=r"argument 'a' lies on cpu\(1\), .* on cpu\(0\)"):
        sym.var("a").bind(cpu(), {"a": nd.zeros(3, cpu(1))})
