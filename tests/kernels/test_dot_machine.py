"""The register tile and the block sizes: from the target's features and the caches."""

from __future__ import annotations

import pytest

from opbench.kernels.dot import machine
from opbench.kernels.dot.machine import Blocks, RegisterTile


@pytest.mark.parametrize(
    ("features", "tile"),
    [
        ("+sse2,+avx,+avx2,+fma,+avx512f", RegisterTile(64, 6, 4, free_masks=True)),
        ("+sse2,+avx,+avx2,+fma,-avx512f", RegisterTile(32, 6, 2)),
        ("+sse2,+avx", RegisterTile(16, 6, 2)),
        ("+fp-armv8,+neon", RegisterTile(16, 6, 4)),
        ("", RegisterTile(16, 6, 2)),
    ],
)
def test_the_register_tile_follows_the_features(features, tile):
    assert machine.register_tile(features) == tile


@pytest.mark.parametrize(
    ("features", "registers"),
    [("+avx512f", 32), ("+neon", 32), ("+avx2", 16), ("", 16)],
)
def test_accumulators_a_row_of_b_and_a_broadcast_fit_the_registers(features, registers):
    tile = machine.register_tile(features)
    assert tile.rows * tile.vectors + tile.vectors + 1 <= registers


def test_numbas_own_setting_decides_over_the_host(monkeypatch):
    monkeypatch.setattr(machine.config, "CPU_FEATURES", "+avx2")
    assert machine.host_tile() == RegisterTile(32, 6, 2)
    monkeypatch.setattr(machine.config, "CPU_FEATURES", "")
    assert machine.host_tile() == RegisterTile(16, 6, 2)


def write_cache(folder, name, level, kind, size):
    (folder / name).mkdir()
    for file, text in (("level", level), ("type", kind), ("size", size)):
        (folder / name / file).write_text(text + "\n")


def test_cache_sizes_are_read_where_the_system_tells_them(tmp_path):
    write_cache(tmp_path, "index0", "1", "Instruction", "64K")
    write_cache(tmp_path, "index1", "1", "Data", "48K")
    write_cache(tmp_path, "index2", "2", "Unified", "1024K")
    write_cache(tmp_path, "index3", "3", "Unified", "nonsense")
    (tmp_path / "index4").mkdir()
    assert machine.cache_bytes(1, 7, tmp_path) == 48 << 10
    assert machine.cache_bytes(2, 7, tmp_path) == 1 << 20
    assert machine.cache_bytes(3, 7, tmp_path) == 7
    assert machine.cache_bytes(1, 7, tmp_path / "nowhere") == 7


def test_blocks_fill_the_caches_and_are_whole_micro_tiles():
    tile = RegisterTile(32, 6, 2)
    blocks = machine.blocks_for(4, tile, 256 << 10)
    assert blocks == Blocks(512, 60, 1024, 256 << 10)
    assert blocks.mc % tile.rows == 0
    wide = machine.blocks_for(8, RegisterTile(64, 6, 4), 256 << 10)
    assert wide.kc * wide.mc * 8 <= 128 << 10
    assert wide.kc * tile.columns(8) * 8 <= 32 << 10


@pytest.mark.parametrize("l2", [1, 64 << 10, 1 << 30])
def test_blocks_stay_sane_whatever_the_system_says(l2):
    blocks = machine.blocks_for(8, RegisterTile(16, 6, 2), l2)
    assert 128 <= blocks.kc <= 512
    assert blocks.mc >= 6
