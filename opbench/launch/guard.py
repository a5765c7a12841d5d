"""Whatever ends a session, nothing of it stays: folders, worktrees, processes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from opbench.launch import guard_process
from opbench.launch.revision import Repository, without_git

__all__ = ["Guard"]


class Guard:
    """Owns a temporary folder, the worktrees in it, and the process groups that run.

    Leaving the ``with`` block clears all away. A second process waits beside it for the case that
    this one cannot: it sees the end of a pipe, which the kernel closes for a killed process too.

    Attributes:
        folder: the temporary folder.
    """

    def __init__(self, parent: Path | None = None) -> None:
        """Make the folder.

        Args:
            parent: where it is made; the system's place for temporary files if None.
        """
        self.folder = Path(tempfile.mkdtemp(prefix="opbench-", dir=parent)).resolve()
        self._trees: list[tuple[Repository, Path]] = []
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Guard:  # noqa: PYI034 - typing has no Self in Python 3.10
        """Start the process that waits."""
        with contextlib.suppress(OSError):  # without it only a killed session leaves anything
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, a file of ours
                [sys.executable, "-I", "-S", guard_process.__file__],
                cwd="/",
                env=without_git(os.environ),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                text=True,
            )
        self._tell(folder=str(self.folder))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Clear everything away, and let the other process go."""
        guard_process.end_strays(str(self.folder))
        for repository, path in self._trees:
            repository.remove_worktree(path)
        shutil.rmtree(self.folder, ignore_errors=True)
        self._tell(done=True)
        if self._process is not None:
            with contextlib.suppress(OSError):
                if self._process.stdin:
                    self._process.stdin.close()
            self._process.wait()

    def worktree(self, repository: Repository, path: Path, commit: str) -> Path:
        """Check a commit out below the folder; it goes when the guard goes.

        Raises:
            ConfigError: git cannot.
        """
        self._trees.append((repository, path))
        self._tell(repository=str(repository.root))
        path.parent.mkdir(parents=True, exist_ok=True)
        repository.add_worktree(path, commit)
        return path

    @contextlib.contextmanager
    def group(self, number: int) -> Iterator[None]:
        """A process group runs inside the block; it dies with this process."""
        self._tell(group=number)
        try:
            yield
        finally:
            self._tell(gone=number)

    def _tell(self, **what: object) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                self._process.stdin.write(json.dumps(what) + "\n")
                self._process.stdin.flush()
