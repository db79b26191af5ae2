"""Events as Arrow tables and as Parquet.

The bytes of the Parquet file depend on the events alone: row groups are cut by number of rows, not by how the
simulation happened to be sliced, and each has its own dictionaries in the order of first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self

import pyarrow as pa
import pyarrow.parquet as pq

from careof import native, parquet
from careof.errors import NotARunError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

    from careof.native import Column, Json

ROW_GROUP = 1 << 16

_PLAIN = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float64": pa.float64(),
}
_DICTIONARY = pa.dictionary(pa.int32(), pa.string())


def schema(definition: Json | None = None) -> pa.Schema:
    """The Arrow schema of the event table; each field's metadata holds what it means."""
    definition = native.event_schema() if definition is None else definition
    return pa.schema(
        pa.field(column["name"], _type(column["type"]), metadata={"doc": column["doc"]})
        for column in definition["columns"]
    )


def batch(columns: Sequence[Column], table_schema: pa.Schema) -> pa.RecordBatch:
    """A record batch over the native module's buffers, without a copy."""
    rows = _rows(columns)
    arrays = {column.name: _array(column, rows) for column in columns}
    return pa.RecordBatch.from_arrays([arrays[name] for name in table_schema.names], schema=table_schema)


class Sink(Protocol):
    """Takes the events of a run, row group by row group."""

    def write(self, group: pa.Table) -> None:
        """Take one row group."""


class Memory:
    """Keeps the events."""

    def __init__(self, table_schema: pa.Schema) -> None:
        self._schema = table_schema
        self._groups: list[pa.Table] = []

    def write(self, group: pa.Table) -> None:
        """Take one row group."""
        self._groups.append(group)

    def table(self) -> pa.Table:
        """All of them."""
        return pa.concat_tables(self._groups or [self._schema.empty_table()]).unify_dictionaries().combine_chunks()


class ParquetFile:
    """Writes the events to a Parquet file; a context manager."""

    def __init__(self, path: Path, table_schema: pa.Schema) -> None:
        named = [field.name for field in table_schema if pa.types.is_dictionary(field.type)]
        counted = [field.name for field in table_schema if pa.types.is_integer(field.type)]
        self._writer = pq.ParquetWriter(
            path,
            table_schema,
            compression="zstd",
            use_dictionary=named,
            column_encoding=dict.fromkeys(counted, "DELTA_BINARY_PACKED"),
            version="2.6",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    def write(self, group: pa.Table) -> None:
        """Take one row group."""
        self._writer.write_table(_own_dictionaries(group), row_group_size=ROW_GROUP)


class Recorder:
    """Cuts what the native module hands out into row groups of one size for a sink."""

    def __init__(self, sink: Sink, table_schema: pa.Schema) -> None:
        self._sink = sink
        self._schema = table_schema
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self.bytes = 0
        """What was taken so far, as it is in memory."""

    def take(self, columns: Sequence[Column]) -> None:
        """Take what came since the last call."""
        if not columns:
            return
        new = batch(columns, self._schema)
        if new.num_rows == 0:
            return
        self.bytes += new.nbytes
        self._waiting.append(new)
        self._rows += new.num_rows
        if self._rows >= ROW_GROUP:
            self._write(self._rows - self._rows % ROW_GROUP)

    def finish(self) -> None:
        """Hand on what is left."""
        if self._rows:
            self._write(self._rows)

    def _write(self, rows: int) -> None:
        table = pa.Table.from_batches(self._waiting, schema=self._schema)
        for start in range(0, rows, ROW_GROUP):
            self._sink.write(table.slice(start, min(ROW_GROUP, rows - start)))
        rest = table.slice(rows)
        self._waiting = rest.to_batches()
        self._rows = rest.num_rows


def read(path: Path, kind: str | None = None, columns: Sequence[str] | None = None) -> pa.Table:
    """The event table of a Parquet file, or some columns of one kind of events.

    Raises:
        NotARunError: the file cannot be read.
    """
    try:
        table = parquet.read(path, columns, None if kind is None else ("kind", kind))
    except (OSError, pa.ArrowException) as error:
        raise NotARunError(f"{path}: cannot be read: {error}", hint="make the run again") from error
    # Each row group has its own dictionaries, which not every reader takes.
    return table.unify_dictionaries()


def shape(path: Path) -> tuple[list[str], int]:
    """The names of the columns of a Parquet file, and its rows, without reading them.

    Raises:
        NotARunError: the file cannot be read.
    """
    try:
        metadata = pq.read_metadata(path)
    except (OSError, pa.ArrowException) as error:
        raise NotARunError(f"{path}: cannot be read: {error}", hint="make the run again") from error
    return metadata.schema.to_arrow_schema().names, int(metadata.num_rows)


def _own_dictionaries(group: pa.Table) -> pa.Table:
    """The same rows, whose bytes do not depend on where the native module's batches ended."""
    columns = [
        column.cast(pa.string()).combine_chunks().dictionary_encode() if pa.types.is_dictionary(column.type) else column
        for column in group.columns
    ]
    return pa.Table.from_arrays(columns, schema=group.schema).combine_chunks()


def _type(name: str) -> pa.DataType:
    if name.startswith("dictionary"):
        return _DICTIONARY
    return pa.bool_() if name == "bool" else _PLAIN[name]


def _rows(columns: Sequence[Column]) -> int:
    for column in columns:
        if column.type in _PLAIN:
            return len(column.values) * 8 // int(_PLAIN[column.type].bit_width)
    raise ValueError("an event table needs a column of numbers")


def _array(column: Column, rows: int) -> pa.Array:
    validity: Any = None if column.validity is None else pa.py_buffer(column.validity)
    buffers = [validity, pa.py_buffer(column.values)]
    if column.type.startswith("dictionary"):
        codes = pa.Array.from_buffers(pa.int32(), rows, buffers)
        return pa.DictionaryArray.from_arrays(codes, pa.array(column.dictionary, pa.string()))
    return pa.Array.from_buffers(_type(column.type), rows, buffers)
