from __future__ import annotations

import enum
import json
import os
import subprocess
import sys
import threading
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from opbench.errors import RecordError
from opbench.records import (
    Environment,
    new_launch_id,
    opbench_block,
    read_run,
    runs,
    save_run,
    store,
)

ROOT = Path(__file__).resolve().parents[2]
EMPTY = {"benchmarks": []}


def strictly(path):
    def refuse(constant):
        raise AssertionError(constant)

    return json.loads(path.read_text(encoding="ascii"), parse_constant=refuse)


def numbers(folder):
    return [int(path.name.partition("_")[0]) for path in runs(folder)]


def test_the_first_run_makes_the_folder_and_gets_number_one(tmp_path):
    folder = tmp_path / "results" / "runs" / "Linux-CPython-3.11-64bit"
    assert save_run(folder, {"benchmarks": [1, "é", 0.5]}, "tag") == (folder / "0001_tag.json", 1)
    assert strictly(folder / "0001_tag.json") == {"benchmarks": [1, "é", 0.5]}
    assert [path.name for path in folder.iterdir()] == ["0001_tag.json"]


def test_the_next_number_is_the_greatest_and_one(tmp_path):
    for name in ("0003_a.json", "0007_b.json", "0009_c.txt", "12_d.json", "x_0011_e.json"):
        (tmp_path / name).write_text("{}")
    assert save_run(tmp_path, EMPTY, "n")[1] == 8


def test_numbers_go_on_past_9999(tmp_path):
    (tmp_path / "9999_a.json").write_text("{}")
    assert save_run(tmp_path, EMPTY, "n") == (tmp_path / "10000_n.json", 10000)
    assert save_run(tmp_path, EMPTY, "n") == (tmp_path / "10001_n.json", 10001)
    assert numbers(tmp_path) == [9999, 10000, 10001]


def test_runs_come_in_numeric_order_and_nothing_else_does(tmp_path):
    for name in ("10000_a.json", "0002_b.json", "9999_c.json", ".0003.claim", "README.md"):
        (tmp_path / name).write_text("{}")
    assert [path.name for path in runs(tmp_path)] == ["0002_b.json", "9999_c.json", "10000_a.json"]


def test_a_folder_that_is_not_there_holds_no_runs(tmp_path):
    assert runs(tmp_path / "none") == ()


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "runs").write_text("mine")
    with pytest.raises(RecordError, match=r"cannot read the runs in .*runs: Not a directory"):
        runs(tmp_path / "runs")
    with pytest.raises(RecordError, match=r"cannot save a run in .*runs: File exists"):
        save_run(tmp_path / "runs", EMPTY, "n")
    with pytest.raises(RecordError, match=r"cannot save a run in .*: Not a directory"):
        save_run(tmp_path / "runs" / "machine", EMPTY, "n")
    assert (tmp_path / "runs").read_text() == "mine"


def test_an_unwritable_folder_is_refused(tmp_path, monkeypatch):
    # By a fake, since root writes into folders without permission.
    def refuse(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(RecordError, match=r"cannot save a run in .*: Permission denied"):
        save_run(tmp_path, EMPTY, "n")


def test_a_full_disk_leaves_everything_as_it_was(tmp_path, monkeypatch):
    save_run(tmp_path, {"benchmarks": ["old"]}, "n")

    def refuse(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(RecordError, match="No space left on device"):
        save_run(tmp_path, EMPTY, "n")
    assert [path.name for path in tmp_path.iterdir()] == ["0001_n.json"]
    assert strictly(tmp_path / "0001_n.json") == {"benchmarks": ["old"]}


def test_a_run_is_complete_when_its_name_appears(tmp_path, monkeypatch):
    link = os.link
    seen = []

    def look(source, target):
        assert not Path(target).exists()
        link(source, target)
        seen.append(strictly(Path(target)))

    monkeypatch.setattr(os, "link", look)
    save_run(tmp_path, {"benchmarks": list(range(1000))}, "n")
    assert seen == [{"benchmarks": list(range(1000))}]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        *((name, "must not be empty nor hold") for name in ("", "a/b", "..\\x", "a:b", "what?")),
        *((name, "a control character") for name in ("a\nb", "a\0b", "a\x7fb")),
        ("\ud800", "half of a surrogate pair"),
        *((name, "a name is text, not") for name in (3, b"x", None)),
    ],
)
def test_a_name_that_is_no_part_of_a_file_name_is_refused(tmp_path, name, reason):
    with pytest.raises(RecordError, match=f"^cannot save a run as .*{reason}") as caught:
        save_run(tmp_path, EMPTY, name)
    assert repr(name) in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_name_too_long_is_refused_with_the_file(tmp_path):
    with pytest.raises(RecordError) as caught:
        save_run(tmp_path, EMPTY, "n" * 300)
    assert str(tmp_path / f"0001_{'n' * 300}.json") in str(caught.value)
    assert str(caught.value).endswith("File name too long; choose a shorter name")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("document", [[1], None, "text", 3])
