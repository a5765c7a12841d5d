"""Which states of a project are measured: a git repository, asked and left as it was.

The only thing ever added to it are loose objects of a snapshot, which no branch, tag, index or
stash names, and which git's own housekeeping drops after two weeks.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from opbench.errors import ConfigError

__all__ = ["Repository", "Snapshot", "without_git"]

_GITLINK = "160000"
_IDENTITY = {
    f"GIT_{who}_{key}": value
    for who in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "opbench"), ("EMAIL", "opbench@localhost"))
}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state that can be checked out."""

    commit: str
    """Full id."""
    dirty: bool
    """Whether it holds what no commit of the user's holds."""


def without_git(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables but for git's own, by which a hook ties every git below it to one index.

    Those of its configuration stay: they may be what lets git read this repository at all.
    """
    return {
        name: text
        for name, text in environment.items()
        if not name.startswith("GIT_") or name.startswith("GIT_CONFIG_")
    }


class Repository:
    """The repository around a folder.

    Attributes:
        root: the folder of its working tree.
        prefix: the folder it was asked from, relative to the root.
    """

    def __init__(self, folder: Path | str) -> None:
        """Look around.

        Raises:
            ConfigError: git is missing, or the folder is in no working tree.
        """
        self.root = folder = Path(folder)
        if shutil.which("git") is None:
            msg = "git was not found; it makes the two checkouts, so install it or add it to PATH"
            raise ConfigError(msg)
        done = self._ask("rev-parse", "--show-toplevel")
        if done.returncode:
            msg = (
                f"{folder} is in no git working tree, which the two sides are taken from (git says:"
                f" {_last_line(done.stderr)}); run it inside a repository, or measure once with"
                " opbench run and later compare records with opbench compare"
            )
            raise ConfigError(msg)
        self.root = Path(done.stdout.rstrip("\n")).resolve()
        self.prefix = folder.resolve().relative_to(self.root)

    def commit(self, revision: str, source: str) -> str:
        """The full id of a commit.

        Raises:
            ConfigError: there is no such commit here; with the command that fetches it.
        """
        if revision.startswith("-"):
            msg = f"{source} {revision!r} is no revision; name a branch, a tag or a commit"
            raise ConfigError(msg)
        done = self._ask("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        if done.returncode or not done.stdout.strip():
            msg = f"{source} {revision!r} names no commit here; {self._how_to_fetch(revision)}"
            raise ConfigError(msg)
        return done.stdout.strip()

    def merge_base(self, revision: str, head: str, source: str) -> str:
        """The full id of the newest commit that both sides grew from.

        Raises:
            ConfigError: there is none, or it was not fetched.
        """
        commit = self.commit(revision, source)
        done = self._ask("merge-base", commit, head)
        if done.returncode or not done.stdout.strip():
            advice = (
                f"this clone is shallow, so {self._how_to_fetch(revision)}"
                if self._shallow
                else "measure against the revision itself with --exact-base"
            )
            msg = f"{source} {revision!r} and head {head[:9]} share no commit here; {advice}"
            raise ConfigError(msg)
        return done.stdout.split()[0]

    def snapshot(self) -> Snapshot:
        """The working tree as a commit: what is tracked, and what is neither that nor ignored.

        It goes through an index of its own. Of one state there is one id, since the commit bears
        the date of its parent.

        Raises:
            ConfigError: there is no commit yet, a merge is unfinished, or git refuses a file.
        """
        head = self.commit("HEAD", "head")
        if self._tell("ls-files", "--unmerged"):
            msg = f"{self.root} has an unfinished merge; finish it, or name a commit with --head"
            raise ConfigError(msg)
        with tempfile.TemporaryDirectory(prefix="opbench-index-") as name:
            index = Path(name) / "index"
            real = self.root / self._tell("rev-parse", "--git-path", "index")
            if real.exists():
                # It saves git from hashing every file again. With its time: a file that is as old
                # as its index may have changed since, and git looks into it for that reason only.
                shutil.copy2(real, index)
            extra = {"GIT_INDEX_FILE": str(index)}
            self._tell("add", "--all", "--", ".", extra=extra)
            tree = self._tell("write-tree", extra=extra)
        if tree == self._tell("rev-parse", f"{head}^{{tree}}"):
            return Snapshot(head, dirty=False)
        date = self._tell("show", "--no-patch", "--format=%cI", head)
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        message = ("-m", "opbench: a snapshot of the working tree")
        commit = self._tell("commit-tree", tree, "-p", head, *message, extra=_IDENTITY | dates)
        return Snapshot(commit, dirty=True)

    def label(self, commit: str) -> str:
        """How a report names a commit: a branch or tag that stands at it, and its short id."""
        short = self._tell("rev-parse", "--short=7", commit)
        pointing = ("for-each-ref", "--points-at", commit, "--format=%(refname:short)")
        names = self._tell(*pointing, "refs/heads", "refs/tags", "refs/remotes").splitlines()
        return f"{names[0]}@{short}" if names else short

    def not_carried(self, commit: str) -> tuple[str, ...]:
        """What a checkout of a commit lacks, in sentences: submodules, and files of git-lfs."""
        rows = self._tell("ls-tree", "-r", "-z", commit).split("\0")
        links = [row.partition("\t")[2] for row in rows if row.startswith(_GITLINK)]
        found = []
        if links:
            found.append(
                "submodules are not supported, so these folders are empty on both sides: "
                f"{', '.join(links[:5])}{' ...' if len(links) > 5 else ''}"  # noqa: PLR2004
                "; fill them by --setup 'git submodule update --init'"
            )
        attributes = self._ask("show", f"{commit}:.gitattributes").stdout
        if "filter=lfs" in attributes and self._ask("lfs", "version").returncode:
            found.append(
                "files of git-lfs are pointers on both sides, since git-lfs is not installed"
            )
        return tuple(found)

    def add_worktree(self, path: Path, commit: str) -> None:
        """Check a commit out, without running the hooks of the project.

        Raises:
            ConfigError: git cannot, say since the repository is read-only or the disk is full.
        """
        done = self._ask("worktree", "add", "--detach", "--quiet", str(path), commit)
        if done.returncode:
            self._refuse("check out", commit[:9], done.stderr)

    def remove_worktree(self, path: Path) -> None:
        """Take a checkout back, whatever state it is in."""
        self._ask("worktree", "remove", "--force", "--force", str(path))
        shutil.rmtree(path, ignore_errors=True)
        self.prune()

    def prune(self) -> None:
        """Forget worktrees whose folders are gone."""
        self._ask("worktree", "prune")

    # inside

    @property
    def _shallow(self) -> bool:
        return self._ask("rev-parse", "--is-shallow-repository").stdout.strip() == "true"

    def _how_to_fetch(self, revision: str) -> str:
        """What makes a missing revision known."""
        remotes = self._ask("remote").stdout.split()
        remote = next((name for name in remotes if revision.startswith(f"{name}/")), None)
        if self._shallow:
            where = remote or (remotes[0] if remotes else "origin")
            return (
                f"fetch its history with: git fetch --unshallow {where} "
                f"'+refs/heads/*:refs/remotes/{where}/*' (in GitHub Actions: fetch-depth: 0)"
            )
        if remote is not None:
            branch = revision.removeprefix(f"{remote}/")
            return f"fetch it with: git fetch {remote} {branch}:refs/remotes/{remote}/{branch}"
        return "name a branch, a tag or a commit that git rev-parse knows"

    def _ask(
        self, *arguments: str, extra: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Git's answer, whatever it is."""
        environment = without_git(os.environ) | {
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C.UTF-8",
        }
        quiet = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
        return subprocess.run(  # noqa: S603 - git, in the user's own repository
            ["git", *quiet, "-C", str(self.root), *arguments],  # noqa: S607 - the user's git
            env=environment | dict(extra or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=False,
        )

    def _tell(self, *arguments: str, extra: Mapping[str, str] | None = None) -> str:
        """Git's answer, without the line's end.

        Raises:
            ConfigError: git refused.
        """
        done = self._ask(*arguments, extra=extra)
        if done.returncode:
            self._refuse("run", f"git {' '.join(arguments)}", done.stderr)
        return done.stdout.rstrip("\n")

    def _refuse(self, verb: str, what: str, reason: str) -> NoReturn:
        msg = f"cannot {verb} {what} in {self.root}: {reason.strip() or 'git gave no reason'}"
        raise ConfigError(msg)


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "nothing"
