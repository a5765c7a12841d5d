from __future__ import annotations

import errno
import gzip
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from opbench.errors import TraceError, TraceWriteError
from opbench.profiler import ClockAnchor, Mode, Trace, TraceEvent, check, encode, read, write
from opbench.version import __version__


def trace_of(*events, windows=((1000, 9_000_000),), **more):
    values = {
        "events": events,
        "modes": Mode.SYMBOLIC | Mode.MEMORY,
        "windows": windows,
        "dropped": 0,
        "anchor": ClockAnchor(500, 1_764_569_000_123_456_789),
        "process_names": {7: "opbench"},
        "thread_names": {(7, 8): "MainThread"},
        "metadata": {},
    }
    return Trace(**{**values, **more})


def inside(folder):
    return sorted(path.name for path in folder.iterdir())


def x(name, start, duration, tid=8, pid=7, category="imperative", **args):
    return TraceEvent(name, category, "X", start, duration, pid, tid, args)


def written(trace):
    return json.loads(encode(trace))["traceEvents"]


def lanes(trace):
    return {event["name"]: event["tid"] for event in written(trace) if event["ph"] == "X"}


def test_the_text_follows_the_rule_card_to_the_letter():
    trace = trace_of(
        x("dot", 13_345, 1_000_007, flop=3, iteration=None),
        TraceEvent("live", "memory", "C", 14_000, 0, 7, 8, {"cpu": 4.5}),
        TraceEvent("alloc", "memory", "i", 14_001, 0, 7, 8, {}),
        dropped=2,
        pauses=((2000, 3000),),
        metadata={"test": "tests/bench::dot[ü]"},
    )
    assert encode(trace).splitlines() == [
        '{"displayTimeUnit":"ns",',
        '"baseTimeNanoseconds":1764569000123457289,',
        (
            f'"otherData":{{"format":"opbench trace 1","writer":"opbench {__version__}",'
            '"modes":"symbolic + memory","dropped":2,'
            '"origin":{"monotonic_ns":1000,"wall_ns":1764569000123457289},'
            '"windows_ns":[[0,8999000]],"pauses_ns":[[1000,2000]],'
            '"metadata":{"test":"tests/bench::dot[\\u00fc]"}},'
        ),
        '"traceEvents":[',
        '{"ph":"M","name":"process_name","pid":7,"args":{"name":"opbench"}},',
        '{"ph":"M","name":"thread_name","pid":7,"tid":8,"args":{"name":"MainThread"}},',
        (
            '{"ph":"X","name":"dot","cat":"imperative","pid":7,"tid":8,"ts":12.345,'
            '"dur":1000.007,"args":{"flop":3,"iteration":null}},'
        ),
        '{"ph":"C","name":"live","cat":"memory","pid":7,"ts":13.000,"args":{"cpu":4.5}},',
        '{"ph":"i","name":"alloc","cat":"memory","pid":7,"tid":8,"ts":13.001,"s":"t","args":{}}',
        "]}",
    ]


def test_times_are_exact_to_the_nanosecond_after_a_day():
    day = 86_400 * 10**9
    (event,) = [e for e in written(trace_of(x("dot", 1000 + day + 1, 1))) if e["ph"] == "X"]
    assert round(event["ts"] * 1000) == day + 1
    assert f'"ts":{day // 1000}.001,' in encode(trace_of(x("dot", 1000 + day + 1, 1)))


def test_the_origin_is_not_later_than_the_first_event():
    assert '"ts":0.000,' in encode(trace_of(x("early", 400, 10)))
    assert '"baseTimeNanoseconds":1764569000123456689' in encode(trace_of(x("early", 400, 10)))
    assert '"baseTimeNanoseconds":1764569000123456789' in encode(trace_of(windows=()))


def test_parents_are_written_before_children_and_metadata_first():
    trace = trace_of(x("child", 2000, 5), x("later", 3000, 1), x("parent", 2000, 50))
    assert [event["name"] for event in written(trace)] == [
        "process_name",
        "thread_name",
        "parent",
        "child",
        "later",
    ]


class Broken(dict):
    """A dictionary that cannot be looked into."""

    def items(self):
        raise RuntimeError("no")


class Wordless(str):
    """Text that has none."""

    __slots__ = ()

    def __str__(self):
        raise RuntimeError("no")


def nested(depth, inside=1):
    for _ in range(depth):
        inside = [inside]
    return inside


