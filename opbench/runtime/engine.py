"""The engine: one worker thread that runs what is submitted, first in first out.

Tasks wait for nothing: whatever a task reads was submitted before it, so it is complete, or has
failed, when the task begins.
"""

from __future__ import annotations

import atexit
import os
import threading
import traceback
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from opbench.errors import ForkError, OperatorError
from opbench.runtime.recording import RECORDER

__all__ = ["ENGINE", "Engine", "Failure", "Task", "idle"]

# How long the interpreter's exit waits for the operator that is being computed.
EXIT_SECONDS = 10.0


class Failure:
    """Why an operator gave no result; everything that depends on it fails with the same one.

    Args:
        operator: its name.
        operands: dtype and shape of each input, as text.
        cause: what was raised.
        node: the name of the graph's node, or empty outside of a graph.
    """

    __slots__ = ("cause", "node", "operands", "operator", "reported")

    def __init__(
        self, operator: str, operands: Sequence[str], cause: BaseException, node: str = ""
    ) -> None:
        self.operator = operator
        self.operands = tuple(operands)
        self.cause = cause
        self.node = node
        self.reported = False

    def let_go(self) -> None:
        """Empty the frames of the cause: its traceback stays, the operator's arrays do not."""
        chain: list[BaseException] = [self.cause]
        for link in chain:
            traceback.clear_frames(link.__traceback__)
            chain += [
                other
                for other in (link.__cause__, link.__context__)
                if other is not None and other not in chain
            ]

    def error(self) -> OperatorError:
        """A fresh error to raise from ``cause``: a raised one would collect tracebacks."""
        self.reported = True
        reason = "".join(traceback.format_exception_only(self.cause)).strip()
        where = f"node {self.node!r}: " if self.node else ""
        what = f" on {' · '.join(self.operands)}" if self.operands else ""
        return OperatorError(f"{where}{self.operator} failed{what}: {reason}")


class Task:
    """One piece of work, and whether it is done.

    Attributes:
        work: the function that the worker calls; None as soon as it has run, so that a finished
            task keeps no arrays alive.
        failure: why it failed, or None.
        done: true once ``failure`` and all results stand.
    """

    __slots__ = ("_engine", "_gate", "done", "failure", "work")

    def __init__(self, engine: Engine, work: Callable[[], Failure | None]) -> None:
        self.work: Callable[[], Failure | None] | None = work
        self.failure: Failure | None = None
        self.done = False
        self._engine = engine
        # A bare lock is the cheapest thing that can be waited for: held until the work is done.
        self._gate = threading.Lock()
        self._gate.acquire()

    def run(self) -> None:
        """Run the work, once; on the worker."""
        try:
            # No local name for it: a traceback may keep this frame.
            self.failure = self.work() if self.work is not None else None
        except BaseException as cause:  # noqa: BLE001 - the worker must survive whatever happens
            self.failure = Failure("the engine", (), cause)
        if self.failure is not None:
            self.failure.let_go()
        self.finish()

    def finish(self) -> None:
        """Drop the work and let the waiters go."""
        self.work = None
        self.done = True
        self._gate.release()

    def wait(self) -> None:
        """Return when the work is done, whether or not it failed.

        Raises:
            ForkError: in a forked child, where it never will be.
            OperatorError: on the worker itself, which would wait for ever.
        """
        if self.done:
            return
        self._engine.require_worker("an array that was pending at the fork")
        if self._engine.is_worker():
            raise OperatorError(
                "a kernel waited for an array that is still pending: the one worker thread,"
                " which would compute it, is running that kernel"
            )
        with self._gate:
            pass


class Engine:
    """A queue and the daemon thread that empties it; the thread starts with the first task."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Task | None] = SimpleQueue()
        # Reentrant, since a finaliser may submit work while this very thread starts the worker.
        self._starting = threading.RLock()
        self._worker: threading.Thread | None = None
        self._failure: Failure | None = None
        # Adding, discarding and copying are one step each, so it takes no lock of its own.
        self._unfinished: set[Task] = set()
        self._forked = False
        self._closed = False

    def submit(self, work: Callable[[], Failure | None]) -> Task:
        """Queue ``work`` behind everything submitted before; returns at once.

        Raises:
            ForkError: in a forked child of a process whose worker had started.
            OperatorError: the interpreter is exiting.
        """
        self.require_worker("an operator")
        if self._closed:
            raise OperatorError("the interpreter is exiting: nothing more can be computed")
        if self._worker is None:
            self._start()
        task = Task(self, work)
        # Before it is queued: the worker may be done with it by the time put returns.
        self._unfinished.add(task)
        self._queue.put(task)
        return task

    @property
    def idle(self) -> bool:
        """Whether everything submitted so far is done."""
        return all(task.done for task in self._unfinished.copy())

    def wait_all(self) -> None:
        """Return when everything submitted before is done; never raises for a failed operator."""
        if self._worker is None or self._forked or self._closed or self.is_worker():
            return
        self.submit(_nothing).wait()

    def take_failure(self) -> Failure | None:
        """The first failure since the last call that no wait has raised, or None."""
        failure, self._failure = self._failure, None
        return failure if failure is not None and not failure.reported else None

    def is_worker(self) -> bool:
        """Whether the calling thread is the worker."""
        return self._worker is not None and self._worker.ident == threading.get_ident()

    def require_worker(self, what: str) -> None:
        """Require a process in which the worker can run.

        Raises:
            ForkError: a forked child, into which the worker did not come along.
        """
        if self._forked:
            raise ForkError(
                f"{what} cannot be computed in this forked process: the worker thread stayed in"
                " the parent; start processes with multiprocessing's 'spawn' method instead"
            )

    def close(self) -> None:
        """At exit: discard what is queued, and wait a while for the operator that is running.

        A daemon thread inside a kernel must not outlive the interpreter. Only work that is being
        recorded is finished first, as the end of its window promises.
        """
        if self._worker is None or self._forked or self._closed:
            return
        if RECORDER.recording:
            self.wait_all()
        self._closed = True
        self._queue.put(None)
        self._worker.join(EXIT_SECONDS)

    def detach(self) -> None:
        """In a forked child: the worker is gone, and the locks may be in any state."""
        self._forked = self._worker is not None
        self._starting = threading.RLock()

    def _start(self) -> None:
        with self._starting:
            if self._worker is not None:
                return
            worker = threading.Thread(target=self._serve, name="opbench engine", daemon=True)
            worker.start()
            self._worker = worker
            atexit.register(self.close)

    def _serve(self) -> None:
        while True:
            task = self._queue.get()
            if task is None:
                return
            if self._closed:
                task.failure = Failure("the engine", (), RuntimeError("the interpreter is exiting"))
                task.finish()
            else:
                task.run()
                if task.failure is not None and (self._failure is None or self._failure.reported):
                    self._failure = task.failure
            self._unfinished.discard(task)
            # Else this frame would hold the last task, and its results, until the next one comes.
            del task


def _nothing() -> None:
    """The work of a barrier."""


ENGINE = Engine()


def idle() -> bool:
    """Whether everything that was submitted to this process's engine is done; never waits."""
    return ENGINE.idle


RECORDER.add_synchroniser(ENGINE.wait_all)
os.register_at_fork(after_in_child=ENGINE.detach)
