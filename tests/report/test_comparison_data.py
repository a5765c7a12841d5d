"""Verdicts for machines: strict JSON, CSV that a spreadsheet does not run, JUnit that CI reads."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ET

import pytest

from opbench.records import Attribution, Comparison, ComparisonSet, Summary, Verdict
from opbench.report import comparison_csv, comparison_json, comparison_junit


def side(seconds):
    return Summary(seconds, seconds, seconds, 0.9375, 5, spread=0.01)


SLOW = Comparison(
    "tests/t.py::slow[1]", side(1e-3), side(1.2e-3), 1.2, 1.1, 1.3, Verdict.REGRESSED,
    attributions=(Attribution("operator", "dot", 1e-3, 1.2e-3),), detectable=0.05, floor=0.05,
    confidence=0.95, group="g",
)  # fmt: skip
SAME = Comparison("tests/t.py::same", side(1.0), side(1.0), 1.0, 1.0, 1.0, Verdict.UNCHANGED)
OPEN = Comparison(
    "tests/t.py::open", side(1.0), side(1.0), 1.0, 0.9, 1.1, Verdict.INCONCLUSIVE, ("noisy",),
    detectable=0.2,
)  # fmt: skip
GONE = Comparison("gone", side(1.0), None, None, None, None, Verdict.REMOVED, ("only here",))
FAST = Comparison("tests/t.py::fast", side(1.0), side(0.5), 0.5, 0.4, 0.6, Verdict.IMPROVED)


def found(*comparisons, **changed):
    return ComparisonSet("title", ("5 launches", "a note"), comparisons, **changed)


ALL = found(SAME, OPEN, GONE, FAST, SLOW, facts={"baseline": "r1"})


def test_json_has_every_number_with_all_digits_and_the_exit_codes():
    document = json.loads(comparison_json(ALL))
    assert document["headline"] == "1 of 4 slower, the worst by 20 %"
    assert (document["exit_code"], document["exit_code_strict"]) == (1, 1)
    assert document["counts"] == {
        "regressed": 1, "improved": 1, "unchanged": 1, "inconclusive": 1, "incomparable": 0,
        "added": 0, "removed": 1,
    }  # fmt: skip
    assert [one["id"].rpartition(":")[2] for one in document["comparisons"]] == [
        "slow[1]", "open", "fast", "same", "gone",
    ]  # fmt: skip
    slow, gone = document["comparisons"][0], document["comparisons"][-1]
    assert slow["candidate"]["centre"] == 1.2e-3
    assert slow["attributions"][0]["after"] == 1.2e-3
    assert (slow["group"], slow["verdict"], slow["floor"]) == ("g", "regressed", 0.05)
    assert (gone["candidate"], gone["ratio"], gone["warnings"]) == (None, None, ["only here"])
    assert document["facts"] == {"baseline": "r1"}
    assert document["unfinished"] == []
    cut = json.loads(comparison_json(found(SAME, OPEN, unfinished=(OPEN.id,))))
    assert cut["unfinished"] == ["tests/t.py::open"]


def test_json_of_nothing_says_that_nothing_was_judged():
    document = json.loads(comparison_json(found(reason="no benchmark matches")))
    assert document["exit_code"] == 3
    assert document["headline"] == "Nothing could be compared: no benchmark matches"


def test_csv_has_a_row_for_each_benchmark():
    rows = list(csv.DictReader(io.StringIO(comparison_csv(ALL))))
    assert [row["verdict"] for row in rows] == [
        "regressed", "inconclusive", "improved", "unchanged", "removed",
    ]  # fmt: skip
    assert (rows[0]["ratio"], rows[0]["baseline_s"], rows[0]["baseline_launches"]) == (
        "1.2", "0.001", "5",
    )  # fmt: skip
    assert (rows[-1]["candidate_s"], rows[-1]["ratio"], rows[-1]["warnings"]) == (
        "",
        "",
        "only here",
    )


@pytest.mark.parametrize("name", ["=1+1", "+a", "-a", "@a", "\ta"])
def test_a_name_that_a_spreadsheet_would_run_is_quoted(name):
    one = Comparison(name, None, None, None, None, None, Verdict.ADDED)
    (row,) = csv.DictReader(io.StringIO(comparison_csv(found(one))))
    assert row["id"] == f"'{name}"


def test_a_name_with_commas_quotes_and_lines_survives():
    name = 'a,"b"\nc'
    one = Comparison(name, None, None, None, None, None, Verdict.ADDED)
    (row,) = csv.DictReader(io.StringIO(comparison_csv(found(one))))
    assert row["id"] == name


def test_junit_fails_what_is_slower_and_skips_what_is_open():
    suites = ET.fromstring(comparison_junit(ALL))  # noqa: S314 - our own
    (suite,) = suites
    assert suite.attrib == {
        "name": "opbench", "tests": "5", "failures": "1", "errors": "0", "skipped": "2",
    }  # fmt: skip
    cases = {case.get("name"): case for case in suite}
    failure = cases["slow[1]"].find("failure")
    assert failure.get("message") == "1.200× (1.100–1.300)"
    assert failure.text == "base 1.00 ms, head 1.20 ms\ndot +0.20 of +0.20 ms"
    assert cases["slow[1]"].get("classname") == "tests/t.py"
    assert cases["slow[1]"].get("time") == "0.001200000"
    assert cases["open"].find("skipped").get("message") == "open: noisy"
    assert cases["gone"].find("skipped").get("message") == "removed: only here"
    assert list(cases["same"]) == list(cases["fast"]) == []


def test_junit_of_nothing_is_an_error_and_never_green():
    (suite,) = ET.fromstring(comparison_junit(found()))  # noqa: S314 - our own
    assert (suite.get("tests"), suite.get("errors")) == ("1", "1")
    assert suite.find("testcase/error").get("message").startswith("Nothing could be compared")


def test_junit_holds_names_that_xml_cannot():
    one = Comparison('t.py::\x00\x1b<&">\ud800', None, None, None, None, None, Verdict.ADDED)
    text = comparison_junit(found(one, SAME))
    (suite,) = ET.fromstring(text)  # noqa: S314 - our own
    assert suite[0].get("name") == '\ufffd\ufffd<&">\ufffd' or suite[1].get("name") == (
        '\ufffd\ufffd<&">\ufffd'
    )
