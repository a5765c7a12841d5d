"""How many workers a parallel call may have, and its turn: forks, counts, threading layers."""

from __future__ import annotations

import contextlib
import os
import threading
from contextlib import AbstractContextManager
from typing import Any

from numba.core import config as numba_config
from numba.np.ufunc import parallel

from opbench.errors import ForkError

__all__ = ["ALONE", "turn", "workers"]

config: Any = numba_config  # its settings come from the environment, unseen by type checkers
WORKQUEUE_TURN = threading.Lock()
NO_TURN: AbstractContextManager[object] = contextlib.nullcontext()
ALONE = config.NUMBA_NUM_THREADS == 1  # as it is when this is imported
orphaned = False  # a forked child whose parent had started numba's threads: they did not come along


def note_fork() -> None:
    """In a forked child: remember whether the parent's worker threads are missing here."""
    global orphaned  # noqa: PLW0603 - a fact about this process
    orphaned = orphaned or bool(getattr(parallel, "_is_initialized", True))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=note_fork)


def workers() -> int:
    """The number of workers for a parallel call now; 1 where only one is allowed.

    Raises:
        ForkError: In a forked child of a process whose worker threads had started. Under GNU OpenMP
            a parallel call would abort the child, elsewhere it would wait for ever.
    """
    if ALONE:
        return 1
    if orphaned:
        raise ForkError(
            "parallel dot in a forked child: the parent's worker threads do not exist in this "
            "process; start it by multiprocessing.get_context('spawn'), or set "
            "NUMBA_NUM_THREADS=1 before Python starts"
        )
    # Once they are started: the public function takes two locks first, which costs 0.6 µs.
    started = getattr(parallel, "_is_initialized", False)
    ask = getattr(parallel, "_get_num_threads", None) if started else None
    count: int = (ask or parallel.get_num_threads)()
    return count


def turn() -> AbstractContextManager[object]:
    """To be held around a parallel call: numba's workqueue layer aborts on two at once.

    Call `workers` first; it starts the threads, which decides the layer.
    """
    if parallel.threading_layer() == "workqueue":
        return WORKQUEUE_TURN
    return NO_TURN
