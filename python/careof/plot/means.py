"""Means of a sweep as graphs: a curve for each value of what tells them apart, with whiskers for the intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from careof import summary
from careof.plot import files
from careof.plot.look import CYCLE
from careof.text import printable

if TYPE_CHECKING:
    from pathlib import Path

    from careof.sweeps.means import Means, Point

_SPREAD = 0.12
"""Of the distance between two words: how far apart curves stand over one of them."""
_WIDEST = 0.8
"""Of that distance: how far apart the first and the last may stand."""
_MOST_TICKS = 12
_MARKS = "osD^vP*X"


def interactive(means: Means) -> dict[str, Any]:
    """As plotly takes it."""
    traces = []
    for position, (by, points) in enumerate(means.curves().items()):
        shown = [_bounds(point) for point in points]
        traces.append(
            {
                "type": "scatter",
                "name": _name(means, by),
                "x": [point.x if means.positions is None else means.positions[point.x] for point in points],
                "y": [mean for mean, _, _ in shown],
                "error_y": {
                    "type": "data",
                    "symmetric": False,
                    "array": [above for _, _, above in shown],
                    "arrayminus": [below for _, below, _ in shown],
                },
                "customdata": [[str(point.x), point.samples] for point in points],
                "hovertemplate": "%{customdata[0]}: %{y:.4g} (%{customdata[1]} runs)",
                "mode": "markers" if means.positions is None else "lines+markers",
                "line": {"color": CYCLE[position % len(CYCLE)]},
            }
        )
    axis: dict[str, Any] = {"title": {"text": _x_title(means)}}
    ticks = _ticks(means)
    if ticks is not None:
        axis |= {"tickvals": [place for place, _ in ticks], "ticktext": [word for _, word in ticks]}
    if means.positions is None:
        axis["type"] = "category"
    return {
        "data": traces,
        "layout": {
            "title": {"text": f"{_y_title(means)}<br><sub>{'<br>'.join(_said(means))}</sub>"},
            "template": "plotly_white",
            "xaxis": axis,
            "yaxis": {"title": {"text": _y_title(means)}},
            "scattermode": "group",
            "legend": {"title": {"text": ", ".join(means.by)}},
            "showlegend": bool(means.by),
        },
    }


def save(means: Means, path: str | Path) -> Path:
    """Draw the graph into a file by its ending.

    Raises:
        OutputError: it cannot be written, or not in that form.
    """
    return files.save(lambda: _static(means), path)


def _static(means: Means) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    figure = Figure(figsize=(8, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axis: Any = figure.subplots()
    places = means.positions
    if places is None:
        places = {value: float(rank) for rank, value in enumerate(_values(means))}
    curves = means.curves()
    for position, (by, points) in enumerate(curves.items()):
        aside = (
            (position - (len(curves) - 1) / 2) * min(_SPREAD, _WIDEST / len(curves)) if means.positions is None else 0.0
        )
        shown = [_bounds(point) for point in points]
        axis.errorbar(
            [places[point.x] + aside for point in points],
            [mean for mean, _, _ in shown],
            yerr=[[below for _, below, _ in shown], [above for _, _, above in shown]],
            linestyle="none" if means.positions is None else "-",
            marker=_MARKS[position % len(_MARKS)],
            markersize=5,
            capsize=4,
            linewidth=1.4,
            color=CYCLE[position % len(CYCLE)],
            label=_name(means, by),
        )
    ticks = _ticks(means)
    if means.positions is None:
        axis.set_xticks(list(places.values()), [printable(str(value)) for value in places])
        axis.set_xlim(-0.5, max(len(places) - 0.5, 0.5))
    elif ticks is not None:
        axis.set_xticks([place for place, _ in ticks], [printable(word) for _, word in ticks])
    axis.set_xlabel(_x_title(means))
    axis.set_ylabel(_y_title(means))
    axis.yaxis.set_major_formatter(EngFormatter(sep=""))
    axis.grid(color="#e8e8e8", linewidth=0.6)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    axis.set_title("\n".join(_said(means)), loc="left", fontsize=8, color="#555555")
    if means.by and curves:
        figure.legend(title=", ".join(means.by), loc="outside right upper", frameon=False, fontsize=8, title_fontsize=8)
    return figure


def _said(means: Means) -> list[str]:
    return [means.method, *filter(None, [means.left_out])]


def _bounds(point: Point) -> tuple[float, float, float]:
    """The mean, and how far its interval reaches below and above."""
    assert point.interval is not None  # noqa: S101 - curves have points with a mean only
    mean, low, high = point.interval
    return mean, 0.0 if low is None else mean - low, 0.0 if high is None else high - mean


def _values(means: Means) -> list[Any]:
    return list(dict.fromkeys(point.x for point in means.points))


def _ticks(means: Means) -> list[tuple[float, str]] | None:
    """The values as they are written, where there are few; None leaves it to the axis."""
    values = _values(means)
    if means.positions is None or not means.unit or len(values) > _MOST_TICKS:
        return None
    return [(means.positions[value], str(value)) for value in values]


def _name(means: Means, by: tuple[Any, ...]) -> str:
    return ", ".join(printable(str(value)) for value in by) or means.y


def _x_title(means: Means) -> str:
    unit = f" ({means.unit})" if means.unit and _ticks(means) is None else ""
    return printable(means.x) + unit


def _y_title(means: Means) -> str:
    unit = summary.unit_of(means.y)
    return f"{means.y} ({unit})" if unit else means.y
