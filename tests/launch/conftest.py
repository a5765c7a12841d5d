"""What the tests of this room share: a repository, a process's pulse, a quiet progress."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from opbench.launch import LaunchResult

IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main")


class Project:
    """A git repository of a stranger."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.git("init", "--quiet")

    def git(self, *arguments, folder=None):
        done = subprocess.run(
            ["git", *IDENTITY, *arguments],
            cwd=folder or self.folder,
            capture_output=True,
            text=True,
            check=True,
            env={k: v for k, v in os.environ.items() if not k.startswith("GIT_")},
        )
        return done.stdout.strip()

    def write(self, **modules):
        """Modules by their dotted names: ``**{"src.pkg.__init__": ""}`` is src/pkg/__init__.py."""
        for name, text in modules.items():
            path = self.folder / (name.replace(".", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def commit(self, **modules):
        self.write(**modules)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", "x")
        return self.git("rev-parse", "HEAD")


class Quiet:
    """Keeps what is said, and each step."""

    def __init__(self):
        self.said, self.steps = [], []

    def say(self, text):
        self.said.append(text)

    def step(self, done, planned, left_s, what):
        self.steps.append((done, planned, left_s, what))


def is_running(pid):
    """Whether a process runs; one that is dead and not yet collected does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "project")


@pytest.fixture
def progress():
    return Quiet()


@pytest.fixture
def pulse():
    return is_running


class FakePytest:
    """Stands in for ``run_launch``: reads a checkout's times, and answers as pytest would.

    A project holds a file ``times.json``: by test id the seconds of a call, or a word instead:
    ``fail`` and ``skip`` end a test, ``crash`` and ``hang`` end the launch, ``garbage`` spoils its
    report, and ``broken`` keeps its file from being collected. A launch takes a second of the
    clock, and what ``slow`` adds for its file.
    """

    def __init__(self):
        self.now = self.seconds = 0.0
        self.launches = []
        self.modules = {}
        self.plugins = ["benchmark"]
        self.noise = lambda side, number, name: 1.0
        self.before = lambda number: None
        self.slow = {}
        self.instead = lambda side, counted, ids: None

    def clock(self):
        return self.now

    def __call__(self, launch, group=None):
        side = "base" if "/base/" in f"{launch.cwd}/" else "head"
        times = json.loads((Path(launch.cwd) / "times.json").read_text())
        ids = [word for word in launch.arguments if "::" in word]
        collect = "--collect-only" in launch.arguments
        self.launches.append((side, "collect" if collect else "run", tuple(ids), launch))
        self.before(len(self.launches))
        self.seconds = 1.0 + sum(self.slow.get(name.partition("::")[0], 0.0) for name in ids[:1])
        self.now += self.seconds
        counted = "OPBENCH_SURVEY" not in launch.environment
        if not counted:
            self._survey(launch, times, ids, collect)
        if (result := self.instead(side, counted, ids)) is not None:
            return result
        if collect:
            return self.result(0)
        words = {times.get(name) for name in ids}
        if not ids or not words - {None}:
            return self.result(4, stderr=f"ERROR: not found: {ids}")
        wrong = {
            "crash": lambda: self.result(-11),
            "hang": lambda: self.result(-9, timed_out=True),
            "garbage": lambda: self.result(0, {"benchmarks": [7, {"fullname": 3}, {}]}),
        }
        for word in words & set(wrong):
            return wrong[word]()
        passed = [name for name in ids if isinstance(times[name], float)]
        entries = [self._entry(side, name, times[name]) for name in passed]
        document = {"benchmarks": entries} if entries else None
        return self.result(0 if len(passed) == len(ids) else 1, document)

    def _entry(self, side, name, seconds):
        factor = self.noise(side, len(self.launches), name)
        rounds = [seconds * factor * (1 + 0.001 * (n % 5)) for n in range(25)]
        return {"fullname": name, "stats": {"data": rounds}, "extra_info": {}}

    def result(self, code, document=None, *, timed_out=False, stderr=""):
        return LaunchResult(code, timed_out, document, self.seconds, "", stderr, None)

    def _survey(self, launch, times, ids, collect):
        root = Path(launch.cwd)
        found = [n for n, t in times.items() if t != "broken"] if collect else []
        how = {"fail": ["failed", "E   boom", 0.0], "skip": ["skipped", "not here", 0.0]}
        survey = {
            "root": str(root),
            "items": [[n, str(root / n.partition("::")[0]), "long" in n] for n in found],
            "outcomes": {
                n: how.get(times.get(n), ["passed", "", 0.1]) for n in ([] if collect else ids)
            },
            "errors": [
                [n.partition("::")[0], "E   ImportError: x"]
                for n, t in times.items()
                if t == "broken"
            ],
            "modules": {k: [v.format(tree=root)] for k, v in self.modules.items()},
            "plugins": self.plugins,
            "operators": {},
            "prefixes": ["/usr"],
        }
        Path(launch.environment["OPBENCH_SURVEY"]).write_text(json.dumps(survey))


@pytest.fixture
def fake():
    return FakePytest()
