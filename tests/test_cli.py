"""The command line: what it prints, where the trace goes, and its exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from opbench import cli, operators, profiler
from opbench.cli import matmul
from opbench.errors import AccuracyError, TraceWriteError
from opbench.version import __version__

ROOT = Path(__file__).parents[1]
SMALL = ["matmul", "--size", "40"]
TRACE_ACTIONS = ("check", "repair", "summary", "merge", "diff")


def fresh(*arguments, code=None, **environment):
    """Run the command, or ``code``, in a fresh process."""
    start = ["-c", code] if code else ["-m", "opbench", *arguments]
    return subprocess.run(
        [sys.executable, *start],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(operators, "BLAS_REST_SECONDS", 0)
    return tmp_path


def events(path, category):
    document = profiler.read(path)
    return [event for event in document["traceEvents"] if event.get("cat") == category]


class TestMatmul:
    def test_traces_the_first_of_five_iterations_into_the_current_folder(self, folder, capsys):
        assert cli.main(SMALL) == 0
        path = folder / "profile-matmul-5iter.json"
        out, err = capsys.readouterr()

        assert [file.name for file in folder.iterdir()] == [path.name]
        assert profiler.check(path) == []
        (dot,) = events(path, "symbolic")
        # The number counts the graphs of the whole process.
        assert dot["args"].pop("node").removeprefix("dot").isdecimal()
        assert dot["args"] == {
            "operator": "dot",
            "inputs": [[40, 40], [40, 40]],
            "outputs": [[40, 40]],
            "dtype": "float32",
            "flop": 2 * 40**3,
            "bytes": 3 * 40 * 40 * 4,
            "iteration": 0,
        }
        assert [event["name"] for event in events(path, "iteration")] == ["iteration 0"]
        heading, row, last = out.splitlines()
        assert last == "trace of iteration 0: profile-matmul-5iter.json"
        assert " ".join(heading.split()) == (
            "operator mode calls total mean median min max unit GFLOP/s GB/s"
        )
        assert row.split()[:3] == ["dot", "symbolic", "1"]
        assert err.splitlines() == [
            "compiling dot for float32 ...",
            "filling two 40 x 40 matrices ...",
            "running 5 iterations ...",
        ]

    def test_the_window_is_the_one_asked_for(self, folder, capsys):
        assert cli.main([*SMALL, "--iterations", "6", "--begin", "2", "--end", "5"]) == 0
        assert "\ntrace of iterations 2 to 4: profile" in capsys.readouterr().out
        dots = events(folder / "profile-matmul-6iter.json", "symbolic")

        assert [dot["args"]["iteration"] for dot in dots] == [2, 3, 4]

    def test_the_end_follows_the_beginning(self, folder):
        assert cli.main([*SMALL, "--begin", "3"]) == 0
        dots = events(folder / "profile-matmul-5iter.json", "symbolic")

        assert [dot["args"]["iteration"] for dot in dots] == [3]

    def test_all_iterations_run_though_the_window_ends_early(self, folder, monkeypatch):
        from opbench.runtime import Executor

        passes = []
        forward = Executor.forward
        monkeypatch.setattr(Executor, "forward", lambda self: passes.append(1) or forward(self))
        assert cli.main([*SMALL, "--iterations", "7"]) == 0

        assert len(passes) == 2 + 7  # the warm-up, and the iterations

    def test_dtype_mode_output_and_filename(self, folder, capsys):
        arguments = [
            "--dtype",
            "float64",
            "--mode",
            "api+mem",
            "--output",
            "a/b",
            "--filename",
            "t",
        ]
        assert cli.main([*SMALL, *arguments]) == 0
        path = folder / "a" / "b" / "t"
        document = profiler.read(path)

        categories = {event["cat"] for event in document["traceEvents"] if "cat" in event}
        assert categories == {"iteration", "api", "memory"}
        assert document["otherData"]["metadata"]["dtype"] == "float64"
        out, err = capsys.readouterr()
        assert out.splitlines() == ["no operator was recorded", "trace of iteration 0: a/b/t"]
        assert "--mode symbolic records its operators" in err

    def test_a_trace_that_is_there_is_replaced(self, folder):
        (folder / "profile-matmul-5iter.json").write_text("old")
        assert cli.main(SMALL) == 0

        assert profiler.check(folder / "profile-matmul-5iter.json") == []

    def test_inputs_are_random_in_the_range_and_differ(self, folder, monkeypatch):
        import opbench.runtime

        drawn = []
        uniform = opbench.runtime.random.uniform
        monkeypatch.setattr(
            opbench.runtime.random, "uniform", lambda *a: drawn.append(uniform(*a)) or drawn[-1]
        )
        assert cli.main(SMALL) == 0
        a, b = (array.asnumpy() for array in drawn)

        assert a.shape == b.shape == (40, 40)
        assert -1 <= a.min() < -0.9 < 0.9 < a.max() < 1
        assert (a != b).any()

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--begin", "5"], "begin 5, end 6, iterations 5"),
            (["--begin", "-1"], "begin -1"),
            (["--begin", "2", "--end", "1"], "--begin and --end) is impossible: begin 2, end 1"),
            (["--iterations", "0"], "at least 1, not 0"),
            (["--mode", "symbolix"], "unknown mode 'symbolix' in --mode; did you mean 'symbolic'"),
            (["--size", "0"], "--size is 1 or more, not 0"),
            (["--size", "9000000"], r"--size 9000000 needs 1296 TB for 4 matrices .* \d+ fits"),
            (["--size", "x"], "invalid int value: 'x'; see opbench matmul --help"),
            (["--dtype", "complex64"], "invalid choice: 'complex64'"),
            (["--size", "1" + 200 * "0"], "needs over 1000000 TB for 4 matrices of float32"),
            (["--device", "gpu", "--output", "new"], "--device gpu: gpu(0) is not available"),
            (["--size", "0", "--output", "new"], "--size is 1 or more"),
            (["--filename", "../x", "--output", "new"], "'../x' is no plain name; give the folder"),
            (["--filename", ""], "--filename '' is no plain name"),
            (["--filename", "."], "--filename '.' is no plain name"),
            (["--filename", "taken"], "--filename 'taken' cannot be used"),
            (["--filename", 300 * "x"], "cannot be used: File name too long"),
            (["--filename", "a\0b"], "--filename 'a\\x00b' cannot be used"),
            (["--filename", "pipe"], "what is there is no regular file"),
            (["--output", "file"], "--output 'file' cannot be written: file is a file"),
            (["--output", "file/sub"], "--output 'file/sub' cannot be written: file is a file"),
            (["--output", "a\0b"], "--output 'a\\x00b' cannot be written"),
            (["--output", "/proc"], "--output '/proc' cannot be written: "),
            (
                ["--sise", "4"],
                "opbench matmul: unrecognized arguments: --sise 4; see opbench matmul",
            ),
            (["--iter", "3"], "unrecognized arguments: --iter 3"),
        ],
    )
    def test_a_mistake_is_one_sentence_and_exit_code_2(self, folder, capsys, arguments, words):
        (folder / "file").touch()
        (folder / "taken").mkdir()
        os.mkfifo(folder / "pipe")
        before = sorted(folder.rglob("*"))
        code = cli.main(["matmul", *arguments])
        out, err = capsys.readouterr()

        assert code == 2
        assert out == ""
        assert len(err.splitlines()) == 1
        assert words in err or re.search(words, err)
        assert sorted(folder.rglob("*")) == before
        assert profiler.RECORDER.state == "stop"

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_folder_that_cannot_be_written(self, folder, capsys):
        (folder / "locked").mkdir(mode=0o555)

        assert cli.main([*SMALL, "--output", "locked"]) == 2
        assert "--output 'locked' cannot be written: Perm" in capsys.readouterr().err

    def test_the_table_is_not_lost_with_the_trace(self, folder, capsys, monkeypatch):
        def full(*_):
            raise TraceWriteError("no room")

        monkeypatch.setattr(profiler, "write", full)

        assert cli.main(SMALL) == 1
        out, err = capsys.readouterr()
        assert [line.split()[0] for line in out.splitlines()] == ["operator", "dot"]
        assert err.splitlines()[-1] == "opbench matmul: no room"

    def test_a_size_that_fits_by_no_count_is_no_traceback(self, folder, capsys, monkeypatch):
        monkeypatch.setattr(matmul, "_available_bytes", lambda: None)

        assert cli.main(["matmul", "--size", "9000000"]) == 2
        assert "opbench matmul: not enough memory" in capsys.readouterr().err

    @pytest.mark.parametrize("error", [AccuracyError("wrong"), TraceWriteError("full")])
    def test_a_failure_of_ours_is_exit_code_1(self, folder, capsys, monkeypatch, error):
        def fail(*_):
            raise error

        monkeypatch.setattr(matmul, "_warm_up", fail)

        assert cli.main(SMALL) == 1
        assert capsys.readouterr().err.splitlines()[-1] == f"opbench matmul: {error}"

    def test_an_interrupt_closes_the_window(self, folder, capsys, monkeypatch):
        from opbench.runtime import Executor

        forward = Executor.forward

        def interrupted(self):
            if profiler.RECORDER.recording:
                raise KeyboardInterrupt
            return forward(self)

        monkeypatch.setattr(Executor, "forward", interrupted)

        assert cli.main(SMALL) == 130
        assert capsys.readouterr().err.splitlines()[-1] == "interrupted"
        assert profiler.RECORDER.state == "stop"

    # At 64 the second product takes another way than the first; at 700 threads are used.
    @pytest.mark.parametrize("size", [64, 700])
    def test_nothing_is_compiled_inside_the_window(self, folder, size):
        code = (
            "import numba.core.event as event\n"
            "from opbench import cli, profiler\n"
            "class Listener(event.Listener):\n"
            "    states = []\n"
            "    def on_start(self, event): self.states.append(profiler.RECORDER.state)\n"
            "    def on_end(self, event): pass\n"
            "event.register('numba:compile', Listener())\n"
            f"code = cli.main(['matmul', '--size', '{size}', '--end', '5'])\n"
            "print(code, sorted(set(Listener.states)))\n"
        )
        done = fresh(code=code, NUMBA_CACHE_DIR=str(folder / "cache"))

        assert done.stdout.splitlines()[-1] == "0 ['stop']"

    def test_the_warm_up_takes_the_way_of_the_traced_products(self, folder, monkeypatch):
        checked = []
        monkeypatch.setattr(operators.Case, "check", lambda *_: checked.append(len(passes)))
        from opbench.runtime import Executor

        passes = []
        forward = Executor.forward
        monkeypatch.setattr(Executor, "forward", lambda self: passes.append(1) or forward(self))
        assert cli.main(SMALL) == 0

        assert checked == [2]


class TestAvailableBytes:
    @pytest.fixture
    def system(self, tmp_path):
        """Write a file of the system's under a root of our own."""

        def write(path, text):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)

        write("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:   5000 kB\n")
        return write

    def test_without_a_container(self, tmp_path, system):
        assert matmul._available_bytes(tmp_path) == 5000 * 1024
        system("sys/fs/cgroup/memory.max", "max\n")
        assert matmul._available_bytes(tmp_path) == 5000 * 1024

    def test_where_nothing_is_known(self, tmp_path):
        assert matmul._available_bytes(tmp_path) is None

    @pytest.mark.parametrize(
        ("limit", "use"),
        [
            ("memory.max", "memory.current"),
            ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
        ],
    )
    def test_a_container_has_its_limit_less_its_use(self, tmp_path, system, limit, use):
        system(f"sys/fs/cgroup/{limit}", "1000000\n")
        assert matmul._available_bytes(tmp_path) == 1_000_000
        system(f"sys/fs/cgroup/{use}", "900000\n")
        assert matmul._available_bytes(tmp_path) == 100_000
        stat = (tmp_path / "sys/fs/cgroup" / use).with_name("memory.stat")
        stat.write_text("anon 1\ninactive_file 300000\nactive_file 7\n")
        assert matmul._available_bytes(tmp_path) == 400_000


