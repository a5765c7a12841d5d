"""The table of faults in docs/verdicts.md names a test for each; they are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "verdicts.md").read_text("utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", PAGE)


def test_the_table_names_a_test_for_each_fault():
    rows = PAGE.partition("## Bad input and faults")[2].strip().splitlines()[2:]
    assert len(rows) >= 28
    assert all(re.search(r"`tests/\S+::test_\w+` \|$", row) for row in rows)


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_each_test_that_the_page_names_is_there(path, name):
    assert re.search(rf"^def {name}\(", (ROOT / path).read_text("utf-8"), re.MULTILINE)
