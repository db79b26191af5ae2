"""Parquet files read in the thread that asks.

`pyarrow.parquet.read_table` reads by way of Arrow's data sets, which start threads whatever they are told. A thread
that is left when the interpreter ends aborts the process ("terminate called without an active exception",
apache/arrow#34314). :class:`pyarrow.parquet.ParquetFile` starts no thread, and neither do functions of
`pyarrow.compute` over whole columns. Filters by expressions do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import BinaryIO


def read(
    source: Path | BinaryIO, columns: Sequence[str] | None = None, where: tuple[str, str] | None = None
) -> pa.Table:
    """A Parquet file, or some of its columns and the rows in which a column, `where[0]`, has a value, `where[1]`.

    Raises:
        OSError: the file cannot be opened.
        pyarrow.ArrowException: it is no Parquet file, or damaged.
    """
    with pq.ParquetFile(source, memory_map=True, pre_buffer=False) as file:
        names = None if columns is None else list(columns)
        if where is None:
            return file.read(names, use_threads=False)
        key, value = where
        also = [] if names is None or key in names else [key]
        parts = []
        for number in range(file.num_row_groups):
            group = file.read_row_group(number, None if names is None else [*names, *also], use_threads=False)
            part = group.filter(pc.equal(group[key], value))
            parts.append(part if names is None else part.select(names))
        if not parts:
            return file.read(names, use_threads=False)
        return pa.concat_tables(parts)
