"""How long each thread was held up by work that is not the operator's: compiling and collecting."""

from __future__ import annotations

import threading

__all__ = ["INTERRUPTIONS", "Interruptions", "So"]

So = tuple[int, int]
"""Nanoseconds of compiling and of collecting on one thread, since some moment."""


class Interruptions(threading.local):
    """Two sums per thread, which grow while a window is open.

    What brackets an operator keeps `so_far` from before it and asks `since` afterwards::

        before = INTERRUPTIONS.so_far
        ...
        args.update(INTERRUPTIONS.since(before))

    Sums and not a list: an operator may contain any number of collections, and reading one
    attribute is all that an undisturbed one pays.

    Attributes:
        so_far: the sums of the calling thread; replaced at each interruption, never changed.
    """

    so_far: So = (0, 0)

    def compiled(self, elapsed_ns: int, before: So) -> None:
        """A compilation has ended; ``before`` is `so_far` from its start."""
        compile_ns, gc_ns = self.so_far
        self.so_far = (compile_ns + self._own(elapsed_ns, before), gc_ns)

    def collected(self, elapsed_ns: int, before: So) -> None:
        """A collection has ended; likewise."""
        compile_ns, gc_ns = self.so_far
        self.so_far = (compile_ns, gc_ns + self._own(elapsed_ns, before))

    def _own(self, elapsed_ns: int, before: So) -> int:
        # What was counted meanwhile lay inside: a collection while compiling, the compilation of
        # a callee.
        return elapsed_ns - (sum(self.so_far) - sum(before))

    def since(self, before: So) -> dict[str, int]:
        """The args of a slice of this thread that began at ``before``: what of it was not its own.

        Returns:
            ``compile_ns`` and ``gc_ns``, each only if there was any. No nanosecond is in both, so
            the slice's own time is its duration less the two.
        """
        now = self.so_far
        if now is before:
            return {}
        grown = {"compile_ns": now[0] - before[0], "gc_ns": now[1] - before[1]}
        return {name: ns for name, ns in grown.items() if ns}


INTERRUPTIONS = Interruptions()
