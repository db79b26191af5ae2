"""Figures 7 and 8 of the paper, from our runs, and what advertisements cost and bring."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow.compute as pc
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from careof.plot.look import CYCLE, SHADE
from careof.runs import run
from careof.studies._mean import Mean
from careof.studies._overheads_rows import ERA
from careof.studies._overheads_runs import Walk, walk_scenario
from careof.studies._pictures import Picture, as_png

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from careof.studies import Watcher
    from careof.studies._overheads_runs import Walked


class Course(NamedTuple):
    """A download across one handover."""

    loss_s: float
    """When the old link went."""
    registered_s: float
    """When the registration by the new one was accepted."""
    times_s: list[float]
    delivered: list[int]
    """Bytes that the application had got by then."""


def course(progress: Watcher | None = None) -> Course:
    """One handover of the kind that Figures 7 and 8 show, a = 1 s."""
    of = Walk("figure", 1.0, 1, tcp=ERA)
    result = run(walk_scenario(of), set=list(of.settings), progress=progress)
    (loss,) = of.losses_s
    events = result.events
    got = events.filter(pc.equal(events["kind"], "data-delivered"))
    (handover,) = result.summary["handovers"]
    return Course(
        loss,
        float(handover["ready_at_s"]),
        [instant / 1e9 for instant in got["time_ns"].to_pylist()],
        got["delivered_bytes"].to_pylist(),
    )


def pictures(walks: Sequence[Walked], across: Course) -> list[Picture]:
    """The figures; the same runs, the same bytes."""
    return [_figure_7(walks), _figure_8(across), _intervals(walks)]


def _figure_7(walks: Sequence[Walked]) -> Picture:
    shown = next(
        one for one in walks if one.of.key.startswith("network") and one.of.interval_s == 1.0 and one.of.clockwork
    )
    latencies = [latency / shown.of.interval_s for latency in shown.network_s]
    mean = Mean.of(latencies)
    picture, axis = _axis()
    axis.hist(latencies, bins=[2 + step / 20 for step in range(22)], color=CYCLE[0], edgecolor="white")
    axis.axvline(mean.value, color=CYCLE[1], label=f"mean {mean.shown()} a")
    axis.axvline(2.5, color="#222222", linestyle=":", label="the paper's 2.5 a")
    axis.set_xlabel("from losing the old link to the accepted registration, intervals of advertisements")
    axis.set_ylabel(f"handovers of {mean.count}")
    return _done(picture, axis, "figure-7", "Figure 7: handover latency of the network")


def _figure_8(across: Course) -> Picture:
    picture, axis = _axis()
    begin, end = across.loss_s - 1.0, across.loss_s + 6.0
    chosen = [number for number, instant in enumerate(across.times_s) if begin <= instant <= end]
    resumed = next((instant for instant in across.times_s if instant > across.registered_s), end)
    axis.step(
        [across.times_s[number] - across.loss_s for number in chosen],
        [across.delivered[number] / 1e6 for number in chosen],
        where="post",
        color=CYCLE[0],
    )
    axis.axvspan(0, across.registered_s - across.loss_s, color=SHADE, alpha=0.35, label="no path: network")
    axis.axvspan(
        across.registered_s - across.loss_s,
        resumed - across.loss_s,
        color=CYCLE[1],
        alpha=0.2,
        label="a path, and the sender's timer: TCP",
    )
    axis.set_xlabel("time since the old link went (s)")
    axis.set_ylabel("delivered (MB)")
    return _done(picture, axis, "figure-8", "Figure 8: handover latency of TCP, a = 1 s")


def _intervals(walks: Sequence[Walked]) -> Picture:
    picture, axis = _axis()
    network = sorted(
        (one.of.interval_s, Mean.of(one.network_s).value)
        for one in walks
        if one.of.key.startswith("network") and one.of.clockwork
    )
    axis.plot([a for a, _ in network], [latency for _, latency in network], "o-", color=CYCLE[0], label="network")
    profiles = sorted({one.of.tcp for one in walks if one.of.key.startswith("tcp") and one.of.tcp})
    for number, profile in enumerate(profiles):
        points = sorted(
            (one.of.interval_s, Mean.of(one.tcp_s).value)
            for one in walks
            if one.of.key.startswith("tcp") and one.of.tcp == profile
        )
        axis.plot(
            [a for a, _ in points], [s for _, s in points], "s--", color=CYCLE[number + 1], label=f"TCP, {profile}"
        )
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("interval of advertisements (s)")
    axis.set_ylabel("handover latency (s)")
    return _done(picture, axis, "intervals", "Handover latency by the interval of advertisements")


def _axis() -> tuple[Figure, Axes]:
    picture = Figure(figsize=(9, 4.6), layout="constrained")
    FigureCanvasAgg(picture)
    return picture, picture.add_subplot()


def _done(picture: Figure, axis: Axes, name: str, title: str) -> Picture:
    axis.grid(color="#e8e8e8", linewidth=0.6)
    axis.set_axisbelow(True)
    if axis.get_legend_handles_labels()[0]:
        axis.legend(frameon=False, fontsize=9)
    axis.set_title(title)
    return Picture(name, title, as_png(picture))
