"""The engine: order, waiting, failures, and its end."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

from opbench.errors import OperatorError
from opbench.runtime.engine import ENGINE, Engine, Failure

ROOT = Path(__file__).parents[2]


def python(code, timeout=120):
    """Run ``code`` in a fresh process; return what it printed, asserting that it ended well."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def held(engine):
    """Keep the worker of ``engine`` busy; returns the event that lets it go."""
    gate = threading.Event()
    engine.submit(lambda: gate.wait() and None)
    return gate


def test_submit_returns_before_the_work_is_done():
    engine = Engine()
    gate = held(engine)
    task = engine.submit(lambda: None)

    assert not task.done
    gate.set()
    task.wait()
    assert task.done


def test_work_runs_in_the_order_of_submission_on_one_thread():
    engine = Engine()
    gate = held(engine)
    seen = []
    for number in range(50):
        engine.submit(lambda number=number: seen.append((number, threading.current_thread().name)))
    gate.set()
    engine.wait_all()

    assert seen == [(number, "opbench engine") for number in range(50)]


def test_nothing_is_lost_when_many_threads_submit_and_wait():
    engine = Engine()
    done = []

    def submit():
        for _ in range(200):
            engine.submit(lambda: done.append(1)).wait()

    threads = [threading.Thread(target=submit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(done) == 1600


def test_several_threads_wait_for_one_task():
    engine = Engine()
    gate = held(engine)
    task = engine.submit(lambda: None)
    threads = [threading.Thread(target=task.wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join(60)

    assert not any(thread.is_alive() for thread in threads)


def test_the_worker_survives_what_work_raises():
    engine = Engine()

    def leave():
        raise SystemExit(3)

    task = engine.submit(leave)
    task.wait()
    after = engine.submit(lambda: None)
    after.wait()

    assert isinstance(task.failure.cause, SystemExit)
    assert after.failure is None


def test_wait_all_ends_only_when_everything_is_done_and_never_raises():
    engine = Engine()
    engine.wait_all()
    gate = held(engine)
    tasks = [engine.submit(lambda: 1 / 0) for _ in range(3)]
    threading.Timer(0.05, gate.set).start()
    engine.wait_all()

    assert all(task.done for task in tasks)


def test_the_first_failure_that_nobody_has_seen_is_kept_once():
    engine = Engine()
    first, second = (Failure("f", (), ValueError(text)) for text in "ab")
    engine.submit(lambda: first).wait()
    engine.submit(lambda: second).wait()
    engine.wait_all()

    assert engine.take_failure() is first
    assert engine.take_failure() is None


def test_a_failure_that_a_wait_has_raised_makes_room_for_the_next():
    engine = Engine()
    first, second = (Failure("f", (), ValueError(text)) for text in "ab")
    engine.submit(lambda: first).wait()
    engine.wait_all()
    first.error()
    engine.submit(lambda: second).wait()
    engine.wait_all()

    assert engine.take_failure() is second


def test_work_that_waits_for_its_own_engine_is_told_so():
    engine = Engine()
    gate = held(engine)
    tasks = []

    def wait_for_the_next():
        tasks[1].wait()

    tasks.append(engine.submit(wait_for_the_next))
    tasks.append(engine.submit(lambda: None))
    gate.set()
    tasks[0].wait()

    assert isinstance(tasks[0].failure.cause, OperatorError)
    assert "the one worker thread" in str(tasks[0].failure.cause)


def test_wait_all_inside_work_does_not_wait_for_itself():
    engine = Engine()
    task = engine.submit(engine.wait_all)
    task.wait()

    assert task.failure is None


class Big:
    """Something that a weak reference can point at."""


def test_finished_work_is_let_go_at_once():
    engine = Engine()
    big = Big()
    watch = weakref.ref(big)
    task = engine.submit(lambda big=big: None)
    del big
    task.wait()
    engine.wait_all()

    assert watch() is None
    assert task.done


def test_a_failure_keeps_its_traceback_but_no_values():
    engine = Engine()
    big = Big()
    watch = weakref.ref(big)

    def inner(big):
        raise ValueError("inner")

    def outer(big):
        try:
            inner(big)
        except ValueError as error:
            raise KeyError("outer") from error

    class Work:
        def __call__(self):
            try:
                outer(self.big)
            except KeyError as cause:
                return Failure("f", (), cause)

    work = Work()
    work.big = big
    task = engine.submit(work)
    del big, work
    task.wait()
    engine.wait_all()
    gc.collect()

    assert watch() is None
    assert task.failure.cause.__traceback__ is not None


def test_the_engine_is_not_idle_while_another_thread_is_about_to_queue():
    engine = Engine()
    engine.submit(lambda: None).wait()
    reached, gate = threading.Event(), threading.Event()
    queue = engine._queue

    class Slow:
        get = queue.get

        def put(self, task):
            if threading.current_thread().name == "slow":
                reached.set()
                gate.wait()
            queue.put(task)

    engine._queue = Slow()
    slow = threading.Thread(target=engine.submit, args=(lambda: None,), name="slow")
    slow.start()
    reached.wait()
    engine.submit(lambda: None).wait()
    idle_before = engine.idle
    gate.set()
    slow.join()
    engine.wait_all()

    assert not idle_before
    assert engine.idle


def test_an_engine_remembers_no_finished_task():
    engine = Engine()
    for _ in range(5):
        engine.submit(lambda: None).wait()

    # The last one is forgotten just after its waiter has gone on.
    assert len(engine._unfinished) <= 1


def test_an_error_tells_operator_operands_and_reason():
    cause = MemoryError("8 TiB")
    error = Failure("dot", ("float32 (2, 3)", "float32 (3, 4)"), cause).error()

    assert str(error) == "dot failed on float32 (2, 3) · float32 (3, 4): MemoryError: 8 TiB"


def test_an_error_of_a_graph_names_the_node_and_of_no_operands_none():
    error = Failure("dot", (), ValueError("x"), "layer7").error()

    assert str(error) == "node 'layer7': dot failed: ValueError: x"


def test_the_thread_starts_with_the_first_operator():
    printed = python(
        "import threading, opbench\n"
        "a = opbench.nd.ones((2, 2)); opbench.nd.waitall()\n"
        "print([t.name for t in threading.enumerate()])\n"
        "opbench.nd.dot(a, a)\n"
        "print([(t.name, t.daemon) for t in threading.enumerate()][1:])\n"
    )

    assert printed.splitlines() == ["['MainThread']", "[('opbench engine', True)]"]


SLOW_ENGINE = """
import time, threading
from opbench.runtime.engine import ENGINE
started = threading.Event()
def work():
    started.set()
    time.sleep(0.2)
    print("ran", flush=True)
"""


def test_the_interpreter_exits_with_work_pending_that_nobody_can_read():
    # A thousand seconds of work are pending; the time-out of the process is the test.
    printed = python(
        SLOW_ENGINE + "for _ in range(5000): task = ENGINE.submit(work)\nstarted.wait()\n"
    )

    # The one that is running is waited for, and what is queued behind it discarded.
    assert 1 <= printed.count("ran") < 5000


def test_work_that_is_recorded_at_exit_is_finished():
    printed = python(
        SLOW_ENGINE + "from opbench.profiler import RECORDER\nRECORDER.run('all', 'test')\n"
        "for _ in range(3): ENGINE.submit(work)\n"
    )

    assert printed.count("ran") == 3


def test_a_wait_in_another_thread_ends_at_exit():
    printed = python(
        SLOW_ENGINE + "for _ in range(5000): task = ENGINE.submit(work)\n"
        "started.wait()\nENGINE.close(); task.wait(); print(type(task.failure.cause).__name__)\n"
        "try: ENGINE.submit(work)\n"
        "except RuntimeError as error: print(error)\n"
    )

    assert "RuntimeError\nthe interpreter is exiting: nothing more" in printed


FORK = """
import os, sys
import opbench
from opbench import nd
from opbench.errors import ForkError
a = nd.ones((3, 3))
{before}
pid = os.fork()
if pid == 0:
    try:
        {inside}
    except ForkError as error:
        print(error)
    sys.stdout.flush()
    os._exit(0)
os.waitpid(pid, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
class TestFork:
    def test_an_operator_is_refused_in_the_child(self):
        printed = python(
            FORK.format(before="nd.dot(a, a).wait_to_read()", inside="nd.dot(a, a)"), timeout=60
        )

        assert "forked process: the worker thread stayed in the parent" in printed
        assert "'spawn'" in printed

    def test_a_pending_array_is_refused_in_the_child(self):
        before = (
            "import threading; from opbench.runtime.engine import ENGINE\n"
            "go = threading.Event(); ENGINE.submit(lambda: go.wait() and None); c = nd.dot(a, a)"
        )
        # The parent lets go after the child has ended, so that the child sees it pending.
        code = FORK.format(before=before, inside="c.asnumpy()") + "go.set(); print(c.asnumpy()[0])"
        lines = python(code, timeout=60).splitlines()

        assert "pending at the fork" in lines[0]
        assert lines[1] == "[3. 3. 3.]"

    def test_finished_arrays_can_be_read_and_waiting_for_all_returns(self):
        code = FORK.format(
            before="c = nd.dot(a, a); c.wait_to_read()",
            inside="nd.waitall(); print(c.asnumpy()[0], nd.zeros(2).asnumpy())",
        )

        assert python(code, timeout=60) == "[3. 3. 3.] [0. 0.]\n"

    def test_a_child_of_a_parent_that_computed_nothing_has_a_worker_of_its_own(self):
        code = FORK.format(
            before="from opbench.runtime.engine import ENGINE",
            inside="t = ENGINE.submit(lambda: print('child')); t.wait()",
        )

        assert python(code, timeout=60) == "child\n"


def test_the_recorder_synchronises_with_the_engine():
    from opbench.profiler import RECORDER

    gate = held(ENGINE)
    task = ENGINE.submit(lambda: None)
    threading.Timer(0.05, gate.set).start()
    RECORDER.run("all", "test")
    done_at_the_start = task.done
    RECORDER.stop("test")

    assert done_at_the_start
