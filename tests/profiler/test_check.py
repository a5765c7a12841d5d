from __future__ import annotations

import gzip
import json
import random

import pytest

from opbench.errors import TraceError
from opbench.profiler import Problem, check

NAN = float("nan")


def x(ts, dur, tid=1, pid=1, **more):
    return {"ph": "X", "name": "op", "pid": pid, "tid": tid, "ts": ts, "dur": dur, **more}


def ev(ph, ts=0, **more):
    return {"ph": ph, "name": "n", "pid": 1, "tid": 1, "ts": ts, **more}


def flow(ph, ts, ident=7, **more):
    return ev(ph, ts, id=ident, cat="flow", **more)


def without(event, *keys):
    return {key: value for key, value in event.items() if key not in keys}


EVENTS = {
    "nothing": ([], []),
    "apart, touching, nested": ([x(0, 10), x(0, 5), x(10, 5), x(12, 3)], []),
    "crossing": ([x(0, 10), x(5, 10)], ["crossing"]),
    "crossing, later one written first": ([x(5, 10), x(0, 10)], ["crossing"]),
    "crossing on two lanes": ([x(0, 10), x(5, 10, tid=2), x(5, 10, pid=2)], []),
    "a nanosecond over, after rounding": ([x(0.0004, 10.0004), x(5.0, 5.0008)], ["crossing"]),
    "touching, in binary fractions": ([x(0.1, 0.2), x(0.3, 0.1)], []),
    "three alike": ([x(0, 10), x(0, 10), x(0, 10)], []),
    "child first at the same start": ([x(0, 5), x(0, 10)], ["order"]),
    "child first at a later start": ([x(2, 3), x(0, 10)], []),
    "child of no duration first": ([x(0, 0), x(0, 10)], ["order"]),
    "zero durations": ([x(0, 10), x(0, 0), x(10, 0)], []),
    "crossing, an end after a slice": ([x(0, 10), ev("B", 2), ev("E", 12)], ["crossing"]),
    "crossing, a slice over an end": ([ev("B", 0), x(5, 10), ev("E", 8)], ["crossing"]),
    "slices in pairs and pairs in slices": (
        [x(0, 20), ev("B", 2), x(3, 4), ev("E", 8), ev("B", 10), ev("E", 20)],
        [],
    ),
    "a slice of no duration before a pair": ([x(0, 0), ev("B", 0), ev("E", 5)], []),
    "pairs of no duration": ([ev("B", 0), ev("E", 0), ev("B", 0), ev("E", 5)], []),
    "no dur": ([without(x(0, 1), "dur")], ["dur"]),
    "negative dur": ([x(5, -3)], ["dur"]),
    "no ts": ([without(x(0, 1), "ts")], ["ts"]),
    "negative ts": ([x(-1, 1)], ["ts"]),
    "ts as text": ([x("1000.25", "3")], []),
    "ts as other text": ([x("noon", 3)], ["ts"]),
    "ts as text with an exponent": ([x("-0", "1.5e+3")], []),
    **{
        f"ts as the text {text!r}": ([x(text, 3)], ["ts"])
        for text in (" 5 ", "1_0", "٣", "+5", ".5", "5.", "0x10", "inf", "nan", "1e999", "5\n", "")
    },
    "dur as other text": ([x(0, "1_0")], ["dur"]),
    "dur null": ([x(0, None)], ["dur"]),
    "thread times": ([x(0, 1, tts=5, tdur="2"), x(1, 1, tts=-1)], []),
    "thread times that are none": (
        [x(0, 1, tts="x"), x(1, 1, tts=None), x(2, 1, tdur="x"), x(3, 1, tdur=True)],
        ["ts", "ts", "dur", "dur"],
    ),
    "a dur that nobody needs": ([ev("i", dur="x")], ["dur"]),
    "no pid": ([without(x(0, 1), "pid")], ["pid"]),
    "no tid": ([without(x(0, 1), "tid")], ["tid"]),
    "no ph": ([without(x(0, 1), "ph")], ["phase"]),
    "unknown ph": ([ev("Q")], ["phase"]),
    "no name": ([without(x(0, 1), "name")], ["name"]),
    "no object": ([7, None], ["event", "event"]),
    "tid 0": ([x(0, 1, tid=0)], ["tid"]),
    "tid negative": ([x(0, 1, tid=-5)], ["tid"]),
    "tid of 33 bits": ([x(0, 1, tid=2**32)], ["tid"]),
    "the largest ids": ([x(0, 1, tid=2**32 - 1, pid=2**32 - 1)], []),
    "pid of 64 bits": ([x(0, 1, pid=14695981039346656037)], ["pid"]),
    "tid a fraction": ([x(0, 1, tid=1.5)], ["tid"]),
    "names for ids": ([x(0, 1, pid="opbench", tid="worker 0")], []),
    "integer ts above 2**53": ([x(2**53 + 1, 1)], ["precision"]),
    "integer ts of 2**53": ([x(2**53, 1)], []),
    "decimals from 2**43 on": ([x(2**43 + 0.5, 1), x(0, 2**43 + 0.5, tid=2)], ["precision"] * 2),
    "decimals below 2**43": ([x(2**43 - 0.5, 0.25), x(0, 2**43 - 0.5, tid=2)], []),
    "no decimals from 2**43 on": ([x(2.0**43, 1), x(2.0**43 + 1, 1)], []),
    "times past the end of time": (
        [
            *(x(ts, 1, tid=2) for ts in (2**63 // 1000 + 1, 1e18)),
            *(x(0, dur, tid=tid) for tid, dur in enumerate((10**18, 1e300), 3)),
            ev("i", 1e308),
        ],
        ["precision"] * 5,
    ),
    "an end past the end of time": ([x(5 * 10**15, 5 * 10**15)], ["precision"]),
    "epoch in µs": ([x(1_764_569_000_123_456, 1)], []),
    "epoch in µs with decimals": ([x(1_764_569_000_123_456.789, 1)], ["precision"]),
    "NaN in args": ([x(0, 1, args={"a": [{"b": NAN}]})], ["non-finite"]),
    "counter": ([ev("C", args={"a": 1, "b": "4.5"}), without(ev("C", args={"a": 1}), "tid")], []),
    "counter with text that is nearly a number": (
        [ev("C", args={"a": text}) for text in ("1_0", "0x10", "")],
        ["counter"] * 3,
    ),
    "counter without values": ([ev("C", args={}), ev("C")], ["counter", "counter"]),
    "counter with text": ([ev("C", args={"a": "many", "b": None, "c": True})], ["counter"] * 3),
    "counter with NaN": ([ev("C", args={"a": NAN})], ["non-finite"]),
    "instants": ([ev("i"), ev("i", s="g"), ev("i", s="p"), ev("I")], []),
    "instant of unknown scope": ([ev("i", s="q")], ["scope"]),
    "begin and end": ([ev("B", 0), ev("E", 5), ev("B", 9)], []),
    "end without beginning": ([ev("E", 5)], ["begin-end"]),
    "end of another": ([ev("B", 0), ev("E", 1, name="m")], ["begin-end"]),
    "nameless end": ([ev("B", 0), without(ev("E", 1), "name")], []),
    "flow": ([x(0, 10), x(20, 10, tid=2), flow("s", 5), flow("f", 25, tid=2, bp="e")], []),
    "flow to the next slice": ([x(0, 10), x(20, 10), flow("s", 5), flow("f", 15)], []),
    "flow with text that is no number": ([x(0, 10), flow("s", 5, "flow-7")], ["flow"]),
    "flow without id": ([x(0, 10), without(flow("s", 5), "id")], ["flow"]),
    "flow of two categories": (
        [x(0, 10), flow("s", 5), {**flow("f", 6, bp="e"), "cat": "other"}],
        ["flow", "flow"],
    ),
    "flow from no slice": ([x(0, 10), flow("s", 15), flow("f", 5, bp="e")], ["flow"]),
    "async": ([ev("b", id="0x1", cat="c"), ev("e", 5, id="0x1", cat="c")], []),
    "async without id": ([ev("b", cat="c")], ["async"]),
    "async with ids of all good kinds": (
        [
            *(ev("b", id=ident, cat="c") for ident in ("q", "", -1, 2**63 - 1)),
            ev("b", id2={"local": "0x1"}, cat="c"),
            ev("b", id2={"global": 1}, cat="c"),
        ],
        [],
    ),
    "async with ids that are none": (
        [
            *(ev("b", id=ident, cat="c") for ident in (None, 1.5, True, [1], 2**63)),
            *(ev("n", id2=ident, cat="c") for ident in ("x", 3, {}, {"local": 1.5})),
        ],
        ["async"] * 9,
    ),
    "metadata last": (
        [x(0, 1), {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "n"}}],
        [],
    ),
    "process name without thread": (
        [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "n"}}],
        [],
    ),
    "thread name without thread": (
        [{"ph": "M", "name": "thread_name", "pid": 1, "args": {"name": "n"}}],
        ["tid"],
    ),
    "metadata with a time": (
        [{"ph": "M", "name": "process_name", "pid": 1, "ts": "5", "args": {"name": "n"}}],
        [],
    ),
    "metadata with a time that is none": (
        [
            {"ph": "M", "name": "process_name", "pid": 1, "ts": ts, "args": {"name": "n"}}
            for ts in ("0x1", True, None, -1)
        ],
        ["ts"] * 4,
    ),
    "names that are none": (
        [
            {"ph": "M", "name": f"{what}_name", "pid": 1, "tid": 1, "args": {"name": name}}
            for what in ("process", "thread")
            for name in ("", None, 5)
        ],
        ["metadata"] * 6,
    ),
    "metadata without its value": (
        [{"ph": "M", "name": "process_name", "pid": 1, "args": {}}],
        ["metadata"],
    ),
    "known colour": ([x(0, 1, cname="terrible")], []),
    "unknown colour": ([x(0, 1, cname="nosuch")], ["cname"]),
}


