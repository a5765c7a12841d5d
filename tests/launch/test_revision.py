from __future__ import annotations

import os
import subprocess

import pytest

from opbench.errors import ConfigError
from opbench.launch.revision import Repository, without_git


@pytest.fixture
def repository(project):
    project.commit(a="1")
    return Repository(project.folder)


def state(project):
    """Everything of the user's that a snapshot must leave as it was."""
    return (
        project.git("status", "--porcelain"),
        project.git("stash", "list"),
        project.git("branch", "--all"),
        (project.folder / ".git" / "index").read_bytes(),
        project.git("worktree", "list", "--porcelain"),
    )


def files(project, commit):
    return {
        name: project.git("show", f"{commit}:{name}")
        for name in project.git("ls-tree", "-r", "--name-only", commit).split("\n")
    }


def test_a_snapshot_holds_changes_and_new_files_but_nothing_ignored(project, repository):
    (project.folder / ".gitignore").write_text("*.log\n")
    project.commit(kept="1", changed="1", deleted="1", staged="1")
    project.write(changed="2", new="1", staged="2")
    project.git("add", "staged.py")
    project.write(staged="3")
    (project.folder / "deleted.py").unlink()
    (project.folder / "noise.log").write_text("x")
    before = state(project)
    snapshot = repository.snapshot()
    assert snapshot.dirty
    assert files(project, snapshot.commit) == {
        ".gitignore": "*.log",
        "a.py": "1",
        "kept.py": "1",
        "changed.py": "2",
        "new.py": "1",
        "staged.py": "3",
    }
    assert state(project) == before
    assert project.git("rev-parse", f"{snapshot.commit}^") == project.git("rev-parse", "HEAD")


def test_a_snapshot_of_a_clean_tree_is_its_commit(project, repository):
    snapshot = repository.snapshot()
    assert (snapshot.commit, snapshot.dirty) == (project.git("rev-parse", "HEAD"), False)


def test_a_change_within_the_second_of_its_commit_is_seen(project, repository):
    # Equal size, equal time: git tells it by the age of its index alone.
    project.git("config", "core.trustctime", "false")
    path, index, then = project.folder / "a.py", project.folder / ".git" / "index", (10**9, 10**9)
    os.utime(path, then)
    project.git("update-index", "--refresh")
    path.write_text("2")
    for one in (path, index):
        os.utime(one, then)
    assert files(project, repository.snapshot().commit) == {"a.py": "2"}


def test_of_one_state_there_is_one_snapshot(project, repository):
    project.write(a="2")
    first = repository.snapshot().commit
    assert repository.snapshot().commit == first
    project.write(a="3")
    assert repository.snapshot().commit != first


def test_a_snapshot_needs_no_identity(project, repository, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    project.write(a="2")
    assert repository.snapshot().dirty


def test_a_snapshot_runs_inside_a_hook(project, repository, monkeypatch, tmp_path):
    # git hands its hooks variables that tie every git below them to another index.
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))
    assert not repository.snapshot().dirty


def test_what_a_hook_sets_is_dropped_and_gits_configuration_kept():
    given = {"GIT_DIR": "a", "GIT_INDEX_FILE": "b", "GIT_CONFIG_GLOBAL": "c", "PATH": "d"}
    assert without_git(given) == {"GIT_CONFIG_GLOBAL": "c", "PATH": "d"}


def test_an_unfinished_merge_is_refused(project, repository):
    project.git("checkout", "--quiet", "-b", "other")
    project.commit(a="2")
    project.git("checkout", "--quiet", "main")
    project.commit(a="3")
    with pytest.raises(subprocess.CalledProcessError):
        project.git("merge", "other")
    with pytest.raises(ConfigError, match="unfinished merge; finish it"):
        repository.snapshot()


def test_a_repository_without_a_commit_is_refused(project):
    with pytest.raises(ConfigError, match="head 'HEAD' names no commit here"):
        Repository(project.folder).snapshot()


def test_a_folder_without_git_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(ConfigError, match=f"{tmp_path} is in no git working tree.*opbench run"):
        Repository(tmp_path)


def test_a_machine_without_git_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="git was not found"):
        Repository(tmp_path)


def test_the_folder_below_the_root_is_known(project, repository):
    (project.folder / "python" / "x").mkdir(parents=True)
    below = Repository(project.folder / "python" / "x")
    assert (below.root, below.prefix.as_posix()) == (repository.root, "python/x")


