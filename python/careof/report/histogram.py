"""A histogram as a drawing of bars."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from careof import text

if TYPE_CHECKING:
    from careof.native import Json

_WIDTH, _HEIGHT, _FOOT = 640, 120, 18
_STEPS = 8
"""Bars to a doubling at most: the buckets of the summary are four times as many."""


def histogram(one: Json) -> str:
    """Bars of the part of the samples at each length, on a logarithmic axis; nothing of samples that are all zero."""
    bars = _bars(one)
    if not bars:
        return ""
    first, last = min(bars), max(bars) + 1
    most = max(bars.values())
    width = _WIDTH / (last - first)
    drawn = []
    for place, samples in sorted(bars.items()):
        height = _HEIGHT * samples / most
        part = f"{samples:,} from {_length(place)} to {_length(place + 1)}"
        drawn.append(
            f'<rect x="{(place - first) * width:.1f}" y="{_HEIGHT - height:.1f}" width="{max(width - 0.5, 0.5):.1f}" '
            f'height="{height:.1f}" fill="currentColor"><title>{escape(part)}</title></rect>'
        )
    name = f"{one['quantity']} of {one['flow']}"
    foot = _HEIGHT + _FOOT - 4
    ends = (
        f'<text x="0" y="{foot}">{escape(_length(first))}</text>'
        f'<text x="{_WIDTH}" y="{foot}" text-anchor="end">{escape(_length(last))}</text>'
    )
    return (
        f'<figure><figcaption>{escape(name)}</figcaption><svg viewBox="0 0 {_WIDTH} {_HEIGHT + _FOOT}" width="100%" '
        f'role="img" aria-label="histogram of the {escape(name)}" fill="currentColor" font-size="11">'
        f"{''.join(drawn)}{ends}</svg></figure>"
    )


def _bars(one: Json) -> dict[int, int]:
    """Samples by place: the eighths of doublings of a nanosecond."""
    bars: dict[int, int] = {}
    for bucket in one["buckets"]:
        middle = (bucket["from_s"] + bucket["to_s"]) / 2 * 1e9
        if bucket["from_s"] > 0:
            place = math.floor(math.log2(middle) * _STEPS)
            bars[place] = bars.get(place, 0) + int(bucket["samples"])
    return bars


def _length(place: int) -> str:
    return text.seconds(2 ** (place / _STEPS) / 1e9)
