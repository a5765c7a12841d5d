from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from opbench.errors import RecordError
from opbench.records import Environment, Sample, compare, opbench_block, read_run
from opbench.records.record import record_of

ENVIRONMENT = Environment(cpu_model="Zen 4", cpu_count=2, numba="0.68.1")
FIRST = Path(__file__).parent / "data" / "first_release_launch.json"


def entry(name, data=(2e-6, 1e-6, 3e-6), **extra):
    stats = {"min": 1e-6, "median": 2e-6, "rounds": 3, "iterations": 10}
    if data is not None:
        stats["data"] = list(data)
    return {
        "fullname": name,
        "name": name.rpartition(":")[2],
        "group": None,
        "extra_info": {"opbench": extra} if extra else {},
        "stats": stats,
    }


def document(*entries, enriched=True):
    made = {
        "machine_info": {
            "node": "vm",
            "machine": "x86_64",
            "system": "Linux",
            "python_version": "3.11.7",
            "python_implementation": "CPython",
            "cpu": {"brand_raw": "AMD EPYC", "count": 2, "hz_actual": [2596140000, 0]},
        },
        "commit_info": {"id": "c0ffee", "dirty": True, "branch": "main"},
        "benchmarks": list(entries),
        "datetime": "2026-12-01T09:28:43.632816+02:00",
        "version": "5.3.1",
    }
    if enriched:
        made["opbench"] = opbench_block("launch-1", "record-1", ENVIRONMENT)
    return made


@pytest.fixture
def saved(tmp_path):
    def save(content, name="0001_x.json"):
        path = tmp_path / name
        text = content if isinstance(content, str) else json.dumps(content)
        path.write_text(text, encoding="utf-8")
        return path

    return save


@pytest.fixture
def compared_with_today():
    """Judges a launch against one that differs from it by what the launcher notes today."""

    def judged(launch):
        today = replace(
            launch,
            launch_id="today",
            record_id="today",
            machine=(("kernel", "6.18"),),
            controls={"compute": 1e-3, "memory": 1e-3},
        )
        return compare(record_of([launch]), record_of([today]))

    return judged


def test_an_enriched_run_is_read_whole(saved):
    path = saved(document(entry("t.py::a", flop=1000, bytes=24), entry("t.py::b", data=[0, 5])))
    run = read_run(path)
    assert run.samples == (
        Sample("t.py::a", "launch-1", "s", (2e-6, 1e-6, 3e-6), flop=1000, bytes=24),
        Sample("t.py::b", "launch-1", "s", (0.0, 5.0)),
    )
    assert (run.path, run.schema_version) == (path, 1)
    assert (run.launch_id, run.record_id) == ("launch-1", "record-1")
    assert run.date == datetime(2026, 12, 1, 7, 28, 43, 632816, timezone.utc)
    assert (run.commit, run.dirty) == ("c0ffee", True)
    assert run.environment == ENVIRONMENT
    assert run.excluded == ()
    assert run.warnings == ()


def test_a_file_of_the_first_writer_is_read(compared_with_today):
    """What opbench wrote in its first week, kept as it came: no launcher, floors, fingerprints."""
    run = read_run(FIRST)
    assert (run.schema_version, run.enriched) == (1, True)
    assert run.record_id == run.launch_id == "20261201T160012Z-60883d74"
    assert [one.benchmark for one in run.samples] == ["test_x.py::test_add", "test_x.py::test_sum"]
    assert [len(one.values) for one in run.samples] == [20, 12]
    assert (run.environment.cpu_model, run.environment.numpy) == ("AMD EPYC", "2.4.6")
    assert (run.controls, run.noise, run.sources, run.machine) == ({}, {}, {}, ())
    assert run.warnings == ("no commit: the run cannot be tied to a revision",)
    found = compared_with_today(run)
    assert [one.id for one in found.comparisons] == ["test_x.py::test_add", "test_x.py::test_sum"]
    assert any(line.startswith("no control kernels in both records") for line in found.context)
    assert "only one side knows kernel" in found.context


@pytest.mark.parametrize(
    ("field", "warning"),
    [
        ("launch_id", "no launch id: taken to be one launch, named after the file"),
        ("record_id", "no record id: taken to be a record of its own"),
        ("environment", "no environment: NumPy, Numba, BLAS and thread settings are not known"),
    ],
)
def test_each_field_that_a_block_lacks_is_a_warning_and_no_refusal(saved, field, warning):
    content = document(entry("t.py::a"))
    del content["opbench"][field]
    run = read_run(saved(content))
    assert len(run.samples) == 1
    assert [told[: len(warning)] for told in run.warnings] == [warning]


def test_what_a_later_writer_adds_to_the_schema_is_passed_over(saved):
    content = document(entry("t.py::a", colour="red"))
    content["opbench"] |= {"weather": {"rain": True}, "launcher": {"moon": "full"}}
    run = read_run(saved(content))
    assert (run.warnings, run.noise, len(run.samples)) == ((), {}, 1)