VALUES = {
    "NaN": (float("nan"), '"nan"'),
    "infinity": (float("inf"), '"inf"'),
    "minus infinity": (float("-inf"), '"-inf"'),
    "largest integer of 64 bits": (2**63 - 1, "9223372036854775807"),
    "larger": (2**63, '"9223372036854775808"'),
    "too long for decimal digits": (10**5000, f'"{hex(10**5000)}"'),
    "half a surrogate pair": ("\ud800", '"\\ufffd"'),
    "a surrogate pair": ("\ud83d\ude00", '"\\ud83d\\ude00"'),
    "NUL": ("a\0b", '"a\\u2400b"'),
    "controls": ('"\\\t\n', '"\\"\\\\\\t\\n"'),
    "nested": ({1: (2, float("nan"))}, '{"1":[2,"nan"]}'),
    "keys of any kind": ({float("nan"): 1, ("a",): 2}, '{"nan":1,"<tuple>":2}'),
    "broken dictionary": (Broken(a=1), '"<Broken>"'),
    "broken dictionary in a list": ([Broken(a=1), 2], '["<Broken>",2]'),
    "broken text": (Wordless("\ud800"), '"<Wordless>"'),
    "as deep as is written out": (
        nested(14, {3}),
        json.dumps(nested(14, [3]), separators=(",", ":")),
    ),
    "deeper": (nested(15, {3}), json.dumps(nested(15, "<set>"), separators=(",", ":"))),
    "set": ({3}, "[3]"),
    "object": (object(), '"<object>"'),
    "mode": (Mode.API, "4"),
    "boolean": (True, "true"),
}


@pytest.mark.parametrize("case", VALUES)
def test_any_argument_becomes_strict_json(case):
    value, text = VALUES[case]
    encoded = encode(trace_of(x("dot", 2000, 1, a=value)))

    def refuse(constant):
        pytest.fail(constant)

    json.loads(encoded, parse_constant=refuse)
    assert encoded.isascii()
    assert f'"args":{{"a":{text}}}' in encoded


def test_numpy_scalars_become_plain_numbers():
    numpy = pytest.importorskip("numpy")
    args = {"a": numpy.float32(0.5), "b": numpy.int64(3), "c": numpy.bool_(True)}
    assert '"args":{"a":0.5,"b":3,"c":true}' in encode(trace_of(x("dot", 2000, 1, **args)))


def test_an_endless_structure_ends():
    loop = []
    loop.append(loop)
    deep = []
    for _ in range(5000):
        deep = [deep]
    encoded = encode(trace_of(x("dot", 2000, 1, loop=loop, deep=deep)))
    assert len(encoded) < 2000
    json.loads(encoded)


@pytest.mark.parametrize(
    "name",
    ['"', "\t", "\0", "\ud800", "𝄞", "×" * 1_000_000],
    ids=["quote", "tab", "NUL", "surrogate", "beyond 16 bits", "long"],
)
def test_names_of_any_kind_come_back(name, tmp_path):
    trace = trace_of(
        x(name, 2000, 1, category=name), thread_names={(7, 8): name}, process_names={7: name}
    )
    write(trace, tmp_path / "t.json")
    assert check(tmp_path / "t.json") == []
    wanted = {"\0": "␀", "\ud800": "\ufffd"}.get(name, name)
    process, thread, event = read(tmp_path / "t.json")["traceEvents"]
    assert process["args"]["name"] == thread["args"]["name"] == wanted
    assert event["name"] == event["cat"] == wanted


@pytest.mark.parametrize(
    ("name", "told"), [(None, "None"), (3, "3"), (("a",), "<tuple>"), (b"x", "<bytes>")]
)
def test_a_name_that_is_no_text_becomes_text(name, told):
    trace = trace_of(
        x(name, 2000, 1, category=name), thread_names={(7, 8): name}, process_names={7: name}
    )
    process, thread, event = written(trace)
    assert process["args"]["name"] == thread["args"]["name"] == told
    assert event["name"] == event["cat"] == told
    assert check(json.loads(encode(trace))) == []


def test_an_empty_name_of_a_process_or_thread_becomes_its_number():
    trace = trace_of(x("a", 2000, 1), thread_names={(7, 8): ""}, process_names={7: ""})
    assert [event["args"].get("name") for event in written(trace)] == [
        "process 7",
        "thread 8",
        None,
    ]


def test_the_name_of_a_thread_without_events_and_without_a_usable_number_is_left_out():
    trace = trace_of(x("a", 2000, 1), thread_names={(7, 8): "a", (7, 0): "b", (7, 2**32): "c"})
    assert check(json.loads(encode(trace))) == []


