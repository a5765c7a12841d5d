"""What every report of verdicts says alike: signs, words, the headline, names and numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from opbench.records import Attribution, Comparison, ComparisonSet, Verdict
from opbench.units import Scale, scale_seconds, significant

__all__ = [
    "DASH",
    "SIGNS",
    "WORDS",
    "changed",
    "could_have_seen",
    "counts",
    "exit_words",
    "headline",
    "in_order",
    "interval",
    "names",
    "percent",
    "ratio",
    "reason",
    "times",
    "unfinished",
    "why",
]

DASH = "–"
# In the order of a report; with the sign of a place that takes ASCII only.
SIGNS = {
    Verdict.REGRESSED: ("▲", "^"),
    Verdict.INCONCLUSIVE: ("◇", "~"),
    Verdict.IMPROVED: ("▼", "v"),
    Verdict.UNCHANGED: ("·", "."),
    Verdict.INCOMPARABLE: ("×", "x"),
    Verdict.ADDED: ("+", "+"),
    Verdict.REMOVED: ("-", "-"),
}
WORDS = {
    Verdict.REGRESSED: "slower",
    Verdict.INCONCLUSIVE: "open",
    Verdict.IMPROVED: "faster",
    Verdict.UNCHANGED: "same",
    Verdict.INCOMPARABLE: "unfit",
    Verdict.ADDED: "added",
    Verdict.REMOVED: "removed",
}
_COUNTED = {
    **WORDS,
    Verdict.INCONCLUSIVE: "not decided",
    Verdict.UNCHANGED: "unchanged",
    Verdict.INCOMPARABLE: "not comparable",
}
_BOTH_SIDES = (
    Verdict.REGRESSED,
    Verdict.INCONCLUSIVE,
    Verdict.IMPROVED,
    Verdict.UNCHANGED,
)
_EXIT = {
    0: "exit 0: no regression is confirmed",
    1: "exit 1: a regression is confirmed",
    3: "exit 3: nothing was judged",
}


def headline(found: ComparisonSet) -> str:
    """The answer in one line; a set in which nothing was judged never reads as a good one."""
    compared = found.having(*_BOTH_SIDES)
    if not any(one.judged for one in found.comparisons):
        return f"Nothing could be compared: {_common_reason(found)}"
    slower, total = found.having(Verdict.REGRESSED), len(compared)
    undecided, faster = found.count(Verdict.INCONCLUSIVE), found.count(Verdict.IMPROVED)
    if slower:
        worst = max(one.ratio or 1.0 for one in slower) - 1
        return f"{len(slower)} of {total} slower, the worst by {percent(worst)}"
    if undecided:
        return f"None of {total} shown slower, {undecided} not decided"
    return f"None of {total} slower" + (f", {faster} faster" if faster else "")


def _common_reason(found: ComparisonSet) -> str:
    if found.reason:
        return found.reason
    reasons = Counter(one.warnings[0] for one in found.comparisons if one.warnings)
    if not reasons:
        return "there is no benchmark on both sides" if found.comparisons else "no benchmark"
    (first, count), *_ = reasons.most_common(1)
    return first if count == len(found.comparisons) else f"{first} ({count} benchmarks)"


def counts(found: ComparisonSet, *, unicode: bool = True) -> list[str]:
    """``▲ 1 slower`` and so on, whatever there is any of."""
    return [
        f"{signs[not unicode]} {found.count(verdict)} {_COUNTED[verdict]}"
        for verdict, signs in SIGNS.items()
        if found.count(verdict)
    ]


def could_have_seen(found: ComparisonSet, shown: dict[str, str]) -> str:
    """The smallest change that these data could have shown; empty where nothing is known of it."""
    known = [one for one in found.comparisons if one.detectable is not None]
    if not known:
        return ""
    ordered = sorted(known, key=lambda one: one.detectable or 0.0)
    middle = ordered[len(ordered) // 2]
    worst = max(known, key=lambda one: one.detectable or 0.0)
    return (
        f"could have seen {percent(middle.detectable)} (median), {percent(worst.detectable)} "
        f"(worst: {shown[worst.id]})"
    )


def unfinished(found: ComparisonSet, shown: dict[str, str], most: int) -> str:
    """``not decided within the budget: 3: a, b, c``; empty where the budget left nothing."""
    if not found.unfinished:
        return ""
    names = [shown[name] for name in found.unfinished[:most]]
    more = len(found.unfinished) - len(names)
    words = ", ".join(names) + (f" and {more} more" if more else "")
    return f"not decided within the budget: {len(found.unfinished)}: {words}"


def exit_words(found: ComparisonSet, *, strict: bool) -> str:
    """``exit 1: a regression is confirmed``."""
    code = found.exit_code(strict=strict)
    if code == 3 and found.exit_code() != code:  # noqa: PLR2004 - the exit code
        return "exit 3: not everything was decided (strict)"
    return _EXIT[code]


def in_order(found: ComparisonSet) -> list[Comparison]:
    """The comparisons as the set wants them sorted; the worst change first if it does not say."""
    if found.order == "file":
        return list(found.comparisons)
    if found.order == "name":
        return sorted(found.comparisons, key=lambda one: one.id)
    ranks = {verdict: rank for rank, verdict in enumerate(SIGNS)}
    return sorted(found.comparisons, key=lambda one: (ranks[one.verdict], -_size(one), one.id))


def _size(one: Comparison) -> float:
    return abs(math.log(one.ratio)) if one.ratio else 0.0


def changed(found: ComparisonSet) -> list[Comparison]:
    """What is slower or faster, sorted."""
    return [one for one in in_order(found) if one.verdict in {Verdict.REGRESSED, Verdict.IMPROVED}]


def names(comparisons: Iterable[Comparison]) -> dict[str, str]:
    """What each benchmark is called, by id: as short as it can be told from the others."""
    ids = {one.id: one.label for one in comparisons}
    labels = Counter(ids.values())
    short = _shortened(list(ids))
    return {
        name: _printable(label if label and labels[label] == 1 else short[name])
        for name, label in ids.items()
    }


def _shortened(ids: Sequence[str]) -> dict[str, str]:
    """Ids without the folders that all of them share, and without the file if it is one."""
    files = {name.partition("::")[0] for name in ids}
    if len(files) == 1:
        return {name: name.partition("::")[2] or name for name in ids}
    folders = [file.split("/")[:-1] for file in files]
    shared = 0
    for parts in zip(*folders, strict=False):
        if len(set(parts)) > 1:
            break
        shared += 1
    cut = sum(len(part) + 1 for part in folders[0][:shared]) if folders else 0
    return {name: name[cut:] for name in ids}


def _printable(text: str) -> str:
    """Control characters as escapes: a name from a stranger's file must not drive a terminal."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def percent(share: float | None) -> str:
    """``2.4 %``; two digits from a tenth on."""
    if share is None or not math.isfinite(share):
        return DASH
    value = 100 * share
    return f"{value:.0f} %" if value >= 10 else f"{value:.1f} %"  # noqa: PLR2004 - two digits


