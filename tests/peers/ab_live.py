"""``opbench ab`` on this machine: does it stay silent over equal code, and see 10 % more work?

A stranger's project is made in a temporary folder: src layout, plain pytest-benchmark, no word of
opbench. Run by hand:

    python tests/peers/ab_live.py                  every scenario, five trials of each judged one
    python tests/peers/ab_live.py equal --trials 1
    python tests/peers/ab_live.py interrupt kill   ended in the middle, then --resume

It prints a line for each trial, with the time it took, and ends with exit code 1 if a target was
missed: no regression in equal code, four of five found of 10 % more work, all of twice the work,
nothing left of an interrupted session.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = """
import numpy as np

ONE, TWO, OUT = np.linspace(1.0, 2.0, 4096), np.linspace(2.0, 3.0, 4096), np.empty(4096)

def scaled(steps):
    for _ in range(steps):
        np.multiply(ONE, TWO, out=OUT)
    return OUT[0]

def ordered():
    return np.sort(ONE[::-1])[0]
"""
TESTS = """
from strange import ordered, scaled
from strange.work import STEPS

def test_scaled(benchmark):
    assert benchmark(scaled, STEPS) == 2.0

def test_ordered(benchmark):
    assert benchmark(ordered) == 1.0
"""
GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main")
# Scenario: steps of base and of head, the exit code that is right, how many of five must have it.
SCENARIOS = {
    "equal": (100, 100, 0, 5),
    "tenth": (100, 110, 1, 4),
    "twice": (200, 100, 0, 5),
    "half": (100, 200, 1, 5),
}


def git(folder, *words):
    return subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True, text=True)


def make_project(folder, base, head):
    """Two commits, which differ by the steps of a loop."""
    (folder / "src" / "strange").mkdir(parents=True)
    (folder / "tests").mkdir()
    (folder / "src" / "strange" / "__init__.py").write_text(PACKAGE)
    (folder / "tests" / "test_strange.py").write_text(TESTS)
    git(folder, "init", "--quiet")
    for steps in (base, head):
        (folder / "src" / "strange" / "work.py").write_text(f"STEPS = {steps}\n")
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--allow-empty", "-m", f"{steps} steps")


def start(folder, *words):
    """One ``opbench ab`` of this checkout in that project, in a group of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "opbench", "ab", "--threads", "1", *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def judged(scenario, trials):
    """Whether enough trials of a scenario ended as they should."""
    base, head, right, least = SCENARIOS[scenario]
    hits, seconds = 0, []
    for trial in range(trials):
        with tempfile.TemporaryDirectory() as name:
            make_project(Path(name), base, head)
            begin = time.perf_counter()
            process = start(name, "--base", "HEAD~1")
            told = process.communicate()[0]
            seconds.append(time.perf_counter() - begin)
            left = leftovers(name)
        hits += process.returncode == right
        ratio = re.search(r"test_scaled.*?(\d\.\d+)×", told)
        print(
            f"{scenario} {trial + 1}: exit {process.returncode}, {seconds[-1]:.0f} s, "
            f"ratio {ratio[1] if ratio else 'not told'}{left}",
            flush=True,
        )
        if process.returncode != right:
            print(told)
    needed = least * trials / 5
    print(f"{scenario}: {hits} of {trials} right, {min(seconds):.0f} to {max(seconds):.0f} s")
    return hits >= needed


def leftovers(folder):
    """What a session must not leave: worktrees, and folders of its own."""
    trees = git(folder, "worktree", "list").stdout.count("\n") - 1
    dirty = git(folder, "status", "--porcelain").stdout
    return f", LEFT {trees} worktrees {dirty}" if trees or dirty else ""


def interrupted(number, right):
    """Ended after some launches: nothing is left, and --resume comes to the verdict."""
    with tempfile.TemporaryDirectory() as name:
        make_project(Path(name), 100, 100)
        process = start(name, "--base", "HEAD~1")
        journal = Path(name) / "results" / "ab"
        while launches(journal) < 5 and process.poll() is None:
            time.sleep(0.2)
        group = children(process.pid)
        process.send_signal(number)
        told = process.communicate()[0]
        time.sleep(1.0)  # for the process that clears away after a killed one
        alive = [pid for pid in group if is_running(pid)]
        left = leftovers(name)
        done = launches(journal)
        print(
            f"{number.name}: exit {process.returncode}, alive {alive}{left}, {done} launches kept"
        )
        print("  ", (told.strip().splitlines() or ["nothing said"])[-1])
        again = start(name, "--resume")
        text = again.communicate()[0]
        print(f"resume: exit {again.returncode}, {launches(journal)} launches{leftovers(name)}")
        fine = process.returncode == right and not alive and not left and again.returncode == 0
        if not fine:
            print(told, text)
        return fine


def is_running(pid):
    """Whether a process runs; a dead one that nobody collects does not."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def launches(folder):
    return sum(len(path.read_text().splitlines()) for path in folder.glob("*/turns.jsonl"))


def children(pid):
    """Every process below one, by their numbers."""
    found, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        tasks = Path(f"/proc/{parent}/task").glob("*/children")
        below = [int(word) for task in tasks for word in task.read_text().split()]
        found += below
        waiting += below
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    endings = {"interrupt": (signal.SIGINT, 130), "kill": (signal.SIGKILL, -signal.SIGKILL)}
    names = [*SCENARIOS, *endings]
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(names))
    parser.add_argument("--trials", type=int, default=5)
    options = parser.parse_args()
    # Whoever was started in the background ignores Ctrl-C, and hands that on.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    chosen = options.scenarios or names
    if unknown := set(chosen) - set(names):
        parser.error(
            f"unknown scenario {', '.join(sorted(unknown))}; choose from {', '.join(names)}"
        )
    fine = [
        interrupted(*endings[name]) if name in endings else judged(name, options.trials)
        for name in chosen
    ]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