def test_values_stay_in_the_order_of_measurement(saved):
    run = read_run(saved(document(entry("t.py::a", data=[3e-6, 1e-6, 2e-6]))))
    assert run.samples[0].values == (3e-6, 1e-6, 2e-6)


def test_a_plain_pytest_benchmark_file_is_read_with_warnings(saved):
    run = read_run(saved(document(entry("t.py::a"), enriched=False), "0007_plain.json"))
    assert run.schema_version is None
    assert re.fullmatch(r"0007_plain-[0-9a-f]{8}", run.launch_id)
    assert run.record_id == run.launch_id == run.samples[0].launch
    assert run.environment == Environment(
        cpu_model="AMD EPYC",
        cpu_count=2,
        machine="x86_64",
        system="Linux",
        python="3.11",
        implementation="CPython",
    )
    assert [warning.partition(":")[0] for warning in run.warnings] == [
        "no launch id",
        "no environment",
    ]


def test_plain_files_of_one_name_are_two_launches_and_copies_are_one(saved, tmp_path):
    one = read_run(saved(document(entry("t.py::a"), enriched=False)))
    other = read_run(saved(document(entry("t.py::b"), enriched=False)))
    (tmp_path / "baseline").mkdir()
    copy = tmp_path / "baseline" / "0001_x.json"
    copy.write_bytes(other.path.read_bytes())
    assert one.launch_id != other.launch_id
    assert read_run(copy).launch_id == other.launch_id


def test_missing_commit_date_and_machine_become_warnings(saved):
    content = document(entry("t.py::a"), enriched=False)
    for key in ("machine_info", "commit_info", "datetime"):
        del content[key]
    run = read_run(saved(content))
    assert (run.commit, run.dirty, run.date) == (None, None, None)
    assert run.environment == Environment()
    assert {warning.partition(":")[0] for warning in run.warnings} == {
        "no launch id",
        "no commit",
        "no environment",
        "no date",
    }
    assert len(run.samples) == 1


@pytest.mark.parametrize("commit", ["unversioned", "unknown", "", None, 7])
def test_a_commit_that_is_none_is_not_taken_for_one(saved, commit):
    content = document(entry("t.py::a"))
    content["commit_info"] = {"id": commit, "dirty": False}
    run = read_run(saved(content))
    assert run.commit is None
    assert run.warnings == ("no commit: the run cannot be tied to a revision",)


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("2026-12-01T09:00:00", 9),
        ("2026-12-01T09:00:00Z", 9),
        ("2026-12-01T09:00:00+01:00", 8),
    ],
)
def test_dates_are_utc(saved, text, hour):
    content = document(entry("t.py::a"))
    content["datetime"] = text
    # As text: two moments in different zones are equal, but a report prints the zone.
    assert read_run(saved(content)).date.isoformat() == f"2026-12-01T{hour:02}:00:00+00:00"


@pytest.mark.parametrize(
    "text", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:00:00-02:00", "yesterday", 7, None]
)
def test_a_date_that_is_none_becomes_a_warning(saved, text):
    content = document(entry("t.py::a"))
    content["datetime"] = text
    run = read_run(saved(content))
    assert run.date is None
    assert run.warnings == (f"no date: 'datetime' is {text!r}",)


def test_a_count_of_processors_that_is_none_is_left_out(saved):
    content = document(entry("t.py::a"), enriched=False)
    content["machine_info"]["cpu"]["count"] = True
    assert read_run(saved(content)).environment.cpu_count is None


@pytest.mark.parametrize(
    "damage",
    [
        {"datetime": "x" * 5000},
        {"benchmarks": [entry("t.py::a", data=["x" * 5000])]},
        {"benchmarks": [entry("t.py::a", flop="x" * 5000)]},
    ],
)
def test_long_values_are_shortened_in_warnings(saved, damage):
    run = read_run(saved({**document(), **damage}))
    said = [*run.warnings, *(reason for _, reason in run.excluded)]
    assert "xxx…" in " ".join(said)
    assert len(" ".join(said)) < 400


@pytest.mark.parametrize(
    "block",
    [
        {"schema_version": "x" * 5000},
        {"schema_version": 10**4000},
        {"schema_version": 1, "launch_id": [1] * 5000},
        {"schema_version": 1, "environment": {"numba": [1] * 5000}},
        {"schema_version": 1, "environment": {"thread_settings": "x" * 5000}},
    ],
)
def test_long_values_are_shortened_in_refusals(saved, block):
    path = saved({**document(), "opbench": block})
    with pytest.raises(RecordError, match="…") as caught:
        read_run(path)
    assert len(str(caught.value)) < len(str(path)) + 250


