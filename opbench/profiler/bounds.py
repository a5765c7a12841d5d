"""What a window of iterations may be; apart from what opens one, as every pytest asks for it."""

from __future__ import annotations

from operator import index

from opbench.errors import WindowError

__all__ = ["window_bounds"]


def window_bounds(
    iterations: int, begin: int = 0, end: int | None = None, source: str = ""
) -> tuple[int, int, int]:
    """The three numbers of a window, checked.

    Args:
        iterations: how many there are in all.
        begin: the first one to record.
        end: the first one after it that is not recorded; None means `iterations`.
        source: where the three numbers came from, for the error.

    Raises:
        WindowError: the window is negative, reversed, empty or beyond the iterations.
    """
    end = iterations if end is None else end
    place = f" ({source})" if source else ""
    for name, value in (("iterations", iterations), ("begin", begin), ("end", end)):
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise WindowError(f"{name}{place} must be a whole number, not {value!r}")
    iterations, begin, end = index(iterations), index(begin), index(end)
    if iterations < 1:
        raise WindowError(
            f"iterations{place} must be at least 1, not {iterations} (begin {begin}, end {end})"
        )
    if not 0 <= begin < end <= iterations:
        raise WindowError(
            f"the window{place} is impossible: begin {begin}, end {end}, iterations {iterations}; "
            "it must hold that 0 <= begin < end <= iterations"
        )
    return iterations, begin, end
