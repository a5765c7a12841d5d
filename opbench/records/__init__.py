"""Is it slower than before? Stored timings: what they were measured on, how they are read and kept.

A file holds one launch, in pytest-benchmark's own JSON format, enriched with an ``opbench`` block.
This module imports neither NumPy nor anything else that is heavy: the plugin calls it in every
pytest session that saves.
"""

from __future__ import annotations

from opbench.records.attribution import explain, explain_launches
from opbench.records.baseline import Baseline, baselines, prune_baselines, set_baseline
from opbench.records.comparable import FACTS, controls_moved
from opbench.records.compare import DEFAULT_FLOOR, compare
from opbench.records.environment import Environment
from opbench.records.find import Library
from opbench.records.floors import Floor, Floors, parse_floor
from opbench.records.history import Findings, MachineEvent, find_steps
from opbench.records.history_index import INDEX_NAME, HistoryIndex, IndexedLaunch, index_launches
from opbench.records.history_series import Epoch, History, Moment, Point, Series, history_of
from opbench.records.history_steps import LEAST_RECORDS, LEAST_STEP_LAUNCHES, Step
from opbench.records.launches import Launch, read_run
from opbench.records.pairs import (
    CONFIRM_LOOKS,
    LEAST_PAIRS,
    SCREEN_LOOKS,
    PairEstimate,
    confirm,
    judge_pairs,
    pairs_to_confirm,
    pairs_to_screen,
    screen,
)
from opbench.records.record import RunRecord, read_records
from opbench.records.rename import Rename, load_rename
from opbench.records.roof import Ceiling, Roof, load_roof, save_roof
from opbench.records.samples import Part, Sample
from opbench.records.statistics import (
    Interval,
    benjamini_hochberg,
    bootstrap_median_interval,
    bootstrap_ratio_interval,
    lower_quartile,
    mann_whitney_exact,
    median,
    median_log_ratio,
    sign_interval,
    spread,
    superiority,
)
from opbench.records.store import new_launch_id, opbench_block, runs, save_run
from opbench.records.stored import LEAST_LAUNCHES, TRIPWIRE, Judged, judge_values
from opbench.records.summary import bimodal, launch_value, summary_of, without_values
from opbench.records.tripwire import Tripwires, Wire, live_record, tripwires
from opbench.records.verdict import Attribution, Comparison, ComparisonSet, Summary, Verdict

__all__ = [
    "CONFIRM_LOOKS",
    "DEFAULT_FLOOR",
    "FACTS",
    "INDEX_NAME",
    "LEAST_LAUNCHES",
    "LEAST_PAIRS",
    "LEAST_RECORDS",
    "LEAST_STEP_LAUNCHES",
    "SCREEN_LOOKS",
    "TRIPWIRE",
    "Attribution",
    "Baseline",
    "Ceiling",
    "Comparison",
    "ComparisonSet",
    "Environment",
    "Epoch",
    "Findings",
    "Floor",
    "Floors",
    "History",
    "HistoryIndex",
    "IndexedLaunch",
    "Interval",
    "Judged",
    "Launch",
    "Library",
    "MachineEvent",
    "Moment",
    "PairEstimate",
    "Part",
    "Point",
    "Rename",
    "Roof",
    "RunRecord",
    "Sample",
    "Series",
    "Step",
    "Summary",
    "Tripwires",
    "Verdict",
    "Wire",
    "baselines",
    "benjamini_hochberg",
    "bimodal",
    "bootstrap_median_interval",
    "bootstrap_ratio_interval",
    "compare",
    "confirm",
    "controls_moved",
    "explain",
    "explain_launches",
    "find_steps",
    "history_of",
    "index_launches",
    "judge_pairs",
    "judge_values",
    "launch_value",
    "live_record",
    "load_rename",
    "load_roof",
    "lower_quartile",
    "mann_whitney_exact",
    "median",
    "median_log_ratio",
    "new_launch_id",
    "opbench_block",
    "pairs_to_confirm",
    "pairs_to_screen",
    "parse_floor",
    "prune_baselines",
    "read_records",
    "read_run",
    "runs",
    "save_roof",
    "save_run",
    "screen",
    "set_baseline",
    "sign_interval",
    "spread",
    "summary_of",
    "superiority",
    "tripwires",
    "without_values",
]
