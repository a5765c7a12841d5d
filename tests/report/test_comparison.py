"""Verdicts as text and Markdown: exact lines, and what must never be lost."""

from __future__ import annotations

import pytest

from opbench.records import Attribution, Comparison, ComparisonSet, Summary, Verdict
from opbench.report import Style, comparison_markdown, comparison_text, headline
from opbench.report.table import cells


def side(seconds, n=8, spread=0.01):
    return Summary(seconds, 0.99 * seconds, 1.01 * seconds, 0.95, n, spread=spread)


def one(name, verdict, base=1e-3, ratio=1.0, width=0.01, **changed):
    """A comparison with plain numbers."""
    known = {
        "id": f"tests/bench/test_x.py::{name}",
        "baseline": side(base),
        "candidate": side(base * (ratio or 1)),
        "ratio": ratio,
        "low": (ratio or 1) * (1 - width),
        "high": (ratio or 1) * (1 + width),
        "verdict": verdict,
        "detectable": 0.024,
        "floor": 0.02,
        "label": name,
    }
    return Comparison(**{**known, **changed})


def absent(name, verdict, reason="only on head", **changed):
    nothing = dict.fromkeys(("baseline", "candidate", "ratio", "low", "high", "detectable"))
    return one(name, verdict, **{**nothing, "warnings": (reason,), **changed})


SLOW = one(
    "dot symbolic 256² f32", Verdict.REGRESSED, 1.2e-3, 1.468, low=1.441, high=1.496,
    attributions=(
        Attribution("operator", "pack_b", 0.2e-3, 0.61e-3),
        Attribution("imbalance", "imbalance", 1.08, 1.31, unit=""),
    ),
)  # fmt: skip
OPEN = one(
    "softmax kernel 1024² f32", Verdict.INCONCLUSIVE, 3.01e-3, 1.031, low=0.986, high=1.078,
    detectable=0.091,
)  # fmt: skip
FAST = one("gather kernel 2048² f32", Verdict.IMPROVED, 8.8e-3, 0.902, low=0.869, high=0.936)
SAME = tuple(one(f"same {number}", Verdict.UNCHANGED) for number in range(97))
ADDED = absent("brand new", Verdict.ADDED)


def found(*comparisons, **changed):
    known = {
        "title": "opbench ab   main@4f2c1aa -> tile-k@9e01b7d",
        "context": ("12 pairs   floor 2 %   4 min 10 s",),
        "comparisons": comparisons,
    }
    return ComparisonSet(**{**known, **changed})


ALL = found(*SAME, ADDED, FAST, OPEN, SLOW)


def test_eighty_columns_are_exact():
    assert comparison_text(ALL, Style(width=80)) == [
        "opbench ab   main@4f2c1aa -> tile-k@9e01b7d   12 pairs   floor 2 %   4 min 10 s",
        "",
        "verdict    benchmark                    base     head  ratio   interval",
        "▲ slower   dot symbolic 256² f32     1.20 ms  1.76 ms  1.468×  1.441–1.496",
        "  why      pack_b +0.41 of +0.56 ms; imbalance 1.08 → 1.31",
        "◇ open     softmax kernel 1024² f32  3.01 ms  3.10 ms  1.031×  0.986–1.078",
        "▼ faster   gather kernel 2048² f32   8.80 ms  7.94 ms  0.902×  0.869–0.936",
        "+ added    brand new",
        "",
        "▲ 1 slower   ◇ 1 not decided   ▼ 1 faster   · 97 unchanged   + 1 added",
        "could have seen 2.4 % (median), 9.1 % (worst: softmax kernel 1024² f32)",
        "exit 1: a regression is confirmed",
    ]  # fmt: skip


def test_without_unicode_signs_and_words_stay_and_all_is_ascii():
    lines = comparison_text(ALL, Style(width=80, unicode=False))
    assert lines[3].startswith("^ slower   dot symbolic 256^2 f32")
    assert lines[4] == "  why      pack_b +0.41 of +0.56 ms; imbalance 1.08 -> 1.31"
    assert lines[5].startswith("~ open ")
    assert lines[6].startswith("v faster ")
    assert lines[9] == "^ 1 slower   ~ 1 not decided   v 1 faster   . 97 unchanged   + 1 added"
    assert all(line.isascii() for line in lines)
    wide = comparison_text(ALL, Style(width=130, unicode=False))
    assert all(line.isascii() for line in wide)
    assert "|" in wide[3]
    assert "^" in wide[3][20:]


