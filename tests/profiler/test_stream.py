"""Continuous dump: what its file holds at every moment, and what becomes of it."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from opbench.errors import TraceWriteError
from opbench.profiler import Profiler, check, load, load_file
from opbench.profiler.doors import WindowStore
from opbench.profiler.stream import THREAD, Stream
from opbench.profiler.streamfile import StreamFile, being_written

ROOT = Path(__file__).parents[2]
NEVER = 1e6  # seconds: the test itself says when to write


def events(path):
    return [
        event["name"]
        for event in json.loads(Path(path).read_text())
        if event["ph"] in "XC" or event["name"] == "mark"
    ]


def open_spans(path):
    return [event["name"] for event in json.loads(Path(path).read_text()) if event["ph"] == "B"]


def emit(recorder, clock, name, ns=10):
    start = recorder.clock()
    clock.advance(ns)
    recorder.complete(name, "api", start, recorder.clock())


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t.json")


@pytest.fixture
def stream(recorder, path):
    recorder.run("all", "me")
    stream = Stream(recorder, path, NEVER, "me", {"test": "this"})
    stream.start()
    yield stream
    stream.end()


def test_after_each_flush_the_file_is_a_strict_list_of_all_events_so_far(
    stream, recorder, clock, path
):
    assert events(path) == []
    for number in range(3):
        emit(recorder, clock, f"op {number}")
        assert events(path) == [f"op {n}" for n in range(number)]  # not before the flush
        assert stream.flush() == ""
        assert events(path) == [f"op {n}" for n in range(number + 1)]
    assert check(path) == []


def test_what_is_open_stands_at_the_end_and_goes_when_it_closes(stream, recorder, clock, path):
    outer = recorder.mark_open("outer", "iteration", recorder.clock())
    clock.advance(1)
    inner = recorder.mark_open("a long inner name" * 20, "api", recorder.clock())
    stream.flush()
    assert open_spans(path) == ["window of me", "outer", "a long inner name" * 20]
    recorder.mark_closed(inner)
    stream.flush()  # what is written now is shorter than what it overwrites
    assert open_spans(path) == ["window of me", "outer"]
    recorder.mark_closed(outer)
    emit(recorder, clock, "op")
    recorder.stop("me")
    assert (open_spans(path), events(path)) == ([], ["op"])


def test_a_mark_of_a_stopped_recorder_is_none(recorder):
    assert recorder.mark_open("x", "api", 1) == 0
    recorder.mark_closed(0)


def test_a_killed_ones_file_tells_what_a_finished_one_does(stream, recorder, clock, path):
    emit(recorder, clock, "op")
    recorder.pause()
    clock.advance(5)
    recorder.resume()
    mark = recorder.mark_open("iteration 3", "iteration", recorder.clock(), {"iteration": 3})
    emit(recorder, clock, "late")
    stream.flush()
    copy = path + ".copy"
    shutil.copy(path, copy)
    recorder.mark_closed(mark)
    loaded = load_file(copy)
    trace = loaded.trace
    assert (loaded.ours, loaded.growing) == (True, True)
    assert [(e.name, e.start_ns, e.duration_ns) for e in trace.events] == [
        ("window of me", 1_000_000, 25),
        ("op", 1_000_000, 10),
        ("iteration 3", 1_000_015, 10),
        ("late", 1_000_015, 10),
    ]
    assert [e.args.get("unfinished") for e in trace.events] == [True, None, True, None]
    assert trace.windows == ((1_000_000, 1_000_025),)
    assert trace.pauses == ((1_000_010, 1_000_015),)
    assert trace.metadata == {"test": "this"}
    assert trace.anchor.wall_at(1_000_000) == 1_764_569_000_123_456_789
    assert loaded.notes == ("2 spans never ended, and end with the trace now",)


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_a_torn_end_costs_nothing_but_the_torn_lines(stream, recorder, clock, path, cut):
    emit(recorder, clock, "first")
    stream.flush()
    emit(recorder, clock, "second")
    stream.flush()
    stream.end()
    text = Path(path).read_text()
    at = text.index('"second"') + 10  # in the middle of the line
    Path(path).write_text(text[: at + cut])
    loaded = load_file(path)
    assert [event.name for event in loaded.trace.events] == ["first"]
    assert "damaged" in loaded.notes[0]
    assert loaded.trace.anchor.wall_at(1_000_000) == 1_764_569_000_123_456_789  # of the first line


def test_two_windows_go_into_one_file(stream, recorder, clock, path):
    emit(recorder, clock, "one")
    first = recorder.stop("me")
    clock.advance(100)
    recorder.run("api", "somebody else")
    emit(recorder, clock, "theirs")
    recorder.stop("somebody else")
    recorder.run("api", "me")
    emit(recorder, clock, "two")
    second = recorder.stop("me")
    stream.end()
    assert events(path) == ["one", "two"]
    assert load(path).windows == first.windows + second.windows


def test_finished_it_is_the_very_file_that_would_have_been_written_at_once(
    stream, recorder, clock, path
):
    emit(recorder, clock, "child")
    stream.flush()
    recorder.complete("parent", "api", 1_000_000, recorder.clock())
    trace = recorder.stop("me")
    stream.finish(trace, path)
    assert check(path) == []
    assert load(path) == trace.with_metadata({"test": "this"})
    assert not being_written(path)


def test_a_long_recording_lives_in_the_file_and_is_complete(clock, wall_clock, path):
    recorder = Profiler(clock, wall_clock, capacity=100)
    recorder.run("all", "me")
    stream = Stream(recorder, path, NEVER, "me")
    stream.start()
    for number in range(1000):
        emit(recorder, clock, f"op {number}")
        if number % 50 == 49:
            stream.flush()
    trace = recorder.stop("me")
    assert trace.dropped == 0
    assert trace.spilled + len(trace.events) == 1000
    assert len(trace.events) <= 200
    stream.finish(trace, path)
    whole = load(path)
    assert [event.name for event in whole.events] == [f"op {number}" for number in range(1000)]
    assert (whole.windows, check(path)) == (trace.windows, [])


def test_a_full_disk_costs_no_event_that_memory_has_room_for(
    recorder, clock, path, monkeypatch, capsys
):
    recorder.configure(capacity=5)
    recorder.run("all", "me")
    stream = Stream(recorder, path, NEVER, "me")
    stream.start()
    emit(recorder, clock, "first")
    stream.flush()
    before = Path(path).read_bytes()
    write = os.write
    full = [True]

    def short(handle, data):
        if full[0] and len(data) > 60:
            write(handle, bytes(data)[:50])  # some of it still fits
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(handle, data)

    monkeypatch.setattr(os, "write", short)
    for number in range(7):
        emit(recorder, clock, f"op {number}")
        assert "No space left on device" in stream.flush()
        full[0] = True
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "does not get on: No space left on device; the run goes on" in told
    full[0] = False
    assert stream.flush() == ""
    assert len(Path(path).read_bytes()) > len(before)
    # One of five was in the file already and made room for another.
    assert events(path) == ["first", "op 0", "op 1", "op 2", "op 3", "op 4"]
    trace = recorder.stop("me")
    assert (trace.dropped, trace.spilled) == (2, 1)
    stream.end()
    assert load(path).dropped == 2


def test_a_write_that_failed_leaves_what_stood_there(path, monkeypatch):
    file = StreamFile.open_at(path, ['{"a":1}'])
    file.append(['{"b":2}'], ['{"tail":1}'])
    before = Path(path).read_bytes()
    write = os.write
    calls = []

    def once(handle, data):
        calls.append(1)
        if len(calls) == 1:
            write(handle, bytes(data)[:9])
            raise OSError(errno.ENOSPC, "full")
        return write(handle, data)

    monkeypatch.setattr(os, "write", once)
    with pytest.raises(OSError, match="full"):
        file.append(['{"c":3}'] * 9, [])
    assert Path(path).read_bytes() == before
    file.append(['{"c":3}'], [])
    assert json.loads(Path(path).read_text()) == [{"a": 1}, {"b": 2}, {"c": 3}]
    file.close()


def test_a_folder_that_goes_away_is_said_once_and_the_trace_is_not_lost(
    stream, recorder, clock, path, capsys
):
    emit(recorder, clock, "first")
    stream.flush()
    shutil.rmtree(Path(path).parent)
    for name in ("second", "third"):
        emit(recorder, clock, name)
        assert "removed or replaced" in stream.flush()
    trace = recorder.stop("me")
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(TraceWriteError):
        stream.finish(trace, path)
    Path(path).parent.mkdir()
    stream.finish(trace, path)
    assert [event.name for event in load(path).events] == ["first", "second", "third"]


def test_the_period_is_kept_without_anybody_asking(path):
    recorder = Profiler()
    recorder.run("all", "me")
    stream = Stream(recorder, path, 0.01, "me")
    stream.start()
    recorder.instant("mark", "api")
    late = time.monotonic() + 60
    while events(path) != ["mark"] and time.monotonic() < late:
        time.sleep(0.005)
    assert events(path) == ["mark"]
    recorder.stop("me")
    stream.end()


def test_a_half_full_buffer_is_written_before_its_time(path):
    recorder = Profiler(capacity=20)
    recorder.run("all", "me")
    stream = Stream(recorder, path, NEVER, "me")
    stream.start()
    for _ in range(10):
        recorder.instant("mark", "api")
    late = time.monotonic() + 60
    while len(events(path)) < 10 and time.monotonic() < late:
        time.sleep(0.01)
    assert len(events(path)) == 10
    recorder.stop("me")
    stream.end()


def test_flushes_of_many_threads_write_each_event_once(path):
    recorder = Profiler()
    recorder.run("all", "me")
    stream = Stream(recorder, path, NEVER, "me")
    stream.start()

    def work(which):
        for number in range(100):
            start = recorder.clock()
            recorder.complete(f"{which} {number}", "api", start, recorder.clock())
            if number % 10 == 0:
                stream.flush()

    threads = [threading.Thread(target=work, args=(which,)) for which in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    recorder.stop("me")
    stream.end()
    assert sorted(events(path)) == sorted(f"{w} {n}" for w in range(8) for n in range(100))


def writing_threads():
    return [thread for thread in threading.enumerate() if thread.name == THREAD]


class SlowToEnd(threading.Event):
    """What a stream's thread waits on; on a busy machine it wakes up late."""

    def wait(self, timeout=None):
        told = super().wait(timeout)
        if told and threading.current_thread().name == THREAD:
            time.sleep(0.2)
        return told


