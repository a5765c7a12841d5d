"""Saved runs: pytest-benchmark's own storage, written atomically and as strict JSON.

pytest-benchmark reads its storage through an object with ``save``, ``load``, ``query`` and
``location``. This one inherits the reading and replaces two things: the writing (a half-written
or lost run would be the next baseline) and ``location``, which fails when the results folder is
not below the working directory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_benchmark.storage.file import FileStorage

from opbench.errors import RecordError

__all__ = ["RunStorage", "adopt"]


class RunStorage(FileStorage):  # type: ignore[misc] # pytest-benchmark carries no types
    """pytest-benchmark's file storage with atomic, strict, never-overwriting saves.

    Attributes:
        saved: number of the run that was saved, or None.
        problem: why saving failed, or an empty string.
    """

    saved: int | None = None
    problem: str = ""

    @property
    def location(self) -> str:
        """The folder, for messages."""
        return str(self.path)

    def save(self, output_json: dict[str, Any], save: str) -> None:
        """Store one run under the next free number; a failure is kept for the section."""
        from opbench import records

        if not output_json["benchmarks"]:
            # An empty run would be the latest one, and so the next comparison's baseline.
            self.problem = "no benchmark passed, so there is nothing to save"
            return
        folder = self.path / self.default_machine_id if self.default_machine_id else self.path
        try:
            path, self.saved = records.save_run(Path(folder), output_json, save)
        except RecordError as error:
            self.problem = str(error)
        else:
            self.logger.info(f"Saved benchmark data in: {path}")  # noqa: G004 - no logging.Logger


def adopt(session: Any) -> None:
    """Put a :class:`RunStorage` over the same folder into pytest-benchmark's session, once."""
    storage = session.storage
    if isinstance(storage, FileStorage) and not isinstance(storage, RunStorage):
        session.storage = RunStorage(
            storage.path, storage.logger, default_machine_id=storage.default_machine_id
        )
