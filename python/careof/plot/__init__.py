"""A run's graphs."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from careof.errors import InputError
from careof.plot import series
from careof.plot.trace import Trace

if TYPE_CHECKING:
    from pathlib import Path

    from careof.plot.series import CloseUp, Panel
    from careof.runs import Run

FLOWS_SHOWN = 8
"""Flows that a report and `--plot` draw; the others have their rows in the tables."""


class Plots:
    """Graphs of one run as plotly figures. With one flow its name may be left out.

    ``run.plot.cwnd().show()`` opens the graph; in a notebook it appears by itself.
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    @cached_property
    def trace(self) -> Trace:
        """The events behind the graphs."""
        return Trace(self._run)

    def time_sequence(self, flow: str | None = None) -> Any:
        """Segments, ACKs, window, drops and timeouts over time."""
        return _figure(series.time_sequence(self.trace, self._flow(flow), self._end_s))

    def cwnd(self, flow: str | None = None) -> Any:
        """Congestion window, slow-start threshold and flight."""
        return _figure(series.congestion_window(self.trace, self._flow(flow), self._end_s))

    def rtt(self, flow: str | None = None) -> Any:
        """Smoothed round-trip time and retransmission timeout."""
        return _figure(series.round_trip(self.trace, self._flow(flow), self._end_s))

    def queues(self) -> Any:
        """Packets waiting at the links."""
        return _figure(series.queues(self.trace, self._end_s))

    def panels(self, flow: str) -> list[Panel]:
        """The graphs of one flow, as numbers."""
        return [self.time_sequence_panel(flow), *self.sender_panels(flow)]

    def time_sequence_panel(self, flow: str) -> Panel:
        """The time-sequence graph of one flow, as numbers."""
        return series.time_sequence(self.trace, flow, self._end_s)

    def sender_panels(self, flow: str) -> list[Panel]:
        """The graphs of what the sender of one flow knows, its windows and its round trip, as numbers."""
        trace, end_s = self.trace, self._end_s
        return [series.congestion_window(trace, flow, end_s), series.round_trip(trace, flow, end_s)]

    def delivery_panel(self, flow: str) -> Panel:
        """The graph of what one flow has delivered, as numbers."""
        return series.deliveries(self.trace, flow, self._end_s)

    def queue_panel(self) -> Panel:
        """The graph of the queues, as numbers."""
        return series.queues(self.trace, self._end_s)

    def close_ups(self) -> list[CloseUp]:
        """For each handover the stretch of time in which it and what follows can be seen."""
        outages = sorted(one for flow in self.flows()[:FLOWS_SHOWN] for one in series.outages(self.trace, flow))
        return [series.close_up(handover, outages) for handover in self.trace.handovers]

    def flows(self) -> list[str]:
        """The names of the run's flows."""
        return [str(flow["name"]) for flow in self._run.summary["flows"]]

    def save(self, directory: Path) -> list[Path]:
        """Draw each flow's graphs, with the queues below them, as ``plot-FLOW.png``; returns the files.

        Where there are handovers, ``handover-FLOW.png`` is the one after which the flow was silent longest, from near.
        """
        from careof.plot import static

        queues = self.queue_panel()
        files = []
        for flow in self.flows()[:FLOWS_SHOWN]:
            files.append(directory / f"plot-{flow}.png")
            title = f"{self._run.title} - flow {flow}, seed {self._run.summary['seed']}"
            panels = [*self.panels(flow), queues]
            # The first handover once more from near: over the whole run it is often a kink.
            for first in self.close_ups()[:1]:
                panels.insert(1, series.cut(panels[0], first, "Around the first handover"))
            static.save(static.picture(title, panels), files[-1])
            if (worst := self._worst(flow)) is not None:
                files.append(directory / f"handover-{flow}.png")
                near = series.cut(panels[0], self.close_ups()[worst], "Time and sequence")
                static.save(static.picture(title, [near]), files[-1])
        return files

    def _worst(self, flow: str) -> int | None:
        """After which handover a flow was silent longest, counted from 0."""
        silences = {
            number: float(one["longest_silence_s"])
            for number, handover in enumerate(self.trace.handovers)
            for one in handover["flows"]
            if one["name"] == flow and one["longest_silence_s"] is not None
        }
        return max(silences, key=lambda number: (silences[number], -number), default=None)

    @property
    def _end_s(self) -> float:
        return float(self._run.duration_s)

    def _flow(self, name: str | None) -> str:
        known = self.flows()
        if name is None and len(known) == 1:
            return known[0]
        if name not in known:
            raise InputError(f"there is no flow {name!r}", hint=f"flows: {', '.join(known)}")
        return name


def _figure(panel: Panel) -> Any:
    import plotly.graph_objects as go

    from careof.plot.interactive import figure

    return go.Figure(figure(panel))
