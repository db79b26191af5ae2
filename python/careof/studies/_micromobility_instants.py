"""Instants of a trace, and means over handovers of which some have none."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from careof.studies._mean import Mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa


def seconds(events: pa.Table) -> list[float]:
    """When events happened."""
    return [instant / 1e9 for instant in events["time_ns"].to_pylist()]


def following(instants: Sequence[float], at: float) -> float:
    """The first of these, which are in order, at or after `at`; infinite without one."""
    position = bisect_left(instants, at)
    return instants[position] if position < len(instants) else float("inf")


def mean(values: Sequence[float]) -> float:
    """The mean of those that are finite; infinite if none is."""
    finite = [one for one in values if one < float("inf")]
    return Mean.of(finite).value if finite else float("inf")


def cell(value: float, digits: int) -> str:
    """A number in a table; a dash for what is infinite."""
    return "-" if value == float("inf") else f"{value:.{digits}f}"