@pytest.mark.parametrize("case", EVENTS)
def test_events_get_the_verdict_of_the_viewers(case):
    events, rules = EVENTS[case]
    document = {"displayTimeUnit": "ns", "traceEvents": events}
    assert [problem.rule for problem in check(document)] == rules


GOOD = json.dumps({"displayTimeUnit": "ns", "traceEvents": [x(0, 10), x(20, 5)]})
LIST = json.dumps([x(0, 10), x(20, 5)])

FILES = {
    "good": (GOOD, []),
    "packed": (gzip.compress(GOOD.encode()), []),
    "list": (LIST, ["unit"]),
    "list not closed": (LIST[:-1], ["unfinished", "unit"]),
    "list ending in a comma": (LIST[:-1] + ",\n", ["unfinished", "unit"]),
    "list torn": (LIST[:-1] + ',\n{"ph":"X","na', ["torn", "unit"]),
    "list torn, with a fault before": (
        json.dumps([x(0, 10), x(5, 10)])[:-1] + ',{"p',
        ["torn", "unit", "crossing"],
    ),
    "object not closed": (GOOD[:-1], ["json"]),
    "object torn": (GOOD[:-20], ["json"]),
    "empty list": ("[]", ["empty", "unit"]),
    "empty file": ("", ["json"]),
    "other object": ('{"a": 1}', ["form"]),
    "number": ("3", ["form"]),
    "null": ("null", ["form"]),
    "true": ("true", ["form"]),
    "text": ('"s"', ["form"]),
    "comma before the bracket": (LIST[:-1] + ",]", ["json", "unit"]),
    "text after the bracket": (LIST + " x", ["json", "unit"]),
    "two commas": (LIST.replace("}, {", "},, {"), ["json", "unit"]),
    "comma before an object's end": (GOOD[:-1] + ",}", ["json"]),
    "events no list": ('{"displayTimeUnit":"ns","traceEvents":{}}', ["form"]),
    "unit absent": (json.dumps({"traceEvents": []}), ["unit"]),
    "unit ms": (json.dumps({"displayTimeUnit": "ms", "traceEvents": []}), ["unit"]),
    "byte-order mark": ("\ufeff" + GOOD, ["bom"]),
    "not escaped": (GOOD.replace('"op"', '"ö"', 1), ["ascii"]),
    "escaped": (GOOD.replace('"op"', '"\\u00f6"', 1), []),
    "tab in a name": (GOOD.replace('"op"', '"o\tp"', 1), ["control"]),
    "latin text": (GOOD.replace('"op"', '"ö"', 1).encode("latin-1"), ["json"]),
    "NaN as a time": (GOOD.replace('"ts": 20', '"ts": NaN'), ["non-finite"]),
    "infinity as a duration": (GOOD.replace('"dur": 5', '"dur": Infinity'), ["non-finite"]),
    "NaN beside the events": (GOOD.replace("{", '{"otherData": NaN, ', 1), ["non-finite"]),
    "too deep": ("[" * 100_000, ["torn", "empty", "unit"]),
    "too deep, an object": ('{"a":' * 100_000, ["json"]),
}