@pytest.mark.parametrize("way", ["end", "finish"])
def test_when_it_has_ended_no_thread_of_it_runs_beside_what_is_timed_next(
    way, recorder, clock, path
):
    others = writing_threads()
    recorder.run("all", "me")
    stream = Stream(recorder, path, 0.005, "me")
    stream._ended = SlowToEnd()
    stream.start()
    assert len(writing_threads()) == len(others) + 1
    emit(recorder, clock, "op")
    trace = recorder.stop("me")
    stream.end() if way == "end" else stream.finish(trace, path)
    assert writing_threads() == others
    stream.end()
    assert [event.name for event in load(path).events] == ["op"]


class Waited:
    """A thread that tells whether the stream's lock was free while it was waited for."""

    def __init__(self, stream):
        self.stream = stream
        self.told = []

    def join(self, limit):
        assert 0 < limit < 60
        other = threading.Thread(target=self.look)
        other.start()
        other.join()

    def look(self):
        free = self.stream._lock.acquire(blocking=False)
        self.told.append(free)
        if free:
            self.stream._lock.release()


def test_an_end_in_the_middle_of_a_flush_does_not_wait_for_what_waits_for_it(
    recorder, clock, path, monkeypatch
):
    recorder.run("all", "me")
    stream = Stream(recorder, path, NEVER, "me")
    stream.start()
    thread, stream._thread = stream._thread, Waited(stream)
    waited = stream._thread
    write = os.write
    inside = []

    def interrupted(handle, data):  # as by a signal handler
        monkeypatch.setattr(os, "write", write)
        stream.end()
        inside.append(list(waited.told))
        return 0

    emit(recorder, clock, "op")
    monkeypatch.setattr(os, "write", interrupted)
    assert stream.flush() == ""
    assert inside == [[]]
    assert waited.told == [True]
    thread.join(60)


