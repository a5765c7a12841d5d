"""What the roof is measured with: how much work, on how many threads, over how many bytes."""

from __future__ import annotations

import pytest

from opbench.kernels import roof as kernels
from opbench.operators import roof


def test_peak_work_is_one_piece_a_thread_and_counts_each_repeat():
    work = roof.peak_work("float64", 3)
    assert len(work.pieces) == 3
    once = kernels.multiply_adds("float64", roof.STEPS)
    assert [piece(2) for piece in work.pieces] == [2 * once] * 3


def test_bandwidth_work_divides_the_working_set_among_the_threads():
    works = roof.bandwidth_work(3 << 20, 2)
    assert [work.name for work in works] == ["triad", "triad past the caches", "read"]
    for work in works:
        moved = [piece(1) for piece in work.pieces]
        assert len(moved) == 2
        # A triad moves each byte of its three arrays once, and so does a read of all three.
        assert moved == [3 << 19] * 2
    assert [piece(4) for piece in works[0].pieces] == [4 * (3 << 19)] * 2


@pytest.mark.parametrize(
    ("threads", "caches", "sizes"),
    [
        (1, (1 << 20, 32 << 20), (3 << 18, 24 << 20, 12 * 32 << 20)),
        (2, (1 << 20, 32 << 20), (3 << 19, 24 << 20, 12 * 32 << 20)),
        (2, (1 << 20, 1 << 20), (3 << 19, 12 * 2 << 20)),  # no shared cache
        (64, (1 << 20, 32 << 20), (48 << 20, 12 * 64 << 20)),  # the own ones are larger together
        (1, (1 << 20, 1 << 30), (3 << 18, 3 << 28, 3 << 30)),  # three times the cache at least
        (1, (1 << 20, 128 << 20), (3 << 18, 96 << 20, 1 << 30)),
    ],
)
def test_working_sets_fit_the_caches_and_the_last_exceeds_them(threads, caches, sizes, monkeypatch):
    monkeypatch.setattr(kernels, "caches", lambda: caches)
    assert roof.working_sets(threads) == sizes
