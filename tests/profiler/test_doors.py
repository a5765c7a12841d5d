from __future__ import annotations

import errno
import json
import os
import stat
import threading
from pathlib import Path

import pytest

from opbench import profiler
from opbench.errors import ConfigError, StateError, TraceWriteError
from opbench.profiler import check, write
from opbench.profiler.doors import WINDOWS, WindowStore


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def session(recorder, here):
    made = WindowStore(recorder)
    made._exit_watched = True  # what a test records is not written when pytest ends
    return made


def inside(folder):
    return sorted(path.name for path in folder.iterdir())


def window(session, clock, name, ns=10):
    session.set_state("run")
    emit(session, clock, name, ns)
    session.set_state("stop")


def emit(session, clock, name, ns=10):
    start = clock.now
    session._recorder.complete(name, "api", start, clock.advance(ns))


def names(path):
    assert check(path) == []
    events = json.loads(Path(path).read_text())["traceEvents"]
    return [event["name"] for event in events if event["ph"] != "M"]


# ---- set_config


@pytest.mark.parametrize(
    ("keys", "mask"),
    [
        ({}, 15),
        ({"filename": "x.json"}, 15),
        ({"profile_symbolic": True}, 1),
        ({"profile_imperative": True}, 2),
        ({"profile_api": True}, 4),
        ({"profile_memory": True}, 8),
        ({"profile_mem": True}, 8),
        ({"profile-mem": True}, 8),
        ({"profile-symbolic": 1}, 1),
        ({"profile_all": True}, 15),
        ({"profile_all": False}, 0),
        ({"profile_all": True, "profile_api": False}, 15),
        ({"profile_symbolic": True, "profile_memory": True, "profile_api": False}, 9),
        ({"profile_symbolic": 0}, 0),
    ],
)
def test_the_mode_keys_give_exactly_what_is_true(session, recorder, keys, mask):
    session.set_config(**keys)
    session.set_state("run")
    assert recorder.mask == mask
    session.set_state("stop")


def test_each_call_replaces_the_whole_configuration(session, recorder, clock, here):
    session.set_config(profile_symbolic=True, filename="first.json")
    session.set_config(profile_memory=True)
    session.set_state("run")
    assert recorder.mask == 8
    session.dump()
    assert inside(here) == ["profile.json"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"profile_symbollic": True},
            "unknown key 'profile_symbollic'; did you mean 'profile_symb",
        ),
        ({"file-name": "x"}, "unknown key 'file-name'; did you mean 'filename'?"),
        ({"profile_api": "yes"}, "profile_api must be True or False, not 'yes'"),
        ({"profile_api": 2}, "profile_api must be True or False, not 2"),
        ({"profile_api": None}, "profile_api must be True or False, not None"),
        ({"profile_mem": True, "profile_memory": True}, "'profile_memory' is given twice"),
        ({"profile_api": True, "profile-api": True}, "'profile_api' is given twice"),
        ({"aggregate_stats": "yes"}, "aggregate_stats must be True or False, not 'yes'"),
        ({"continuous_dump": "no"}, "continuous_dump must be True or False"),
        ({"dump_period": 0}, "dump_period must be more than 0 seconds and under 1e9, not 0"),
        ({"dump_period": float("nan")}, "dump_period must be more than 0 seconds"),
        ({"dump_period": 10**400}, "dump_period must be more than 0 seconds and under 1e9"),
        ({"dump_period": 10**5000}, "dump_period must be more than 0 seconds and under 1e9"),
        ({"dump_period": "1"}, "dump_period must be a number of seconds, not '1'"),
        ({"dump_period": True}, "dump_period must be a number of seconds"),
        ({"profile_process": "sever"}, "unknown profile_process 'sever'; did you mean 'server'?"),
        ({"profile_process": ["worker"]}, "must be 'worker' or 'server', not ['worker']"),
        ({"profile_process": None}, "profile_process must be 'worker' or 'server', not None"),
        ({"filename": ""}, "filename must be the path of a file, not ''"),
        ({"filename": b"x"}, "filename must be the path of a file"),
        ({"filename": 3}, "filename must be the path of a file, not 3"),
    ],
)
def test_a_wrong_key_or_value_is_refused_and_the_old_configuration_stays(
    session, recorder, keys, message
):
    session.set_config(profile_api=True)
    with pytest.raises(ConfigError) as caught:
        session.set_config(**keys)
    assert message in str(caught.value)
    session.set_state("run")
    assert recorder.mask == 4
    session.set_state("stop")


def test_what_is_off_may_be_said(session):
    session.set_config(
        continuous_dump=False, aggregate_stats=False, dump_period=0.5, profile_process="worker"
    )


