"""Tests start programs and pytest themselves; what they start is no worker of pytest-xdist."""

from __future__ import annotations

import os

for name in [name for name in os.environ if name.startswith("PYTEST_XDIST_")]:
    del os.environ[name]