def test_profiled_benchmarks_are_excluded_with_the_reason(saved):
    content = document(entry("t.py::a", profiled=True), entry("t.py::b", profiled=False))
    run = read_run(saved(content))
    assert [sample.benchmark for sample in run.samples] == ["t.py::b"]
    assert run.excluded == (("t.py::a", "profiled: its rounds ran inside a profiler window"),)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "no round values: saved without --benchmark-save-data"),
        ([], "no round values: 'data' is []"),
        ([1e-6, None], "round 1 is None, no duration"),
        ([-1e-9], "round 0 is -1e-09, no duration"),
        ([True], "round 0 is True, no duration"),
        (["1"], "round 0 is '1', no duration"),
    ],
)
def test_unusable_values_exclude_the_benchmark_and_only_that(saved, data, reason):
    run = read_run(saved(document(entry("t.py::bad", data=data), entry("t.py::good"))))
    assert run.excluded == (("t.py::bad", reason),)
    assert [sample.benchmark for sample in run.samples] == ["t.py::good"]


@pytest.mark.parametrize("number", ["1e999", "1" + "0" * 400])
def test_numbers_beyond_a_float_are_no_durations(saved, number):
    text = json.dumps(document(entry("t.py::a", data=[7.5]))).replace("7.5", number)
    run = read_run(saved(text))
    assert run.samples == ()
    assert run.excluded[0][1].endswith("no duration")


def test_a_second_benchmark_of_one_id_is_excluded(saved):
    run = read_run(saved(document(entry("t.py::a", data=[1.0]), entry("t.py::a", data=[2.0]))))
    assert [sample.values for sample in run.samples] == [(1.0,)]
    assert run.excluded == (("t.py::a", "a second benchmark of the same id"),)


def test_a_run_without_any_sample_says_so(saved):
    assert read_run(saved(document())).warnings == (
        "no sample: nothing in this run can be compared",
    )


@pytest.mark.parametrize("flop", [1.5, -1, True, "many"])
def test_work_that_is_no_whole_number_is_left_out_with_a_warning(saved, flop):
    run = read_run(saved(document(entry("t.py::a", flop=flop, bytes=8))))
    assert (run.samples[0].flop, run.samples[0].bytes) == (None, 8)
    assert run.warnings == (f"t.py::a: flop is {flop!r}, no whole number; left out",)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ('{"benchmarks": [', "is not strict JSON"),
        ('{"benchmarks": [], "x": NaN}', "is not strict JSON: NaN is not a JSON number"),
        ('{"benchmarks": [], "x": -Infinity}', "is not strict JSON: -Infinity"),
        ("[" * 100_000, "is not strict JSON"),
        ("1" * 5000, "is not strict JSON"),
        ("[]", "is no saved run"),
        ('{"traceEvents": []}', "is no saved run"),
        ('{"benchmarks": {}}', "is no saved run"),
        ('{"benchmarks": [3]}', "is no saved run: benchmark 0 has no 'fullname'"),
        ('{"benchmarks": [{"fullname": "t"}]}', "is no saved run: t has no 'stats'"),
        ('{"benchmarks": [], "opbench": []}', "its 'opbench' block is list"),
        ('{"benchmarks": [], "opbench": {}}', "its schema version is None"),
        ('{"benchmarks": [], "opbench": {"schema_version": "1"}}', "its schema version is '1'"),
        ('{"benchmarks": [], "opbench": {"schema_version": true}}', "its schema version is True"),
        ('{"benchmarks": [], "opbench": {"schema_version": 0}}', "its schema version is 0"),
        (
            '{"benchmarks": [], "opbench": {"schema_version": 2}}',
            "has schema version 2, newer than 1.*; upgrade opbench",
        ),
        (
            '{"benchmarks": [], "opbench": {"schema_version": 1, "launch_id": 3}}',
            "its launch_id is 3",
        ),
        (
            '{"benchmarks": [], "opbench": {"schema_version": 1, "environment": 3}}',
            "its environment is int",
        ),
        (
            '{"benchmarks": [], "opbench": {"schema_version": 1, "environment": {"numba": 3}}}',
            "environment: numba is 3",
        ),
    ],
)
def test_a_file_that_is_no_run_is_refused_with_path_and_reason(saved, content, reason):
    path = saved(content)
    with pytest.raises(RecordError, match=f"^{re.escape(str(path))}: {reason}") as caught:
        read_run(path)
    advice = str(caught.value).rpartition("; ")[2]
    assert advice.startswith(("save the run again, or take", "upgrade opbench"))


def test_bad_utf8_is_refused(tmp_path):
    path = tmp_path / "0001_x.json"
    path.write_bytes(b'{"benchmarks": [], "x": "\xff"}')
    with pytest.raises(RecordError, match=r"0001_x\.json: is not strict JSON"):
        read_run(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(RecordError, match=r"none\.json: cannot be read: No such file"):
        read_run(tmp_path / "none.json")


def test_a_path_that_no_file_has_is_refused(tmp_path):
    with pytest.raises(RecordError, match=r"cannot be read: .*null.*; name a file that opbench"):
        read_run(f"{tmp_path}/a\0b")


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(RecordError, match="cannot be read: Is a directory"):
        read_run(str(tmp_path))
