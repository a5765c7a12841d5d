"""The books of memory: how many bytes live per context, and what a window in mode memory shows."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import Any, Protocol

from opbench import probes
from opbench.profiler import Mode
from opbench.runtime.context import Context
from opbench.runtime.recording import MEMORY, RECORDER

__all__ = ["LEDGER", "NEVER", "Booked", "Ledger"]

_PROBES = probes.attach(RECORDER)

# States of an entry that no window has seen.
NEVER, EARLIER = -1, 0
# What is booked beside allocations and frees, in one order with them.
OPENED, CLOSED, RESUMED = 2, 3, 4


class Booked(Protocol):
    """One array in the books; new ones say `NEVER` of their window.

    Attributes:
        context: where it lies.
        nbytes: how large it is.
        operator: the operator that it is a result of, or the function that made it.
        name: of the graph's node, or of the scopes in which it was made; empty if neither.
        number: which array of the window it is, from 1; 0 if it is older than the window. Set when
            it is recorded.
        window: the window in which it was allocated; `EARLIER` outside of any, `NEVER` while it is
            not in the books.
    """

    context: Context
    nbytes: int
    operator: str
    name: str
    number: int
    window: int


class _Account:
    """One context in one window.

    Attributes:
        baseline: bytes alive when the window opened.
        earlier: those of them that are alive still.
        live: bytes of arrays made in the window that are alive.
        peak: the most bytes alive at any moment, over the baseline.
        told: the values that a counter shows: live, earlier, peak.
    """

    __slots__ = ("baseline", "earlier", "live", "peak", "told")

    def __init__(self, baseline: int) -> None:
        self.baseline = self.earlier = baseline
        self.live = self.peak = 0
        self.told: tuple[int, int, int] | None = None

    def rise(self) -> None:
        """Note the present moment's bytes."""
        self.peak = max(self.peak, self.live + self.earlier - self.baseline)

    def values(self) -> tuple[int, int, int]:
        """What its counters should show."""
        return self.live, self.earlier, self.peak


class Ledger:
    """Bytes alive per context; what changes is told to the profiler in mode memory.

    Frees come out of weak references, that is at any moment, even inside this class and on this
    very thread. So a change is queued first, and whoever holds the lock books it: nobody waits.

    Nothing is clamped. An array that is freed without having been allocated makes a sum negative,
    and its event carries ``unmatched``.
    """

    def __init__(self) -> None:
        self._changes: deque[tuple[Booked | None, int]] = deque()
        self._live: dict[Context, int] = {}
        self._serial = 0  # of the last window
        self.detach()

    def detach(self) -> None:
        """In a forked child: another thread may have held the lock, and the window is not ours."""
        self._lock = threading.Lock()
        self._open = False
        self._numbers = 0
        self._since = 0  # when the window opened, or resumed
        self._accounts: dict[Context, _Account] = {}

    def live(self, context: Context) -> int:
        """Bytes alive there."""
        return self._live.get(context, 0)

    def alloc(self, entry: Booked) -> None:
        """An array has come into being."""
        self._change(entry, 1)

    def free(self, entry: Booked) -> None:
        """It has died."""
        self._change(entry, -1)

    # a listener of the recorder

    def opened(self, modes: Mode) -> None:
        """What is alive now is the window's baseline."""
        if modes & Mode.MEMORY:
            self._change(None, OPENED)

    def closed(self) -> None:
        """The books go on, unrecorded."""
        self._change(None, CLOSED)

    def paused(self) -> None:
        """The books go on; what the counters show is put right at the resumption."""

    def resumed(self) -> None:
        """Put it right."""
        self._change(None, RESUMED)

    # the books

    def _change(self, entry: Booked | None, what: int) -> None:
        changes = self._changes
        changes.append((entry, what))
        # Looks again after the release, for a change that came while the lock was still held.
        while changes and self._lock.acquire(False):
            try:
                while changes:
                    changed, how = changes.popleft()
                    if changed is None:
                        self._turn(how)
                    else:
                        self._book(changed, how)
            finally:
                self._lock.release()

    def _turn(self, what: int) -> None:
        self._since = RECORDER.clock()
        if what == OPENED:
            self._serial += 1
            self._numbers = 0
            self._open = True
            self._accounts = {}
        elif what == CLOSED:
            self._open = False
            self._accounts = {}
        elif RECORDER.mask & MEMORY:
            for context, account in self._accounts.items():
                account.rise()
                _tell(context, account, self._since)

    def _book(self, entry: Booked, sign: int) -> None:
        context = entry.context
        before = self._live.get(context, 0)
        self._live[context] = before + sign * entry.nbytes
        born = entry.window
        if not self._open:
            entry.window = EARLIER if sign > 0 else NEVER
            return
        entry.window = self._serial if sign > 0 else NEVER
        account = self._accounts.get(context)
        if account is None:
            account = self._account(context, before)
        self._note(entry, sign, account, born)

    def _account(self, context: Context, baseline: int) -> _Account:
        """The counters of a context begin with the window, at the baseline."""
        account = self._accounts[context] = _Account(baseline)
        if RECORDER.mask & MEMORY:
            _tell(context, account, self._since)
        return account

    def _note(self, entry: Booked, sign: int, account: _Account, born: int) -> None:
        nbytes = sign * entry.nbytes
        if sign > 0:
            self._numbers += 1
            entry.number = self._numbers
        elif born != self._serial:
            entry.number = 0
        if sign < 0 and born not in (NEVER, self._serial):
            account.earlier += nbytes
        else:
            account.live += nbytes
        if RECORDER.mask & MEMORY:
            account.rise()
            _tell(entry.context, account, RECORDER.clock())
            RECORDER.instant(
                "alloc" if sign > 0 else "free",
                "memory",
                _described(entry, nbytes, unmatched=(born == NEVER) is (sign < 0)),
            )
            _PROBES.resident.sample()


def _described(entry: Booked, nbytes: int, *, unmatched: bool) -> dict[str, Any]:
    """The args of an alloc or a free; what is empty is left out, since there are many of them."""
    args: dict[str, Any] = {
        "bytes": nbytes,
        "array": entry.number,
        "context": str(entry.context),
        "iteration": RECORDER.iteration,
    }
    if entry.operator:
        args["operator"] = entry.operator
    if entry.name:
        args["name"] = entry.name
    if unmatched:
        args["unmatched"] = True
    return args


def _tell(context: Context, account: _Account, at_ns: int) -> None:
    """Bring the counters up to date; chrome://tracing draws earlier bytes on top of live ones."""
    values = account.values()
    told, account.told = account.told, values
    live, earlier, peak = values
    if told is None or told[:2] != values[:2]:
        RECORDER.counter_at(
            f"memory {context}", {"live bytes": live, "earlier bytes": earlier}, at_ns
        )
    if told is None or told[2] != peak:
        RECORDER.counter_at(f"memory peak {context}", {"bytes": peak}, at_ns)


LEDGER = Ledger()

RECORDER.add_listener(LEDGER)
if RECORDER.state == "run":  # autostart's window is open before anything of the runtime is loaded
    LEDGER.opened(Mode(RECORDER.mask))
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=LEDGER.detach)
