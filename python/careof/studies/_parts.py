"""The figures of a row that has several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from careof.studies import Row

if TYPE_CHECKING:
    from collections.abc import Sequence


def part(
    what: str,
    paper: float | str,
    ours: float | str,
    low: float | None = None,
    high: float | None = None,
    *,
    match: bool | None = None,
) -> dict[str, Any]:
    """A figure of a row; with bounds it is held to them, unless a verdict is given."""
    if match is None and isinstance(ours, float) and (low is not None or high is not None):
        match = (low is None or ours >= low) and (high is None or ours <= high)
    return {"what": what, "paper": paper, "ours": ours, "low": low, "high": high, "match": match}


def all_match(parts: Sequence[dict[str, Any]]) -> bool:
    """Whether every part that is a criterion is met."""
    return all(one["match"] is not False for one in parts)


def row_of(name: str, what: str, paper: str, parts: Sequence[dict[str, Any]], explanation: str) -> Row:
    """A row that says how many of its parts hold."""
    judged = [one for one in parts if one["match"] is not None]
    met = sum(bool(one["match"]) for one in judged)
    return Row(
        id=name,
        what=what,
        paper=paper,
        ours=f"{met} of {len(judged)} hold",
        low=None,
        high=None,
        match=all_match(parts),
        explanation=explanation,
        parts=list(parts),
    )