class TestTraceCheck:
    @pytest.fixture
    def good(self, folder):
        recorder = profiler.Profiler()
        recorder.run("all", "test")
        recorder.instant("x", "memory")
        profiler.write(recorder.stop("test"), folder / "good.json")
        return "good.json"

    def bad(self, folder):
        document = {"displayTimeUnit": "ns", "otherData": {}, "traceEvents": [{"ph": "X"}]}
        (folder / "bad.json").write_text(json.dumps(document))
        return "bad.json"

    def test_fine(self, good, capsys):
        assert cli.main(["trace", "check", good, good]) == 0
        assert capsys.readouterr().out == "good.json: fine\n" * 2

    def test_problems_are_listed_with_their_rule(self, folder, good, capsys):
        assert cli.main(["trace", "check", self.bad(folder), good]) == 1
        out, err = capsys.readouterr()

        lines = out.splitlines()
        assert len(lines) > 1
        assert all(re.fullmatch(r"bad\.json: .+: .+ \[[\w-]+\]", line) for line in lines[:-1])
        assert lines[-1] == "good.json: fine"
        assert err == ""

    def test_a_file_that_cannot_be_read(self, folder, good, capsys):
        assert cli.main(["trace", "check", "missing.json", good, self.bad(folder)]) == 2
        out, err = capsys.readouterr()

        assert len(err.splitlines()) == 1
        assert "missing.json" in err
        assert err.startswith("opbench trace check: ")
        assert "good.json: fine" in out
        assert "bad.json: " in out

    def test_a_trace_without_events_says_so(self, folder, capsys):
        recorder = profiler.Profiler()
        recorder.run("all", "test")
        profiler.write(recorder.stop("test"), folder / "empty.json")
        assert cli.main(["trace", "check", "empty.json"]) == 0
        assert capsys.readouterr().out == "empty.json: fine, but it holds no event\n"


