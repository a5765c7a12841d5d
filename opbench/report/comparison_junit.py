"""Verdicts as JUnit XML, which CI systems show as tests."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from opbench.records import Comparison, ComparisonSet, Verdict
from opbench.report import wording

__all__ = ["comparison_junit"]

# What XML 1.0 cannot hold, not even escaped.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PASSES = (Verdict.UNCHANGED, Verdict.IMPROVED, Verdict.ADDED)


def comparison_junit(found: ComparisonSet) -> str:
    """One test case per benchmark: a confirmed regression fails, an undecided one is skipped.

    A set in which nothing was judged has an error of its own, so that it is never green.
    """
    ordered = wording.in_order(found)
    nothing = not any(one.judged for one in ordered)
    attributes = {
        "name": "opbench",
        "tests": str(len(ordered) + nothing),
        "failures": str(found.count(Verdict.REGRESSED)),
        "errors": str(int(nothing)),
        "skipped": str(sum(one.verdict not in {*_PASSES, Verdict.REGRESSED} for one in ordered)),
    }
    suites = ET.Element("testsuites", {**attributes, "name": "opbench verdicts"})
    suite = ET.SubElement(suites, "testsuite", attributes)
    for one in ordered:
        _case(suite, one, found.sides)
    if nothing:
        case = ET.SubElement(suite, "testcase", {"classname": "opbench", "name": "comparison"})
        ET.SubElement(case, "error", {"message": _clean(wording.headline(found))})
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=False) + "\n"


def _case(suite: ET.Element, one: Comparison, sides: Sequence[str]) -> None:
    file, _, name = one.id.partition("::")
    attributes = {"classname": _clean(file), "name": _clean(name or one.id)}
    if one.candidate is not None:
        attributes["time"] = f"{one.candidate.centre:.9f}"
    case = ET.SubElement(suite, "testcase", attributes)
    word, reason = wording.WORDS[one.verdict], _clean(wording.reason(one))
    if one.verdict is Verdict.REGRESSED:
        before, after = wording.times(one)
        failure = ET.SubElement(
            case,
            "failure",
            {"type": "regression", "message": f"{wording.ratio(one)} ({wording.interval(one)})"},
        )
        failure.text = f"{sides[0]} {before}, {sides[1]} {after}" + (
            f"\n{reason}" if reason else ""
        )
    elif one.verdict not in _PASSES:
        ET.SubElement(case, "skipped", {"message": f"{word}: {reason}" if reason else word})


def _clean(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)