def test_from_110_columns_the_interval_is_a_picture_on_one_scale():
    plain = found(
        one("a", Verdict.REGRESSED, ratio=1.2, low=1.1, high=1.3, floor=0.1),
        one("b", Verdict.INCONCLUSIVE, ratio=1.0, low=1 / 1.1, high=1.1, floor=0.1),
        one("c", Verdict.IMPROVED, ratio=1 / 1.2, low=1 / 1.3, high=1 / 1.1, floor=0.1),
    )
    lines = comparison_text(plain, Style(width=110))
    start = lines[2].index("interval")
    assert "spread" in lines[2]
    # 21 cells from log 1/1.3 to log 1.3; the floor and the ends at 1.1 share cells 6 and 14.
    assert [line[start:] for line in lines[3:6]] == [
        "      ┊       ├──▲──┤",
        "      ├───◇───┤",
        "├──▼──┤       ┊",
    ]
    assert "interval" in comparison_text(plain, Style(width=109))[2]
    assert "1.100–1.300" in comparison_text(plain, Style(width=109))[3]


@pytest.mark.parametrize("width", [30, 40, 50, 60, 80, 109, 110, 120, 200])
def test_lines_fit_wherever_numbers_leave_room(width):
    lines = comparison_text(ALL, Style(width=width))
    table = [line for line in lines if line[:8] in {"▲ slower", "◇ open  ", "▼ faster"}]
    assert len(table) == 3
    assert max(map(cells, table)) <= max(width, 31)


def test_columns_fall_in_order_and_names_are_cut_but_no_number():
    heads = {width: comparison_text(ALL, Style(width=width))[2].split() for width in (110, 80)}
    assert heads[110] == ["verdict", "benchmark", "base", "head", "spread", "ratio", "interval"]
    assert heads[80] == ["verdict", "benchmark", "base", "head", "ratio", "interval"]
    narrow = comparison_text(ALL, Style(width=45))
    row = next(line for line in narrow if line.startswith("▲"))
    assert "1.76 ms  1.468×" in row
    assert "1.20 ms" not in row
    assert "…" in row


def test_wide_characters_take_two_cells():
    rows = found(
        one("行列の積", Verdict.REGRESSED, ratio=1.2), one("abc", Verdict.IMPROVED, ratio=0.8)
    )
    first, second = (
        line for line in comparison_text(rows, Style(width=80)) if line[:1] in "▲▼" and line
        and "ms" in line
    )  # fmt: skip
    assert cells(first.partition("1.00 ms")[0]) == cells(second.partition("1.00 ms")[0])


def test_nothing_changed_has_no_table_and_says_so():
    assert comparison_text(found(*SAME), Style(width=80))[1:] == [
        "",
        "None of 97 slower",
        "",
        "· 97 unchanged",
        "could have seen 2.4 % (median), 2.4 % (worst: same 0)",
        "exit 0: no regression is confirmed",
    ]


def test_verbose_lists_all_with_every_warning():
    noisy = one("noisy", Verdict.UNCHANGED, warnings=("unstable: x", "preempted: y"))
    lines = comparison_text(found(SLOW, noisy, ADDED), Style(width=80), verbose=True)
    assert "· same     noisy" in "\n".join(lines)
    assert "  why      unstable: x; preempted: y" in lines
    assert any(line.startswith("+ added    brand new") for line in lines)


def test_only_lists_the_verdicts_asked_for_and_counts_all():
    lines = comparison_text(ALL, Style(width=80), only=[Verdict.UNCHANGED])
    assert sum(line.startswith("· same") for line in lines) == 97
    assert not any(line.startswith("▲ slower") for line in lines)
    assert lines[-1] == "exit 1: a regression is confirmed"
    assert "▲ 1 slower" in lines[-3]


