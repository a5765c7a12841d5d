from __future__ import annotations

import pytest

from opbench.errors import ConfigError
from opbench.launch import turns

BASE, HEAD = ("base", "head"), ("head", "base")


def test_the_order_of_a_seed_is_fixed():
    # A report names its seed: the order behind it must never change.
    assert turns(8, seed=1) == (BASE, HEAD, BASE, HEAD, HEAD, BASE, HEAD, BASE)
    assert turns(8, seed=2) == (BASE, HEAD, BASE, HEAD, HEAD, BASE, BASE, HEAD)


@pytest.mark.parametrize("seed", range(20))
def test_every_block_of_two_pairs_turns_the_order_round(seed):
    order = turns(12, seed)
    assert all({one, two} == {BASE, HEAD} for one, two in zip(order[::2], order[1::2], strict=True))


@pytest.mark.parametrize("pairs", [1, 2, 7, 8])
@pytest.mark.parametrize("seed", [0, 5, -3])
def test_no_side_is_first_more_than_once_more(pairs, seed):
    order = turns(pairs, seed)
    assert len(order) == pairs
    assert abs(order.count(BASE) - order.count(HEAD)) == pairs % 2


def test_both_kinds_of_block_are_drawn():
    firsts = {turns(1, seed)[0] for seed in range(10)}
    assert firsts == {BASE, HEAD}


def test_a_longer_schedule_begins_like_a_shorter_one():
    assert turns(20, seed=3)[:7] == turns(7, seed=3)


@pytest.mark.parametrize("pairs", [0, -1])
def test_no_pairs_are_refused(pairs):
    with pytest.raises(ConfigError, match=f"pairs is {pairs}, expected at least 1"):
        turns(pairs, seed=1)