def test_a_slice_that_crosses_another_goes_to_a_lane_of_its_own():
    trace = trace_of(
        x("a", 2000, 100),
        x("in a", 2010, 10),
        x("crosses", 2050, 100),
        x("crosses both", 2070, 200),
        x("after", 2200, 10),
    )
    told = lanes(trace)
    assert told["a"] == told["in a"] == told["after"] == 8
    assert len({8, told["crosses"], told["crosses both"]}) == 3
    names = {e["tid"]: e["args"]["name"] for e in written(trace) if e["name"] == "thread_name"}
    assert names[told["crosses"]] == "MainThread (crossing 1)"
    assert names[told["crosses both"]] == "MainThread (crossing 2)"
    assert check(json.loads(encode(trace))) == []


def test_an_added_lane_is_no_other_threads():
    trace = trace_of(
        x("a", 2000, 100),
        x("crosses", 2050, 100),
        x("theirs", 2060, 100, tid=2**31),
        thread_names={(7, 8): "MainThread", (7, 2**31): "b", (7, 2**31 + 1): "no events"},
    )
    assert lanes(trace) == {"a": 8, "crosses": 2**31 + 2, "theirs": 2**31}
    assert check(json.loads(encode(trace))) == []


def test_slices_beyond_the_64_lanes_of_a_thread_are_counted_as_dropped():
    slices = [x(str(n), 2000 + n, 1000) for n in range(70)]
    trace = trace_of(*slices, x("after", 5000, 1), x("other", 2050, 100, tid=9), dropped=2)
    document = json.loads(encode(trace))
    told = [event["name"] for event in document["traceEvents"] if event["ph"] == "X"]
    assert sorted(told) == sorted([*(str(n) for n in range(64)), "after", "other"])
    assert document["otherData"]["dropped"] == 2 + 6
    assert check(document) == []


def test_touching_and_nested_slices_stay_on_their_lane():
    trace = trace_of(
        x("p", 2000, 100), x("first", 2000, 50), x("second", 2050, 50), x("next", 2100, 5)
    )
    assert set(lanes(trace).values()) == {8}


def test_threads_do_not_cross_each_other():
    trace = trace_of(x("a", 2000, 100), x("b", 2050, 100, tid=9), x("c", 2050, 100, pid=70))
    assert lanes(trace) == {"a": 8, "b": 9, "c": 8}


@pytest.mark.parametrize("tid", [0, -5, 2**32, 140_234_567_890_432])
def test_a_thread_number_that_no_viewer_holds_gets_another(tid):
    trace = trace_of(x("a", 2000, 5, tid=tid), thread_names={(7, tid): "worker"})
    (name, event) = [e for e in written(trace) if e["name"] != "process_name"]
    assert 1 <= event["tid"] < 2**32
    assert (name["tid"], name["args"]) == (event["tid"], {"name": "worker"})
    assert check(json.loads(encode(trace))) == []


@pytest.mark.parametrize("pid", [0, -1, 2**32])
def test_a_process_number_that_no_viewer_holds_is_refused(pid):
    with pytest.raises(TraceError, match=f"process number {pid} does not fit"):
        encode(trace_of(x("a", 2000, 5, pid=pid)))


def test_what_was_written_reads_back_the_same(tmp_path):
    trace = trace_of(x("dot", 2000, 5, flop=3))
    write(trace, tmp_path / "t.json")
    assert read(tmp_path / "t.json") == json.loads(encode(trace))
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(encode(trace).encode()))
    assert read(str(tmp_path / "t.json.gz")) == json.loads(encode(trace))


def test_a_long_trace_is_written_whole(tmp_path):
    trace = trace_of(*(x(f"{n % 7}", 2000 + n, 1, n=n) for n in range(10_000)))
    write(trace, tmp_path / "t.json")
    assert (tmp_path / "t.json").read_text() == encode(trace)


def test_a_file_that_stood_there_is_replaced(tmp_path):
    target = tmp_path / "t.json"
    target.write_text("x" * 10_000_000)
    write(trace_of(), target)
    assert target.read_text() == encode(trace_of())
    assert inside(tmp_path) == ["t.json"]


