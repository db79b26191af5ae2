"""Panels as plotly figures: for notebooks, and as the data of the report's viewer."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

from careof.plot.look import SHADE, STALL_SHADE, look
from careof.plot.series import Shape
from careof.plot.thin import thin

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from careof.native import Json
    from careof.plot.series import Panel, Series, Span

LIMIT = 60_000
"""Points of one series that a page carries; the viewer draws fewer of them until one zooms in."""

_POINT = 96 / 72
"""Pixels."""


def figure(panel: Panel) -> Json:
    """A plotly figure as a dictionary, its numbers as arrays."""
    return {
        "data": [_trace(series, position) for position, series in enumerate(panel.series)],
        "layout": _layout(panel),
    }


def page_figure(panel: Panel) -> Json:
    """The same figure ready for JSON, with no more points than a page should carry."""
    whole = figure(panel)
    kept = [_thinned(trace) for trace in whole["data"]]
    return {
        "key": panel.key,
        "data": [trace for trace, _ in kept],
        "layout": whole["layout"],
        "thinned": [trace["name"] for trace, fewer in kept if fewer],
    }


def _trace(series: Series, position: int) -> Json:
    style = look(series, position)
    trace: dict[str, Any] = {
        "type": "scatter",
        "name": series.name,
        "x": series.x,
        "y": series.y,
        "hovertemplate": "%{y:,.6~g} at %{x:.6f} s",
    }
    if series.shape is Shape.STEPS:
        trace["mode"] = "lines"
        trace["line"] = {"color": style.colour, "width": style.width, "shape": "hv"}
        return trace
    trace["mode"] = "markers"
    trace["marker"] = {
        "color": style.colour,
        "size": style.size * _POINT,
        "symbol": style.mark,
        "line": {"width": 0},
    }
    if series.height is not None:
        trace["customdata"] = series.height
        trace["hovertemplate"] = "%{y:,d}, %{customdata:d} bytes, at %{x:.6f} s"
    return trace


def _layout(panel: Panel) -> Json:
    return {
        "xaxis": {
            "title": {"text": "time (s)"},
            "range": [0, panel.end_s],
            "gridcolor": "#e8e8e8",
            "zeroline": False,
        },
        "yaxis": {
            "title": {"text": panel.y_title, "standoff": 10},
            "automargin": True,
            "type": "log" if panel.log_y else "linear",
            "gridcolor": "#e8e8e8",
            "zeroline": False,
            "exponentformat": "SI",
            # Where one has zoomed in, the axis follows what is in sight; a byte number's zero is of no interest then.
            "rangemode": "nonnegative" if panel.key == "time-sequence" else "normal" if panel.log_y else "tozero",
            **({"tickformat": "~g", "dtick": "D2"} if panel.log_y else {}),
        },
        "shapes": [_shade(span) for span in panel.spans],
        "annotations": [_label(span) for span in panel.spans if span.label],
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"},
        "margin": {"l": 70, "r": 20, "t": 46, "b": 44},
        "hovermode": "closest",
        "plot_bgcolor": "white",
        "paper_bgcolor": "white",
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": "#222"},
    }


def _shade(span: Span) -> Json:
    return {
        "type": "rect",
        "xref": "x",
        "yref": "paper",
        "x0": span.start_s,
        "x1": span.end_s,
        "y0": 0,
        "y1": 1,
        "fillcolor": STALL_SHADE if span.stall else SHADE,
        "opacity": 0.35,
        # A handover that takes no time on this scale is still a line.
        "line": {"color": SHADE, "width": 0 if span.stall else 1.5},
        "layer": "below",
    }


def _label(span: Span) -> Json:
    return {
        "x": span.start_s,
        "y": 1,
        "xref": "x",
        "yref": "paper",
        "text": span.label,
        "showarrow": False,
        "xanchor": "left",
        "yanchor": "top",
        "font": {"size": 11, "color": "#6b5500"},
    }


def _thinned(trace: Json) -> tuple[Json, bool]:
    kept = thin(trace["x"], trace["y"], LIMIT)
    fewer = len(kept) < len(trace["x"])
    arrays = {
        key: _packed(trace[key][kept] if fewer else trace[key]) for key in ("x", "y", "customdata") if key in trace
    }
    return trace | arrays, fewer


def _packed(values: NDArray[np.float64]) -> Json:
    """Numbers as plotly.js reads them, and in the shortest form that is exact."""
    for name in ("u2", "u4", "f4", "f8"):
        with np.errstate(invalid="ignore", over="ignore"):
            short = values.astype(f"<{name}")
        if np.array_equal(short.astype(np.float64), values):
            break
    return {"dtype": name, "bdata": base64.b64encode(short.tobytes()).decode("ascii")}
