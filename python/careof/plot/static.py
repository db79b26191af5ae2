"""Panels as a picture, drawn by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from careof.plot.look import SHADE, STALL_SHADE, look
from careof.plot.series import Shape

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from careof.plot.series import Panel, Series

_MARKS = {"circle": "o", "diamond": "D", "x": "x", "triangle-up": "^"}
_HEIGHT_IN = {"time-sequence": 4.6}


def picture(title: str, panels: Sequence[Panel]) -> Figure:
    """The panels under each other, over one time axis."""
    heights = [_HEIGHT_IN.get(panel.key, 2.3) for panel in panels]
    figure = Figure(figsize=(10, sum(heights) + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axis, panel in zip(axes, panels, strict=True):
        _draw(axis, panel)
        axis.set_title(panel.title, loc="left", fontsize=10, fontweight="bold")
    figure.suptitle(title, fontsize=12)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write the picture as PNG; the same figure gives the same bytes."""
    figure.savefig(path, dpi=120, metadata={"Software": "careof"})


def _draw(axis: Any, panel: Panel) -> None:
    for span in panel.spans:
        shade, edge = (STALL_SHADE, 0.0) if span.stall else (SHADE, 1.0)
        axis.axvspan(span.start_s, span.end_s, color=shade, alpha=0.4, linewidth=edge, zorder=0)
        # The shades speak for themselves further down.
        axis.annotate(
            span.label if panel.key == "time-sequence" else "",
            (span.start_s, 1),
            xycoords=("data", "axes fraction"),
            xytext=(4, -4),
            textcoords="offset points",
            va="top",
            fontsize=8,
            color="#6b5500",
        )
    for position, series in enumerate(panel.series):
        _draw_series(axis, series, position)
    if panel.log_y and panel.series:
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter("{x:g}")
    elif panel.series:
        axis.set_ylim(*(panel.y_range or (0, None)))
        axis.yaxis.set_major_formatter(EngFormatter(sep=""))
    axis.set_xlim(panel.start_s, panel.end_s)
    axis.set_xlabel("time (s)", loc="right", labelpad=1)
    axis.set_ylabel(panel.y_title)
    axis.grid(color="#e8e8e8", linewidth=0.6)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    if panel.series:
        axis.legend(
            loc="lower right",
            bbox_to_anchor=(1, 1),
            ncols=min(len(panel.series), 6),
            frameon=False,
            fontsize=8,
        )


def _draw_series(axis: Any, series: Series, position: int) -> None:
    style = look(series, position)
    if series.shape is Shape.STEPS:
        axis.step(series.x, series.y, where="post", color=style.colour, linewidth=style.width, label=series.name)
    else:
        axis.plot(
            series.x,
            series.y,
            linestyle="none",
            marker=_MARKS[style.mark],
            markersize=style.size * 0.8,
            color=style.colour,
            markeredgewidth=1.0 if style.mark == "x" else 0,
            label=series.name,
        )
