"""Is it slower than before? Stored timings: what they were measured on, how they are read and kept.

A file holds one launch, in pytest-benchmark's own JSON format, enriched with an ``opbench`` block.
This module imports neither NumPy nor anything else that is heavy: the plugin calls it in every
pytest session that saves.
"""

from __future__ import annotations

from opbench.records.environment import Environment
from opbench.records.record import RunRecord, Sample, read_run
from opbench.records.store import new_launch_id, opbench_block, runs, save_run

__all__ = [
    "Environment",
    "RunRecord",
    "Sample",
    "new_launch_id",
    "opbench_block",
    "read_run",
    "runs",
    "save_run",
]
