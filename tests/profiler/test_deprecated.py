"""MXNet's old names warn, and do what the new ones do."""

from __future__ import annotations

import json

import pytest

from opbench import profiler
from opbench.errors import ConfigError


@pytest.mark.parametrize(("mode", "mask"), [("symbolic", 1), ("all", 15)])
def test_the_old_names_warn_and_drive_the_profiler(tmp_path, mode, mask):
    with pytest.warns(DeprecationWarning, match=r"profiler_set_config\(.* use .*set_config\(") as w:
        profiler.profiler_set_config(mode=mode, filename=str(tmp_path / "t.json"))
    assert w[0].filename == __file__
    with pytest.warns(DeprecationWarning, match=r"use opbench\.profiler\.set_state\(state\)"):
        profiler.profiler_set_state("run")
    assert profiler.RECORDER.mask == mask
    profiler.RECORDER.instant("seen", "api")
    with pytest.warns(DeprecationWarning, match="profiler_set_state"):
        profiler.profiler_set_state("stop")
    with pytest.warns(DeprecationWarning, match=r"dump_profile\(\) is deprecated; .*\.dump\(\)"):
        profiler.dump_profile()
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert [event["name"] for event in events if event.get("cat") == "api"] == ["seen"]


def test_the_defaults_are_mxnets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.warns(DeprecationWarning, match="deprecated"):
        profiler.profiler_set_config()
    with pytest.warns(DeprecationWarning, match="deprecated"):
        profiler.profiler_set_state("run")
    assert profiler.RECORDER.mask == 1
    with pytest.warns(DeprecationWarning, match="deprecated"):
        profiler.profiler_set_state()
    with pytest.warns(DeprecationWarning, match="deprecated"):
        profiler.dump_profile()
    assert (tmp_path / "profile.json").exists()


def test_another_mode_is_refused():
    with (
        pytest.warns(DeprecationWarning, match="deprecated"),
        pytest.raises(ConfigError, match="knows the modes 'symbolic' and 'all', not 'api'"),
    ):
        profiler.profiler_set_config("api")
