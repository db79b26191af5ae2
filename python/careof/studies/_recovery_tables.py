"""What the study `recovery` shows beside its rows: the parts of every kind's handovers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from careof.studies import Row, Table
from careof.studies._recovery_parts import MEANING, NAMES
from careof.studies._recovery_words import quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from careof.studies._recovery_kinds import Kind, Trouble
    from careof.studies._recovery_parts import Parts

_SHARES = (("median", 0.5), ("95th", 0.95))


def parts_table(troubles: Sequence[Trouble], kinds: Sequence[Kind]) -> Table:
    """Found out, registered, delivered: of each kind with the default assists, downloads and uploads."""
    rows, lines = [], []
    for kind in kinds:
        for upload in (False, True):
            wanted = (kind.id, upload, "default")
            runs = [one for one in troubles if (one.kind, one.upload, one.assist) == wanted and one.is_measured]
            parts = [parts for one in runs for parts in one.handovers]
            if not parts:
                continue
            figures = [
                [quantile([one.each_s[index] for one in parts], share) for _, share in _SHARES] for index in _PLACES
            ]
            name = f"{kind.id}, {'upload' if upload else 'download'}"
            rows.append(_row(name, parts, figures))
            lines.append([name, str(len(parts)), *(f"{_words(median)} ({_words(late)})" for median, late in figures)])
    return Table(
        title="Found out, registered, delivered",
        head=["kind", "handovers", *(f"{name}, s" for name in NAMES)],
        lines=lines,
        text=f"With the default assists: medians and, in brackets, 95th percentiles. {MEANING}",
        rows=rows,
    )


_PLACES = range(len(NAMES))


def _row(name: str, parts: Sequence[Parts], figures: Sequence[Sequence[float]]) -> Row:
    return Row(
        id=f"parts, {name}",
        what="handovers",
        paper="-",
        ours=len(parts),
        low=None,
        high=None,
        match=None,
        parts=[
            {
                "what": f"{NAMES[index]}, s, {which}",
                "paper": "-",
                "ours": _seconds(figure),
                "low": None,
                "high": None,
                "match": None,
            }
            for index in _PLACES
            for (which, _), figure in zip(_SHARES, figures[index], strict=True)
        ],
    )


def _seconds(value: float) -> float | str:
    return "never" if value == float("inf") else round(value, 3)


def _words(value: float) -> str:
    return "never" if value == float("inf") else f"{value:.3f}"