@pytest.mark.parametrize("case", FILES)
def test_files_get_the_verdict_of_the_viewers(case, tmp_path):
    content, rules = FILES[case]
    path = tmp_path / "t.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert [problem.rule for problem in check(path)] == rules
    assert check(str(path)) == check(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LIST[:-1] + ",]", "has a comma before its closing bracket, at character"),
        (LIST + " x", "has text after its closing bracket, at character"),
        (GOOD[:-1] + ",}", "has a comma before a closing bracket, at character"),
        (GOOD[:-2] + ", ]}", "has a comma before a closing bracket, at character"),
        (GOOD + " x", "has text after its end, at character"),
        (LIST.replace("}, {", "},, {"), "has events that are not separated by one comma"),
    ],
)
def test_what_perfetto_forgives_is_named_and_put_down_to_the_other_viewer(text, message, tmp_path):
    (tmp_path / "t.json").write_text(text)
    problem = check(tmp_path / "t.json")[0]
    assert problem.message.startswith(message)
    assert problem.message.endswith("; chrome://tracing rejects the whole file")


def test_a_problem_says_rule_place_and_what_a_viewer_makes_of_it():
    problems = check({"displayTimeUnit": "ns", "traceEvents": [x(0, 10), x(5, 10, tid=0)]})
    assert problems == [
        Problem(
            "tid", "event 1", "tid 0 is not in 1 to 2**32 - 1: Perfetto takes it for another lane"
        )
    ]


