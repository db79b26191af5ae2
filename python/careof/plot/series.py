"""What the graphs show, as numbers: the one place where curves are made."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from careof.native import Json
    from careof.plot.trace import Trace

    Numbers = NDArray[np.float64]


class Role(Enum):
    """What a series stands for; renderers give each role its colour and mark."""

    DATA = "data"
    RETRANSMISSION = "retransmission"
    ACK = "ack"
    WINDOW = "window"
    DROP = "drop"
    TIMEOUT = "timeout"
    CWND = "cwnd"
    SSTHRESH = "ssthresh"
    FLIGHT = "flight"
    RTT = "rtt"
    RTO = "rto"
    QUEUE = "queue"
    DELIVERED = "delivered"
    APART = "apart"


class Shape(Enum):
    """How the points of a series belong together."""

    STEPS = "steps"
    """Each value holds until the next."""
    POINTS = "points"
    """Each is an event of its own."""


@dataclass(frozen=True)
class Series:
    """A curve or a cloud of points over simulated time."""

    name: str
    role: Role
    shape: Shape
    x: Numbers
    """Seconds since the run began; never falling."""
    y: Numbers
    height: Numbers | None = None
    """For segments: how far each reaches above `y`."""
    run: int = 0
    """Which run it is of, where two are laid over each other."""


@dataclass(frozen=True)
class Span:
    """A stretch of time to be shaded."""

    start_s: float
    end_s: float
    label: str
    stall: bool = False
    """A flow is silent while its application waits, rather than a handover under way."""


@dataclass(frozen=True)
class Panel:
    """One graph."""

    key: str
    title: str
    y_title: str
    series: list[Series]
    spans: list[Span] = field(default_factory=list)
    log_y: bool = False
    end_s: float = 0.0
    """The time axis ends here: the run's duration."""
    start_s: float = 0.0
    """The time axis begins here."""
    y_range: tuple[float, float] | None = None
    """What of the other axis is shown; None is whatever there is."""


def time_sequence(trace: Trace, flow: str, end_s: float) -> Panel:
    """Sequence numbers over time as tcptrace draws them, seen from the sender."""
    sent, received, timeouts, drops = (
        trace.sent(flow),
        trace.acknowledged(flow),
        trace.timeouts(flow),
        trace.drops_of(flow),
    )
    again = sent["retransmission"] > 0
    points, steps = Shape.POINTS, Shape.STEPS
    series = [
        Series("window", Role.WINDOW, steps, received["time"], received["ack"] + received["window"]),
        Series("acknowledged", Role.ACK, steps, received["time"], received["ack"]),
        Series("data", Role.DATA, points, sent["time"][~again], sent["seq"][~again], sent["len"][~again]),
        Series(
            "sent again",
            Role.RETRANSMISSION,
            points,
            sent["time"][again],
            sent["seq"][again],
            sent["len"][again],
        ),
        Series("dropped", Role.DROP, points, drops["time"], drops["seq"]),
        Series("timeout", Role.TIMEOUT, points, timeouts["time"], timeouts["seq"]),
    ]
    return _panel(trace, "time-sequence", "Time and sequence", "sequence number (byte)", series, end_s, flow)


def congestion_window(trace: Trace, flow: str, end_s: float) -> Panel:
    """The sender's congestion window, slow-start threshold and data in flight."""
    state = trace.state(flow)
    series = [
        Series(name, role, Shape.STEPS, state["time"], state[name])
        for name, role in (("flight", Role.FLIGHT), ("ssthresh", Role.SSTHRESH), ("cwnd", Role.CWND))
    ]
    return _panel(trace, "cwnd", "Congestion window", "bytes", series, end_s, flow)


def round_trip(trace: Trace, flow: str, end_s: float) -> Panel:
    """The sender's smoothed round-trip time and its retransmission timeout."""
    state = trace.state(flow)
    series = [
        Series("srtt", Role.RTT, Shape.STEPS, state["time"], state["srtt"]),
        Series("rto", Role.RTO, Shape.STEPS, state["time"], state["rto"]),
    ]
    return _panel(
        trace, "rtt", "Round-trip time and retransmission timeout", "seconds", series, end_s, flow, log_y=True
    )


