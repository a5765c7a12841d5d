"""Verdicts for machines: JSON with all digits, and a CSV row for each benchmark."""

from __future__ import annotations

import json
from typing import Any

from opbench.records import Comparison, ComparisonSet, Summary, Verdict
from opbench.report import wording
from opbench.report.spreadsheet import inert, sheet

__all__ = ["comparison_csv", "comparison_json"]

SCHEMA_VERSION = 1
_COLUMNS = (
    "id",
    "group",
    "verdict",
    "ratio",
    "low",
    "high",
    "confidence",
    "floor",
    "detectable",
    "baseline_s",
    "baseline_launches",
    "candidate_s",
    "candidate_launches",
    "warnings",
)


def comparison_json(found: ComparisonSet) -> str:
    """The verdicts as one strict JSON object; times in seconds, changes as shares."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "headline": wording.headline(found),
        "exit_code": found.exit_code(),
        "exit_code_strict": found.exit_code(strict=True),
        "title": found.title,
        "context": list(found.context),
        "reason": found.reason,
        "sides": list(found.sides),
        "facts": dict(found.facts),
        "differences": [
            {"fact": name, "before": before, "after": after}
            for name, before, after in found.differences
        ],
        "unfinished": list(found.unfinished),
        "counts": {verdict.value: found.count(verdict) for verdict in Verdict},
        "comparisons": [_plain(one) for one in wording.in_order(found)],
    }
    return json.dumps(document, allow_nan=False, ensure_ascii=True, indent=1) + "\n"


def _plain(one: Comparison) -> dict[str, Any]:
    return {
        "id": one.id,
        "label": one.label or None,
        "group": one.group,
        "verdict": one.verdict.value,
        "ratio": one.ratio,
        "low": one.low,
        "high": one.high,
        "confidence": one.confidence,
        "floor": one.floor,
        "detectable": one.detectable,
        "baseline": _side(one.baseline),
        "candidate": _side(one.candidate),
        "warnings": list(one.warnings),
        "attributions": [
            {
                "side": part.side,
                "name": part.name,
                "before": part.before,
                "after": part.after,
                "unit": part.unit,
            }
            for part in one.attributions
        ],
        "least_ratio": one.least_ratio,
        "tripped": one.tripped,
    }


def _side(summary: Summary | None) -> dict[str, Any] | None:
    if summary is None:
        return None
    return {
        "centre": summary.centre,
        "low": summary.low,
        "high": summary.high,
        "confidence": summary.confidence,
        "launches": summary.n,
        "spread": summary.spread,
        "warnings": list(summary.warnings),
    }


def comparison_csv(found: ComparisonSet) -> str:
    """A heading and one row per benchmark, with all digits; empty for what is not known."""
    return sheet(_COLUMNS, map(_row, wording.in_order(found)))


def _row(one: Comparison) -> tuple[Any, ...]:
    before, after = one.baseline, one.candidate
    return (
        inert(one.id),
        inert(one.group or ""),
        one.verdict.value,
        one.ratio,
        one.low,
        one.high,
        one.confidence,
        one.floor,
        one.detectable,
        before and before.centre,
        before and before.n,
        after and after.centre,
        after and after.n,
        inert("; ".join(one.warnings)),
    )