def test_a_bare_list_is_judged_like_a_file_with_one():
    assert [problem.rule for problem in check([x(0, -1)])] == ["unit", "dur"]


def test_a_file_that_is_not_there_is_an_error_and_no_verdict(tmp_path):
    with pytest.raises(TraceError, match="No such file"):
        check(tmp_path / "missing.json")


def test_any_json_gets_a_verdict():
    """Fields of every wrong kind, in every combination that 3,000 draws reach."""
    draw = random.Random(7)  # noqa: S311 - it draws cases, no secrets
    huge = 10**5000
    values = [None, True, 0, -1, 7, 2**70, huge, 0.5, 1e308, NAN, "", "7", "e", "1e999", [], [[1]]]
    values += [{}, {"a": 1}, {"a": {"b": []}}]
    phases = ["X", "B", "E", "C", "M", "i", "b", "s", "t", "f", "P", "zz", None, 3, [], {}]
    keys = ["name", "cat", "pid", "tid", "ts", "dur", "args", "id", "s", "bp", "cname"]
    for _ in range(3000):
        events = [
            {"ph": draw.choice(phases)}
            | {key: draw.choice(values) for key in keys if draw.random() < 0.8}
            for _ in range(3)
        ]
        for problem in check({"traceEvents": events, "displayTimeUnit": draw.choice(values)}):
            assert len(problem.message) < 400


def test_many_arrows_on_one_lane_take_no_quadratic_time():
    events = [x(10 * n, 5) for n in range(20_000)]
    for n in range(20_000):
        events += [flow("s", 10 * n + 1, n), flow("f", 10 * n + 2, n, bp="e")]
    assert check({"displayTimeUnit": "ns", "traceEvents": events}) == []
