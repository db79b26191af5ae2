"""Means of a metric over the runs of each cell of a sweep, with confidence intervals.

A sample is a run: the runs of a cell are independent, the flows of a run are not. So flows that are not told apart
count with their mean in each run, and cells are never mixed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from careof import summary, text
from careof.errors import InputError, did_you_mean
from careof.sweeps.confidence import METHODS, WORDS, Interval, interval
from careof.sweeps.table import varied_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from careof.native import Json
    from careof.text import Style

    Key = tuple[Any, ...]

_UNITS: dict[str, tuple[str, float]] = {
    "ns": ("s", 1e-9), "us": ("s", 1e-6), "ms": ("s", 1e-3), "s": ("s", 1.0), "min": ("s", 60.0), "h": ("s", 3600.0),
    "bit/s": ("bit/s", 1.0), "kbit/s": ("bit/s", 1e3), "Mbit/s": ("bit/s", 1e6), "Gbit/s": ("bit/s", 1e9),
    "B": ("byte", 1.0), "kB": ("byte", 1e3), "MB": ("byte", 1e6), "GB": ("byte", 1e9),
    "KiB": ("byte", 2.0**10), "MiB": ("byte", 2.0**20), "GiB": ("byte", 2.0**30),
    "packet": ("packets", 1.0), "packets": ("packets", 1.0),
    "segment": ("segments", 1.0), "segments": ("segments", 1.0),
    "%": ("%", 1.0),
}  # fmt: skip
"""What values of a scenario are written in, and what that is of which unit."""

_QUANTITY = re.compile(r"\s*([+-]?[0-9][0-9_]*(?:\.[0-9]+)?)\s*([A-Za-z/%]+)\s*")


class Point(NamedTuple):
    """The mean of one cell."""

    by: tuple[Any, ...]
    """Values of the columns that tell curves apart."""
    x: Any
    """The value it is drawn over, as the table has it."""
    samples: int
    """Runs that have a value."""
    missing: int
    """Runs that have none: it does not apply to them, or they did not come to it."""
    failed: int
    """Runs that came to no end."""
    interval: Interval | None
    """None without a sample."""


@dataclass(frozen=True)
class Means:
    """Means with 95 % confidence intervals."""

    y: str
    x: str
    by: tuple[str, ...]
    ci: str
    points: list[Point]
    positions: dict[Any, float] | None
    """Where each value of `x` is on a numeric axis; None where they are but words."""
    unit: str
    """Of that axis."""
    flows: int
    """Flows whose mean a sample is; 1 where each stands for itself."""

    def __repr__(self) -> str:
        return f"<careof.Means of {self.y} over {self.x}: {len(self.points)} points>"

    @property
    def method(self) -> str:
        """How the intervals come about, in words."""
        among = f"; each sample the mean of {self.flows} flows of a run" if self.flows > 1 else ""
        return WORDS[self.ci] + among

    @property
    def left_out(self) -> str:
        """What the means say nothing of, in words; empty if that is nothing."""
        counts = {
            "failed": sum(point.failed for point in self.points),
            f"have no {self.y}": sum(point.missing for point in self.points),
        }
        whole = sum(point.samples + point.missing + point.failed for point in self.points)
        said = " and ".join(f"{count} {what}" for what, count in counts.items() if count)
        return f"of {whole} runs {said}: they are left out" if said else ""

    @property
    def table(self) -> pa.Table:
        """A row a point: the columns of `by`, `x`, then ``n``, ``missing``, ``failed``, ``mean``, ``low``, ``high``."""
        return pa.Table.from_pylist(self.rows())

    def rows(self) -> list[Json]:
        """The same as dictionaries."""
        return [
            {
                **dict(zip(self.by, point.by, strict=True)),
                self.x: point.x,
                "n": point.samples,
                "missing": point.missing,
                "failed": point.failed,
                **(dict.fromkeys(Interval._fields) if point.interval is None else point.interval._asdict()),
            }
            for point in self.points
        ]

    def curves(self) -> dict[tuple[Any, ...], list[Point]]:
        """The points that have a mean, apart by `by`."""
        found: dict[tuple[Any, ...], list[Point]] = {}
        for point in self.points:
            if point.interval is not None:
                found.setdefault(point.by, []).append(point)
        return found

    def as_json(self) -> Json:
        """All of it, ready for JSON."""
        return {
            "y": self.y,
            "x": self.x,
            "by": list(self.by),
            "ci": self.method,
            "left_out": self.left_out,
            "points": self.rows(),
        }

    def for_people(self, style: Style, most: int | None = None) -> str:
        """The points as a table; the first so many of them."""
        lines = [
            [
                *(text.quantity(value, "") for value in (*point.by, point.x)),
                str(point.samples),
                *(str(count or "-") for count in (point.missing, point.failed)),
                *(("-",) * 3 if point.interval is None else text.estimate(*point.interval, summary.unit_of(self.y))),
            ]
            for point in self.points[:most]
        ]
        more = len(self.points) - len(lines)
        head = [*self.by, self.x, "n", "missing", "failed", "mean", "from", "to"]
        parts = [style.bold(f"{self.y} over {self.x}"), "", text.table(head, lines, left=len(self.by) + 1)]
        parts += [f"... and {more} more"] if more else []
        parts += ["", style.dim(self.method)]
        parts += [style.dim(self.left_out)] if self.left_out else []
        return "\n".join(parts)

    def figure(self) -> Any:
        """The graph as a plotly figure; ``.show()`` opens it, in a notebook it appears by itself."""
        import plotly.graph_objects as go

        from careof.plot.means import interactive

        return go.Figure(interactive(self))

    def save(self, path: str | Path) -> Path:
        """Draw the graph into a file, SVG, PNG or PDF by its name; the same means give the same bytes.

        Raises:
            OutputError: it cannot be written, or not in that form.
        """
        from careof.plot.means import save

        return save(self, path)


def means(
    table: pa.Table,
    y: str,
    x: str | None = None,
    by: str | Sequence[str] = (),
    *,
    ci: str = "student",
    where: Mapping[str, object] | Sequence[str] = (),
) -> Means:
    """Means of `y` for each value of `x` and each curve of `by`; see :meth:`careof.Sweep.means`."""
    if ci not in METHODS:
        raise InputError(f"there is no confidence interval {ci!r}", hint=f"one of {', '.join(METHODS)}")
    varied = varied_in(table.schema)
    _refuse_unknown(table.schema, y)
    if x is None:
        if len(varied) != 1:
            raise InputError("x is not given", hint=f"one of {', '.join(varied) or 'the columns'}")
        x = varied[0]
    curves = (by,) if isinstance(by, str) else tuple(by)
    for name in (x, *curves):
        _refuse_unknown(table.schema, name)
    if not _is_numeric(table.schema.field(y).type):
        numeric = [field.name for field in table.schema if _is_numeric(field.type)]
        raise InputError(f"{y} holds no numbers", hint=f"columns that do: {', '.join(numeric)}")
    if len({x, *curves}) <= len(curves):
        raise InputError(f"columns stand there twice: {', '.join((x, *curves))}", hint="name each once")
    table = _where(table, where)
    mixed = [key for key in varied if key not in (x, *curves) and len(table[key].unique()) > 1]
    if mixed:
        values = ", ".join(str(one) for one in table[mixed[0]].unique().to_pylist())
        raise InputError(
            f"{mixed[0]} varies too ({values}): a mean over it would say nothing of any",
            hint=f"tell them apart with by ({mixed[0]}), or keep one with where ({mixed[0]}=...)",
        )
    return _means(table, y, x, curves, ci)


def _means(table: pa.Table, y: str, x: str, by: tuple[str, ...], ci: str) -> Means:
    names = list(dict.fromkeys([*by, x, y, "run", "flow", "error"]))
    columns = {name: table[name].to_pylist() for name in names}
    flows_apart = "flow" in (x, *by)
    cells: dict[Key, dict[Any, list[Any]]] = {}
    failed: dict[Key, int] = {}
    # A run that failed has no flow: where flows are told apart it counts for each of its cell.
    known_flows = list(dict.fromkeys(flow for flow in columns["flow"] if flow is not None))
    for row in range(table.num_rows):
        key = tuple(columns[name][row] for name in (*by, x))
        if columns["error"][row] is None:
            cells.setdefault(key, {}).setdefault(columns["run"][row], []).append(columns[y][row])
            continue
        for flow in known_flows if flows_apart and known_flows else [None]:
            mine = tuple(
                flow if name == "flow" and flow is not None else value
                for name, value in zip((*by, x), key, strict=True)
            )
            failed[mine] = failed.get(mine, 0) + 1
    order = _order(columns, by, x, known_flows)
    points = [
        _point(key, cells.get(key, {}), failed.get(key, 0), ci, (y, x, *by))
        for key in sorted({*cells, *failed}, key=order)
    ]
    flows = max((len(values) for runs in cells.values() for values in runs.values()), default=1)
    positions, unit = positions_of(list(dict.fromkeys(point.x for point in points)))
    if positions is not None:
        places = positions
        points.sort(key=lambda point: (order((*point.by, point.x))[:-1], places[point.x]))
    return Means(y, x, by, ci, points, positions, unit, flows)


def _order(columns: dict[str, list[Any]], by: tuple[str, ...], x: str, flows: list[str]) -> Any:
    """Keys stand in the order in which their values come in the table, that of the grid."""
    ranks = []
    for name in (*by, x):
        values = flows if name == "flow" else list(dict.fromkeys(columns[name]))
        ranks.append({value: rank for rank, value in enumerate(values)})
    return lambda key: tuple(rank.get(value, len(rank)) for rank, value in zip(ranks, key, strict=True))


def _point(key: Key, runs: dict[Any, list[Any]], failed: int, ci: str, names: tuple[str, ...]) -> Point:
    samples = []
    for values in runs.values():
        there = [float(value) for value in values if value is not None]
        if there:
            samples.append(math.fsum(there) / len(there))
    name = "\n".join([*names, *map(str, key)])
    found = interval(np.array(samples), ci, name) if samples else None
    return Point(key[:-1], key[-1], len(samples), len(runs) - len(samples), failed, found)


def positions_of(values: Iterable[Any]) -> tuple[dict[Any, float] | None, str]:
    """Where values are on a numeric axis, and its unit; None where they are words, or of several units."""
    positions: dict[Any, float] = {}
    units = set()
    for value in values:
        if isinstance(value, bool) or value is None:
            return None, ""
        if isinstance(value, (int, float)):
            positions[value] = float(value)
            units.add("")
            continue
        match = _QUANTITY.fullmatch(value)
        unit = _UNITS.get(match[2]) if match else None
        if match is None or unit is None:
            return None, ""
        positions[value] = float(match[1].replace("_", "")) * unit[1]
        units.add(unit[0])
    return (positions, units.pop()) if len(units) == 1 else (None, "")


def _where(table: pa.Table, where: Mapping[str, object] | Sequence[str]) -> pa.Table:
    import pyarrow.compute as pc

    for name, wanted in _pairs(where):
        _refuse_unknown(table.schema, name)
        column = table[name]
        known = column.unique().to_pylist()
        chosen = [value for value in known if value == wanted or _shown(value) == str(wanted)]
        if not chosen:
            there = ", ".join(_shown(value) for value in known[:20])
            raise InputError(f"no row has {name}={wanted}", hint=f"it is one of {there}")
        kept = pc.is_in(column, value_set=pa.array(chosen, column.type))
        if name == "flow":
            # A run that failed has none, and failed for this one as well.
            kept = pc.or_(kept, pc.is_valid(table["error"]))
        table = table.filter(kept)
    return table


def _pairs(where: Mapping[str, object] | Sequence[str]) -> list[tuple[str, object]]:
    if isinstance(where, Mapping):
        return list(where.items())
    pairs: list[tuple[str, object]] = []
    for one in [where] if isinstance(where, str) else where:
        name, equals, value = one.partition("=")
        if not equals:
            raise InputError(f"where {one!r}: expected column=value", hint="for example flow=download")
        pairs.append((name.strip(), value.strip()))
    return pairs


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refuse_unknown(schema: pa.Schema, name: str) -> None:
    if name not in schema.names:
        hint = did_you_mean(name, schema.names, f"columns: {', '.join(schema.names)}")
        raise InputError(f"the table has no column {name!r}", hint=hint)


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))
