"""The table of a sweep: a row for each flow of each run, in the order of the grid.

It holds nothing that differs between two ways to the same runs: no time, no machine, no order of ending. So the same
sweep is the same file, byte for byte.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from careof import parquet
from careof.errors import NotATableError, OutputError
from careof.staging import whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from careof.native import Json

T = TypeVar("T")

_MARK = b"careof.sweep"
_VERSION = b"careof"
_ROWS_AT_ONCE = 32_768


def schema(about: Json, identity: Json, scenario_text: str) -> pa.Schema:
    """The columns, each with what it means, and what the table is of."""
    fields = [pa.field(axis["key"], axis["type"], metadata={"meaning": "Varied."}) for axis in about["axes"]]
    fields += [
        pa.field("run", "uint64", metadata={"meaning": "Number of the repetition: `careof run --repetition`."}),
        pa.field("seed", "uint64", metadata={"meaning": "Seed of all random numbers."}),
    ]
    fields += [
        pa.field(column["name"], column["type"], metadata={"meaning": column["meaning"]}) for column in about["columns"]
    ]
    fields.append(
        pa.field("error", "string", metadata={"meaning": "What kept the run from its end; null if nothing did."})
    )
    described = identity | {"varied": [axis["key"] for axis in about["axes"]], "title": about["title"]}
    return pa.schema(
        fields,
        metadata={
            _VERSION: identity["careof"].encode(),
            b"careof.scenario": scenario_text.encode(),
            b"careof.scenario_sha256": identity["scenario_sha256"].encode(),
            _MARK: json.dumps(described, ensure_ascii=False).encode(),
        },
    )


def rows(about: Json, records: Iterable[tuple[int, Any]], repeat: int) -> Iterator[list[Any]]:
    """The rows of runs given by number and outcome."""
    axes = [[_VALUE[axis["type"]](shown) for shown in axis["values"]] for axis in about["axes"]]
    width = len(about["columns"])
    for number, outcome in records:
        cell, run = divmod(number, repeat)
        begin = [*_of_cell(axes, cell), run, about["seed"]]
        if isinstance(outcome, str):
            yield [*begin, *([None] * width), outcome]
        else:
            for row in outcome:
                yield [*begin, *row, None]


def settings(axes: Sequence[Json], cell: int) -> list[str]:
    """What a cell sets, ``key=value`` for each axis."""
    return _of_cell([axis["settings"] for axis in axes], cell)


def _of_cell(axes: Sequence[Sequence[T]], cell: int) -> list[T]:
    """The value that each axis has in a cell. The last axis is the fastest."""
    values = []
    for axis in reversed(axes):
        cell, chosen = divmod(cell, len(axis))
        values.append(axis[chosen])
    return values[::-1]


_VALUE: dict[str, Callable[[str], Any]] = {
    "string": str,
    "int64": int,
    "float64": float,
    "bool": lambda shown: shown == "true",
}


def in_memory(columns: pa.Schema, content: Iterable[list[Any]]) -> pa.Table:
    """The table itself."""
    return pa.Table.from_batches(_batches(columns, content), columns)


def write(path: Path, columns: pa.Schema, content: Iterable[list[Any]]) -> None:
    """Write the table so that it is there whole or not at all.

    Raises:
        OutputError: it cannot be written.
        RunError: the disk is full.
    """
    with (
        whole(path, "name a file in a directory that can be written, with --out") as file,
        pq.ParquetWriter(file, columns, compression="zstd", version="2.6") as writer,
    ):
        for batch in _batches(columns, content):
            writer.write_table(pa.Table.from_batches([batch]), row_group_size=_ROWS_AT_ONCE)


def _batches(columns: pa.Schema, content: Iterable[list[Any]]) -> Iterator[pa.RecordBatch]:
    waiting: list[list[Any]] = []
    for row in content:
        waiting.append(row)
        if len(waiting) == _ROWS_AT_ONCE:
            yield _batch(columns, waiting)
            waiting = []
    if waiting:
        yield _batch(columns, waiting)


def _batch(columns: pa.Schema, content: list[list[Any]]) -> pa.RecordBatch:
    arrays = [pa.array(values, field.type) for values, field in zip(zip(*content, strict=True), columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def read(path: Path) -> pa.Table:
    """A table from its file.

    Raises:
        NotATableError: it is none of a sweep.
    """
    try:
        # Opened here: Arrow's own errors about files say nothing in `strerror`.
        with path.open("rb") as file:
            table = parquet.read(file)
    except (OSError, pa.ArrowException) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "is no Parquet file"
        raise NotATableError(f"{path}: {why}", hint="name a table written by `careof sweep`") from error
    if identity_of(table.schema) is None:
        raise NotATableError(f"{path}: is no table of a sweep", hint="name a table written by `careof sweep`")
    return table


def identity_of(columns: pa.Schema) -> Json | None:
    """Which sweep a table is of; None for another table."""
    with suppress(ValueError):
        known = json.loads((columns.metadata or {}).get(_MARK, b"null"))
        if isinstance(known, dict):
            return known
    return None


def varied_in(columns: pa.Schema) -> list[str]:
    """The keys that vary in a table."""
    identity = identity_of(columns)
    return list(identity["varied"]) if identity is not None else []


def refuse_what_must_stay(path: Path) -> Json | None:
    """Which sweep the table is of that is there already; None if there is none.

    Raises:
        OutputError: something else is there, or a table has no place there.
    """
    if path.suffix != ".parquet":
        raise OutputError(f"{path}: the table is a Parquet file", hint="give it a name that ends in .parquet")
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise OutputError(f"{path}: is not UTF-8", hint="name another file with --out") from None
    if path.is_dir():
        raise OutputError(f"{path}: is a directory", hint="name a file with --out")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        why = "may not be written" if path.parent.is_dir() else "is no directory"
        raise OutputError(
            f"{path}: cannot write there: {path.parent} {why}", hint="name a file in a directory that can be written"
        )
    if not path.exists():
        return None
    try:
        known = identity_of(pq.read_schema(path))
    except (OSError, pa.ArrowException):
        known = None
    if known is None:
        raise OutputError(
            f"{path}: is there already and no table of a sweep", hint="move it away, or name another file with --out"
        )
    return known