def test_the_file_is_as_readable_as_any_other(tmp_path):
    write(trace_of(), tmp_path / "t.json")
    (tmp_path / "plain").write_text("")
    assert (tmp_path / "t.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path, mode):
    (tmp_path / "t.json").write_text("old")
    (tmp_path / "t.json").chmod(mode)
    write(trace_of(), tmp_path / "t.json")
    assert stat.S_IMODE((tmp_path / "t.json").stat().st_mode) == mode
    assert (tmp_path / "t.json").read_text() == encode(trace_of())


def test_a_symbolic_link_is_followed(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link.json").symlink_to(tmp_path / "there" / "t.json")
    write(trace_of(), tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "there" / "t.json").read_text() == encode(trace_of())


def test_on_a_full_disk_the_old_file_stays(tmp_path, monkeypatch):
    target = tmp_path / "t.json"
    target.write_text("old")
    real = os.write

    def full(handle, data):
        if len(data) > 100:
            return real(handle, data[:100])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(TraceWriteError) as caught:
        write(trace_of(x("dot", 2000, 5)), target)
    monkeypatch.undo()
    assert str(target) in str(caught.value)
    assert "No space left on device" in str(caught.value)
    assert "make room or choose" in str(caught.value)
    assert isinstance(caught.value, OSError)
    assert target.read_text() == "old"
    assert inside(tmp_path) == ["t.json"]


def test_past_a_real_limit_of_the_file_size_the_old_file_stays(tmp_path):
    target = tmp_path / "t.json"
    target.write_text("old")
    program = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))\n"
        "from opbench.errors import TraceWriteError\n"
        "from opbench.profiler import Profiler, write\n"
        "recorder = Profiler()\n"
        "recorder.run(15, 'test')\n"
        "for _ in range(50): recorder.instant('x', 'api')\n"
        "try:\n    write(recorder.stop('test'), sys.argv[1])\n"
        "except TraceWriteError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", program, str(target)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert "File too large" in done.stdout
    assert target.read_text() == "old"
    assert inside(tmp_path) == ["t.json"]


def test_an_interrupt_while_writing_leaves_nothing_behind(tmp_path, monkeypatch):
    def interrupted(handle, data):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(trace_of(), tmp_path / "t.json")
    assert inside(tmp_path) == []


def test_a_trace_that_cannot_be_encoded_touches_no_file(tmp_path):
    (tmp_path / "t.json").write_text("old")
    with pytest.raises(TraceError, match="process number 0"):
        write(trace_of(x("a", 2000, 5, pid=0)), tmp_path / "t.json")
    assert (tmp_path / "t.json").read_text() == "old"
    assert inside(tmp_path) == ["t.json"]


@pytest.mark.parametrize("place", ["missing/t.json", "file/t.json", "folder", "pipe", "a\0.json"])
def test_an_impossible_place_is_said_with_the_path(tmp_path, place):
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    before = inside(tmp_path)
    with pytest.raises(TraceWriteError) as caught:
        write(trace_of(), str(tmp_path / place))
    assert f"cannot write the trace to {tmp_path}" in str(caught.value)
    assert inside(tmp_path) == before
    assert inside(tmp_path / "folder") == []


def test_a_temporary_file_of_a_killed_process_is_no_obstacle(tmp_path, monkeypatch):
    from opbench.profiler import chrome

    left = tmp_path / f".t.json.{os.getpid()}-0.tmp"
    left.write_text("left behind")
    monkeypatch.setattr(chrome, "TEMPORARY_NAMES", iter(range(9)))
    write(trace_of(), tmp_path / "t.json")
    assert left.read_text() == "left behind"
    assert (tmp_path / "t.json").read_text() == encode(trace_of())


def test_a_name_as_long_as_the_system_allows_can_be_written(tmp_path):
    write(trace_of(), tmp_path / ("ü" * 125 + ".json"))
    assert len(inside(tmp_path)) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is no strict JSON"),
        ('{"traceEvents":[{"ts":NaN}]}', "NaN is no JSON number"),
        ('{"events":[]}', "no list 'traceEvents'"),
        ('"text"', "no list 'traceEvents'"),
        ("[" * 100_000, "is no strict JSON"),
    ],
)
def test_what_is_no_trace_is_refused_with_path_and_reason(tmp_path, text, reason):
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(TraceError) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert reason in str(caught.value)


def test_files_that_cannot_be_read_are_said_so(tmp_path):
    with pytest.raises(TraceError, match="No such file"):
        read(tmp_path / "missing.json")
    packed = gzip.compress(encode(trace_of(x("dot", 2000, 5))).encode())
    damaged = {
        "torn": packed[:-4],
        "torn early": packed[:12],
        "flipped": packed[:40] + bytes([packed[40] ^ 255]) + packed[41:],
        "header": packed[:2] + b"\xff" + packed[3:],
        "magic": packed[:2],
        "tail": packed[:-8] + bytes(8),
    }
    for case, data in damaged.items():
        (tmp_path / f"{case}.gz").write_bytes(data)
        for reader in (read, check):
            with pytest.raises(TraceError, match=rf"cannot unpack .*{case}\.gz.*copy it again"):
                reader(tmp_path / f"{case}.gz")
    (tmp_path / "latin.json").write_bytes(b'["\xfc"]')
    with pytest.raises(TraceError, match="no text in UTF-8"):
        read(tmp_path / "latin.json")