def test_a_document_that_is_no_mapping_is_refused(tmp_path, document):
    with pytest.raises(RecordError, match=r"its document is .*, expected a mapping"):
        save_run(tmp_path, document, "n")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_no_file_system_has_is_refused(tmp_path):
    with pytest.raises(RecordError, match=r"cannot save a run in .*null.*; choose another folder"):
        save_run(f"{tmp_path}/a\0b", EMPTY, "n")
    assert list(tmp_path.iterdir()) == []


def test_a_claimed_number_is_left_to_its_writer(tmp_path):
    (tmp_path / ".0001.claim").write_text("half a docum")
    assert save_run(tmp_path, EMPTY, "n")[1] == 2
    assert (tmp_path / ".0001.claim").read_text() == "half a docum"


def test_a_number_that_was_taken_between_look_and_claim_is_not_used_twice(tmp_path, monkeypatch):
    look = store._last
    other = iter([True])

    def last_then_other_writer(folder):
        found = look(folder)
        if next(other, False):
            (folder / f"{found + 1:04}_theirs.json").write_text("theirs")
        return found

    monkeypatch.setattr(store, "_last", last_then_other_writer)
    assert save_run(tmp_path, EMPTY, "ours") == (tmp_path / "0002_ours.json", 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "0001_theirs.json",
        "0002_ours.json",
    ]
    assert (tmp_path / "0001_theirs.json").read_text() == "theirs"


def test_a_file_of_a_writer_without_claims_is_never_replaced(tmp_path, monkeypatch):
    link = os.link
    other = iter([True])

    def beaten(source, target):
        if next(other, False):
            Path(target).write_text("theirs")
        link(source, target)

    monkeypatch.setattr(os, "link", beaten)
    assert save_run(tmp_path, EMPTY, "n")[1] == 2
    assert (tmp_path / "0001_n.json").read_text() == "theirs"


def test_a_file_system_without_links_works(tmp_path, monkeypatch):
    def refuse(source, target):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", refuse)
    assert [save_run(tmp_path, {"benchmarks": [name]}, name)[1] for name in "ab"] == [1, 2]
    assert [strictly(path)["benchmarks"] for path in runs(tmp_path)] == [["a"], ["b"]]
    assert len(list(tmp_path.iterdir())) == 2


def test_without_links_too_no_file_is_replaced(tmp_path, monkeypatch):
    other = iter([True])

    def refuse(source, target):
        if next(other, False):
            Path(target).write_text("theirs")
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", refuse)
    assert save_run(tmp_path, EMPTY, "n")[1] == 2
    assert (tmp_path / "0001_n.json").read_text() == "theirs"


def test_threads_lose_no_run(tmp_path):
    together = threading.Barrier(4)
    saved = []

    def write(writer):
        together.wait()
        saved.extend(save_run(tmp_path, {"benchmarks": [writer, i]}, writer) for i in range(10))

    threads = [threading.Thread(target=write, args=(writer,)) for writer in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = sorted(strictly(path)["benchmarks"] for path in runs(tmp_path))
    assert kept == [[writer, i] for writer in "abcd" for i in range(10)]
    assert len({number for _, number in saved}) == 40
    assert sorted(path for path, _ in saved) == sorted(runs(tmp_path))


def test_processes_lose_no_run_under_one_name(tmp_path):
    program = (
        "import sys; from opbench.records import save_run\n"
        "sys.stdin.readline()\n"
        "for i in range(10): save_run(sys.argv[1], {'benchmarks': [sys.argv[2], i]}, 'same')\n"
    )
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "runs"), writer],
            stdin=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        for writer in "abc"
    ]
    for process in writers:
        process.stdin.write(b"go\n")
        process.stdin.flush()
    for process in writers:
        process.communicate()
    assert [process.returncode for process in writers] == [0, 0, 0]
    kept = sorted(strictly(path)["benchmarks"] for path in runs(tmp_path / "runs"))
    assert kept == [[writer, i] for writer in "abc" for i in range(10)]
    assert len(set(numbers(tmp_path / "runs"))) == 30


class Colour(enum.IntEnum):
    RED = 3


class Word(str, enum.Enum):
    YES = "yes"


class Unfriendly:
    def __repr__(self):
        raise RuntimeError("no")


class Unshaped:
    @property
    def shape(self):
        raise RuntimeError("not computed yet")


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (float("nan"), None),
        (float("-inf"), None),
        (np.float64("nan"), None),
        (np.float64(0.1), 0.1),
        (np.float32(0.5), 0.5),
        (np.float32("inf"), None),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.str_("word"), "word"),
        (np.array(4), 4),
        (np.array([1, 2]), "UNSERIALIZABLE[array([1, 2])]"),
        (np.complex128(1j), f"UNSERIALIZABLE[{np.complex128(1j)!r}]"),
        (1j, "UNSERIALIZABLE[1j]"),
        (Decimal("1.5"), "UNSERIALIZABLE[Decimal('1.5')]"),
        ({1}, "UNSERIALIZABLE[{1}]"),
        (Unfriendly(), "UNSERIALIZABLE[Unfriendly, which raised RuntimeError]"),
        (Unshaped(), "UNSERIALIZABLE[Unshaped, which raised RuntimeError]"),
        (Colour.RED, 3),
        (Word.YES, "yes"),
        (10**30, 10**30),
        pytest.param(10**4299, 10**4299, id="4300 digits"),
        pytest.param(10**5000, f"UNSERIALIZABLE[{hex(10**5000)}]", id="5001 digits"),
        pytest.param(-(10**5000), f"UNSERIALIZABLE[{hex(-(10**5000))}]", id="-5001 digits"),
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "\U0001f600"),
        (True, True),
        ((1, (2, None)), [1, [2, None]]),
    ],
)
def test_what_json_cannot_hold_is_stored_as_text_or_null(tmp_path, value, stored):
    path, _ = save_run(tmp_path, {"benchmarks": [], "x": {"deep": [value]}}, "n")
    assert repr(strictly(path)["x"]["deep"]) == repr([stored])


