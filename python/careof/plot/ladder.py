"""The message ladder of a handover: who said what to whom, and when."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from careof.plot.trace import Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from careof.native import Json
    from careof.plot.trace import Message, Trace

ROWS = 60
"""A ladder with more rows than this is cut."""

_ROLES = ("mobile", "foreign-agent", "home-agent")
_ROW = 40
_TOP = 46
_LEFT = 110
_LANE = 300
_RIGHT = 130


@dataclass(frozen=True)
class Ladder:
    """What was said during one handover, or before the first."""

    title: str
    start_s: float
    nodes: list[str]
    rows: list[Message | Step]
    more: int = 0
    """Rows left out."""


def ladders(trace: Trace, nodes: Sequence[Json]) -> list[Ladder]:
    """A ladder for the first registration and one for each handover; `nodes` are the resolved scenario's."""
    messages, steps = trace.messages(), trace.handover_steps() + trace.bindings()
    everything: list[Message | Step] = [*steps, *messages]
    everything.sort(key=_when)
    begins = [float(handover["at_s"]) for handover in trace.handovers]
    titles = ["Before the first handover"] if begins else ["The whole run"]
    titles += [f"Handover {number} to {one['to']}" for number, one in enumerate(trace.handovers, 1)]
    found = []
    for title, start, until in zip(titles, [0.0, *begins], [*begins, float("inf")], strict=True):
        rows = [row for row in everything if start <= _when(row) < until]
        end = _settled(rows)
        rows = [row for row in rows if _when(row) <= end]
        if any(not isinstance(row, Step) for row in rows):
            found.append(_ladder(title, start, rows, nodes))
    return found


def svg(ladder: Ladder) -> str:
    """The ladder as an SVG element."""
    lanes = {node: _LEFT + _LANE // 2 + index * _LANE for index, node in enumerate(ladder.nodes)}
    width = _LEFT + _LANE * len(ladder.nodes) + _RIGHT
    height = _TOP + _ROW * len(ladder.rows) + 16
    parts = [f'<svg class="ladder" viewBox="0 0 {width} {height}" width="{width}" role="img">']
    parts.append(f"<title>{escape(ladder.title)}</title>")
    for node, x in lanes.items():
        parts.append(_text(x, 20, node, "middle", "node"))
        parts.append(f'<line x1="{x}" y1="30" x2="{x}" y2="{height - 6}" class="lane"/>')
    for number, row in enumerate(ladder.rows):
        y = _TOP + _ROW * number + 22
        parts += _step(row, y, lanes, ladder) if isinstance(row, Step) else _message(row, y, lanes, ladder)
    parts.append("</svg>")
    return "".join(parts)


def _ladder(title: str, start: float, rows: list[Message | Step], nodes: Sequence[Json]) -> Ladder:
    involved = {node for row in rows for node in _nodes(row) if node is not None}
    # The way a registration takes: from the mobile node over a foreign agent to the home agent.
    in_order = sorted(nodes, key=lambda node: _ROLES.index(node["role"]) if node["role"] in _ROLES else len(_ROLES))
    order = [str(node["name"]) for node in in_order if node["name"] in involved]
    return Ladder(title, start, order, rows[:ROWS], max(0, len(rows) - ROWS))


def _settled(rows: list[Message | Step]) -> float:
    """When a handover is over: its last phase or change of a binding."""
    times = [row.at_s for row in rows if isinstance(row, Step)]
    return max(times) if times else float("inf")


def _step(row: Step, y: int, lanes: dict[str, int], ladder: Ladder) -> list[str]:
    x = lanes[row.node]
    # The event names the direction in which the node sends; the phase concerns the link.
    words = f"{row.cause} {row.link.removesuffix('.up')}" if row.link else row.cause
    tooltip = f"<title>{escape(row.detail)}</title>" if row.detail else ""
    return [
        f'<circle cx="{x}" cy="{y}" r="5" class="phase">{tooltip}</circle>',
        _text(x + 12, y + 4, words, "start", "phase"),
        _text(_LEFT - 8, y + 4, _clock(row.at_s, ladder.start_s), "end", "time"),
    ]


def _message(row: Message, y: int, lanes: dict[str, int], ladder: Ladder) -> list[str]:
    start = lanes[row.sender] if row.sender is not None else None
    end = lanes[row.receiver] if row.receiver is not None else None
    # A message of which only one end was seen goes half a lane: towards the side where there is room.
    if start is None and end is not None:
        start = end - _LANE // 3
    lost = end is None
    if start is None:
        return []
    if end is None:
        end = start + (_LANE // 3 if start < max(lanes.values()) or len(lanes) == 1 else -_LANE // 3)
    tip = -7 if end > start else 7
    middle = (start + end) / 2
    parts = [
        f'<line x1="{start}" y1="{y}" x2="{end}" y2="{y}" class="arrow"/>',
        f'<path d="M{end} {y}l{tip} -4v8z" class="head"/>' if not lost else _text(end, y + 5, "✕", "middle", "lost"),
        _text(middle, y - 6, row.name, "middle", "message", row.detail),
    ]
    if row.sent_s is not None:
        parts.append(_text(_LEFT - 8, y + 4, _clock(row.sent_s, ladder.start_s), "end", "time"))
    if row.received_s is not None:
        x = _LEFT + _LANE * len(lanes) + 8
        parts.append(_text(x, y + 4, _clock(row.received_s, ladder.start_s), "start", "time"))
    elif lost:
        parts.append(_text(_LEFT + _LANE * len(lanes) + 8, y + 4, "not received", "start", "time"))
    return parts


def _text(x: float, y: float, words: str, anchor: str, kind: str, tooltip: str | None = None) -> str:
    title = f"<title>{escape(tooltip)}</title>" if tooltip else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{kind}">{escape(words)}{title}</text>'


def _clock(at_s: float, start_s: float) -> str:
    after = (at_s - start_s) * 1000
    return f"{at_s:.3f} s" if after == 0 else f"+{after:,.2f} ms"


def _nodes(row: Message | Step) -> tuple[str | None, ...]:
    return (row.node,) if isinstance(row, Step) else (row.sender, row.receiver)


def _when(row: Message | Step) -> float:
    if isinstance(row, Step):
        return row.at_s
    return row.sent_s if row.sent_s is not None else row.received_s or 0.0