def test_many_open_ones_are_cut_and_counted():
    many = found(*(one(f"n{i:02}", Verdict.INCONCLUSIVE, ratio=1 + i / 100) for i in range(30)))
    lines = comparison_text(many, Style(width=80))
    rows = [line for line in lines if line.startswith("◇ open")]
    assert len(rows) == 20
    # The largest estimate first.
    assert "n29" in rows[0]
    assert "and 10 more not decided; -v lists all" in lines


CUT = one(
    "suspect", Verdict.INCONCLUSIVE, ratio=1.12, detectable=None,
    warnings=("suspected, and not confirmed: 3 fresh pairs cannot show it",),
)  # fmt: skip
UNMEASURED = absent("unmeasured", Verdict.INCOMPARABLE, "the budget had no room for it")


def test_what_the_budget_left_undecided_is_shown_without_being_asked_for():
    ids = (CUT.id, UNMEASURED.id, OPEN.id)
    lines = comparison_text(found(SAME[0], UNMEASURED, CUT, OPEN, unfinished=ids), Style(width=80))
    rows = [line.split()[2] for line in lines if line.startswith("◇ open")]
    assert rows == ["suspect", "softmax"]  # the largest change first
    assert "  why      suspected, and not confirmed: 3 fresh pairs cannot show it" in lines
    assert "× unfit    unmeasured" in lines
    at = lines.index(
        "not decided within the budget: 3: suspect, unmeasured, softmax kernel 1024² f32"
    )
    assert at < next(n for n, line in enumerate(lines) if line.startswith("◇ 2 not decided"))


def test_it_is_shown_as_well_where_nothing_was_judged():
    lines = comparison_text(found(CUT, UNMEASURED, unfinished=(CUT.id, UNMEASURED.id)), Style())
    assert any(line.startswith("◇ open     suspect") for line in lines)
    assert "not decided within the budget: 2: suspect, unmeasured" in lines
    assert lines[-1] == "exit 3: nothing was judged"


def test_what_nobody_could_judge_is_told_once_and_not_in_rows():
    moved = [one(f"n{i}", Verdict.INCONCLUSIVE, detectable=None) for i in range(3)]
    lines = comparison_text(found(*moved, reason="machine moved"), Style())
    assert lines[2] == "Nothing could be compared: machine moved"
    assert not any(line.startswith("◇ open") for line in lines)
    assert not any("within the budget" in line for line in lines)


def test_a_long_list_of_the_undecided_is_cut_unless_all_is_asked_for():
    many = [absent(f"n{i:02}", Verdict.INCOMPARABLE) for i in range(30)]
    undecided = found(*many, SAME[0], unfinished=tuple(one.id for one in many))
    text = " ".join(comparison_text(undecided, Style(width=60)))
    assert "not decided within the budget: 30: n00, n01," in text
    assert "n19 and 10 more" in text
    full = comparison_text(undecided, Style(width=60), verbose=True)
    assert "n28, n29" in " ".join(" ".join(full).split())
    assert all(cells(line) <= 60 for line in full)


def test_markdown_says_what_the_budget_left_undecided():
    page = comparison_markdown(found(SAME[0], CUT, unfinished=(CUT.id,)))
    assert page.splitlines()[3] == "not decided within the budget: 1: suspect"
    assert "within the budget" not in comparison_markdown(ALL)


def test_the_reason_for_no_decision_stands_under_the_row():
    suspect = one("a", Verdict.INCONCLUSIVE, warnings=("suspected, and not confirmed",))
    lines = comparison_text(found(suspect), Style(width=80))
    assert lines[4] == "  why      suspected, and not confirmed"


def test_what_is_not_comparable_gone_or_new_is_named():
    names = [absent(f"r{i}", Verdict.REMOVED) for i in range(5)]
    lines = comparison_text(found(*names, absent("x", Verdict.INCOMPARABLE)), Style(width=80))
    assert "- removed  r0, r1, r2 and 2 more" in lines
    assert "× unfit    x" in lines


