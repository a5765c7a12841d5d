"""Whether a folder takes files."""

from __future__ import annotations

from pathlib import Path

import pytest

from opbench.profiler import folder_problem


def test_a_folder_is_made_and_left_empty(tmp_path):
    assert folder_problem(tmp_path / "a" / "b") == ""
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_what_stands_in_the_way_is_named(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")

    assert folder_problem(tmp_path / "file") == "file is a file"
    assert folder_problem(tmp_path / "file" / "sub") == "file is a file"
    assert folder_problem(tmp_path / "link") == "link is a link to nowhere, which does not exist"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no such file system here")
def test_a_folder_in_which_nobody_can_create_files():
    assert folder_problem(Path("/proc"))


@pytest.mark.parametrize("name", ["a\0b", 300 * "x"])
def test_a_name_that_no_folder_can_have(tmp_path, name):
    assert folder_problem(tmp_path / name)