def deliveries(trace: Trace, flow: str, end_s: float) -> Panel:
    """What the receiving application has got."""
    delivered = trace.delivered(flow)
    series = [Series("delivered", Role.DELIVERED, Shape.STEPS, delivered["time"], delivered["bytes"])]
    return _panel(trace, "delivered", "Delivered", "bytes", series, end_s, flow)


def queues(trace: Trace, end_s: float) -> Panel:
    """Packets waiting at each one-way link where any ever waited."""
    series = []
    for link in trace.links():
        queue = trace.queue(link)
        if queue["packets"].max(initial=0) > 0:
            series.append(Series(link, Role.QUEUE, Shape.STEPS, queue["time"], queue["packets"]))
    return _panel(trace, "queues", "Queues", "packets waiting", series, end_s)


def spans(trace: Trace, flow: str | None = None) -> list[Span]:
    """Each handover until its new path was ready; of one flow its stalls, and the longest silence from each on."""
    handovers, silences = [], []
    for handover in trace.handovers:
        ready_s = handover["ready_at_s"]
        words = f"handover to {handover['to']}" + (", never ready" if ready_s is None else "")
        handovers.append(Span(handover["at_s"], handover["until_s"] if ready_s is None else ready_s, words))
        silences += [
            (one["longest_silence_at_s"], one["longest_silence_at_s"] + one["longest_silence_s"])
            for one in handover["flows"]
            if one["name"] == flow and one.get("longest_silence_s")
        ]
    stalls = [(one["begin_s"], one["begin_s"] + one["length_s"]) for one in trace.stalls if one["flow"] == flow]
    # A silence that is a stall is there already.
    stalls += [
        (begin, end)
        for begin, end in silences
        if not any(from_s <= begin and end <= to_s + _SAME_S for from_s, to_s in stalls)
    ]
    return handovers + [Span(begin, end, "", stall=True) for begin, end in stalls]


_SAME_S = 1e-6
"""Sums of seconds that are nearer to each other are the same instant."""


_LONG_S = 60.0


class CloseUp(NamedTuple):
    """From when to when to look at a handover, and when data takes the new path; in seconds."""

    from_s: float
    switched_s: float
    to_s: float


class Outage(NamedTuple):
    """A retransmission timer ran out, and when its sender went on with new data; in seconds."""

    timeout_s: float
    resumed_s: float


def outages(trace: Trace, flow: str) -> list[Outage]:
    """The timeouts of a flow."""
    sent = trace.sent(flow)
    new = sent["time"][sent["retransmission"] == 0]
    return [
        Outage(float(at), float(new[after]) if after < len(new) else float(at))
        for at in trace.timeouts(flow)["time"]
        for after in [int(np.searchsorted(new, at, side="right"))]
    ]


def close_up(handover: Json, outages: Iterable[Outage]) -> CloseUp:
    """From a moment before a handover until a little after the trouble is over.

    Trouble lasts until data flows at the new path's rate, within reason, and on through outages (in the order of time)
    as long as they follow each other no more slowly than a timer that backs off.
    """
    begin, until = handover["at_s"], handover["until_s"]
    ready = until if handover["ready_at_s"] is None else handover["ready_at_s"]
    over = ready - begin + max(handover["stall_after_s"] or 0.0, min(handover["recovery_90_s"] or 0.0, _LONG_S))
    for outage in outages:
        if begin < outage.timeout_s < until and outage.timeout_s - begin < 2.5 * over:
            over = max(over, outage.resumed_s - begin)
    before, after = max(over * 0.02, 0.05), max(over * 0.25, 0.5)
    return CloseUp(max(begin - before, 0.0), ready, min(begin + over + after, until))


