"""The figures of the thesis's future work: what each cure makes of the minute after a handover."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from careof.plot.look import CYCLE
from careof.studies._pictures import Picture, as_png
from careof.studies._vertical_assists_runs import GAP_S, SENDERS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from careof.studies._vertical_assists import Cell
    from careof.studies._vertical_assists_runs import World


def pictures(cells: Sequence[Cell]) -> list[Picture]:
    """One for each kind of handover, with a panel for each direction and distance; the same cells, the same bytes."""
    there = sorted((cell for cell in cells if not cell.missing), key=_kind)
    return [_picture(list(group)) for _, group in groupby(there, key=_kind)]


def _kind(cell: Cell) -> tuple[bool, bool]:
    return not cell.case.world.to_slow, cell.case.world.gap


def _picture(cells: list[Cell]) -> Picture:
    world = cells[0].case.world
    way = "WaveLAN to GSM" if world.to_slow else "GSM to WaveLAN"
    style = f"gap of {GAP_S:g} s" if world.gap else "soft"
    title = f"{way}, {style}: goodput of the minute after the handover"
    name = f"future-{'to-gsm' if world.to_slow else 'to-wavelan'}-{'gap' if world.gap else 'soft'}"
    return Picture(name, title, _png(cells, title))


def _png(cells: list[Cell], title: str) -> bytes:
    worlds = list(dict.fromkeys(cell.case.world for cell in cells))
    cures = list(dict.fromkeys(cell.case.cure.key for cell in cells))
    picture = Figure(figsize=(4 + 3 * len(worlds), 1.6 + 0.28 * len(cures)), layout="constrained")
    FigureCanvasAgg(picture)
    for number, world in enumerate(worlds):
        axis = picture.add_subplot(1, len(worlds), number + 1)
        _panel(axis, [cell for cell in cells if cell.case.world == world], cures, _heading(world))
        if number:
            axis.tick_params(labelleft=False)
    handles, labels = picture.axes[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=8)
    picture.suptitle(title, fontsize=12)
    return as_png(picture)


def _heading(world: World) -> str:
    return f"scenario {world.number}, {'upload' if world.upload else 'download'}"


def _panel(axis: Any, cells: list[Cell], cures: list[str], title: str) -> None:
    for number, sender in enumerate(SENDERS):
        of = {cell.case.cure.key: cell.means["share"] for cell in cells if cell.case.sender == sender}
        offset = (number - 0.5) * 0.3
        places = [place + offset for place, cure in enumerate(cures) if cure in of]
        means = [of[cure].mean * 100 for cure in cures if cure in of]
        halves = [
            0.0 if one.low is None or one.high is None else (one.high - one.low) * 50
            for one in (of[cure] for cure in cures if cure in of)
        ]
        axis.errorbar(
            means, places, xerr=halves, fmt="o", markersize=4, color=CYCLE[number], capsize=2, linewidth=1, label=sender
        )
        if cures and cures[0] in of:
            axis.axvline(of[cures[0]].mean * 100, color=CYCLE[number], linewidth=0.6, linestyle=":")
    axis.set_yticks(range(len(cures)), cures, fontsize=8)
    axis.invert_yaxis()
    axis.set_xlim(left=0)
    axis.set_xlabel("% of the line", fontsize=8)
    axis.set_title(title, fontsize=9)
    axis.grid(color="#e8e8e8", linewidth=0.6)
    axis.set_axisbelow(True)
