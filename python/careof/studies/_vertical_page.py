"""The figures of the study `vertical` as PNG, and the page that holds them with the rows."""

from __future__ import annotations

import base64
import json
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from careof.plot.interactive import page_figure
from careof.plot.look import SHADE, look
from careof.plot.series import Panel, Role, Shape, Span
from careof.studies._pictures import as_png
from careof.studies._vertical_figures import Chart, Ladder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from careof.native import Json
    from careof.plot.series import Series
    from careof.studies import Study, Table
    from careof.studies._pictures import Picture
    from careof.studies._vertical_figures import Arrow

_OLD, _NEW = "#d55e00", "#0072b2"
_MARKS = {"circle": "o", "diamond": "D"}
_BYTES = "bytes"


def png(figure: Chart | Ladder) -> bytes:
    """The figure as a picture; the same figure gives the same bytes."""
    picture = Figure(figsize=(10, 5.4) if isinstance(figure, Chart) else (9, 11), layout="constrained")
    FigureCanvasAgg(picture)
    if isinstance(figure, Chart):
        _draw_chart(picture.add_subplot(), figure)
    else:
        _draw_ladder(picture.add_subplot(), figure)
    picture.suptitle(f"{figure.number}  {figure.title}", fontsize=12)
    picture.supxlabel(f"In the thesis: {figure.note}", fontsize=8, color="#555555")
    return as_png(picture)


def page(
    study: Study, scenario: str, figures: Sequence[tuple[Chart | Ladder, bytes]], pictures: Sequence[Picture] = ()
) -> str:
    """One self-contained page: rows, words, every figure to zoom into beside its picture, and what is beyond them."""
    drawn: list[Json] = []
    sections = [_section("Rows", _rows(study) + _words(study.text))]
    for figure, picture in figures:
        image = _image(figure.title, picture)
        body = f"<p>In the thesis: {escape(figure.note)}</p>"
        if isinstance(figure, Chart):
            place = f"figure-{figure.number}"
            drawn.append(_interactive(figure) | {"place": place})
            body += f'<div id="{place}" class="figure tall"></div>'
            body += f"<details><summary>As a picture</summary>{image}</details>"
        else:
            body += image
        sections.append(_section(f"Figure {figure.number}: {figure.title}", body))
    if study.tables:
        drawings = "".join(_image(one.title, one.png) for one in pictures)
        sections.append(_section("What the thesis left as future work", drawings + "".join(map(_table, study.tables))))
    sections.append(_section("The scenario of the first run", f"<pre>{escape(scenario)}</pre>"))
    data = json.dumps(drawn, separators=(",", ":")).replace("</", "<\\/")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(study.title)}</title><style>{_style()}</style></head>\n"
        f"<body><header><h1>{escape(study.title)}</h1></header><main>{''.join(sections)}</main>"
        f'<script type="application/json" id="drawn">{data}</script>'
        f"<script>{_plotly()}</script><script>{_DRAW}</script></body></html>\n"
    )


_DRAW = """
for (const figure of JSON.parse(document.getElementById("drawn").textContent)) {
  Plotly.newPlot(figure.place, figure.data, figure.layout, {responsive: true, displaylogo: false});
}
document.body.dataset.drawn = "yes";
"""

_OWN_STYLE = """
img { max-width: 100%; height: auto; }
td.no { font-weight: bold; color: #b00020; }
"""


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def _image(title: str, picture: bytes) -> str:
    return f'<img alt="{escape(title)}" src="data:image/png;base64,{base64.b64encode(picture).decode()}">'


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(word)}</th>" for word in table.head)
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for line in table.lines)
    body = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'
    return f"<h3>{escape(table.title)}</h3>{body}{_words(table.text)}"


def _words(text: str) -> str:
    """Paragraphs, and lists of lines that begin with a dash."""
    parts = []
    for paragraph in filter(None, text.split("\n\n")):
        if paragraph.startswith("- "):
            items = "".join(f"<li>{escape(line.removeprefix('- '))}</li>" for line in paragraph.splitlines())
            parts.append(f"<ul>{items}</ul>")
        else:
            parts.append(f"<p>{escape(paragraph)}</p>")
    return "".join(parts)


def _rows(study: Study) -> str:
    lines = []
    for row in study.rows:
        lines.append(_line(row.id, row.what, row.paper, row.ours, (row.low, row.high), match=row.match))
        lines += [
            _line("", part["what"], part["paper"], part["ours"], (part["low"], part["high"]), match=part["match"])
            for part in row.parts
        ]
    head = "".join(f"<th>{word}</th>" for word in ("id", "what", "thesis", "ours", "band", "match"))
    remarks = "".join(
        f"<p><strong>{row.id}</strong>: {escape(row.explanation)}</p>" for row in study.rows if row.explanation
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    return f'<div class="scroll">{table}</div>{remarks}'


def _line(
    name: str,
    what: str,
    paper: object,
    ours: object,
    band: tuple[float | None, float | None],
    *,
    match: bool | None,
) -> str:
    verdict = "-" if match is None else "yes" if match else "NO"
    bounds = "-" if band == (None, None) else f"{_shown(band[0])} .. {_shown(band[1])}"
    cells = [name, what, _shown(paper), _shown(ours), bounds]
    kind = ' class="no"' if match is False else ""
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}<td{kind}>{verdict}</td></tr>"


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)