def heights(time_sequence: Panel, close_up: CloseUp) -> tuple[float, float] | None:
    """The sequence numbers in play at a handover; None if no ACK had come yet when data took the new path.

    That is a window's worth before the switch and three after, where one path is a hundred times faster than the other
    and everything else would be a straight line; and no more than is sent or acknowledged in the close-up, where the
    window is larger than what is in flight.
    """
    found = []
    for run in {series.run for series in time_sequence.series}:
        acknowledged, offered = (
            _value(time_sequence, run, role, close_up.switched_s) for role in (Role.ACK, Role.WINDOW)
        )
        if acknowledged is not None and offered is not None:
            window = max(offered - acknowledged, 1.0)
            low, high = max(acknowledged - window, 0.0), acknowledged + 3 * window
            lowest, highest = _extent(time_sequence, run, close_up) or (low, high)
            margin = (highest - lowest) / 20
            found.append((max(low, lowest - margin), min(high, max(highest + margin, low + 1.0))))
    return (min(low for low, _ in found), max(high for _, high in found)) if found else None


def _extent(time_sequence: Panel, run: int, close_up: CloseUp) -> tuple[float, float] | None:
    """The lowest and the highest byte sent in a close-up or acknowledged at its begin; None without data."""
    begin = _value(time_sequence, run, Role.ACK, close_up.from_s)
    ends = [] if begin is None else [begin]
    for series in time_sequence.series:
        if series.run == run and series.role in (Role.DATA, Role.RETRANSMISSION) and series.height is not None:
            there = (series.x >= close_up.from_s) & (series.x <= close_up.to_s)
            if there.any():
                ends += [float(series.y[there].min()), float((series.y + series.height)[there].max())]
    return (min(ends), max(ends)) if len(ends) > 1 else None


def cut(panel: Panel, close_up: CloseUp, title: str) -> Panel:
    """A handover out of a time-sequence panel."""
    return replace(
        panel,
        title=title,
        start_s=close_up.from_s,
        end_s=close_up.to_s,
        y_range=heights(panel, close_up),
        series=[_between(one, close_up.from_s, close_up.to_s) for one in panel.series],
    )


def since(panel: Panel, switched_s: float, until_s: float, title: str) -> Panel:
    """A time-sequence panel from an instant on, counted from what was acknowledged then.

    So runs can be laid over each other that came there with other numbers.
    """
    base = _value(panel, 0, Role.ACK, switched_s) or 0.0
    shown = [_between(one, switched_s, until_s) for one in panel.series]
    # A curve begins at the instant, with the value that it has then.
    counted = [replace(one, x=one.x.clip(switched_s), y=one.y - base) for one in shown]
    return replace(panel, key="since-handover", title=title, series=[one for one in counted if len(one.x)])


def _value(panel: Panel, run: int, role: Role, at_s: float) -> float | None:
    for series in panel.series:
        if series.run == run and series.role is role:
            position = int(np.searchsorted(series.x, at_s, side="right")) - 1
            return float(series.y[position]) if position >= 0 else None
    return None


def _between(series: Series, from_s: float, to_s: float) -> Series:
    """The points of a stretch; of a curve also those next to it, so that it runs through."""
    first, last = int(np.searchsorted(series.x, from_s)), int(np.searchsorted(series.x, to_s, side="right"))
    if series.shape is Shape.STEPS:
        first, last = max(first - 1, 0), last + 1
    height = None if series.height is None else series.height[first:last]
    return replace(series, x=series.x[first:last], y=series.y[first:last], height=height)


def _panel(
    trace: Trace,
    key: str,
    title: str,
    y_title: str,
    series: list[Series],
    end_s: float,
    flow: str | None = None,
    *,
    log_y: bool = False,
) -> Panel:
    shown = [one for one in map(_finite, series) if len(one.x)]
    return Panel(key, title, y_title, shown, spans(trace, flow), log_y, end_s)


def _finite(series: Series) -> Series:
    """Without the points that have no value."""
    keep = np.isfinite(series.y)
    if keep.all():
        return series
    height = None if series.height is None else series.height[keep]
    return replace(series, x=series.x[keep], y=series.y[keep], height=height)
