"""The event table as numpy arrays: the columns that explaining needs, checked before they are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from careof.errors import NotARunError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from careof.runs import Run

    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]

ABSENT = -1
"""What stands in a row that has no value there; sizes, numbers and codes are never negative."""

_NUMBERS = (
    "time_ns",
    "packet",
    "size_bytes",
    "seq",
    "ack",
    "len_bytes",
    "window_bytes",
    "delivered_bytes",
)
_NAMES = ("kind", "node", "link", "flow", "cause", "flags")
_LATER = "of_packet"
"""Not in the traces of earlier versions."""


def nanos(seconds: float) -> int:
    """A time of a summary as the events have it."""
    return round(seconds * 1e9)


class Events:
    """Columns of the event table. Names are codes: `events.code("kind", "timeout")`, `events.names["link"]`."""

    def __init__(self, table: pa.Table, where: str) -> None:
        for name in (*_NUMBERS, *_NAMES, "retransmission"):
            if name not in table.column_names:
                raise _foreign(where, f"it has no column {name!r}")
        self.rows = table.num_rows
        self.names: dict[str, list[str]] = {}
        self._columns: dict[str, Ints] = {}
        for name in (*_NUMBERS, *((_LATER,) if _LATER in table.column_names else ())):
            if not pa.types.is_integer(table[name].type):
                raise _foreign(where, f"its column {name!r} holds {table[name].type}")
            self._columns[name] = _filled(table[name])
        if _LATER not in self._columns:
            self._columns[_LATER] = np.full(self.rows, ABSENT, np.int64)
        for name in _NAMES:
            if not pa.types.is_dictionary(table[name].type):
                raise _foreign(where, f"its column {name!r} holds {table[name].type}")
            column = table[name].unify_dictionaries() if table[name].num_chunks else table[name]
            words = column.chunk(0).dictionary.to_pylist() if column.num_chunks else []
            self.names[name] = [str(word) for word in words]
            indices = pa.chunked_array([chunk.indices for chunk in column.chunks], pa.int32())
            self._columns[name] = _filled(indices)
        self.retransmission: Flags = pc.fill_null(table["retransmission"], False).to_numpy().astype(bool)
        if self.rows and bool((np.diff(self["time_ns"]) < 0).any()):
            raise _foreign(where, "its rows are not in the order of time")

    def __getitem__(self, name: str) -> Ints:
        return self._columns[name]

    def code(self, column: str, word: str) -> int:
        """The code of a word in a column; one that no row has where the word does not occur."""
        try:
            return self.names[column].index(word)
        except ValueError:
            return ABSENT - 1

    def rows_of(self, kind: str) -> Ints:
        """The rows of one kind of event."""
        found: Ints = np.flatnonzero(self["kind"] == self.code("kind", kind))
        return found

    def word(self, column: str, row: int) -> str:
        """The word in a row; empty without one."""
        code = int(self[column][row])
        return self.names[column][code] if code >= 0 else ""


def events_of(run: Run) -> Events:
    """The events of a run.

    Raises:
        NotARunError: it has none, or its file is damaged or none of ours.
    """
    where = "this run" if run.path is None else str(run.path)
    if not run.traced:
        raise NotARunError(
            f"{where}: this run kept no events, and they are what is explained",
            hint="run it again without --no-trace",
        )
    return Events(run.events, where if run.path is None else f"{where}/events.parquet")


def _filled(column: pa.ChunkedArray) -> Ints:
    filled = pc.fill_null(pc.cast(column, pa.int64(), safe=False), ABSENT)
    values: Ints = filled.to_numpy()
    return values


def _foreign(where: str, what: str) -> NotARunError:
    return NotARunError(f"{where}: {what}, so it is no event table of careof", hint="make the run again")
