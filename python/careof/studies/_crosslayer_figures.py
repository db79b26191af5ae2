"""Figures 10 and 11 of the paper, from our runs, and what each mechanism brings to the senders of today."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from careof.plot.look import CYCLE
from careof.studies._crosslayer_ring import RATES
from careof.studies._crosslayer_rows import throughput
from careof.studies._crosslayer_today import AFTER_S, GAP_S, MECHANISMS, SENDERS, medians
from careof.studies._pictures import Picture, as_png

if TYPE_CHECKING:
    from collections.abc import Sequence

    from careof.studies._crosslayer_ring import Carried
    from careof.studies._crosslayer_today import WentOn


def pictures(carried: Sequence[Carried], went_on: Sequence[WentOn]) -> list[Picture]:
    """Throughput against handovers, by who sends, and all mechanisms; the same runs, the same bytes."""
    return [*(_figure(carried, upload=upload) for upload in (False, True)), _today(went_on)]


def _today(went_on: Sequence[WentOn]) -> Picture:
    round_trips = sorted({one.of.round_trip_ms for one in went_on})
    picture = Figure(figsize=(4.2 * len(round_trips) + 1, 6.4), layout="constrained")
    FigureCanvasAgg(picture)
    names = [one.name for one in MECHANISMS]
    for column, round_trip in enumerate(round_trips):
        for row, (label, which) in enumerate(
            ((f"without new data beyond {GAP_S:g} s (s)", 0), (f"delivered in {AFTER_S:g} s (%)", 1))
        ):
            axis = picture.add_subplot(2, len(round_trips), row * len(round_trips) + column + 1)
            for number, sender in enumerate(SENDERS):
                found = [medians(went_on, sender, one, round_trip, upload=False)[which] for one in MECHANISMS]
                values = [100 * one if which else one - GAP_S for one in found]
                places = [place + (number - 1) * 0.27 for place in range(len(names))]
                axis.bar(places, values, width=0.25, color=CYCLE[number], label=sender.name)
            if which == 0:
                axis.set_yscale("log")
                axis.set_ylim(0.01, 10)
                axis.set_title(f"round trip {round_trip} ms")
                axis.set_xticks(range(len(names)), [])
            else:
                axis.set_ylim(0, 100)
                axis.set_xticks(range(len(names)), names, rotation=40, ha="right", fontsize=8)
            if column == 0:
                axis.set_ylabel(label)
            axis.grid(axis="y", color="#e8e8e8", linewidth=0.6)
            axis.set_axisbelow(True)
            if row == 0 and column == 0:
                axis.legend(frameon=False, fontsize=8)
    title = "A handover, by mechanism: the correspondent sends"
    picture.suptitle(title)
    return Picture("today", title, as_png(picture))


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
