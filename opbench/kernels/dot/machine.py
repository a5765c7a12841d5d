"""What the dot kernels know of the host: its vector registers and its caches.

The register tile is compiled in; it follows from the target's features, which are part of the key
of numba's cache. The cache sizes only lead to run-time arguments: compiled code holds for any.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from llvmlite import binding
from numba.core import config

__all__ = [
    "Blocks",
    "RegisterTile",
    "blocks_for",
    "cache_bytes",
    "host_tile",
    "register_tile",
]

CPU0_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclasses.dataclass(frozen=True, slots=True)
class RegisterTile:
    """The piece of C that lives in registers: `rows` × `vectors` vectors of `vector` bytes each.

    The accumulators, one row of B and one broadcast element of A must fit the register file. Where
    masks are free, a vector that reaches over the edge is loaded under a mask at no cost.
    """

    vector: int
    rows: int
    vectors: int
    free_masks: bool = False

    def columns(self, itemsize: int) -> int:
        """NR for elements of that size."""
        return self.vector * self.vectors // itemsize


@dataclasses.dataclass(frozen=True, slots=True)
class Blocks:
    """The sizes of the BLIS loops: KC, MC and NC in elements; `span` in bytes.

    A block of B whose rows lie within `span` bytes is read where it lies, a wider one packed first.
    """

    kc: int
    mc: int
    nc: int
    span: int


def register_tile(features: str) -> RegisterTile:
    """The register tile for a target, from an LLVM feature string such as "+avx2,+fma".

    Few rows and many vectors: where rows of C are a power of two apart they share a set of the L1
    cache, which holds eight; tiles of fourteen rows threw each other out (5 % slower at n = 2048).
    """
    have = set(features.split(","))
    if "+avx512f" in have:
        return RegisterTile(64, 6, 4, free_masks=True)  # 32 registers: 24 + 4 + 1
    if "+avx2" in have:
        return RegisterTile(32, 6, 2)  # 16 registers: 12 + 2 + 1
    if "+neon" in have:
        return RegisterTile(16, 6, 4)  # 32 registers: 24 + 4 + 1
    return RegisterTile(16, 6, 2)


def host_tile() -> RegisterTile:
    """The register tile for the target that numba compiles for (NUMBA_CPU_FEATURES counts)."""
    features = config.CPU_FEATURES
    if features is None:
        features = binding.get_host_cpu_features().flatten()
    return register_tile(features)


def cache_bytes(level: int, default: int, folder: Path = CPU0_CACHES) -> int:
    """The size of the data cache of that level as Linux tells it, else the default."""
    for index in sorted(folder.glob("index*")):
        try:
            kind, depth, size = (
                (index / name).read_text().strip() for name in ("type", "level", "size")
            )
            if depth == str(level) and kind != "Instruction" and size.endswith("K"):
                return int(size[:-1]) * 1024
        except (OSError, ValueError):  # noqa: PERF203 - a handful of files
            continue
    return default


def blocks_for(itemsize: int, tile: RegisterTile, l2: int) -> Blocks:
    """Block sizes from the size of the L2 cache in bytes.

    A micro-panel of B (KC × NR) takes an eighth of L2, and a block of A (MC × KC) half of it. KC
    matters most: C is read and written once for each block of KC.
    """
    kc = min(512, max(128, l2 // 8 // (tile.columns(itemsize) * itemsize)))
    mc = max(1, l2 // 2 // (kc * itemsize) // tile.rows) * tile.rows
    return Blocks(kc, mc, 1024, l2)