def times(one: Comparison) -> tuple[str, str]:
    """Both sides in one unit."""
    sides = (one.baseline, one.candidate)
    known = [side.centre for side in sides if side is not None]
    if not known:
        return DASH, DASH
    unit = scale_seconds(known[0])
    first, second = (DASH if side is None else _scaled(side.centre, unit) for side in sides)
    return first, second


def _scaled(seconds: float, unit: Scale) -> str:
    return f"{significant(seconds / unit.size)} {unit.suffix}"


def ratio(one: Comparison) -> str:
    """``1.468×``."""
    return DASH if one.ratio is None else f"{one.ratio:.3f}×"


def interval(one: Comparison) -> str:
    """``1.441–1.496``."""
    return DASH if one.low is None or one.high is None else f"{one.low:.3f}–{one.high:.3f}"


def why(one: Comparison) -> str:
    """What accounts for a change: ``pack_b +0.41 of +0.56 ms; imbalance 1.08 → 1.31``."""
    if not one.attributions or one.baseline is None or one.candidate is None:
        return ""
    change = one.candidate.centre - one.baseline.centre
    # In the unit of the row, so that both are read together, unless that leaves no digits.
    unit = scale_seconds(one.baseline.centre)
    if abs(change) < unit.size / 100:
        unit = scale_seconds(abs(change))
    words = []
    for part in one.attributions:
        if part.unit != "s":
            words.append(f"{part.name} {part.before:.2f} → {part.after:.2f}")
            continue
        first = not words
        amount = _signed(part.change / unit.size)
        of = f" of {_signed(change / unit.size)}" if first else ""
        words.append(f"{_part(part)} {amount}{of} {unit.suffix}")
    return _printable("; ".join(words))


def _part(part: Attribution) -> str:
    """An operator by its name alone; whatever else it is, is said."""
    return part.name if part.side in {"operator", "rest"} else f"{part.side} {part.name}"


def _signed(value: float) -> str:
    return ("+" if value >= 0 else "-") + significant(abs(value), 2)


def reason(one: Comparison) -> str:
    """What is told under a row: what accounts for the change, or why there is no decision."""
    return why(one) or _printable(" ".join("; ".join(one.warnings).split()))
