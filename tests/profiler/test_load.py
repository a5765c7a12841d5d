"""Traces from files: ours come back as they were, others as far as they can be told."""

from __future__ import annotations

import gzip
import json
import random

import pytest

from opbench.errors import TraceError
from opbench.profiler import Lane, Mode, Profiler, check, load, load_file, summary, write


def full_trace(recorder, clock):
    """Something of every kind that a trace can hold."""
    recorder.run("api+memory", "test")
    lane = Lane("numba workers", 2, "worker 1")
    start = recorder.clock()
    clock.advance(100)
    recorder.complete("chunk", "worker", start + 20, start + 80, {"items": 7}, lane=lane)
    recorder.complete("op", "api", start, start + 100, {"é": [1, {"x": None}]})
    recorder.flow("go", "worker", (start + 5, None), (start + 20, lane))
    recorder.span("frame", "api", start + 1, start + 95, {"n": 1})
    recorder.span("frame", "api", start + 50, start + 99)
    recorder.pause()
    clock.advance(10)
    recorder.resume()
    recorder.counter("live", {"bytes": 12, "share": 0.5})
    recorder.instant("thread", "memory", {"bytes": 8})
    recorder.instant("process", "memory", scope="p")
    clock.advance(1)
    return recorder.stop("test").with_metadata({"test": "this"})


def write_text(path, document):
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def shape(trace):
    return [(e.name, e.phase, e.start_ns, e.duration_ns) for e in trace.events]


def test_what_was_written_comes_back_as_it_was(recorder, clock, tmp_path):
    trace = full_trace(recorder, clock)
    write(trace, tmp_path / "t.json")
    loaded = load_file(tmp_path / "t.json")
    assert loaded.trace == trace
    assert (loaded.ours, loaded.growing, loaded.notes) == (True, False, ())


def test_twice_written_it_is_the_same_text(recorder, clock, tmp_path):
    write(full_trace(recorder, clock), tmp_path / "1.json")
    write(load(tmp_path / "1.json"), tmp_path / "2.json")
    assert (tmp_path / "1.json").read_bytes() == (tmp_path / "2.json").read_bytes()


def test_a_packed_file_is_read_too(recorder, clock, tmp_path):
    trace = full_trace(recorder, clock)
    write(trace, tmp_path / "t.json")
    (tmp_path / "t.json.gz").write_bytes(gzip.compress((tmp_path / "t.json").read_bytes()))
    assert load(tmp_path / "t.json.gz") == trace


def test_cut_off_anywhere_a_file_gives_what_stands_before_the_cut(recorder, clock, tmp_path):
    trace = full_trace(recorder, clock)
    write(trace, tmp_path / "t.json")
    text = (tmp_path / "t.json").read_text()
    slices = [e for e in trace.events if e.phase == "X"]
    start = text.index('"traceEvents"')
    chance = random.Random(1)  # noqa: S311 - no secret
    for cut in sorted(chance.sample(range(start + 20, len(text) - 3), 60)):
        write_text(tmp_path / "cut.json", text[:cut])
        if '"ph"' not in text[start:cut].partition("\n")[2].partition("\n")[0]:
            continue
        try:
            loaded = load_file(tmp_path / "cut.json")
        except TraceError:
            assert text[start:cut].count("}},\n") == 0  # not one whole event
            continue
        whole = [e for e in slices if f'"name":"{e.name}"' in text[:cut].rpartition("},\n")[0]]
        found = [e for e in loaded.trace.events if e.phase == "X"]
        assert [e for e in found if "unfinished" not in e.args] == whole
        assert "damaged" in loaded.notes[0]


