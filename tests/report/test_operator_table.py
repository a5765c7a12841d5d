"""The operator table."""

from __future__ import annotations

from opbench.profiler import OperatorTotal
from opbench.report import operator_table
from opbench.report.table import Style


def row(**changes):
    values = {
        "category": "symbolic",
        "name": "dot",
        "count": 3,
        "total_ns": 3_000_000,
        "min_ns": 900_000,
        "max_ns": 1_100_000,
        "mean_ns": 1_000_000.0,
        "median_ns": 1_000_000.0,
        "flop": 600_000_000,
        "bytes": 3_000_000,
    }
    return OperatorTotal(**{**values, **changes})


def test_a_row():
    heading, line = operator_table([row()]).splitlines()

    assert dict(zip(heading.split(), line.split(), strict=True)) == {
        "operator": "dot",
        "mode": "symbolic",
        "calls": "3",
        "total": "3.000",
        "mean": "1.000",
        "median": "1.000",
        "min": "0.9000",
        "max": "1.100",
        "unit": "ms",
        "GFLOP/s": "200",
        "GB/s": "1.00",
    }


def test_rows_keep_their_order_and_have_a_unit_each():
    fast = row(name="tiny", total_ns=900, min_ns=200, max_ns=400, mean_ns=300.0, median_ns=300.0)
    lines = operator_table([fast, row()]).splitlines()

    assert [line.split()[0] for line in lines] == ["operator", "tiny", "dot"]
    assert [line.split()[8] for line in lines] == ["unit", "ns", "ms"]


def test_a_cost_that_is_not_declared_is_a_dash_and_no_zero():
    line = operator_table([row(flop=None, bytes=None)]).splitlines()[1]

    assert line.split()[-2:] == ["–", "–"]
    assert operator_table([row(flop=0)]).splitlines()[1].split()[-2] == "0"


def test_a_narrow_terminal_loses_columns_and_no_digits():
    lines = operator_table([row()], Style(width=65)).splitlines()

    assert max(map(len, lines)) <= 65
    assert lines[0].split()[:3] == ["operator", "mode", "calls"]
    assert "3.000" in lines[1]
    assert "GFLOP/s" in lines[0]


def test_no_rows():
    assert operator_table([]) == "no operator was recorded"