def recorded(path, clock=None, durations=(10, 20, 30, 40, 50), name="dot", pid=None):
    """A trace with slices of given lengths, ns."""
    recorder = profiler.Profiler(clock or (lambda: 10_000), price=lambda: 1.0)
    recorder.run("all", "test")
    for duration in durations:
        recorder.complete(name, "imperative", 10_000, 10_000 + duration)
    trace = recorder.stop("test")
    at = 10_000
    events = []
    for event, duration in zip(
        sorted(trace.events, key=lambda e: e.duration_ns), durations, strict=True
    ):
        events.append(event._replace(start_ns=at, pid=pid or event.pid))
        at += duration
    trace = trace._replace(events=tuple(events), windows=((10_000, max(at, 10_001)),))
    profiler.write(trace, path)
    return trace


def growing(path):
    """What a killed process leaves: one slice, an open window, half a line."""
    recorder = profiler.Profiler(lambda: 5000, lambda: 10**18)
    recorder.run("all", "test")
    from opbench.profiler.stream import Stream

    stream = Stream(recorder, str(path), 1e6, "test")
    stream.start()
    recorder.complete("dot", "imperative", 5000, 9000)
    stream.flush()
    recorder.stop("test")
    text = path.read_text()
    stream.end()
    opened = '{"ph":"B","name":"iteration 1","cat":"iteration","pid":1,"ts":0.5,"tid":1}'
    path.write_text(text.rstrip().rstrip("]").rstrip() + f',\n{opened},\n{{"ph":"X","na')