MXNET = """{
  "traceEvents": [
    {"ph": "M", "args": {"name": "cpu/0"}, "pid": 0, "name": "process_name"},
    {"name": "dot", "cat": "operator", "ph": "B", "ts": 1700000000000100, "pid": 0, "tid": 7700},
    {"name": "dot", "cat": "operator", "ph": "E", "ts": 1700000000000900, "pid": 0, "tid": 7700},
    {"ph": "M", "args": {"name": "operator"}, "pid": 9223372036854775001, "name": "process_name"},
    {"name": "dot", "cat": "operator", "ph": "b", "ts": 1700000000000100, "id": 7700,
     "pid": 9223372036854775001, "tid": 7700},
    {"name": "dot", "cat": "operator", "ph": "e", "ts": 1700000000000895, "id": 7700,
     "pid": 9223372036854775001, "tid": 7700},
    {"name": "job", "cat": "mine", "ph": "b", "ts": 1700000000000200, "id": 3, "pid": 5, "tid": 1},
    {"name": "job", "cat": "mine", "ph": "b", "ts": 1700000000000300, "id": 3, "pid": 5, "tid": 1},
    {"name": "job", "cat": "mine", "ph": "e", "ts": 1700000000000400, "id": 3, "pid": 5, "tid": 1},
    {"name": "job", "cat": "mine", "ph": "e", "ts": 1700000000000500, "id": 3, "pid": 5, "tid": 1},
    {"name": "heap", "cat": "pool", "ph": "C", "ts": 1700000000000950, "args": {"heap": 4096},
     "pid": 5002, "tid": 78}
"""


@pytest.mark.parametrize("end", ['], "displayTimeUnit": "ms"}', ""], ids=["whole", "killed"])
def test_mxnets_traces_are_read_and_each_operator_counts_once(end, tmp_path):
    loaded = load_file(write_text(tmp_path / "m.json", MXNET + end))
    trace = loaded.trace
    at = 1_700_000_000_000_000_000
    assert shape(trace) == [
        ("dot", "X", at + 100_000, 800_000),
        ("job", "b", at + 200_000, 300_000),
        ("job", "b", at + 300_000, 100_000),
        ("heap", "C", at + 950_000, 0),
    ]
    assert "1 operator stood in it a second time" in loaded.notes
    assert all(1 <= event.pid < 2**32 for event in trace.events)
    table = summary(trace)
    assert [line.split()[:2] for line in table.splitlines() if line.startswith(("dot", "job"))] == [
        ["job", "2"],
        ["dot", "1"],
    ]
    write(trace, tmp_path / "ours.json")
    assert check(tmp_path / "ours.json") == []


def test_torchs_traces_are_read(tmp_path):
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 3, "tid": 3, "ts": 10.5,
         "dur": 2.25, "args": {"External id": 1}},
        {"ph": "X", "cat": "Trace", "name": "whole", "pid": "Spans", "tid": "PyTorch", "ts": 9.0,
         "dur": 5.0},
        {"ph": "s", "id": 1, "pid": 3, "tid": 3, "ts": 10.5, "cat": "fwdbwd", "name": "fwdbwd"},
        {"ph": "f", "id": 1, "pid": 3, "tid": 3, "ts": 11.5, "cat": "fwdbwd", "name": "fwdbwd",
         "bp": "e"},
        {"ph": "i", "s": "g", "name": "end", "pid": "Traces", "tid": "x", "ts": 14.0},
    ]  # fmt: skip
    document = {"traceEvents": events, "baseTimeNanoseconds": 1_700_000_000_000_000_000}
    trace = load(write_text(tmp_path / "t.json", document))
    assert shape(trace) == [
        ("whole", "X", 9000, 5000),
        ("aten::add", "X", 10_500, 2250),
        ("fwdbwd", "s", 10_500, 0),
        ("fwdbwd", "f", 11_500, 0),
        ("end", "i", 14_000, 0),
    ]
    assert trace.windows == ((9000, 14_000),)
    assert trace.anchor.wall_at(9000) == 1_700_000_000_000_009_000
    write(trace, tmp_path / "ours.json")
    assert check(tmp_path / "ours.json") == []