def test_long_doubles_keep_their_text(tmp_path):
    third = np.longdouble(1) / 3
    path, _ = save_run(tmp_path, {"x": third}, "n")
    assert strictly(path)["x"] == f"UNSERIALIZABLE[{third!r}]"


def test_keys_are_spelled_as_json_spells_them(tmp_path):
    keys = {"a": 1, 2: 1, None: 1, False: 1, 0.5: 1, np.int32(5): 1, (1, 2): 1}
    path, _ = save_run(tmp_path, {"x": keys}, "n")
    assert list(strictly(path)["x"]) == ["a", "2", "null", "false", "0.5", "5", "[1, 2]"]


def test_keys_that_json_spells_alike_are_all_kept(tmp_path):
    keys = {
        1: "c",
        "1": "b",
        "1 (2)": "e",
        "\ud800": "f",
        chr(0xD801): "g",
        False: "h",
        "false": "i",
    }
    path, _ = save_run(tmp_path, {"x": keys}, "n")
    assert strictly(path)["x"] == {
        "1": "c",
        "1 (2)": "b",
        "1 (2) (2)": "e",
        "\ufffd": "f",
        "\ufffd (2)": "g",
        "false": "h",
        "false (2)": "i",
    }


def test_what_is_written_encodes_as_text_everywhere(tmp_path):
    path, _ = save_run(tmp_path, {"x": "test[\ud800]"}, "n")
    strictly(path)["x"].encode("utf-8")


def test_a_document_that_holds_itself_is_refused(tmp_path):
    loop = []
    loop.append(loop)
    with pytest.raises(RecordError, match="its document holds itself"):
        save_run(tmp_path, {"benchmarks": loop}, "n")
    assert list(tmp_path.iterdir()) == []


def test_no_value_is_cut(tmp_path):
    values = [i * 1.1e-9 for i in range(20_000)]
    path, _ = save_run(tmp_path, {"benchmarks": [{"stats": {"data": values}}]}, "n")
    assert strictly(path)["benchmarks"][0]["stats"]["data"] == values


def test_a_saved_run_reads_back(tmp_path):
    environment = Environment(numba="0.68.1", thread_settings=(("OMP_NUM_THREADS", "2"),))
    document = {
        "benchmarks": [
            {
                "fullname": "t.py::a",
                "stats": {"data": [np.float64(2e-6)]},
                "extra_info": {"opbench": {"flop": np.int64(16)}},
            }
        ],
        "opbench": opbench_block("launch", "record", environment),
    }
    run = read_run(save_run(tmp_path, document, "n")[0])
    assert run.environment == environment
    assert (run.launch_id, run.record_id, run.schema_version) == ("launch", "record", 1)
    assert (run.samples[0].values, run.samples[0].flop) == ((2e-6,), 16)


def test_pytest_benchmarks_own_storage_finds_the_runs(tmp_path):
    storage = pytest.importorskip("pytest_benchmark.storage.file")
    stats = {"mean": 1.0, "ops": 1.0}
    for name in "ab":
        document = {"benchmarks": [{"fullname": name, "stats": stats}]}
        save_run(tmp_path / "machine", document, name)
    kept = storage.FileStorage(tmp_path, logger=None, default_machine_id="machine")
    assert [str(path) for path, _ in kept.load()] == ["machine/0001_a.json", "machine/0002_b.json"]
    assert [str(path) for path, _ in kept.load("0002")] == ["machine/0002_b.json"]
    assert kept._next_num == "0003"


def test_launch_ids_tell_time_and_token():
    moment = datetime(2026, 12, 1, 9, 5, 7, tzinfo=timezone(timedelta(hours=2)))
    assert new_launch_id(moment, "1a2b") == "20261201T070507Z-1a2b"


@pytest.mark.parametrize(
    ("moment", "token"),
    [(datetime(2026, 12, 1), "x"), (datetime(2026, 12, 1, tzinfo=timezone.utc), "")],  # noqa: DTZ001
)
def test_a_launch_id_needs_time_zone_and_token(moment, token):
    with pytest.raises(RecordError, match="a launch id needs a time zone and a token"):
        new_launch_id(moment, token)


def test_importing_the_room_loads_nothing_heavy():
    program = (
        "import sys, opbench.records, opbench.probes\n"
        "print(sorted({'numpy', 'numba', 'scipy', 'pytest'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout == "[]\n"