def _interactive(chart: Chart) -> Json:
    spans = [Span(mark.start_s, mark.end_s, mark.text) for mark in chart.marks]
    panel = Panel(chart.number, chart.title, _BYTES, chart.series, spans, end_s=chart.end_s, start_s=chart.start_s)
    ready = page_figure(panel)
    layout: dict[str, Any] = ready["layout"]
    layout["xaxis"] = layout["xaxis"] | {"range": [chart.start_s, chart.end_s], "title": {"text": chart.x_title}}
    layout["yaxis"] = layout["yaxis"] | {"range": list(_height(chart)), "rangemode": "normal"}
    layout["yaxis2"] = {
        "title": {"text": "RTO (s)"},
        "overlaying": "y",
        "side": "right",
        "rangemode": "tozero",
        "tickmode": "auto",
        "showgrid": False,
    }
    layout["margin"] = layout["margin"] | {"r": 60}
    for trace, series in zip(ready["data"], chart.series, strict=True):
        if series.role is Role.RTO:
            trace["yaxis"] = "y2"
    return {"data": ready["data"], "layout": layout}


def _height(chart: Chart) -> tuple[float, float]:
    """What of the axis of bytes the chart's stretch of time needs."""
    tops, bottoms = [], []
    for series in chart.series:
        inside = (series.x >= max(chart.start_s, 0.0)) & (series.x <= chart.end_s)
        if series.role in {Role.DATA, Role.RETRANSMISSION, Role.ACK} and inside.any():
            tops.append(float(series.y[inside].max()))
            bottoms.append(float(series.y[inside].min()))
    top, bottom = max(tops, default=1.0), min(bottoms, default=0.0)
    top = top if chart.top is None else chart.top
    room = 0.04 * (top - bottom)
    return bottom - room, top + 3 * room


def _draw_chart(axis: Any, chart: Chart) -> None:
    right = axis.twinx() if any(series.role is Role.RTO for series in chart.series) else None
    for position, series in enumerate(chart.series):
        _draw_series(right if right is not None and series.role is Role.RTO else axis, series, position)
    axis.set_xlim(chart.start_s, chart.end_s)
    axis.set_ylim(*_height(chart))
    axis.set_xlabel(chart.x_title)
    axis.set_ylabel(_BYTES)
    axis.ticklabel_format(style="plain", axis="y")
    axis.grid(color="#e8e8e8", linewidth=0.6)
    axis.set_axisbelow(True)
    handles, labels = axis.get_legend_handles_labels()
    if right is not None:
        right.set_ylabel("RTO (s)")
        seen = [
            series.y[(series.x >= chart.start_s) & (series.x <= chart.end_s)].max(initial=0.0)
            for series in chart.series
            if series.role is Role.RTO
        ]
        right.set_ylim(0, max(*seen, 0.1) * 1.15)
        more, names = right.get_legend_handles_labels()
        handles, labels = handles + more, labels + names
    axis.legend(handles, labels, loc="lower left", bbox_to_anchor=(0, 1), ncols=len(labels), frameon=False, fontsize=8)
    for number, mark in enumerate(chart.marks):
        height = 0.97 - 0.07 * number
        axis.axvspan(mark.start_s, mark.end_s, color=SHADE, alpha=0.25, zorder=0)
        axis.annotate(
            mark.text,
            (max(mark.start_s, chart.start_s), height),
            xycoords=("data", "axes fraction"),
            xytext=(4, 0),
            textcoords="offset points",
            va="top",
            fontsize=9,
            color="#6b5500",
        )


def _draw_series(axis: Any, series: Series, position: int) -> None:
    style = look(series, position)
    if series.shape is Shape.STEPS:
        axis.step(series.x, series.y, where="post", color=style.colour, linewidth=style.width, label=series.name)
        return
    mark = _MARKS.get(style.mark, "o")
    axis.plot(
        series.x, series.y, linestyle="none", marker=mark, markersize=style.size * 0.8, color=style.colour,
        markeredgewidth=0, label=series.name,
    )  # fmt: skip


def _draw_ladder(axis: Any, ladder: Ladder) -> None:
    for arrow in ladder.arrows:
        _draw_arrow(axis, arrow)
    end = max((arrow.arrived_s for arrow in ladder.arrows), default=1.0)
    for x, name, side in ((0.0, ladder.left, "right"), (1.0, ladder.right, "left")):
        axis.axvline(x, color="#222222", linewidth=1.2)
        axis.annotate(name, (x, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 4), textcoords="offset points",
                      ha=side, fontsize=10)  # fmt: skip
    axis.set_xlim(-0.02, 1.02)
    axis.set_ylim(end * 1.02, min((arrow.sent_s for arrow in ladder.arrows), default=0.0) - 0.1)
    axis.set_ylabel(_SINCE)
    axis.set_xticks([])
    for side in ("top", "right", "bottom"):
        axis.spines[side].set_visible(False)
    for link, colour in zip(ladder.links, (_OLD, _NEW), strict=True):
        axis.plot([], [], color=colour, label=link)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, 1.05), ncols=2, frameon=False, fontsize=9)


_SINCE = "time since the handover (s)"


def _draw_arrow(axis: Any, arrow: Arrow) -> None:
    start, end = (0.0, 1.0) if arrow.to_right else (1.0, 0.0)
    colour = _OLD if arrow.old else _NEW
    width = 1.6 if arrow.text.startswith("segment") else 0.8
    axis.annotate(
        "",
        (end, arrow.arrived_s),
        xytext=(start, arrow.sent_s),
        arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": width, "shrinkA": 0, "shrinkB": 0},
        annotation_clip=False,
    )
    share = 0.86
    axis.annotate(
        arrow.text,
        (start + (end - start) * share, arrow.sent_s + (arrow.arrived_s - arrow.sent_s) * share),
        ha="center",
        va="bottom",
        fontsize=6.5,
        color=colour,
    )


def _style() -> str:
    return (resources.files("careof.report") / "page.css").read_text(encoding="utf-8") + _OWN_STYLE


def _plotly() -> str:
    return (resources.files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