STRANGE = {
    "byte-order mark": ("\ufeff[" + '{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}]', 1),
    "raw tab": ('[{"ph":"X","name":"a\tb","pid":1,"tid":1,"ts":1,"dur":1}]', 1),
    "NaN": ('[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"args":{"x":NaN}}]', 1),
    "NaN counter": ('[{"ph":"C","name":"a","pid":1,"ts":1,"args":{"x":NaN,"y":2}}]', 1),
    "only NaN": ('[{"ph":"C","name":"a","pid":1,"ts":1,"args":{"x":NaN}}]', 0),
    "time that is NaN": ('[{"ph":"X","name":"a","pid":1,"tid":1,"ts":NaN,"dur":1}]', 0),
    "no dur": ('[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1}]', 0),
    "commas": ('[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1},,]', 1),
    "text behind": ('[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}]xyz', 1),
    "no event": ("[3, null, [], {}]", 0),
    "numbers as text": ('[{"ph":"X","name":"a","pid":"1","tid":"t","ts":"1","dur":"2"}]', 1),
    "no pid": ('[{"ph":"X","name":"a","ts":1,"dur":1}]', 1),
    "ids that are lists": ('[{"ph":"X","name":"a","pid":[1],"tid":{},"ts":1,"dur":1}]', 1),
    "an end alone": ('[{"ph":"E","name":"a","pid":1,"tid":1,"ts":1}]', 0),
    "half an arrow": ('[{"ph":"s","name":"a","pid":1,"tid":1,"ts":1,"id":1}]', 0),
    "negative time": ('[{"ph":"X","name":"a","pid":1,"tid":1,"ts":-5,"dur":1}]', 1),
    "huge time": ('[{"ph":"i","name":"a","pid":1,"tid":1,"ts":1e300}]', 1),
}


@pytest.mark.parametrize("case", STRANGE)
def test_strange_files_are_read_and_written_by_the_rules(case, tmp_path):
    text, count = STRANGE[case]
    trace = load(write_text(tmp_path / "t.json", text))
    assert len(trace.events) == count
    write(trace, tmp_path / "ours.json")
    assert [p.rule for p in check(tmp_path / "ours.json") if p.rule != "precision"] == []


@pytest.mark.parametrize("text", ["", "   ", "nothing", '"text"', "3", "{}", '{"a": 1}', "{"])
def test_what_is_no_trace_is_refused(text, tmp_path):
    with pytest.raises(TraceError, match=r"t\.json holds no trace"):
        load(write_text(tmp_path / "t.json", text))
    with pytest.raises(TraceError, match="cannot read the trace"):
        load(tmp_path / "missing.json")


def test_pairs_become_slices_with_the_arguments_of_both(tmp_path):
    common = {"pid": 1, "tid": 1}
    events = [
        {"ph": "B", "name": "outer", "ts": 1, "args": {"a": 1}, **common},
        {"ph": "B", "name": "inner", "ts": 2, **common},
        {"ph": "E", "ts": 3, **common},
        {"ph": "E", "name": "outer", "ts": 9, "args": {"b": 2}, **common},
        {"ph": "B", "name": "open", "ts": 4, **common},
    ]
    trace = load(write_text(tmp_path / "t.json", events))
    assert [(e.name, e.start_ns, e.duration_ns, dict(e.args)) for e in trace.events] == [
        ("outer", 1000, 8000, {"a": 1, "b": 2}),
        ("inner", 2000, 1000, {}),
        ("open", 4000, 5000, {"unfinished": True}),
    ]


def test_an_id_that_is_used_again_is_two_arrows(tmp_path):
    common = {"pid": 1, "tid": 1, "name": "go", "cat": "x", "id": 5}
    slices = [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 0, "dur": 50}]
    arrows = [{"ph": phase, "ts": ts, **common} for ts, phase in enumerate("sfsf")]
    trace = load(write_text(tmp_path / "t.json", slices + arrows))
    ids = [event.id for event in trace.events if event.phase in "sf"]
    assert ids[0] == ids[1] == 5
    assert ids[2] == ids[3] not in (0, 5)


def test_a_recorder_of_a_real_clock_comes_back_too(tmp_path):
    recorder = Profiler()
    recorder.run("all", "test")
    for number in range(100):
        start = recorder.clock()
        recorder.complete("a", "api", start, recorder.clock(), {"n": number})
    trace = recorder.stop("test")
    write(trace, tmp_path / "t.json")
    back = load(tmp_path / "t.json")
    assert back.events == trace.events
    assert (back.windows, back.modes, back.cost) == (trace.windows, Mode.ALL, trace.cost)
