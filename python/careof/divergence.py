"""What the traces of two runs show of where they part, as numbers.

The metrics of a summary say how much; what is read off a trace here says when, and what the sender believed then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from careof.native import Json
    from careof.pairing import Pair
    from careof.runs import Run

    Numbers = NDArray[np.float64]
    Curves = Mapping[str, Numbers]
    Figures = dict[tuple[str, int, str], float | None]


@dataclass(frozen=True)
class Apart:
    """How far two runs are apart in what one flow has delivered, over the time that both of them last."""

    flow: str
    most_bytes: float
    """The greatest distance: what B has delivered less what A has."""
    most_at_s: float
    mean_bytes: float
    """The mean distance over time, whichever is ahead."""
    share: float
    """That mean, of the mean of what the one that is ahead has delivered; 0 for runs that agree."""

    def as_json(self) -> Json:
        """For machines."""
        return {
            "flow": self.flow,
            "most_bytes": self.most_bytes,
            "most_at_s": self.most_at_s,
            "mean_bytes": self.mean_bytes,
            "share": self.share,
        }


def figures(run: Run) -> Figures:
    """Of each flow in each handover: (flow, number of the handover, key) and the value; None where it has none.

    The keys end in their units; `first_timeout_s` is counted from the handover. What comes after a flow has carried
    everything, or was stopped, is no part of it.
    """
    found: Figures = {}
    for flow in run.summary["flows"]:
        name, trace = str(flow["name"]), run.plot.trace
        over = np.inf if flow["start_s"] is None else float(flow["start_s"]) + float(flow["active_s"])
        state, delivered, timeouts = trace.state(name), trace.delivered(name), trace.timeouts(name)["time"]
        before = 0.0
        for number, handover in enumerate(run.summary["handovers"], 1):
            if any(flow["name"] == name for flow in handover["flows"]):
                begin, until = float(handover["at_s"]), min(float(handover["until_s"]), over)
                ready = begin if handover["ready_at_s"] is None else float(handover["ready_at_s"])
                period = _Period(before, begin, ready, until)
                for key, value in _in_handover(period, state, delivered, timeouts):
                    found[name, number, key] = value if value is not None and np.isfinite(value) else None
                before = begin
    return found


def apart(a: Run, b: Run, flow: Pair) -> Apart:
    """How far two runs are apart in what a flow of both delivers."""
    time, of_a, of_b = deliveries(a, b, flow)
    end = min(a.duration_s, b.duration_s)
    held = np.diff(np.append(time, end))
    distance = of_b - of_a
    most = int(np.argmax(np.abs(distance)))
    mean, ahead = (float(np.dot(values, held)) / end for values in (np.abs(distance), np.maximum(of_a, of_b)))
    return Apart(flow.label, float(distance[most]), float(time[most]), mean, mean / ahead if ahead else 0.0)


def deliveries(a: Run, b: Run, flow: Pair) -> tuple[Numbers, Numbers, Numbers]:
    """Instants from zero until the shorter run ends, and the bytes delivered by then in A and in B."""
    curves = [run.plot.trace.delivered(name or "") for run, name in zip((a, b), flow, strict=True)]
    end = min(a.duration_s, b.duration_s)
    time = np.unique(np.concatenate([[0.0], *(curve["time"] for curve in curves)]))
    time = time[time < end]
    first, second = (_held(curve["time"], curve["bytes"], time, 0.0) for curve in curves)
    return time, first, second


class _Period(NamedTuple):
    before: float
    """When the handover before it was, or the begin of the run."""
    begin: float
    ready: float
    """When the new path was; its begin where it never was."""
    until: float


def _in_handover(
    period: _Period, state: Curves, delivered: Curves, timeouts: Numbers
) -> Iterator[tuple[str, float | None]]:
    before, begin, ready, until = period

    def at(key: str, instant: float) -> float:
        return float(_held(state["time"], state[key], np.array([instant]))[0])

    def carried(start: float, end: float) -> float | None:
        counts = _held(delivered["time"], delivered["bytes"], np.array([start, end]), 0.0)
        return float(counts[1] - counts[0]) * 8 / (end - start) if end > start else None

    yield "delivered_before_bytes", float(_held(delivered["time"], delivered["bytes"], np.array([begin]), 0.0)[0])
    yield "goodput_before_bps", carried(before, begin)
    yield "srtt_at_handover_s", at("srtt", begin)
    yield "rto_at_handover_s", at("rto", begin)
    yield "cwnd_at_handover_bytes", at("cwnd", begin)
    yield "flight_at_handover_bytes", at("flight", begin)
    if until <= begin:
        return
    inside = (state["time"] >= begin) & (state["time"] < until)
    expired = timeouts[(timeouts >= begin) & (timeouts < until)]
    yield "goodput_after_bps", carried(ready, until)
    yield "first_timeout_s", float(expired[0]) - begin if len(expired) else None
    yield "rto_highest_s", float(np.nanmax(state["rto"][inside], initial=-np.inf))
    yield "srtt_at_end_s", at("srtt", until)
    yield "rto_at_end_s", at("rto", until)


def _held(time: Numbers, value: Numbers, instants: Numbers, before: float = np.nan) -> Numbers:
    """The values of a curve that holds each until the next."""
    if not len(time):
        return np.full(len(instants), before)
    index = np.searchsorted(time, instants, side="right") - 1
    return np.where(index >= 0, value[index.clip(0)], before)
