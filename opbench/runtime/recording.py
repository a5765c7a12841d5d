"""What the runtime tells the profiler, and the mode bits that ask for it.

The bits are plain integers: testing one is the whole cost of an emit point that is off.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from opbench.profiler import RECORDER, Mode

__all__ = ["API", "IMPERATIVE", "MEMORY", "RECORDER", "SYMBOLIC", "api"]

SYMBOLIC = int(Mode.SYMBOLIC)
IMPERATIVE = int(Mode.IMPERATIVE)
API = int(Mode.API)
MEMORY = int(Mode.MEMORY)

P = ParamSpec("P")
R = TypeVar("R")


def api(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a public function record one slice per call, of category ``api``, on its own thread.

    A call that raises is recorded too: it took its time. Of a call that reaches out of the window
    the recorder knows what to do.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def entry(*args: P.args, **kwargs: P.kwargs) -> R:
            if not RECORDER.mask & API:
                return function(*args, **kwargs)
            iteration = RECORDER.iteration
            start = RECORDER.clock()
            try:
                return function(*args, **kwargs)
            finally:
                RECORDER.complete(name, "api", start, RECORDER.clock(), {"iteration": iteration})

        return entry

    return decorate
