"""Figures 3 to 6 of the paper from our runs, and the same with the senders of today."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from careof.plot.look import CYCLE
from careof.studies._micromobility_runs import BETWEEN, HARD_MS, MIGRATION, PAPERS, QUIC, SCHEMES, SOFT_MS, TODAYS
from careof.studies._pictures import Picture, as_png

if TYPE_CHECKING:
    from collections.abc import Sequence

    from careof.studies._micromobility_results import Results
    from careof.studies._micromobility_runs import Scheme, Sender

_WHAT = {"throughput": "throughput, of that without handovers", "timeouts": "timeouts a handover"}


def pictures(results: Results, plain: Results) -> list[Picture]:
    """The same runs, the same bytes; `plain` has today's senders."""
    hard, soft = "hard handover", "soft handover"
    return [
        _figure(results, "figure-3", f"Figure 3: throughput, {hard}", PAPERS, SCHEMES, HARD_MS, "throughput"),
        _figure(results, "figure-4", f"Figure 4: timeouts, {hard}", PAPERS, SCHEMES, HARD_MS, "timeouts"),
        _figure(results, "figure-5", f"Figure 5: throughput, {soft}", PAPERS, SCHEMES, SOFT_MS, "throughput"),
        _figure(results, "figure-6", f"Figure 6: timeouts, {soft}", PAPERS, SCHEMES, SOFT_MS, "timeouts"),
        _figure(
            plain,
            "today",
            "Today's senders and QUIC",
            (*TODAYS, QUIC),
            (*SCHEMES, *BETWEEN, MIGRATION),
            (*HARD_MS, *SOFT_MS[1:]),
            "throughput",
        ),
    ]


def _figure(
    results: Results,
    name: str,
    title: str,
    senders: Sequence[Sender],
    schemes: Sequence[Scheme],
    delays_ms: Sequence[int],
    what: str,
) -> Picture:
    picture = Figure(figsize=(3.2 * len(senders) + 0.6, 4.0), layout="constrained")
    FigureCanvasAgg(picture)
    for number, sender in enumerate(senders, 1):
        axis = picture.add_subplot(1, len(senders), number, sharey=picture.axes[0] if picture.axes else None)
        for color, scheme in zip(CYCLE, schemes, strict=False):
            there = [delay for delay in delays_ms if results.has(scheme, sender, delay)]
            if not there:
                continue
            means = [results.mean(scheme, sender, delay, what) for delay in there]
            axis.errorbar(
                there,
                [one.value for one in means],
                yerr=[one.half for one in means],
                fmt="o-",
                markersize=3,
                capsize=2,
                color=color,
                label=scheme.name,
            )
        axis.set_title(sender.name)
        axis.set_xlabel("gap (-) or overlap (+), ms")
        axis.grid(color="#e8e8e8", linewidth=0.6)
        axis.set_axisbelow(True)
        if number == 1:
            axis.set_ylabel(_WHAT[what])
    shown = {
        label: curve for axis in picture.axes for curve, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    picture.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    picture.suptitle(title)
    return Picture(name, title, as_png(picture))