@pytest.mark.parametrize(
    "place",
    ["missing/t.json", "file/t.json", "folder", "n" * 300, "a\0.json", "pipe", "loop", "new/"],
)
def test_a_place_that_cannot_be_written_is_said_at_once(session, here, place):
    (here / "file").write_text("old")
    (here / "folder").mkdir()
    (here / "loop").symlink_to("loop")
    os.mkfifo(here / "pipe")
    with pytest.raises(ConfigError, match="filename: ") as caught:
        session.set_config(filename=f"{here}/{place}")
    assert str(here) in str(caught.value)
    assert "choose" in str(caught.value) or "name a file" in str(caught.value)
    assert inside(here) == ["file", "folder", "loop", "pipe"]
    assert inside(here / "folder") == []


@pytest.mark.parametrize("place", ["/dev/null", "/dev/full", "/dev/stdout", "/proc/self/fd/1"])
def test_a_device_or_a_stream_is_refused_at_once(session, place):
    if not os.path.lexists(place):
        pytest.skip(f"there is no {place} here")
    with pytest.raises(ConfigError, match=f"filename: {place}"):
        session.set_config(filename=place)


def test_a_stream_that_leads_into_a_file_is_refused_and_the_file_stays(session, here):
    if not os.path.lexists("/dev/fd"):
        pytest.skip("there is no /dev/fd here")
    with (here / "log").open("w") as log:
        log.write("mine")
        log.flush()
        with pytest.raises(ConfigError, match="is no regular file"):
            session.set_config(filename=f"/dev/fd/{log.fileno()}")
    assert (here / "log").read_text() == "mine"


def test_a_folder_that_takes_no_file_is_said_at_once(session, here, monkeypatch):
    real = os.open

    def read_only(path, flags, *more, **also):
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return real(path, flags, *more, **also)

    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(ConfigError, match="Read-only file system; choose a folder"):
        session.set_config(filename="t.json")
    with pytest.raises(ConfigError, match=r"profile\.json: Read-only file system"):
        session.set_state("run")
    assert session._recorder.state == "stop"


def test_set_config_neither_makes_nor_changes_nor_deletes_the_file(session, here):
    session.set_config(filename="new.json")
    assert inside(here) == []
    (here / "old.json").write_text("old")
    (here / "old.json").chmod(stat.S_IRUSR)
    before = (here / "old.json").stat().st_mtime_ns
    session.set_config(filename="old.json")
    assert (here / "old.json").read_text() == "old"
    assert (here / "old.json").stat().st_mtime_ns == before
    assert inside(here) == ["old.json"]


def test_a_relative_filename_is_where_it_was_configured(session, here, clock, monkeypatch):
    session.set_config(filename="t.json")
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    window(session, clock, "a")
    session.dump()
    assert names(here / "t.json") == ["a"]


def test_set_config_while_running_is_refused(session, recorder):
    recorder.run(15, "the fixture")
    with pytest.raises(StateError, match="state is 'run', its owner 'the fixture'"):
        session.set_config(profile_api=True)
    recorder.stop("the fixture")


# ---- set_state, pause, resume


def test_without_a_configuration_the_modes_are_thirteen_and_the_file_profile_json(
    session, recorder, clock, here
):
    session.set_state("run")
    assert recorder.mask == 13
    emit(session, clock, "a")
    session.set_state("stop")
    session.dump()
    assert names(here / "profile.json") == ["a"]


def test_a_server_is_accepted_and_refused_at_run(session, recorder):
    session.set_config(profile_process="server")
    with pytest.raises(ConfigError, match="needs a distributed engine"):
        session.set_state("run")
    assert recorder.state == "stop"


@pytest.mark.parametrize("word", ["running", "RUN", "", None, 1, True])
def test_an_unknown_state_is_refused(session, word):
    with pytest.raises(ConfigError) as caught:
        session.set_state(word)
    if isinstance(word, str):
        assert str(caught.value).startswith(f"unknown state {word!r}; ")
    else:
        assert str(caught.value) == f"the state must be 'run' or 'stop', not {word!r}"


def test_run_while_running_and_stop_while_stopped_are_refused(session):
    with pytest.raises(StateError, match="its state is 'stop'"):
        session.set_state("stop")
    session.set_state("run")
    with pytest.raises(StateError, match="its owner 'set_state'"):
        session.set_state("run")
    session.set_state()
    assert session._recorder.state == "stop"


def test_somebody_elses_window_is_left_alone(session, recorder, clock):
    recorder.run(15, "the fixture")
    for call in (
        lambda: session.set_state("run"),
        lambda: session.set_state("stop"),
        session.pause,
        session.resume,
    ):
        with pytest.raises(StateError, match="owner 'the fixture'"):
            call()
    with pytest.raises(StateError, match="nothing to dump"):
        session.dump()
    assert recorder.recording
    recorder.stop("the fixture")