def test_an_end_on_the_writing_thread_itself_does_not_wait_for_itself(
    recorder, clock, path, monkeypatch
):
    others = writing_threads()
    recorder.run("all", "me")
    stream = Stream(recorder, path, 0.001, "me")
    ended = threading.Event()

    def append(*_):
        if threading.current_thread().name == THREAD:
            stream.end()
            ended.set()

    stream.start()
    monkeypatch.setattr(StreamFile, "append", append)
    emit(recorder, clock, "op")
    assert ended.wait(60)
    stream.end()  # what the thread raised would be a failure of this test
    assert writing_threads() == others


def test_what_is_abandoned_waits_for_no_thread_and_no_lock(recorder, path):
    recorder.run("all", "me")
    stream = Stream(recorder, path, NEVER, "me")
    stream.start()
    thread, stream._thread = stream._thread, Waited(stream)
    waited = stream._thread
    # Of the parent's threads that held them nobody lives in a forked child.
    ended = stream._ended
    with ended._cond:
        stop = threading.Thread(target=stream.abandon)
        stop.start()
        stop.join(60)
        assert not stop.is_alive()
    assert waited.told == []
    ended.set()
    thread.join(60)


def test_a_flush_ends_though_events_come_faster_than_they_are_written(
    recorder, clock, path, monkeypatch
):
    recorder.run("all", "me")
    stream = Stream(recorder, path, NEVER, "me")
    stream.start()
    append = StreamFile.append

    def slow(self, lines, tail):
        for _ in range(5000):  # more than a batch
            emit(recorder, clock, "meanwhile")
        append(self, lines, tail)

    emit(recorder, clock, "op")
    monkeypatch.setattr(StreamFile, "append", slow)
    assert stream.flush() == ""
    monkeypatch.undo()
    assert "op" in events(path)
    recorder.stop("me")
    stream.end()