def test_the_merge_base_is_where_both_grew_from(project, repository):
    start = project.git("rev-parse", "HEAD")
    project.git("checkout", "--quiet", "-b", "feature")
    head = project.commit(b="1")
    project.git("checkout", "--quiet", "main")
    project.commit(c="1")
    assert repository.merge_base("main", head, "--base") == start


def test_without_a_common_commit_exact_base_is_advised(project, repository):
    project.git("checkout", "--quiet", "--orphan", "other")
    head = project.commit(b="1")
    with pytest.raises(
        ConfigError, match=r"--base 'main' and head .* share no commit.*--exact-base"
    ):
        repository.merge_base("main", head, "--base")


@pytest.mark.parametrize("revision", ["nothing", "HEAD~7", "", "--help", "a b"])
def test_a_revision_that_is_none_is_refused(repository, revision):
    with pytest.raises(ConfigError, match=r"--base .*(names no commit here|is no revision)"):
        repository.commit(revision, "--base")


def test_a_shallow_clone_is_told_how_to_fetch(project, repository, tmp_path):
    project.commit(b="1")
    url = f"file://{project.folder}"
    project.git("clone", "--quiet", "--depth=1", url, str(tmp_path / "shallow"), folder=tmp_path)
    shallow = Repository(tmp_path / "shallow")
    with pytest.raises(ConfigError, match=r"git fetch --unshallow origin.*fetch-depth: 0") as told:
        shallow.commit("HEAD~1", "--base")
    # The command of the message, typed in.
    command = str(told.value).partition("history with: ")[2].partition(" (in GitHub")[0]
    subprocess.run(command, shell=True, cwd=tmp_path / "shallow", check=True, capture_output=True)  # noqa: S602
    assert shallow.commit("HEAD~1", "--base")


def test_a_branch_that_was_not_fetched_is_told_how(project, repository, tmp_path):
    project.git("branch", "other")
    project.git(
        "clone",
        "--quiet",
        "--single-branch",
        str(project.folder),
        str(tmp_path / "one"),
        folder=tmp_path,
    )
    clone = Repository(tmp_path / "one")
    words = "git fetch origin other:refs/remotes/origin/other"
    with pytest.raises(ConfigError, match=words):
        clone.commit("origin/other", "--base")
    project.git(*words.split()[1:], folder=tmp_path / "one")
    assert clone.commit("origin/other", "--base")


def test_a_worktree_holds_the_commit_runs_no_hook_and_goes_again(project, repository, tmp_path):
    hook = project.folder / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    hook.chmod(0o755)
    first = project.git("rev-parse", "HEAD")
    project.commit(a="2")
    before = state(project)
    tree = tmp_path / "tree"
    repository.add_worktree(tree, first)
    assert (tree / "a.py").read_text() == "1"
    (tree / "new.py").write_text("made by a test")
    assert not (tmp_path / "hooked").exists()
    repository.remove_worktree(tree)
    assert not tree.exists()
    assert state(project) == before


def test_a_repository_that_cannot_be_written_is_told(project, repository, tmp_path):
    (project.folder / ".git" / "worktrees").write_text("no folder")
    with pytest.raises(ConfigError, match=r"cannot check out .* in .*project: "):
        repository.add_worktree(tmp_path / "tree", project.git("rev-parse", "HEAD"))


def test_a_label_names_a_branch(project, repository):
    commit = project.git("rev-parse", "HEAD")
    assert repository.label(commit) == f"main@{commit[:7]}"
    project.commit(a="2")
    assert repository.label(commit) == commit[:7]


def test_submodules_and_pointers_of_lfs_are_told(project, repository, tmp_path, monkeypatch):
    inner = tmp_path / "inner"
    project.git("init", "--quiet", str(inner))
    project.git("commit", "--quiet", "--allow-empty", "-m", "x", folder=inner)
    project.git(
        "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub"
    )
    (project.folder / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    commit = project.commit()
    told = repository.not_carried(commit)
    assert "sub;" in told[0]
    assert "submodule update" in told[0]
    if len(told) == 1:  # a machine that has git-lfs
        assert repository._ask("lfs", "version").returncode == 0
    else:
        assert "git-lfs is not installed" in told[1]
    assert repository.not_carried(project.git("rev-parse", f"{commit}~1")) == ()