def test_pause_and_resume_leave_out_what_is_between(session, clock, here):
    for call in (session.pause, session.resume):
        with pytest.raises(StateError, match="its state is 'stop'"):
            call()
    session.set_state("run")
    emit(session, clock, "a")
    session.pause()
    emit(session, clock, "hidden")
    session.resume()
    emit(session, clock, "b")
    session.dump()
    assert names(here / "profile.json") == ["a", "b"]


# ---- dump


def test_dump_before_any_window_is_refused(session, here):
    with pytest.raises(StateError, match=r"nothing to dump: .* set_state\('run'\) opens one"):
        session.dump()
    assert inside(here) == []


def test_dump_writes_all_windows_of_the_session(session, clock, here):
    window(session, clock, "a")
    window(session, clock, "b")
    session.dump()
    assert names(here / "profile.json") == ["a", "b"]
    document = json.loads((here / "profile.json").read_text())
    assert document["otherData"]["windows_ns"] == [[0, 10], [10, 20]]


def test_dump_closes_an_open_window(session, clock, here, recorder):
    session.set_state("run")
    emit(session, clock, "a")
    session.dump()
    assert recorder.state == "stop"
    assert names(here / "profile.json") == ["a"]


def test_dump_is_idempotent(session, clock, here):
    window(session, clock, "a")
    session.dump()
    first = (here / "profile.json").read_bytes()
    (here / "profile.json").unlink()
    session.dump()
    assert (here / "profile.json").read_bytes() == first


def test_a_finished_session_can_be_dumped_under_a_second_name(session, clock, here):
    window(session, clock, "a")
    session.dump()
    session.set_config(filename="second.json")
    session.dump()
    assert (here / "profile.json").read_bytes() == (here / "second.json").read_bytes()


def test_a_finished_dump_ends_the_session(session, clock, here):
    window(session, clock, "a")
    session.dump()
    window(session, clock, "b")
    session.dump()
    assert names(here / "profile.json") == ["b"]


def test_an_unfinished_dump_is_a_whole_file_and_recording_goes_on(session, clock, here, recorder):
    session.set_state("run")
    emit(session, clock, "a")
    session.dump(finished=False)
    assert recorder.recording
    assert names(here / "profile.json") == ["a"]
    emit(session, clock, "b")
    session.dump(finished=False)
    assert names(here / "profile.json") == ["a", "b"]
    session.set_state("stop")
    window(session, clock, "c")
    session.dump()
    assert names(here / "profile.json") == ["a", "b", "c"]


