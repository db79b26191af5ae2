"""Colours and marks, the same in every renderer. The colours are told apart by colour-blind eyes too."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from careof.plot.series import Role

if TYPE_CHECKING:
    from careof.plot.series import Series


class Look(NamedTuple):
    """How a series is drawn."""

    colour: str
    width: float = 1.4
    """Of a line, in points."""
    mark: str = "circle"
    """A plotly symbol; the static renderer has its own word for each."""
    size: float = 4.0
    """Of a mark, in points."""


_ROLES = {
    Role.DATA: Look("#0072b2"),
    Role.RETRANSMISSION: Look("#d55e00", mark="diamond", size=6),
    Role.ACK: Look("#009e73"),
    Role.WINDOW: Look("#b8b8b8", width=1.0),
    Role.DROP: Look("#111111", mark="x", size=6),
    Role.TIMEOUT: Look("#cc0000", mark="triangle-up", size=9),
    Role.CWND: Look("#0072b2", width=1.8),
    Role.SSTHRESH: Look("#d55e00", width=1.2),
    Role.FLIGHT: Look("#a6c8dd", width=1.2),
    Role.RTT: Look("#0072b2", width=1.8),
    Role.RTO: Look("#d55e00", width=1.8),
    Role.DELIVERED: Look("#0072b2", width=1.8),
    Role.APART: Look("#111111", width=1.0),
}
CYCLE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#8a6d00", "#111111", "#7f7f7f")
"""Of curves that stand for nothing in particular."""
# The second of two runs laid over each other.
_OTHER = {
    Role.DATA: "#cc79a7",
    Role.RETRANSMISSION: "#8a6d00",
    Role.ACK: "#7f3f98",
    Role.WINDOW: "#d8c8d8",
    Role.DROP: "#7f7f7f",
    Role.TIMEOUT: "#ff5fa2",
    Role.CWND: "#cc79a7",
    Role.SSTHRESH: "#8a6d00",
    Role.FLIGHT: "#e8c6d9",
    Role.RTT: "#cc79a7",
    Role.RTO: "#8a6d00",
    Role.DELIVERED: "#cc79a7",
}
SHADE = "#f0c94d"
"""Of the time until a handover's new path is ready."""
STALL_SHADE = "#e7b5a3"
"""Of the time that a flow then takes to use it."""

_DARK = {
    "#0072b2": "#4ea8de",
    "#d55e00": "#f5914d",
    "#009e73": "#3cc49a",
    "#cc79a7": "#e39cc4",
    "#56b4e9": "#8fd0f7",
    "#8a6d00": "#d1ab2e",
    "#111111": "#f2f2f2",
    "#7f7f7f": "#a6a6a6",
    "#cc0000": "#ff6b6b",
    "#7f3f98": "#bd8fd4",
    # Pale on white, and as pale on black.
    "#b8b8b8": "#6f6f6f",
    "#a6c8dd": "#41708c",
    "#d8c8d8": "#6e5f6e",
    "#e8c6d9": "#80536e",
}


def look(series: Series, position: int) -> Look:
    """How to draw the series at this position of its panel."""
    if series.role is Role.QUEUE:
        return Look(CYCLE[position % len(CYCLE)])
    mine = _ROLES[series.role]
    return mine if series.run == 0 else mine._replace(colour=_OTHER[series.role])


def dark(colour: str) -> str:
    """The colour that stands for another one on a dark ground."""
    return _DARK.get(colour, colour)
