"""What is to be said about all rows of the study `vertical` together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from careof.studies._vertical_runs import SETUPS

if TYPE_CHECKING:
    from careof.studies._vertical_rows import Finding, Part


def text(found: list[list[Finding]]) -> str:
    """How far the rows hang on the instant of the handover; `found` holds the rows at each instant."""
    if len(found) == 1:
        return ""
    spans = {setup.shift_s for setup in SETUPS}
    heading = (
        "The runs have no randomness, but the instant of the handover is arbitrary. Moved from the thesis's in "
        f"{len(found)} steps over one round trip ({min(spans) * 1000:.0f} ms with WaveLAN first, {max(spans):.2f} s a "
        f"segment with GSM first), {_verdict(found)} These numbers change with it:"
    )
    return "\n\n".join([heading, "\n".join(_changing(found))])


def _verdict(found: list[list[Finding]]) -> str:
    always = [rows[0].id for rows in _by_row(found) if all(row.match for row in rows)]
    never = [rows[0].id for rows in _by_row(found) if not any(row.match for row in rows)]
    rest = [
        f"{rows[0].id} at {sum(row.match for row in rows)}"
        for rows in _by_row(found)
        if rows[0].id not in {*always, *never}
    ]
    parts = [f"{', '.join(always)} match at each of them"] if always else []
    parts += [f"{', '.join(never)} at none"] if never else []
    return ", ".join([*parts, *rest]) + "."


def _changing(found: list[list[Finding]]) -> list[str]:
    lines = []
    for rows in _by_row(found):
        for same in zip(*(row.parts for row in rows), strict=True):
            values = sorted(part.shown for part in same)
            if values[0] != values[-1]:
                lines.append(f"- {rows[0].id}, {same[0].what}: {_span(same)} (thesis: {same[0].paper})")
    return lines


def _span(parts: tuple[Part, ...]) -> str:
    values = sorted(part.shown for part in parts)
    different = sorted(set(values))
    if len(different) <= _FEW:
        return ", ".join(f"{value:g} ({values.count(value)} of {len(values)})" for value in different)
    return f"{values[0]:g} to {values[-1]:g}"


_FEW = 3


def _by_row(found: list[list[Finding]]) -> list[tuple[Finding, ...]]:
    return list(zip(*found, strict=True))
