from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path

import pytest

from opbench import profiler
from opbench.errors import ConfigError, StateError, TraceWriteError
from opbench.profiler import check
from opbench.profiler.doors import SESSION, Session


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def session(recorder, here):
    made = Session(recorder)
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
        ({"continuous_dump": True}, "continuous_dump is not there yet in opbench"),
        ({"aggregate_stats": True}, "aggregate_stats is not there yet in opbench"),
        ({"continuous_dump": "no"}, "continuous_dump must be True or False"),
        ({"dump_period": 0}, "dump_period must be more than 0 seconds, not 0"),
        ({"dump_period": float("nan")}, "dump_period must be more than 0 seconds"),
        ({"dump_period": "1"}, "dump_period must be a number of seconds, not '1'"),
        ({"dump_period": True}, "dump_period must be a number of seconds"),
        ({"profile_process": "sever"}, "unknown profile_process 'sever'; did you mean 'server'?"),
        ({"profile_process": ["worker"]}, "unknown profile_process ['worker']"),
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
    "place", ["missing/t.json", "file/t.json", "folder", "n" * 300, "a\0.json"]
)
def test_a_place_that_cannot_be_written_is_said_at_once(session, here, place):
    (here / "file").write_text("old")
    (here / "folder").mkdir()
    with pytest.raises(ConfigError, match="filename: ") as caught:
        session.set_config(filename=here / place)
    assert str(here) in str(caught.value)
    assert inside(here) == ["file", "folder"]
    assert inside(here / "folder") == []


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


@pytest.mark.parametrize("word", ["running", "RUN", "", None, 1])
def test_an_unknown_state_is_refused(session, word):
    with pytest.raises(ConfigError, match="unknown state"):
        session.set_state(word)


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


def test_detached_the_session_has_nothing_to_write(session, clock, here):
    window(session, clock, "a")
    session.detach()
    session.write_at_exit()
    assert inside(here) == []


def test_the_module_functions_drive_the_process_recorder(here, monkeypatch):
    monkeypatch.setattr(SESSION, "_exit_watched", True)
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
    SESSION.detach()
