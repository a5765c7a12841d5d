from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from opbench.launch.guard import Guard
from opbench.launch.revision import Repository

SLEEPER = (sys.executable, "-c", "import time; time.sleep(600)")

# A session that holds a worktree and a process group, tells of both, and waits to be ended.
SESSION = """
import subprocess, sys, time
from pathlib import Path
from opbench.launch.guard import Guard
from opbench.launch.revision import Repository

repository = Repository({project!r})
with Guard(Path({parent!r})) as guard:
    guard.worktree(repository, guard.folder / "base" / "tree", "HEAD")
    child = subprocess.Popen({sleeper!r}, start_new_session=True, cwd=guard.folder)
    with guard.group(child.pid):
        print(child.pid, guard._process.pid, guard.folder, flush=True)
        try:
            time.sleep(600)
        finally:
            child.kill()
            child.wait()
"""


def until(condition):
    """Waits for another process; a test that fails here fails slowly."""
    for _ in range(1000):
        if condition():
            return True
        time.sleep(0.01)
    return False


@pytest.fixture
def repository(project):
    project.commit(a="1")
    return Repository(project.folder)


def test_leaving_clears_all_away(project, repository, tmp_path, pulse):
    before = project.git("worktree", "list")
    with Guard(tmp_path) as guard:
        tree = guard.worktree(repository, guard.folder / "base" / "tree", "HEAD")
        assert (tree / "a.py").read_text() == "1"
        assert str(tree) in project.git("worktree", "list")
        watcher = guard._process.pid
        assert pulse(watcher)
    assert not guard.folder.exists()
    assert project.git("worktree", "list") == before
    assert not pulse(watcher)


def test_an_error_inside_clears_away_too(project, repository, tmp_path):
    guard = Guard(tmp_path)

    def work():
        with guard:
            guard.worktree(repository, guard.folder / "base" / "tree", "HEAD")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert not guard.folder.exists()
    assert project.git("worktree", "list").count("\n") == 0


def test_both_checkouts_have_paths_of_one_length(repository, tmp_path):
    with Guard(tmp_path) as guard:
        trees = [
            guard.worktree(repository, guard.folder / side / "tree", "HEAD")
            for side in ("base", "head")
        ]
    assert len(str(trees[0])) == len(str(trees[1]))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_session_that_is_ended_from_outside_leaves_nothing(
    project, repository, tmp_path, pulse, number
):
    source = SESSION.format(project=str(project.folder), parent=str(tmp_path), sleeper=SLEEPER)
    session = subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    child, watcher, folder = session.stdout.readline().split()
    assert pulse(int(child))
    session.send_signal(number)
    assert session.wait(30) != 0
    session.stdout.close()
    assert until(lambda: not pulse(int(child)))
    assert until(lambda: not pulse(int(watcher)))
    assert not os.path.exists(folder)  # noqa: PTH110 - text from another process
    assert until(lambda: project.git("worktree", "list").count("\n") == 0)


def test_a_group_that_has_ended_is_not_killed_later(tmp_path, pulse):
    # Its number may be another process's by then.
    with Guard(tmp_path) as guard:
        child = subprocess.Popen(SLEEPER, start_new_session=True)
        with guard.group(child.pid):
            pass
        watcher = guard._process
        watcher.stdin.close()  # what the kernel does for a killed session
        watcher.wait(30)
        assert pulse(child.pid)
        assert not guard.folder.exists()
        guard._process = None
    child.kill()
    child.wait()


def test_a_process_that_left_its_group_dies_with_its_folder(tmp_path, pulse):
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside):
        folder.mkdir()
    with Guard(inside) as guard:
        (guard.folder / "base").mkdir()
        stray = subprocess.Popen(SLEEPER, start_new_session=True, cwd=guard.folder / "base")
        other = subprocess.Popen(SLEEPER, start_new_session=True, cwd=outside)
    assert stray.wait(30) == -signal.SIGKILL
    assert pulse(other.pid)
    other.kill()
    other.wait()


def test_without_its_watcher_a_guard_still_clears_away(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    with Guard(tmp_path) as guard:
        assert guard._process is None
    assert not guard.folder.exists()