def test_after_a_failed_dump_the_windows_are_still_there(session, clock, here, monkeypatch):
    session.set_config(filename="t.json")
    window(session, clock, "a")
    (here / "t.json").write_text("old")

    def full(handle, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(TraceWriteError, match="No space left"):
        session.dump()
    assert (here / "t.json").read_text() == "old"
    monkeypatch.undo()
    session.set_config(filename=here / "t.json")
    session.dump()
    assert names(here / "t.json") == ["a"]


def test_a_window_recorded_while_another_thread_dumps_is_not_lost(
    session, clock, here, monkeypatch
):
    writing, go_on = threading.Event(), threading.Event()

    def slow(trace, path):
        writing.set()
        go_on.wait(60)
        write(trace, path)

    window(session, clock, "a")
    monkeypatch.setattr("opbench.profiler.continuous.write", slow)
    dumper = threading.Thread(target=session.dump)
    dumper.start()
    assert writing.wait(60)
    other = threading.Thread(target=window, args=(session, clock, "b"))
    other.start()
    other.join(0.2)  # time enough to open its window in the middle of the dump, if it could
    go_on.set()
    dumper.join(60)
    other.join(60)
    assert names(here / "profile.json") == ["a"]
    session.write_at_exit()
    assert names(here / "profile.json") == ["b"]


def test_a_window_that_a_signal_records_in_the_middle_of_a_dump_is_not_lost(
    session, clock, here, monkeypatch
):
    def interrupted(trace, path):
        if len(trace.windows) == 1:
            window(session, clock, "b")
        write(trace, path)

    window(session, clock, "a")
    monkeypatch.setattr("opbench.profiler.continuous.write", interrupted)
    session.dump()
    assert names(here / "profile.json") == ["a"]
    session.write_at_exit()
    assert names(here / "profile.json") == ["a", "b"]


# ---- the end of the process


def test_at_exit_only_what_no_dump_has_written_is_written(session, clock, here):
    session.write_at_exit()
    assert inside(here) == []
    window(session, clock, "a")
    session.write_at_exit()
    assert names(here / "profile.json") == ["a"]
    (here / "profile.json").unlink()
    session.write_at_exit()
    assert inside(here) == []


def test_at_exit_a_window_opened_after_an_unfinished_dump_is_written(session, clock, here):
    session.set_state("run")
    emit(session, clock, "a")
    session.dump(finished=False)
    emit(session, clock, "b")
    session.write_at_exit()
    assert names(here / "profile.json") == ["a", "b"]


def test_at_exit_a_trace_that_cannot_be_written_is_one_sentence(session, clock, here, capsys):
    (here / "folder").mkdir()
    session.set_config(filename="folder/t.json")
    window(session, clock, "a")
    (here / "folder").rmdir()
    session.write_at_exit()
    told = capsys.readouterr().err
    assert told.startswith("opbench: the trace is lost: cannot write the trace to ")
    assert told.count("\n") == 1


def test_at_exit_an_error_of_any_kind_is_one_sentence(session, clock, capsys, monkeypatch):
    def broken(trace, path):
        raise RuntimeError("interpreter is going down")

    window(session, clock, "a")
    monkeypatch.setattr("opbench.profiler.continuous.write", broken)
    session.write_at_exit()
    told = capsys.readouterr().err
    assert told == "opbench: the trace is lost: interpreter is going down\n"


def test_at_exit_work_that_cannot_be_waited_for_does_not_cost_the_trace(
    session, recorder, clock, here, capsys
):
    def gone():
        if recorder.state == "run":
            raise RuntimeError("worker is gone")

    recorder.add_synchroniser(gone)
    session.set_state("run")
    emit(session, clock, "a")
    session.write_at_exit()
    assert names(here / "profile.json") == ["a"]
    told = capsys.readouterr().err
    assert told == "opbench: pending work is not in the trace: worker is gone\n"


def test_detached_the_session_is_free_even_if_another_thread_held_it(session, here):
    holder = threading.Thread(target=session._lock.acquire)
    holder.start()
    holder.join(60)
    session.detach()
    user = threading.Thread(target=session.set_config, kwargs={"profile_api": True}, daemon=True)
    user.start()
    user.join(60)
    assert not user.is_alive()


def test_detached_the_session_has_nothing_to_write(session, clock, here):
    window(session, clock, "a")
    session.detach()
    session.write_at_exit()
    assert inside(here) == []


def test_the_module_functions_drive_the_process_recorder(here, monkeypatch):
    monkeypatch.setattr(WINDOWS, "_exit_watched", True)
    assert profiler.state() == "stop"
    profiler.set_config(**{"profile-api": True, "filename": str(here / "t.json")})
    profiler.set_state("run")
    assert profiler.state() == "run"
    assert profiler.RECORDER.mask == 4
    profiler.pause()
    assert profiler.RECORDER.paused
    profiler.resume()
    profiler.RECORDER.instant("a", "api")
    profiler.dump(False)
    assert profiler.state() == "run"
    profiler.RECORDER.instant("b", "api")
    profiler.dump()
    assert profiler.state() == "stop"
    assert names(here / "t.json") == ["a", "b"]
    WINDOWS.detach()


# ---- what Python allocates, and whose profiler is meant


def test_what_python_allocates_is_asked_for_in_one_window(session, recorder):
    seen = []

    class Listener:
        def opened(self, modes):
            seen.append(recorder.python_memory)

        def closed(self):
            pass

    recorder.add_listener(Listener())
    session.set_config(profile_memory=True, profile_memory_python=True)
    session.set_state("run")
    session.set_state("stop")
    recorder.run("memory", "somebody else")
    with pytest.raises(StateError, match="somebody else"):
        session.set_state("run")
    recorder.stop("somebody else")
    recorder.run("memory", "somebody else")
    recorder.stop("somebody else")
    assert seen == [True, False, False]


def test_what_python_allocates_needs_mode_memory(session):
    with pytest.raises(ConfigError, match="set profile_memory=True too"):
        session.set_config(profile_symbolic=True, profile_memory_python=True)


@pytest.mark.parametrize("call", ["set_state", "pause", "resume", "dump"])
def test_mxnets_profile_process_is_taken_and_a_server_refused(call, here):
    door = getattr(profiler, call)
    with pytest.raises(ConfigError, match="needs a distributed engine"):
        door(profile_process="server")
    with pytest.raises(ConfigError, match="did you mean 'worker'"):
        door(profile_process="wroker")
    with pytest.raises(StateError):  # nothing is open, and nothing was recorded
        door(profile_process="worker")