def test_a_signal_in_the_middle_of_a_flush_does_not_write_into_it(
    stream, recorder, clock, path, monkeypatch
):
    write = os.write

    def interrupted(handle, data):
        monkeypatch.setattr(os, "write", write)
        emit(recorder, clock, "from the handler")
        assert stream.flush() == ""
        return write(handle, data)

    emit(recorder, clock, "op")
    monkeypatch.setattr(os, "write", interrupted)
    assert stream.flush() == ""
    assert events(path) == ["op"]
    stream.flush()
    assert events(path) == ["op", "from the handler"]


# through the doors


@pytest.fixture
def session(recorder):
    session = WindowStore(recorder)
    yield session
    if recorder.state == "run":
        session.set_state("stop")
        session.dump()


def test_the_doors_let_the_file_grow_and_finish_it(session, recorder, clock, path):
    session.set_config(profile_api=True, filename=path, continuous_dump=True, dump_period=NEVER)
    assert not Path(path).exists()
    session.set_state("run")
    emit(recorder, clock, "one")
    session.dump(finished=False)
    assert events(path) == ["one"]
    assert recorder.state == "run"
    session.set_state("stop")
    session.set_state("run")
    emit(recorder, clock, "two")
    session.dump()
    assert check(path) == []
    assert [event.name for event in load(path).events] == ["one", "two"]
    first = Path(path).read_bytes()
    session.dump()
    assert Path(path).read_bytes() == first
    session.set_state("run")
    emit(recorder, clock, "three")
    session.dump()
    assert [event.name for event in load(path).events] == ["three"]


def test_a_dump_that_cannot_be_brought_up_to_date_is_an_error(session, recorder, clock, path):
    session.set_config(profile_api=True, filename=path, continuous_dump=True, dump_period=NEVER)
    session.set_state("run")
    Path(path).unlink()
    with pytest.raises(TraceWriteError, match="removed or replaced"):
        session.dump(finished=False)
    session.dump()
    assert check(path) == []


def test_a_second_name_gets_the_whole_trace_too(session, clock, wall_clock, tmp_path):
    recorder = Profiler(clock, wall_clock, capacity=10)
    session = WindowStore(recorder)
    one, two = str(tmp_path / "one.json"), str(tmp_path / "two.json")
    session.set_config(profile_api=True, filename=one, continuous_dump=True, dump_period=NEVER)
    session.set_state("run")
    for number in range(50):
        emit(recorder, clock, f"op {number}")
        if number % 5 == 0:
            session.dump(finished=False)
    session.dump()
    session.set_config(profile_api=True, filename=two)
    session.dump()
    assert Path(two).read_bytes() == Path(one).read_bytes()
    assert len(load(two).events) == 50


