"""Saved launches as a test wants them."""

from __future__ import annotations

import json

import pytest

from opbench.records import Environment, opbench_block, read_records

ENVIRONMENT = Environment(cpu_model="Zen 4", cpu_count=2, numpy="2.4.6", python="3.11")
CONTROLS = {"compute": 1e-3, "memory": 2e-3}
ROUNDS = 20


class Saver:
    """Writes files into a folder and reads them as records."""

    def __init__(self, folder):
        self.folder = folder

    def launch(self, name, number, values, **changed):
        """One file; ``values`` are seconds by benchmark, or the rounds themselves."""
        entries = []
        for benchmark, value in values.items():
            data = list(value) if isinstance(value, list | tuple) else [value] * ROUNDS
            extra = changed.get("extra", {}).get(benchmark)
            entries.append(
                {
                    "fullname": benchmark,
                    "name": benchmark.rpartition("::")[2],
                    "group": changed.get("groups", {}).get(benchmark),
                    "extra_info": {"opbench": extra} if extra else {},
                    "stats": {"data": data, "rounds": len(data)},
                }
            )
        document = {
            "machine_info": {},
            "commit_info": {
                "id": changed.get("commit", name),
                "dirty": changed.get("dirty", False),
            },
            "benchmarks": entries,
            "datetime": f"2026-12-{changed.get('day', 1):02}T09:{number:02}:00+00:00",
        }
        if not changed.get("plain"):
            block = opbench_block(f"{name}-{number}", name, changed.get("environment", ENVIRONMENT))
            block["environment"] |= changed.get("machine", {})
            controls = changed.get("controls", CONTROLS)
            block["launcher"] = {"controls": controls} if controls else {}
            block["operators"] = changed.get("sources", {})
            document["opbench"] = block
        folder = changed.get("folder", self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        # In the order of time, as a store numbers them.
        path = folder / f"{100 * changed.get('day', 1) + number:04}_{name}.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    def record(self, name, values, launches=5, **changed):
        """A record whose launches have these values; a list has one value for each launch."""
        paths = [
            self.launch(
                name,
                number,
                {
                    benchmark: value[number] if isinstance(value, list) else value
                    for benchmark, value in values.items()
                },
                **changed,
            )
            for number in range(launches)
        ]
        (record,) = read_records(paths)
        return record


@pytest.fixture
def saver(tmp_path):
    """Writes into a folder of its own."""
    return Saver(tmp_path / "saved")
