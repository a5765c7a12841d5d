from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from opbench.errors import ConfigError, RecordError
from opbench.launch.journal import Journal, clear_stale, locked
from opbench.launch.turn import SCREEN, Turn, Value

VALUE = Value(1.5, 1.6, 1.4, 22, bimodal=True)


def turn(pair, side, **changed):
    return Turn(SCREEN, pair, "a", side, 2.0, {"a::t": VALUE}, **changed)


def test_what_was_added_is_read_again(tmp_path):
    journal = Journal.create(tmp_path, "one", {"seed": 3})
    added = turn(0, "base", controls={"compute": 1e-3}, steal=0.25, load=1.5)
    journal.add(added)
    again = Journal.unfinished(tmp_path)
    assert (again.id, again.plan["seed"], again.turns) == ("one", 3, [added])


def test_a_line_that_a_kill_cut_off_is_no_launch(tmp_path):
    journal = Journal.create(tmp_path, "one", {})
    journal.add(turn(0, "base"))
    journal.add(turn(0, "head"))
    path = journal.folder / "turns.jsonl"
    path.write_text(path.read_text()[:-20])
    again = Journal.unfinished(tmp_path)
    assert [one.side for one in again.turns] == ["base"]
    assert again.pairs(SCREEN, "a") == {}
    again.add(turn(0, "head"))
    assert [one.side for one in Journal.unfinished(tmp_path).turns] == ["base", "head"]


def test_of_a_repeated_pair_the_later_launches_count(tmp_path):
    journal = Journal.create(tmp_path, "one", {})
    for one in (turn(0, "base", problem="old"), turn(0, "base"), turn(0, "head")):
        journal.add(one)
    assert journal.pairs(SCREEN, "a")[0]["base"].problem == ""


def test_the_newest_unfinished_session_is_taken(tmp_path):
    for name in ("1", "2", "3"):
        Journal.create(tmp_path, name, {})
    Journal.unfinished(tmp_path, "3").finish("done")
    assert Journal.unfinished(tmp_path).id == "2"
    assert Journal.unfinished(tmp_path, "1").id == "1"
    with pytest.raises(ConfigError, match=r"no unfinished session '3' in .*\(unfinished: 1, 2\)"):
        Journal.unfinished(tmp_path, "3")


def test_a_self_check_and_an_ab_do_not_take_each_others_sessions(tmp_path):
    for name, self_check in (("1", False), ("2", True)):
        Journal.create(tmp_path, name, {"options": {"self_check": self_check}})
    assert Journal.unfinished(tmp_path).id == "1"
    assert Journal.unfinished(tmp_path, self_check=True).id == "2"
    with pytest.raises(ConfigError, match=r"no unfinished session '2' in .*\(unfinished: 1\)"):
        Journal.unfinished(tmp_path, "2")


def test_without_a_session_there_is_nothing_to_resume(tmp_path):
    with pytest.raises(ConfigError, match=r"no unfinished session in .*\(unfinished: none\)"):
        Journal.unfinished(tmp_path / "never")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema_version": 1', "null", "{}"])
def test_a_plan_that_does_not_read_is_told(tmp_path, text):
    journal = Journal.create(tmp_path, "one", {})
    (journal.folder / "plan.json").write_text(text)
    with pytest.raises(RecordError, match=f"cannot resume {journal.folder}"):
        Journal.unfinished(tmp_path)


def test_a_plan_of_another_schema_is_refused(tmp_path):
    journal = Journal.create(tmp_path, "one", {})
    (journal.folder / "plan.json").write_text(json.dumps({"schema_version": 3}))
    with pytest.raises(RecordError, match="is of schema 3, this opbench goes on with 2; start"):
        Journal.unfinished(tmp_path)


def test_a_second_session_is_told_who_measures(tmp_path):
    with locked(tmp_path / "ab"):
        words = rf"another session measures here \(process {os.getpid()} since .*wait until"
        with pytest.raises(ConfigError, match=words), locked(tmp_path / "ab"):
            pass
    with locked(tmp_path / "ab"):
        pass


def test_the_lock_of_a_killed_session_is_free(tmp_path):
    source = (
        "import sys, time; from pathlib import Path; from opbench.launch.journal import locked\n"
        f"with locked(Path({str(tmp_path)!r})):\n    print('in', flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "in\n"
    with pytest.raises(ConfigError), locked(tmp_path):
        pass
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with locked(tmp_path):
        pass


def test_of_many_at_once_one_gets_the_lock(tmp_path):
    got, refused, gate = [], [], threading.Barrier(8)
    leave = threading.Event()

    def enter():
        gate.wait()
        try:
            with locked(tmp_path):
                got.append(1)
                leave.wait(30)
        except ConfigError:
            refused.append(1)
            if len(refused) == 7:
                leave.set()

    threads = [threading.Thread(target=enter) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (len(got), len(refused)) == (1, 7)


def test_a_folder_that_cannot_be_written_is_told_before_anything_runs(tmp_path):
    (tmp_path / "file").write_text("")
    words = "cannot write to .*file/ab: .*nothing was measured. Name another folder with --results"
    with pytest.raises(ConfigError, match=words), locked(tmp_path / "file" / "ab"):
        pass


def test_what_a_killed_session_left_is_removed_and_nothing_else(tmp_path):
    left, other = tmp_path / "opbench-x1", tmp_path / "precious"
    for folder in (left, other):
        (folder / "base").mkdir(parents=True)
    Journal.create(tmp_path / "ab", "1", {"folder": str(left)})
    Journal.create(tmp_path / "ab", "2", {"folder": str(other)})
    Journal.create(tmp_path / "ab", "3", {"folder": str(tmp_path / "opbench-gone")})
    assert clear_stale(tmp_path / "ab") == [str(left)]
    assert not left.exists()
    assert other.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only /proc tells where a process works")
def test_a_process_that_a_killed_session_left_is_ended(tmp_path):
    left = tmp_path / "opbench-x1"
    left.mkdir()
    Journal.create(tmp_path / "ab", "1", {"folder": str(left)})
    words = [sys.executable, "-c", "import sys; print(1, flush=True); sys.stdin.read()"]
    with subprocess.Popen(
        words, cwd=left, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        clear_stale(tmp_path / "ab")
        assert process.wait(60) == -signal.SIGKILL


def test_the_sessions_folder_keeps_itself_out_of_the_repository(project, tmp_path):
    project.commit(a="1")
    with locked(project.folder / "results" / "ab"):
        Journal.create(project.folder / "results" / "ab", "1", {})
        assert project.git("status", "--porcelain") == ""
