"""Who measures, in which order? Fresh pytest launches, taken in turns."""

from __future__ import annotations

from opbench.launch.ab import AbResult, measure_ab
from opbench.launch.launch import Launch, LaunchResult, run_launch
from opbench.launch.machine import machine_facts, on_cpus, parse_cpus
from opbench.launch.plan import AbOptions
from opbench.launch.recording import RecordResult, RunOptions, measure_record
from opbench.launch.schedule import turns
from opbench.launch.selfcheck import SelfCheck, Spread
from opbench.launch.stages import Progress

__all__ = [
    "AbOptions",
    "AbResult",
    "Launch",
    "LaunchResult",
    "Progress",
    "RecordResult",
    "RunOptions",
    "SelfCheck",
    "Spread",
    "machine_facts",
    "measure_ab",
    "measure_record",
    "on_cpus",
    "parse_cpus",
    "run_launch",
    "turns",
]