class TestTraceRepair:
    def test_an_unfinished_dump_is_mended_in_place(self, folder, capsys):
        growing(folder / "t.json")
        assert cli.main(["trace", "check", "t.json"]) == 1
        assert "breaks off inside event" in capsys.readouterr().out
        assert cli.main(["trace", "repair", "t.json"]) == 0
        out = capsys.readouterr().out.splitlines()
        assert out[0] == "t.json: 2 events"
        assert out[1].startswith("  the file is damaged, and was read up to there: ")
        assert out[2] == "  1 span never ended, and end with the trace now"
        assert cli.main(["trace", "check", "t.json"]) == 0
        events = profiler.load("t.json").events
        assert [(e.name, e.duration_ns) for e in events] == [("dot", 4000), ("iteration 1", 3500)]

    def test_a_fine_trace_is_left_as_it_is(self, folder, capsys):
        recorded(folder / "t.json")
        before = (folder / "t.json").read_bytes()
        assert cli.main(["trace", "repair", "t.json"]) == 0
        assert capsys.readouterr().out == "t.json: fine, nothing to repair\n"
        assert (folder / "t.json").read_bytes() == before

    def test_a_strangers_file_is_only_mended_into_another(self, folder, capsys):
        text = '[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2},{"ph":"X"'
        (folder / "t.json").write_text(text)
        assert cli.main(["trace", "repair", "t.json"]) == 2
        assert "give --output OUT" in capsys.readouterr().err
        assert (folder / "t.json").read_text() == text
        assert cli.main(["trace", "repair", "t.json", "--output", "o.json"]) == 0
        assert (folder / "t.json").read_text() == text
        assert profiler.check(folder / "o.json") == []

    def test_what_is_being_written_is_left_alone(self, folder, capsys):
        from opbench.profiler.streamfile import StreamFile

        file = StreamFile.open_at(str(folder / "t.json"), ['{"ph":"M"}'])
        before = (folder / "t.json").read_bytes()
        assert cli.main(["trace", "repair", "t.json"]) == 2
        assert "is being written by a process that is running" in capsys.readouterr().err
        assert (folder / "t.json").read_bytes() == before
        file.close()

    @pytest.mark.parametrize("action", ["repair", "summary"])
    def test_what_is_no_trace_is_a_mistake(self, folder, capsys, action):
        (folder / "t.json").write_text("nothing")
        assert cli.main(["trace", action, "t.json"]) == 2
        out, err = capsys.readouterr()
        assert (out, len(err.splitlines())) == ("", 1)
        assert err.startswith(f"opbench trace {action}: t.json holds no trace")


