"""The order of launches when two sides are measured in one session."""

from __future__ import annotations

import hashlib

from opbench.errors import ConfigError

__all__ = ["turns"]


def turns(pairs: int, seed: int) -> tuple[tuple[str, str], ...]:
    """Which side goes first in each pair of launches.

    Two pairs make a block, and a block is either base head head base or head base base head:
    within it each side is first once and last once, so that a machine that slowly drifts weighs
    on both alike. Which of the two is drawn by the seed, so that no side is tied to a rhythm of
    the machine. An odd last pair is half a block; then one side is first once more.

    The draw is a bit of SHA-256 over seed and block: a stored seed means the same order under
    every Python.

    Args:
        pairs: how many, at least 1.
        seed: any whole number; it belongs into the report.

    Returns:
        One tuple for each pair, ``("base", "head")`` or ``("head", "base")``.

    Raises:
        ConfigError: there are no pairs.
    """
    if pairs < 1:
        msg = f"pairs is {pairs}, expected at least 1"
        raise ConfigError(msg)
    order: list[tuple[str, str]] = []
    for block in range((pairs + 1) // 2):
        base_first = hashlib.sha256(f"{seed}:{block}".encode()).digest()[0] & 1 == 0
        first, second = ("base", "head") if base_first else ("head", "base")
        order += [(first, second), (second, first)]
    return tuple(order[:pairs])
