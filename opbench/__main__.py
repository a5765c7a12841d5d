"""``python -m opbench``."""

from __future__ import annotations

import sys

from opbench.cli import main

if __name__ == "__main__":
    sys.exit(main())