class TestTraceSummary:
    def test_the_table_has_the_figures_of_the_trace(self, folder, capsys):
        recorded(folder / "t.json")
        assert cli.main(["trace", "summary", "t.json"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "imperative"
        cells = dict(zip(lines[1].split(), lines[2].split(), strict=False))
        assert (cells["name"], cells["count"], cells["unit"]) == ("dot", "5", "ns")
        assert [float(cells[key]) for key in ("total", "mean", "min", "max")] == [150, 30, 10, 50]

    def test_as_json_it_has_all_digits(self, folder, capsys):
        recorded(folder / "t.json", durations=(1, 1, 2))
        assert cli.main(["trace", "summary", "--json", "t.json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["Time"]["imperative"]["dot"]["Avg"] == pytest.approx(4 / 3 / 1e6, rel=1e-12)

    def test_a_damaged_trace_has_its_table_and_a_warning(self, folder, capsys):
        growing(folder / "t.json")
        assert cli.main(["trace", "summary", "t.json"]) == 0
        out, err = capsys.readouterr()
        assert "dot" in out
        assert err.startswith("t.json: the file is damaged")

    def test_a_pipe_without_unicode_gets_ascii(self, folder):
        recorded(folder / "t.json")
        done = fresh("trace", "summary", "t.json", PYTHONIOENCODING="ascii")
        assert done.returncode == 0
        assert done.stdout.isascii()
        assert "\\" not in done.stdout


class TestTraceMerge:
    def test_each_file_is_a_process_of_its_own(self, folder, capsys):
        recorded(folder / "a.json", name="a", pid=7)
        recorded(folder / "b.json", name="b", pid=7)
        assert cli.main(["trace", "merge", "a.json", "b.json", "--output", "w.json"]) == 0
        assert capsys.readouterr().out == "w.json: 10 events of 4 processes from 2 files\n"
        assert profiler.check("w.json") == []
        trace = profiler.load("w.json")
        pids = {event.name: event.pid for event in trace.events}
        assert pids["a"] != pids["b"]

    def test_the_output_is_none_of_the_inputs(self, folder, capsys):
        recorded(folder / "a.json")
        before = (folder / "a.json").read_bytes()
        assert cli.main(["trace", "merge", "a.json", "--output", "./a.json"]) == 2
        assert "is one of the files to merge" in capsys.readouterr().err
        assert (folder / "a.json").read_bytes() == before

    def test_what_has_no_date_needs_another_alignment(self, folder, capsys):
        text = '[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2}]'
        (folder / "t.json").write_text(text)
        assert cli.main(["trace", "merge", "t.json"]) == 2
        assert "(--align start)" in capsys.readouterr().err
        assert cli.main(["trace", "merge", "t.json", "--align", "start"]) == 0
        assert profiler.load("merged.trace.json").events[0].name == "a"


class TestTraceDiff:
    def test_what_grew_comes_first(self, folder, capsys):
        recorded(folder / "a.json", durations=(100,) * 9)
        recorded(folder / "b.json", durations=(150,) * 9)
        assert cli.main(["trace", "diff", "a.json", "b.json"]) == 0
        heading, line, meaning = capsys.readouterr().out.splitlines()
        assert heading.split()[:2] == ["name", "calls"]
        words = line.split()
        assert words[:4] == ["imperative", "·", "dot", "9"]
        assert words[-5:] == ["1.500", "1.500", "to", "1.500", "slower"]
        assert "judges no change" in meaning
        assert "+450 ns" in line

    def test_a_trace_with_itself_has_no_change(self, folder, capsys):
        recorded(folder / "a.json")
        assert cli.main(["trace", "diff", "--json", "a.json", "a.json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)
        assert (row["verdict"], row["ratio"], row["growth_ns"]) == ("same", 1.0, 0)
        assert row["before"] == row["after"]


class TestAround:
    def test_version(self, capsys):
        assert cli.main(["--version"]) == 0
        assert capsys.readouterr().out == f"opbench {__version__}\n"

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--help"],
            ["matmul", "--help"],
            *(["trace", action, "--help"] for action in TRACE_ACTIONS),
        ],
    )
    def test_help_has_examples_and_is_ascii(self, capsys, arguments):
        assert cli.main(arguments) == 0
        out = capsys.readouterr().out

        assert "examples:\n  opbench " in out
        assert out.isascii()

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ([], "required: COMMAND"),
            (["matmull"], "'matmull'"),
            (["trace"], "required: ACTION"),
            (["trace", "check"], "required: FILE"),
            (["trace", "check", "--x", "f"], "opbench trace check: unrecognized arguments: --x"),
        ],
    )
    def test_usage_errors(self, capsys, arguments, words):
        assert cli.main(arguments) == 2
        out, err = capsys.readouterr()

        assert out == ""
        assert words in err
        assert len(err.splitlines()) == 1

    def test_as_a_module_in_a_fresh_process(self, folder):
        done = fresh(*SMALL, "--output", str(folder))

        assert (done.returncode, profiler.check(folder / "profile-matmul-5iter.json")) == (0, [])
        assert fresh("matmul", "--size", "0").returncode == 2

    def test_help_loads_nothing_heavy(self):
        code = (
            "import sys\nfrom opbench import cli\ncli.main(['--help'])\n"
            "print([n for n in ('numpy', 'numba', 'opbench.profiler') if n in sys.modules])"
        )

        assert fresh(code=code).stdout.splitlines()[-1] == "[]"

    def test_a_terminal_without_unicode(self, folder):
        name = "naïve×"
        done = fresh(*SMALL, "--output", str(folder / name), PYTHONIOENCODING="ascii")

        assert (done.returncode, "Traceback" in done.stderr) == (0, False)
        assert "na\\xefve\\xd7" in done.stdout

    def test_a_reader_that_leaves_early(self, folder):
        code = (
            "import os, sys\nfrom opbench import cli\n"
            "r, w = os.pipe(); os.close(r); os.dup2(w, 1)\n"
            f"sys.exit(cli.main({[*SMALL, '--output', str(folder)]!r}))"
        )
        done = fresh(code=code)

        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr

    @pytest.mark.parametrize("arguments", [["trace", "check", "good"], ["--help"], SMALL])
    @pytest.mark.parametrize(
        ("target", "code", "words"),
        [
            ("&-", 2, "opbench: standard output is closed; send it to a file, or to /dev/null\n"),
            ("/dev/full", 1, "opbench: cannot write to standard output: No space left on device\n"),
        ],
    )
    def test_an_output_that_takes_nothing(self, folder, arguments, target, code, words):
        recorder = profiler.Profiler()
        recorder.run("all", "test")
        profiler.write(recorder.stop("test"), folder / "good")
        command = [sys.executable, "-m", "opbench", *arguments]
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" >{target}', "sh", *command],
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
            check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

        assert done.returncode == code
        assert done.stderr.endswith(words)
        assert "Traceback" not in done.stderr

    def test_a_closed_error_stream_is_not_the_output(self, folder):
        done = subprocess.run(
            ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-m", "opbench", *SMALL],
            stdout=subprocess.PIPE,
            text=True,
            timeout=300,
            check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

        assert done.returncode == 0
        assert len(done.stdout.splitlines()) == 3
