"""A project of a stranger, with opbench as its plugin, run in a process of its own."""

import json
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


class Project:
    """A folder with one test file; ``run`` starts pytest there and keeps what it printed."""

    def __init__(self, pytester):
        self.pytester = pytester
        self.path = pytester.path

    def file(self, **files):
        self.pytester.makepyfile(**files)

    def ini(self, text):
        self.pytester.makeini("[pytest]\n" + text)

    def run(self, *options, code=0):
        result = self.pytester.runpytest_subprocess("-p", "opbench.plugin", *options, timeout=120)
        assert result.ret == code, result.stdout.str() + result.stderr.str()
        return result

    def traces(self, folder="results"):
        found = sorted((self.path / folder / "traces").glob("*.trace.json"))
        return [json.loads(path.read_text("ascii")) for path in found]

    def trace(self, folder="results"):
        (only,) = self.traces(folder)
        return only

    def bench(self, *options, code=0):
        """Run with --benchmark-json; the benchmarks by test name, and what was printed."""
        json_out = "--benchmark-json=out.json"
        result = self.run(json_out, "--benchmark-max-time=0.02", *options, code=code)
        document = json.loads((self.path / "out.json").read_text("utf-8"))
        return {bench["name"]: bench for bench in document["benchmarks"]}, result


@pytest.fixture
def project(pytester, monkeypatch):
    """An empty project that sees this working tree's opbench, and no user's environment."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in [name for name in os.environ if name.startswith(("PYTEST_", "OPBENCH_"))]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert sys.executable
    return Project(pytester)