def test_strict_says_why_it_fails():
    lines = comparison_text(found(OPEN, SAME[0]), Style(), strict=True)
    assert lines[-1] == "exit 3: not everything was decided (strict)"
    assert comparison_text(found(OPEN), Style())[-1] == "exit 0: no regression is confirmed"
    assert comparison_text(found(), Style())[-1] == "exit 3: nothing was judged"


def test_colour_is_on_the_verdict_alone_and_only_where_asked_for():
    plain, coloured = (comparison_text(ALL, Style(80, colour=on)) for on in (False, True))
    assert coloured[3] == plain[3].replace("▲ slower", "\x1b[31m▲ slower\x1b[0m")
    assert "\x1b" not in "".join(plain)


def test_a_name_cannot_drive_the_terminal():
    evil = one("a", Verdict.REGRESSED, ratio=1.2, label="", id="t.py::x\x1b[2J\n▲")
    text = "\n".join(comparison_text(found(evil), Style()))
    assert "\x1b" not in text
    assert r"x\x1b[2J\n▲" in text


def test_names_are_as_short_as_they_can_be_told_apart():
    ids = ["tests/a/t.py::x", "tests/b/t.py::x", "tests/b/t.py::y"]
    rows = found(*(one("same", Verdict.REGRESSED, ratio=1.2, id=name) for name in ids))
    text = "\n".join(comparison_text(rows, Style()))
    assert "a/t.py::x" in text
    assert "tests/" not in text
    single = found(one("", Verdict.REGRESSED, ratio=1.2, id="tests/a/t.py::x[1::2]"))
    assert "▲ slower   x[1::2]" in "\n".join(comparison_text(single, Style()))


def test_a_long_context_takes_a_line_of_its_own_and_notes_follow():
    long = found(SAME[0], context=("x" * 60, "first note", "second"))
    lines = comparison_text(long, Style(width=80))
    assert lines[:3] == [long.title, "x" * 60, ""]
    # Below the answer, and above the last line.
    assert lines[-4:-1] == [
        "could have seen 2.4 % (median), 2.4 % (worst: same 0)",
        "note: first note",
        "note: second",
    ]


def test_sort_orders():
    names = [one("b", Verdict.REGRESSED, ratio=1.1), one("c", Verdict.REGRESSED, ratio=1.3),
             one("a", Verdict.IMPROVED, ratio=0.5)]  # fmt: skip

    def order(kind):
        lines = comparison_text(found(*names, order=kind), Style())
        return [line.split()[2] for line in lines if "ms" in line]

    assert order("change") == ["c", "b", "a"]
    assert order("name") == ["a", "b", "c"]
    assert order("file") == ["b", "c", "a"]


# Headlines


@pytest.mark.parametrize(
    ("comparisons", "words"),
    [
        ((SLOW, FAST, OPEN, *SAME), "1 of 100 slower, the worst by 47 %"),
        ((one("a", Verdict.REGRESSED, ratio=1.052), SAME[0]), "1 of 2 slower, the worst by 5.2 %"),
        ((OPEN, FAST, *SAME), "None of 99 shown slower, 1 not decided"),
        ((FAST, *SAME), "None of 98 slower, 1 faster"),
        ((*SAME, ADDED, absent("g", Verdict.REMOVED)), "None of 97 slower"),
        ((), "Nothing could be compared: no benchmark"),
        (
            (absent("a", Verdict.INCOMPARABLE, "r"), absent("b", Verdict.INCOMPARABLE, "r")),
            "Nothing could be compared: r",
        ),
        (
            (absent("a", Verdict.INCOMPARABLE, "r"), ADDED, absent("c", Verdict.INCOMPARABLE, "r")),
            "Nothing could be compared: r (2 benchmarks)",
        ),
        ((absent("a", Verdict.INCONCLUSIVE, "budget"),), "Nothing could be compared: budget"),
    ],
)
def test_headlines(comparisons, words):
    assert headline(found(*comparisons)) == words


def test_one_reason_for_all_is_the_headlines():
    everything = found(absent("a", Verdict.INCOMPARABLE, "x"), reason="another environment: y")
    assert headline(everything) == "Nothing could be compared: another environment: y"
    assert "Nothing could be compared: another environment: y" in comparison_text(
        everything, Style()
    )


