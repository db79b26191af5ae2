"""From the native module's buffers to Arrow and Parquet."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import careof
from careof import events
from careof.native import Column

DEFINITION = {
    "columns": [
        {"name": "time_ns", "type": "int64", "doc": "when"},
        {"name": "kind", "type": "dictionary<int32, string>", "doc": "what"},
        {"name": "size_bytes", "type": "uint32", "doc": "how much"},
        {"name": "again", "type": "bool", "doc": "whether"},
    ]
}
ROWS: list[dict[str, object]] = [
    {
        "time_ns": number * 10,
        "kind": f"kind {number % 7 + number // 20_000}",
        "size_bytes": None if number % 3 else number,
        "again": None if number % 5 == 0 else number % 2 == 0,
    }
    for number in range(3 * events.ROW_GROUP // 2)
]


def columns(rows: list[dict[str, object]]) -> list[Column]:
    """Rows as the native module hands them out, with a dictionary of the names that occur in them."""
    names = list(dict.fromkeys(str(row["kind"]) for row in rows))
    return [
        Column("time_ns", "int64", struct.pack(f"<{len(rows)}q", *(row["time_ns"] for row in rows)), None, None),
        Column("kind", "dictionary", struct.pack(f"<{len(rows)}i", *(names.index(str(row["kind"])) for row in rows)),
               None, names),
        Column("size_bytes", "uint32", struct.pack(f"<{len(rows)}I", *(row["size_bytes"] or 0 for row in rows)),
               bits([row["size_bytes"] is not None for row in rows]), None),
        Column("again", "bool", bits([bool(row["again"]) for row in rows]),
               bits([row["again"] is not None for row in rows]), None),
    ]  # fmt: skip


def bits(values: list[bool]) -> bytes:
    packed = bytearray((len(values) + 7) // 8)
    for position, value in enumerate(values):
        packed[position // 8] |= value << position % 8
    return bytes(packed)


def write(path: Path, seed: int) -> bytes:
    """The file that the rows make when they come in slices of random sizes."""
    lots, schema = random.Random(seed), events.schema(DEFINITION)
    with events.ParquetFile(path, schema) as file:
        recorder = events.Recorder(file, schema)
        begin = 0
        while begin < len(ROWS):
            end = begin + lots.randrange(1, 40_000)
            recorder.take(columns(ROWS[begin:end]))
            begin = end
        recorder.take([])
        recorder.finish()
    return path.read_bytes()


def test_rows_come_out_as_they_went_in(tmp_path: Path) -> None:
    write(tmp_path / "x.parquet", seed=1)
    assert events.read(tmp_path / "x.parquet").to_pylist() == ROWS


def test_the_file_does_not_depend_on_how_the_run_was_sliced(tmp_path: Path) -> None:
    files = {write(tmp_path / f"{seed}.parquet", seed) for seed in range(4)}
    assert len(files) == 1
    assert pq.ParquetFile(tmp_path / "0.parquet").num_row_groups == 2


def test_a_run_without_events_is_an_empty_table(tmp_path: Path) -> None:
    schema = events.schema(DEFINITION)
    with events.ParquetFile(tmp_path / "x.parquet", schema) as file:
        events.Recorder(file, schema).finish()
    table = events.read(tmp_path / "x.parquet")
    assert table.num_rows == 0
    assert table.schema.names == ["time_ns", "kind", "size_bytes", "again"]
    assert events.Memory(schema).table().num_rows == 0


def test_every_column_says_what_it_means(finished: Path) -> None:
    table = careof.load(finished).events
    described = {column["name"]: column["doc"] for column in careof.event_schema()["columns"]}
    assert {field.name: field.metadata[b"doc"].decode() for field in table.schema} == described
    assert pa.types.is_dictionary(table.schema.field("kind").type)


def test_events_are_in_the_order_of_time_and_of_known_kinds(finished: Path) -> None:
    table = careof.load(finished).events
    times = table["time_ns"].to_pylist()
    assert times == sorted(times)
    kinds = {kind["name"] for kind in careof.event_schema()["kinds"]}
    assert set(table["kind"].to_pylist()) <= kinds


def test_reading_starts_no_thread_that_could_outlive_the_interpreter(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    write(path, 1)
    program = (
        "import os, sys, pathlib\n"
        "from careof import events\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "before = len(os.listdir('/proc/self/task'))\n"
        "rows = [events.read(path).num_rows, events.read(path, 'kind 1', ['time_ns']).num_rows]\n"
        "print(*rows, len(os.listdir('/proc/self/task')) - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    of_kind = sum(row["kind"] == "kind 1" for row in ROWS)
    assert done.stdout.split() == [str(len(ROWS)), str(of_kind), "0"]
