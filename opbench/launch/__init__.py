"""Who measures, in which order? Fresh pytest launches, taken in turns."""

from __future__ import annotations

from opbench.launch.launch import Launch, LaunchResult, run_launch
from opbench.launch.schedule import turns

__all__ = ["Launch", "LaunchResult", "run_launch", "turns"]
