from __future__ import annotations

import json

import pytest

from opbench.errors import RecordError
from opbench.records import Environment

FACTS = {
    "cpu_model": "Zen 4",
    "cpu_count": 8,
    "usable_cpus": 2,
    "machine": "x86_64",
    "system": "Linux",
    "python": "3.11",
    "implementation": "CPython",
    "numpy": "2.4.6",
    "numba": "0.68.1",
    "threading_layer": "omp",
    "numba_threads": 2,
    "thread_settings": {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "1"},
    "blas_name": "openblas",
    "blas_version": "0.3.31",
}


def test_survives_json():
    environment = Environment.from_facts(FACTS)
    again = Environment.from_facts(json.loads(json.dumps(environment.as_dict())))
    assert environment == again
    assert environment.as_dict() == FACTS


def test_host_name_and_frequency_are_no_part_of_it():
    volatile = {**FACTS, "node": "runner-17", "hz_actual": 2_596_140_000, "load_1min": 3.2}
    assert Environment.from_facts(FACTS) == Environment.from_facts(volatile)
    assert not {"node", "host", "hostname", "hz", "mhz", "frequency"} & set(
        Environment.from_facts(volatile).as_dict()
    )


def test_the_order_of_thread_settings_does_not_matter():
    reversed_settings = dict(reversed(list(FACTS["thread_settings"].items())))
    other = Environment.from_facts({**FACTS, "thread_settings": reversed_settings})
    assert Environment.from_facts(FACTS) == other


@pytest.mark.parametrize("name", [name for name in FACTS if name != "thread_settings"])
def test_each_fact_makes_a_difference(name):
    changed = FACTS[name] + 1 if isinstance(FACTS[name], int) else FACTS[name] + "x"
    ours, theirs = Environment.from_facts(FACTS), Environment.from_facts({**FACTS, name: changed})
    assert ours.differences(theirs) == ((name, FACTS[name], changed),)
    assert ours != theirs


def test_differences_name_field_ours_and_theirs_in_order():
    ours = Environment.from_facts(FACTS)
    theirs = Environment.from_facts({**FACTS, "numba": None, "cpu_count": 4, "thread_settings": {}})
    assert ours.differences(theirs) == (
        ("cpu_count", 8, 4),
        ("numba", "0.68.1", None),
        ("thread_settings", (("MKL_NUM_THREADS", "1"), ("OMP_NUM_THREADS", "2")), ()),
    )
    assert ours.differences(ours) == ()


def test_no_facts_give_an_unknown_environment():
    assert Environment.from_facts({}) == Environment()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cpu_count", "eight"),
        ("cpu_count", True),
        ("numba_threads", 2.0),
        ("cpu_model", 7),
        ("blas_name", ["openblas"]),
        ("thread_settings", ["OMP_NUM_THREADS"]),
        ("thread_settings", {"OMP_NUM_THREADS": 2}),
    ],
)
def test_a_fact_of_the_wrong_kind_is_refused_by_name(name, value):
    with pytest.raises(RecordError, match=f"^environment: {name} is .*expected"):
        Environment.from_facts({**FACTS, name: value})