# Markdown


def test_markdown_is_headline_context_table_and_folds():
    page = comparison_markdown(
        found(*SAME[:2], ADDED, FAST, OPEN, SLOW, reproduce="opbench ab --base main",
              differences=(("numpy", "2.4", "2.5"),))
    )  # fmt: skip
    assert page.splitlines()[:8] == [
        "### 1 of 5 slower, the worst by 47 %",
        (
            r"opbench ab · main@4f2c1aa -\> tile-k@9e01b7d · 12 pairs · floor 2 % · 4 min 10 s · "
            "▲ 1 slower · ◇ 1 not decided · ▼ 1 faster · · 2 unchanged · + 1 added"
        ),
        "",
        "| verdict | benchmark | base | head | ratio | interval | why |",
        "| --- | --- | ---: | ---: | --- | --- | --- |",
        (
            "| ▲ slower | `dot symbolic 256² f32` | 1.20 ms | 1.76 ms | 1.468× | 1.441–1.496 | "
            r"pack\_b +0.41 of +0.56 ms; imbalance 1.08 → 1.31 |"
        ),
        "| ▼ faster | `gather kernel 2048² f32` | 8.80 ms | 7.94 ms | 0.902× | 0.869–0.936 |  |",
        "",
    ]
    titles = [line for line in page.splitlines() if line.startswith("<details>")]
    assert [title[18:].partition("<")[0] for title in titles] == [
        "1 not decided",
        "1 only in the candidate",
        "2 unchanged",
        "environment",
        "how to reproduce",
    ]
    assert "| `softmax kernel 1024² f32` | 1.031× | 0.986–1.078 | 9.1 % |  |" in page
    assert page.count("<details>") == page.count("</details>")


def test_nothing_changed_is_two_lines():
    page = comparison_markdown(found(*SAME, reproduce="again", context=("12 pairs", "a note")))
    assert page.splitlines() == [
        "### None of 97 slower",
        r"opbench ab · main@4f2c1aa -\> tile-k@9e01b7d · 12 pairs · · 97 unchanged",
    ]


def test_nothing_compared_is_a_page_too():
    page = comparison_markdown(found())
    assert page.startswith("### Nothing could be compared: no benchmark\n")


def test_twenty_rows_and_the_rest_is_counted():
    slow = [one(f"n{i:03}", Verdict.REGRESSED, ratio=1.1 + i / 1000) for i in range(34)]
    page = comparison_markdown(found(*slow))
    assert page.count("| ▲ slower |") == 20
    assert "\n\nand 14 more in the artefact\n" in page
    # The worst first.
    assert "n033" in page.partition("▲ slower |")[2][:20]


@pytest.mark.parametrize("limit", [2_000, 20_000, 60_000])
def test_a_page_keeps_to_its_bytes_and_cuts_whole_rows(limit):
    rows = [
        one("ü" * 150 + str(i), verdict, ratio=1.1, warnings=("why ü" * 20,))
        for verdict in (Verdict.REGRESSED, Verdict.INCONCLUSIVE, Verdict.UNCHANGED)
        for i in range(300)
    ]
    page = comparison_markdown(found(*rows), limit)
    assert len(page.encode()) <= limit
    assert page.count("<details>") == page.count("</details>")
    assert page.startswith("### 300 of 900 slower")
    assert all(line.endswith("|") for line in page.splitlines() if line.startswith("|"))
    assert "more in the artefact" in page


def test_names_and_reasons_are_no_markup():
    evil = one(
        "a|b`c`<img src=x>@user", Verdict.REGRESSED, ratio=1.2,
        warnings=("see #12 and @team <b>*now*</b> [x](y) | z\nnew",),
    )  # fmt: skip
    page = comparison_markdown(found(evil))
    (row,) = [line for line in page.splitlines() if line.startswith("| ▲")]
    assert r"`` a\|b`c`<img src=x>@user ``" in row
    # A mark of no width between the sign and the word stops mention and link.
    assert "see #\u200b12 and @\u200bteam" in row
    assert r"\<b\>\*now\*\</b\> \[x\](y) \| z new |" in row
