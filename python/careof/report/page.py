"""A page that holds everything it shows, works from disk and asks no network for anything."""

from __future__ import annotations

import json
from html import escape
from importlib import resources
from string import Template
from typing import TYPE_CHECKING

from careof import native, summary
from careof.plot.series import heights
from careof.report.drawing import Drawing
from careof.staging import EVENTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from careof.plot.series import CloseUp, Panel

STYLE = ("page.css", "graph.css")
"""How pages look, file after file."""
VIEWER = ("graph.js", "viewer.js")
"""The scripts that draw a :class:`~careof.report.drawing.Drawing`."""

_TALL = ("time-sequence", "since-handover")

_EXPLAINED = {
    "time-sequence": "What the sender sent and what came back, at the sender. Zoom in and segments become as high "
    "as they are long. Yellow are handovers until the new path was ready, red the times in which the application "
    "waited and got nothing. Grey is the end of the window that the receiver offers; a cross is a dropped segment.",
    "cwnd": "What the sender allows itself (cwnd), where slow start ends (ssthresh) and what is under way (flight).",
    "rtt": "The sender's smoothed round-trip time, and how long it waits for an ACK before it sends again.",
    "since-handover": "Time and sequence once the new path was ready, in each run counted from what was "
    "acknowledged then: what one was ahead before is left out.",
    "delivered": "What the receiving application has got, and how far the two runs are apart in it.",
    "queues": "Packets waiting before each one-way link; the packet being sent is not among them.",
}

HOW = (
    "Drag to zoom, double-click for the whole run, Shift and drag to move; on a touch screen drag and pinch. With the "
    "graph in focus the keys are ← → + - 0. A name above a graph hides its curve."
)
"""How the graphs are used."""


class Page:
    """A page under construction: sections in order, and the figures they hold."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._sections: list[str] = []
        self._drawing = Drawing()

    def begin_with(self, body: str) -> None:
        """What stands first, without a heading."""
        self._sections.insert(0, f'<section class="first">{body}</section>')

    def add(self, heading: str, body: str, *, beside: bool = False) -> None:
        """A section, below the one before; or beside it where there is room, if both are such."""
        kind = ' class="beside"' if beside else ""
        self._sections.append(f"<section{kind}><h2>{escape(heading)}</h2>{body}</section>")

    def figure(self, panel: Panel) -> str:
        """The place of a graph. The page's script draws it there."""
        head = f"<h3>{escape(panel.title)}</h3>"
        if not panel.series:
            return f"{head}<p>There is nothing to show.</p>"
        place = self._drawing.add(panel)
        tall = " tall" if panel.key in _TALL else ""
        words = escape(_EXPLAINED.get(panel.key, ""))
        return f'{head}<div id="{place}" class="figure{tall}"></div><p class="note">{words}</p>'

    def view(self, label: str, from_s: float, to_s: float, close_up: CloseUp | None = None) -> None:
        """A stretch of time that one button shows in all graphs; around a handover, with its sequence numbers."""
        ranges = {
            place: heights(panel, close_up)
            for place, panel in self._drawing.panels()
            if panel.key == "time-sequence" and close_up is not None
        }
        self._drawing.view(label, from_s, to_s, ranges)

    def open_with(self, view: int) -> None:
        """The view that the page begins with, counted from 0; without, the first."""
        self._drawing.open_with(view)

    def html(self, head: str) -> str:
        """The whole page."""
        viewer = ""
        drawn, packed = self._drawing.packed()
        if drawn["figures"]:
            data = json.dumps(drawn, separators=(",", ":")).replace("</", "<\\/")
            fewer = any(series["points"] < series["of"] for figure in drawn["figures"] for series in figure["series"])
            more = (
                f" This page holds at most {packed.limit:,} points of a curve: of longer ones what sticks out "
                f"was kept, all of it is in {EVENTS}."
                if fewer
                else ""
            )
            self.add("How to use the graphs", f"<p>{escape(HOW + more)}</p>")
            viewer = (
                "<noscript><p>The graphs are drawn by JavaScript.</p></noscript>"
                f'<script type="application/json" id="drawn">{data}</script>'
                f'<script type="text/plain" id="curves">{packed.block}</script>'
                + "".join(f"<script>{resource(name)}</script>" for name in (*VIEWER, "report.js"))
            )
        return Template(resource("page.html")).substitute(
            title=escape(self._title),
            style="".join(map(resource, STYLE)),
            head=head,
            sections="".join(self._sections),
            viewer=viewer,
        )


def label(key: str) -> str:
    """A metric's key as words, without the unit that the value carries."""
    for ending in ("_bps", "_s", "_bytes"):
        key = key.removesuffix(ending)
    return key.replace("_", " ")


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """An HTML table of ready cells. A row of one cell is a heading of those below it."""
    heads = list(heads)
    head = "".join(f"<th>{cell}</th>" for cell in heads)
    body = "".join(_row(list(row), len(heads)) for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def titled(key: str, words: str, meaning: str) -> str:
    """A name that says what it means when it is pointed at."""
    return f'<span title="{escape(meaning)}">{escape(words or label(key))}</span>'


def meanings(section: str) -> dict[str, str]:
    """What the metrics of a section of the summary mean."""
    return {one["key"]: one["definition"] for one in native.metric_definitions() if one["section"] == section}


def cell(key: str, value: object) -> str:
    """A metric's value for a table."""
    return escape(summary.value(key, value))


def _row(cells: list[str], columns: int) -> str:
    if len(cells) == 1 and columns > 1:
        return f'<tr class="group"><th colspan="{columns}">{cells[0]}</th></tr>'
    return f"<tr>{''.join(f'<td>{one}</td>' for one in cells)}</tr>"


def resource(name: str) -> str:
    """A file of the report's own: a style, a script."""
    return (resources.files(__name__.rpartition(".")[0]) / name).read_text(encoding="utf-8")
