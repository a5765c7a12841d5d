from __future__ import annotations

import os

import pytest

from opbench.errors import ConfigError
from opbench.launch import machine_facts, on_cpus, parse_cpus
from opbench.launch.controls import Controls
from opbench.launch.noise import NoiseReading, noise_between, noise_reading


def write(root, **files):
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_facts_are_read_where_the_kernel_keeps_them(tmp_path):
    cpu = "sys__devices__system__cpu__cpu0__"
    write(
        tmp_path,
        **{
            f"{cpu}cache__index0__level": "1\n",
            f"{cpu}cache__index0__type": "Data\n",
            f"{cpu}cache__index0__size": "32K\n",
            f"{cpu}cache__index1__level": "1\n",
            f"{cpu}cache__index1__type": "Instruction\n",
            f"{cpu}cache__index1__size": "64K\n",
            f"{cpu}cache__index2__level": "2\n",
            f"{cpu}cache__index2__type": "Unified\n",
            f"{cpu}cache__index2__size": "1024K\n",
            f"{cpu}cpufreq__scaling_governor": "performance\n",
            "sys__devices__system__cpu__intel_pstate__no_turbo": "1\n",
            "proc__cpuinfo": "flags : fpu hypervisor sse\n",
            "sys__class__dmi__id__product_name": "KVM\n",
            "proc__1__cgroup": "0::/kubepods/pod1\n",
        },
    )
    facts = machine_facts(tmp_path)
    assert facts.pop("kernel") == os.uname().release
    assert facts == {
        "caches": {"L1d": "32K", "L1i": "64K", "L2": "1024K"},
        "container": "kubepods",
        "virtual_machine": "KVM",
        "governor": "performance",
        "turbo": False,
    }


def test_what_cannot_be_read_is_not_known(tmp_path, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    facts = machine_facts(tmp_path)
    del facts["kernel"]
    assert set(facts.values()) == {None}


@pytest.mark.parametrize(
    ("name", "container"), [(".dockerenv", "docker"), ("run__.containerenv", "podman")]
)
def test_a_container_is_known_by_the_file_it_leaves(tmp_path, name, container):
    write(tmp_path, **{name: ""})
    assert machine_facts(tmp_path)["container"] == container


@pytest.mark.parametrize(("text", "turbo"), [("1", True), ("0", False), ("x", None)])
def test_boost_of_other_makers_is_read(tmp_path, text, turbo):
    write(tmp_path, sys__devices__system__cpu__cpufreq__boost=text)
    assert machine_facts(tmp_path)["turbo"] is turbo


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0", (0,)), ("0,2", (0, 2)), ("0-3", (0, 1, 2, 3)), ("4, 0-1,1", (0, 1, 4))],
)
def test_a_list_of_cpus_is_read_as_taskset_reads_it(text, cpus):
    assert parse_cpus(text) == cpus


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "3-1", "0,,1", "1.5", "٣", "0-99999999"])
def test_what_is_no_list_of_cpus_is_refused(text):
    with pytest.raises(ConfigError, match=r"--cpus .*write one such as"):
        parse_cpus(text)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs Linux")
def test_cpus_hold_inside_the_block_only():
    before = os.sched_getaffinity(0)
    one = min(before)
    with on_cpus((one,)):
        assert os.sched_getaffinity(0) == {one}
    assert os.sched_getaffinity(0) == before
    with on_cpus(None):
        assert os.sched_getaffinity(0) == before
    with pytest.raises(ConfigError, match=r"--cpus 65000: this process may only run on"):
        on_cpus((65_000,)).__enter__()


def test_where_no_process_can_be_kept_it_is_told(monkeypatch):
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    with pytest.raises(ConfigError, match="--cpus needs Linux"):
        on_cpus((0,)).__enter__()


def test_noise_is_what_grew_between_two_readings():
    before = NoiseReading(stolen=10, total=100, load=1.5, voluntary=5, involuntary=7)
    after = NoiseReading(stolen=15, total=300, load=2.5, voluntary=6, involuntary=17)
    noise = noise_between(before, after)
    assert (noise.steal, noise.load_before, noise.load_after) == (0.025, 1.5, 2.5)
    assert (noise.voluntary_switches, noise.involuntary_switches) == (1, 10)


def test_noise_that_nobody_tells_is_not_known():
    unknown = NoiseReading(None, None, None, None, None)
    noise = noise_between(unknown, unknown)
    assert (noise.steal, noise.load_before, noise.involuntary_switches) == (None, None, None)
    still = NoiseReading(1, 5, 0.0, 0, 0)
    assert noise_between(still, still).steal is None


@pytest.mark.parametrize(
    ("text", "stolen", "total"),
    [
        ("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1\n", 8, 36),
        ("cpu  1 2 3\n", None, None),
        ("cpu  x\n", None, None),
        ("", None, None),
    ],
)
def test_stolen_time_is_the_eighth_number(tmp_path, text, stolen, total):
    path = tmp_path / "stat"
    path.write_text(text)
    reading = noise_reading(path)
    assert (reading.stolen, reading.total) == (stolen, total)


def test_a_control_is_the_lower_quartile_of_its_rounds():
    # Twelve rounds of each kernel, the k-th of which takes k ms by this clock.
    readings = iter([t for k in range(1, 25) for t in (0.0, (k if k < 13 else k - 12) * 1e-3)])
    controls = Controls(lambda: next(readings)).measure()
    assert controls == {"compute": pytest.approx(3.75e-3), "memory": pytest.approx(3.75e-3)}
    assert list(readings) == []
