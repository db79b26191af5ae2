"""Figures 10 and 11 of the paper, from our runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from careof.plot.look import CYCLE
from careof.studies._crosslayer_ring import RATES
from careof.studies._crosslayer_rows import throughput
from careof.studies._pictures import Picture, as_png

if TYPE_CHECKING:
    from collections.abc import Sequence

    from careof.studies._crosslayer_ring import Carried


def pictures(carried: Sequence[Carried]) -> list[Picture]:
    """Mean throughput against handovers, by who sends; the same runs, the same bytes."""
    return [_figure(carried, upload=upload) for upload in (False, True)]


def _figure(carried: Sequence[Carried], *, upload: bool) -> Picture:
    picture = Figure(figsize=(9, 4.6), layout="constrained")
    FigureCanvasAgg(picture)
    for number, rate in enumerate(RATES, 1):
        axis = picture.add_subplot(1, len(RATES), number)
        means = throughput(carried, rate, upload=upload)
        counts = sorted({count for count, _ in means})
        for assist, name, color in (("tcp-cm", "TCP-CM", CYCLE[0]), ("none", "standard", CYCLE[1])):
            series = [means[count, assist] for count in counts]
            axis.errorbar(
                counts,
                [one.value for one in series],
                yerr=[one.half for one in series],
                fmt="o-",
                capsize=3,
                color=color,
                label=name,
            )
        axis.set_title(f"{rate} Mbit/s")
        axis.set_xlabel("handovers")
        axis.set_ylabel("mean throughput (kbyte/s)")
        axis.set_ylim(bottom=0)
        axis.grid(color="#e8e8e8", linewidth=0.6)
        axis.set_axisbelow(True)
        axis.legend(frameon=False, fontsize=9)
    title = f"Figure {11 if upload else 10}: {'the mobile node' if upload else 'the correspondent'} sends"
    picture.suptitle(title)
    return Picture(f"figure-{11 if upload else 10}", title, as_png(picture))
