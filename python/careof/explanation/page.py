"""Explanations as a section of the report: bars of what time and bytes went to, and the table."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from careof import text
from careof.explanation.parts import PARTS, named
from careof.explanation.words import LINK_HEADS, headline, link_rows, notes, part_rows, total_row

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from careof.explanation import Explained

# Of each group the hue and how light its first and its last part are: told apart by colour-blind eyes too.
_HUES = {
    "payload": (203, 100, 35, 70),
    "acknowledgements": (164, 100, 31, 31),
    "mobile-ip": (46, 95, 45, 75),
    "loss": (26, 100, 42, 72),
    "timers": (327, 45, 50, 80),
    "queueing": (0, 0, 30, 62),
    "handover": (0, 75, 35, 78),
    "other": (0, 0, 72, 90),
}
_LEAST_SHARE = 0.0005
"""What is thinner cannot be seen."""


def section(flows: Sequence[Explained]) -> str:
    """The bars and tables of some flows, as HTML."""
    from careof.report import table

    pieces = []
    for flow in flows:
        if flow.start_s is None:
            continue
        heads = ["went to", "time", "share", "bytes", "share"]
        rows = [
            [f'<i class="swatch" style="background:{colour(key)}"></i>{_titled(key, name)}', *map(escape, cells)]
            for key, name, cells in part_rows(flow)
        ]
        links = [[escape(cell) for cell in row] for row in link_rows(flow)]
        below = "".join(f'<p class="note">{escape(note)}</p>' for note in notes(flow))
        pieces.append(
            f"<h3>{escape(flow.name)}</h3><p>{escape(headline(flow))}</p>"
            f"{_bar('time', flow.time_s, text.seconds(flow.transfer_s), text.seconds)}"
            f"{_bar('bytes', flow.bytes, text.size(sum(flow.bytes.values())), text.size)}"
            f'<div class="row">{table(heads, [*rows, map(escape, total_row(flow))])}{table(LINK_HEADS, links)}</div>'
            f"{below}"
        )
    return "".join(pieces)


def colour(key: str) -> str:
    """The colour of a part: its group's, lighter from part to part."""
    part = named(key)
    group = [one.key for one in PARTS if one.group == part.group]
    hue, saturation, first, last = _HUES[part.group]
    lightness = first + (last - first) * group.index(key) / max(len(group) - 1, 1)
    return f"hsl({hue} {saturation}% {lightness:.0f}%)"


def _bar(what: str, parts: Mapping[str, float], whole: str, shown: Callable[[float], str]) -> str:
    total = sum(parts.values())
    if not total:
        return ""
    pieces = []
    for part in PARTS:
        value = parts.get(part.key, 0)
        if value / total >= _LEAST_SHARE:
            title = escape(f"{part.name}: {shown(value)}, {value / total:.1%}")
            style = f"flex-grow:{value / total:.6f};background:{colour(part.key)}"
            pieces.append(f'<i title="{title}" style="{style}"></i>')
    label = f"{what}: {whole}"
    return f'<div class="stack" role="img" aria-label="{escape(label)}"><b>{escape(label)}</b>{"".join(pieces)}</div>'


def _titled(key: str, name: str) -> str:
    part = named(key)
    meaning = " ".join(words for words in (part.time, part.bytes and f"Bytes: {part.bytes}") if words)
    return f'<span title="{escape(meaning)}">{escape(name)}</span>'