PROGRAM = """
import os, signal, sys, threading, time
from opbench import profiler
RECORDER = profiler.RECORDER
def start(path="t.json", period=0.005):
    profiler.set_config(
        profile_api=True, filename=path, continuous_dump=True, dump_period=period)
    profiler.set_state("run")
def emit(name):
    begin = RECORDER.clock()
    RECORDER.complete(name, "api", begin, RECORDER.clock())
"""


def program(text, folder, code=0):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM + text],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


def names(path):
    return [event.name for event in load(path).events if event.category == "api"]


def test_a_process_that_ends_finishes_its_file(tmp_path):
    done = program('start(); emit("a")', tmp_path)
    assert (done.stderr, check(tmp_path / "t.json")) == ("", [])
    assert names(tmp_path / "t.json") == ["a"]


def test_a_forked_child_leaves_the_file_to_its_parent(tmp_path):
    text = """
start(); emit("before")
pid = os.fork()
if pid == 0:
    emit("child"); profiler.RECORDER.state; sys.exit()
os.waitpid(pid, 0)
emit("after")
profiler.dump()
"""
    program(text, tmp_path)
    assert names(tmp_path / "t.json") == ["before", "after"]
    assert check(tmp_path / "t.json") == []


def test_two_processes_with_one_name_have_two_whole_files(tmp_path):
    text = """
start(); emit("first")
import subprocess
subprocess.run([sys.executable, "-c", sys.argv[1]], check=True)
emit("last")
profiler.dump()
"""
    other = PROGRAM + 'start(); emit("other"); profiler.dump()'
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + text, other],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    own = tmp_path / "t.json"
    (theirs,) = (path for path in tmp_path.iterdir() if path != own)
    assert names(own) == ["first", "last"]
    assert names(theirs) == ["other"]
    assert done.stderr.count("\n") == 1
    assert str(theirs) in done.stderr


def test_a_dump_from_a_signal_handler_in_the_middle_of_work(tmp_path):
    text = """
start(period=0.001)
def handler(number, frame):
    emit("handler"); profiler.dump(False)
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
late = time.monotonic() + 0.3
count = 0
while time.monotonic() < late:
    emit(f"work {count}"); count += 1
    profiler.dump(False) if count % 100 == 0 else None
signal.setitimer(signal.ITIMER_REAL, 0)
profiler.dump()
print(count)
"""
    count = int(program(text, tmp_path).stdout)
    found = names(tmp_path / "t.json")
    assert [name for name in found if name != "handler"] == [f"work {n}" for n in range(count)]
    assert check(tmp_path / "t.json") == []


CHILD = """
start()
RECORDER.mark_open("iteration 7", "iteration", RECORDER.clock())
def work():
    number = 0
    while True:
        emit(f"{threading.current_thread().name} {number}")
        number += 1
        if number == 20 and threading.current_thread().name == "a":
            os.write(1, b"going")
        time.sleep(0.0002)
for which in "ab":
    threading.Thread(target=work, name=which, daemon=True).start()
time.sleep(60)
"""


@pytest.mark.parametrize("turn", range(8))
def test_a_process_killed_at_any_moment_leaves_a_file_that_loads(turn, tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM + CHILD],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    ) as child:
        try:
            assert child.stdout.read(5) == b"going"
            time.sleep(0.013 * (turn + 1) % 0.05)  # moments spread over several periods
        finally:
            child.send_signal(signal.SIGKILL)
    loaded = load_file(tmp_path / "t.json")
    for which in "ab":
        numbers = [int(e.name[2:]) for e in loaded.trace.events if e.name.startswith(f"{which} ")]
        assert numbers == list(range(len(numbers)))  # no gap
    # A kill in the middle of a write tears the end; nothing else is wrong with the file.
    assert {problem.rule for problem in check(tmp_path / "t.json")} <= {"torn", "json"}
    unfinished = [e.name for e in loaded.trace.events if e.args.get("unfinished")]
    assert unfinished == ["window of set_state", "iteration 7"]
    assert not being_written(tmp_path / "t.json")
