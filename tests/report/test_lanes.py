"""The table of worker lanes: one line per operator, lost records underneath."""

from __future__ import annotations

from opbench.profiler import LaneTotal
from opbench.report import Style, lane_lines, lane_verdicts

ROW = LaneTotal(
    category="symbolic",
    name="dot",
    count=3,
    asked=2,
    workers=2,
    fork_ns=12_300.0,
    join_ns=40_000.0,
    busy_ns=(1_730_000.0, 2_170_000.0),
    imbalance=1.113,
    all_running=0.771,
    cpus=(0, 1),
    lost=0,
    verdicts={"workers shared a CPU": 1},
)


def test_a_row_says_what_the_workers_did():
    head, line = (" ".join(text.split()) for text in lane_lines([ROW]))
    assert head == (
        "operator calls workers fork join busy per worker unit max/mean all running CPUs verdict"
    )
    assert line == (
        "dot 3 2 of 2 0.0123 0.0400 1.73 2.17 ms 1.11 77% 0-1 workers shared a CPU (1 of 3)"
    )


def test_many_workers_are_the_least_and_the_most_busy():
    busy = tuple(float(n) * 1000 for n in range(1, 9))
    row = ROW._replace(busy_ns=busy, workers=8, asked=None, cpus=(0, 1, 2, 5, 8, 9), verdicts={})
    line = " ".join(lane_lines([row])[1].split())
    assert line == "dot 3 8 12.3 40.0 1.00…8.00 µs 1.11 77% 0-2 5 8-9 –"


def test_lost_records_are_counted_also_without_a_row():
    lost = ROW._replace(count=0, busy_ns=(), lost=7)
    assert lane_lines([lost]) == ["7 worker records were lost: their buffers were too small"]
    assert lane_lines([ROW, lost])[2:] == lane_lines([lost])


def test_no_workers_no_lines():
    assert lane_lines([]) == []


def test_a_narrow_terminal_keeps_the_verdict():
    lines = lane_lines([ROW], Style(width=80, unicode=False))
    assert all(len(line) <= 80 for line in lines)
    assert lines[1].endswith("workers shared a CPU (1 of 3)")
    assert "CPUs" not in lines[0]


def test_a_verdict_on_all_calls_needs_no_count():
    assert lane_verdicts({"imbalanced": 3}, 3) == "imbalanced"
    assert lane_verdicts({"b": 1, "a": 2}, 3) == "a (2 of 3), b (1 of 3)"
    assert lane_verdicts({}, 3) == ""
