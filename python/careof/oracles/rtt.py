"""Series of round trips, measured and made, through the estimators of the retransmission timeout."""

from __future__ import annotations

import csv
import itertools
import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from careof import native
from careof.errors import InputError
from careof.oracles.parallel import in_parallel
from careof.text import printable, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from careof.text import Style

Json = dict[str, Any]

ENOUGH = 50
"""A series with fewer round trips says nothing about an estimator."""

COLUMNS: Final = (
    ("t_s", 1.0, "rtt_ms", 1e-3),
    ("relative", 1.0, "rtt", 1e-3),
    ("t_ms", 1e-3, "owd_ms", 2e-3),
    ("t_s", 1.0, "ping_avg_ms", 1e-3),
)
"""Column of the time and of the round trip, each with how many seconds one of it is. A one-way delay counts twice."""


class Comparison(NamedTuple):
    """A row for each series, floor and estimator."""

    rows: list[Json]
    skipped: list[str]
    """What was not read, with the reason."""

    @property
    def worse(self) -> list[str]:
        """Measured series in which the estimator that follows falls has more timeouts too short than RFC 6298's has."""
        return sorted({fast["series"] for fast, plain in self._pairs() if fast["exceeding"] > plain["exceeding"]})

    def _pairs(self) -> Iterable[tuple[Json, Json]]:
        plain = {(row["series"], row["floor_s"]): row for row in self.rows if row["estimator"] == "rfc6298"}
        for row in self.rows:
            if row["estimator"] == "fast-decrease" and row["measured"]:
                yield row, plain[row["series"], row["floor_s"]]

    @property
    def exit_status(self) -> int:
        """0: on no measured series is following falls worse than RFC 6298; 1: on some it is."""
        return 1 if self.worse else 0

    def for_people(self, style: Style) -> str:
        """A table, what was skipped, and a line that sums up."""
        headers = ("series", "floor", "estimator", "samples", "too short", "per 1000", "waste", "steps down", "settled")
        parts = [table(headers, [_cells(row) for row in self.rows], left=3)]
        if self.skipped:
            parts.append("\n".join([style.bold("Not read"), *map(printable, self.skipped)]))
        return "\n\n".join([*parts, self.summary()])

    def summary(self) -> str:
        """What following falls costs and brings."""
        pairs = list(self._pairs())
        measured = len({fast["series"] for fast, _ in pairs})
        more = sum(fast["exceeding"] - plain["exceeding"] for fast, plain in pairs)
        cost = f"{measured} measured series: fast-decrease has {more:+d} timeouts too short beside rfc6298"
        if not measured:
            cost = "no measured series"
        steps = [
            row for row in self.rows if not row["measured"] and row["floor_s"] is not None and row["steps_down"] == 1
        ]
        longest: dict[str, float] = {}
        for row in steps:
            trips = row["settled_after_round_trips"] or math.inf
            longest[row["estimator"]] = max(trips, longest.get(row["estimator"], 0.0))
        settled = [f"{name} {trips:.0f}" for name, trips in longest.items()]
        return f"{cost}; round trips until the RTO is at most two of the new ones, at most: {', '.join(settled)}"


def _cells(row: Json) -> tuple[str, ...]:
    after, trips = row["settled_after_s"], row["settled_after_round_trips"]
    none = "none" if row["steps_down"] else "-"
    settled = none if after is None else f"{after * 1000:.4g} ms, {trips:.1f} trips"
    missed = row["steps_down"] - row["settled"]
    return (
        row["series"],
        "own" if row["floor_s"] is None else f"{row['floor_s'] * 1000:g} ms",
        row["estimator"],
        str(row["samples"]),
        str(row["exceeding"]),
        "-" if row["exceeding_per_1000"] is None else f"{row['exceeding_per_1000']:.2f}",
        "-" if row["waste_s"] is None else f"{row['waste_s'] * 1000:.1f} ms",
        str(row["steps_down"]),
        f"{settled} ({missed} not)" if missed and after is not None else settled,
    )


def compare(directory: Path | None, progress: Callable[[float, float], None]) -> Comparison:
    """The series made here and those of a directory, through every estimator.

    Raises:
        InputError: there is no such directory, or no series in it.
    """
    measured, skipped = series_in(directory) if directory is not None else ([], [])
    made = native.round_trip_steps()
    rows = in_parallel(native.judge_round_trips, [*made, *measured], progress)
    found = list(itertools.chain.from_iterable(rows[: len(made)]))
    theirs = list(itertools.chain.from_iterable(rows[len(made) :]))
    return Comparison(
        [{**row, "measured": False} for row in found] + [{**row, "measured": True} for row in theirs], skipped
    )


def series_in(directory: Path) -> tuple[list[Json], list[str]]:
    """The series of round trips in a directory and below it, and what could not be read.

    Raises:
        InputError: there is no such directory, or no series in it.
    """
    if not directory.is_dir():
        problem = "is no directory" if directory.exists() else "does not exist"
        raise InputError(f"{directory} {problem}", hint="give one with series, *.csv, or none for those made here")
    series: list[Json] = []
    skipped: list[str] = []
    for path in sorted(directory.rglob("*.csv")):
        try:
            samples = read(path)
        except (OSError, ValueError) as error:
            skipped.append(f"{path.name}: {error}")
            continue
        if samples is not None and len(samples) < ENOUGH:
            skipped.append(f"{path.name}: {len(samples)} round trips, fewer than {ENOUGH}")
        elif samples is not None:
            series.append({"name": path.stem, "samples": samples})
    if not series:
        raise InputError(
            f"{directory} holds no series of round trips",
            hint="a table *.csv with the columns t_s and rtt_ms, a row a segment in the order in which they left",
        )
    return series, skipped


def read(path: Path) -> list[tuple[float, float]] | None:
    """Seconds when each segment left and how long its acknowledgement took; ``None``: no table of round trips.

    Segments without an acknowledgement, which have a negative round trip or none, are left out.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no text, or a number is none.
    """
    with path.open(encoding="utf-8", newline="") as file:
        table_of = csv.DictReader(line for line in file if not line.startswith("#"))
        present = set(table_of.fieldnames or ())
        known = next((columns for columns in COLUMNS if {columns[0], columns[2]} <= present), None)
        if known is None:
            return None
        at, at_scale, took, took_scale = known
        samples: list[tuple[float, float]] = []
        for row in table_of:
            when, long = row[at], row[took]
            if when and long and float(long) >= 0:
                samples.append((float(when) * at_scale, float(long) * took_scale))
    return samples
