"""The paper's simulation, as far as it goes here: a file while the mobile node walks round four networks.

Section 5.2 has four access networks of IEEE 802.11b around an IP cloud, with the home agent in the first. What it
does not say is assumed, and named in `ASSUMED`; what the simulator does not have is named in `MISSING`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.compute as pc

from careof.runs import run

if TYPE_CHECKING:
    from careof.studies import Watcher

FILE_MB = 16
"""Section 5.3.1."""
SEGMENT_B = 1400
"""What fits the tunnel, so that no path MTU has to be discovered when the mobile node leaves home."""
ROUND_TRIP_S = 0.5
"""Of the paths over the cloud; see `ASSUMED`."""
GAP_S = (2.0, 3.0)
"""Without any link, from and to; with the home registration over the cloud a handover takes 3 s in the mean."""
RATES = (11, 1)
"""Nominal and basic rate of IEEE 802.11b, Mbit/s."""
LOSSES = (0.001, 0.01)
"""Of bursty loss, which section 6 leaves to others; in the mean of all packets."""
BURST = 5
"""Packets that a burst loses in the mean."""
LOSSY_HANDOVERS = 4
SPEEDS = (("walking", 1.4), ("driving", 14.0))
"""Of the mobile node round the ring, m/s: 5 and 50 km/h."""
APART_M = 250
"""Of two access routers (section 5.2): so long the mobile node is in one network."""
ASSISTS = ("tcp-cm", "none")
_DURATION_S = 1500
CELLS = ("home", "second", "third", "fourth")

ASSUMED = (
    (
        "round trip over the cloud",
        "0.5 s",
        "5.3.1: from 23 s to 26 s the window doubles up to 65,535 B, 5.5 times from 1,460 B",
    ),
    ("rate of the radio", "11 and 1 Mbit/s", "5.2 says IEEE 802.11b: its nominal and its basic rate"),
    (
        "a handover",
        "2 to 3 s without a link, drawn evenly, and the home registration's 0.5 s",
        "5.3.1: it begins at about 50 s and ends at about 53 s; drawn, so that no result hangs on the phase of a timer",
    ),
    (
        "the handover away from home",
        "a second longer",
        "nothing: the home agent verifies first that nobody else has the home address (RFC 6275 section 10.3.1)",
    ),
    (
        "instants of the handovers",
        "between two of them a path for the file's time without any, divided by one more than there are",
        "5.3.2 counts handovers during the file; the first comes after half to one and a half times that, drawn",
    ),
    (
        "TCP",
        "Reno, initial ssthresh 65,535 B, initial RTO 3 s, a window of 4 MiB, segments of 1,400 B",
        "5.3.1: Reno, its ssthresh, a receive buffer above every CWND; 3.2.2: RFC 2988; the segments fit the tunnel",
    ),
    ("queues", "10,000 packets", "5.3.1: larger than the window"),
    ("IoH", "the link layer tells", "4.2: a hint by the link layer takes no time; 3.1 has unreachability detection"),
)
"""What is assumed, how, and from which words of the paper."""

MISSING = (
    (
        "the MAC of IEEE 802.11b: contention, its repetitions, scanning, association",
        "a link has a rate, and is up or down",
    ),
    (
        "the radio's geometry: cells of 300 m in radius",
        "every 250 m of the way a handover; for C3 to C6 its instants are drawn",
    ),
    (
        "how and when BWE is measured (section 3.2.2)",
        "Westwood's filter (`assist.tcp-cm.estimator`), its value when the correspondent is told",
    ),
    ("FTP", "one connection carries the file; no control connection"),
    ("several nodes at once", "one mobile node and one correspondent"),
    ("HMIPv6 and FMIPv6 in the four networks", "one handover each (C1 and C2)"),
    ("the curves of Figures 7 to 11", "our text of the paper has no figures: orders and trends alone are compared"),
)
"""What of the paper's set-up is not there."""


@dataclass(frozen=True)
class Round:
    """A file, once."""

    rate_mbit: int
    upload: bool
    """Whether the mobile node sends it (the paper's Figure 11) or the correspondent (Figure 10)."""
    handovers: int
    seed: int
    assist: str = "none"
    path_s: float = 0.0
    """How long there is a path between two handovers."""
    loss: float = 0.0
    """Share of the packets that the radio loses, in bursts."""
    speed_m_s: float = 0.0
    """Where it is not 0 the mobile node moves evenly round the ring, and meets the handovers on its way."""

    @property
    def sender(self) -> str:
        """Who sends."""
        return "mobile" if self.upload else "correspondent"

    @property
    def moves(self) -> list[tuple[float, float]]:
        """When each handover begins, and how long there is no link, seconds; the same with every assist."""
        way = f"{self.speed_m_s:g} m/s" if self.speed_m_s else f"{self.handovers}"
        draws = random.Random(f"{self.rate_mbit} {self.upload} {way} {self.seed}")  # noqa: S311
        if self.speed_m_s:
            stretch_s = APART_M / self.speed_m_s
            first = draws.uniform(0, stretch_s)
            count = int((_DURATION_S - first) / stretch_s)
            return [(round(first + n * stretch_s, 3), round(draws.uniform(*GAP_S), 3)) for n in range(count)]
        moves, at = [], self.path_s * draws.uniform(0.5, 1.5)
        for _ in range(self.handovers):
            gap = draws.uniform(*GAP_S)
            moves.append((round(at, 3), round(gap, 3)))
            at += gap + ROUND_TRIP_S + self.path_s
        return moves

    @property
    def _bursts(self) -> str:
        """Two states: the bad one, which loses all, lasts `BURST` packets in the mean."""
        if not self.loss:
            return ""
        begins, ends = self.loss / (1 - self.loss) / BURST, 1 / BURST
        return f', loss = {{ kind = "gilbert-elliott", good_to_bad = {begins:.9f}, bad_to_good = {ends:g} }}'

    def scenario(self) -> str:
        """Its scenario."""
        wire = f'rate = "100 Mbit/s", delay = "{250 * ROUND_TRIP_S:g} ms", queue = "10000 packets"'
        radio = f'rate = "{self.rate_mbit} Mbit/s", delay = "0 s", queue = "10000 packets"{self._bursts}'
        routers = ("home-agent", "router-2", "router-3", "router-4")
        networks = "".join(
            f'network-{number} = {{ {wire}, between = ["cloud", "{router}"] }}\n'
            for number, router in enumerate(routers, 1)
        )
        cells = f"home = {{ {radio} }}\n" + "".join(
            f'{cell} = {{ {radio}, between = ["{router}", "mobile"] }}\n'
            for cell, router in zip(CELLS[1:], routers[1:], strict=True)
        )
        handovers = "".join(
            f"""\
[[handover]]
at = "{1e3 * at:.0f} ms"
from = "{CELLS[number % 4]}"
to = "{CELLS[(number + 1) % 4]}"
style = "break-before-make"
interruption = "{1e3 * gap:.0f} ms"
queued = "drop"
"""
            for number, (at, gap) in enumerate(self.moves)
        )
        ends = ("mobile", "correspondent") if self.upload else ("correspondent", "mobile")
        return f"""\
title = "{FILE_MB} MB round four networks, {len(self.moves)} handovers"
duration = "{_DURATION_S} s"
[links]
server = {{ {wire}, between = ["correspondent", "cloud"] }}
{networks}{cells}[mobility]
protocol = "mobile-ipv6"
route_optimization = true
home = "home"
discovery = {{ response_delay = "0 s" }}
{handovers}[[flow]]
name = "file"
from = "{ends[0]}"
to = "{ends[1]}"
kind = "bulk"
size = "{FILE_MB} MB"
tcp = {{ {_TCP} }}
"""


_TCP = (
    f'profile = "reno", mss = "{SEGMENT_B} B", initial_ssthresh = "65535 B", rto_initial = "3 s", '
    'window = "4 MiB", window_scaling = true'
)


class Carried(NamedTuple):
    """How a file went."""

    of: Round
    seconds: float
    stalls_s: list[float]
    """From each home registration to the first new data."""
    met: int
    """Handovers that began before it was there."""

    @property
    def kb_per_s(self) -> float:
        """Mean throughput, as the paper gives it."""
        return 1e3 * FILE_MB / self.seconds


def carry(of: Round, progress: Watcher | None = None) -> Carried:
    """Carry a file."""
    # Without loss nothing of weight is drawn in a run, and every file would draw the same losses.
    repetition = of.seed if of.loss else 0
    settings = [f"assist={of.assist}"]
    result = run(of.scenario(), set=settings, trace=False, repetition=repetition, progress=progress)
    (flow,) = result.summary["flows"]
    seconds = float(flow["active_s"]) if flow["complete"] else float("inf")
    stalls = [one["stall_after_s"] for one in result.summary["handovers"]]
    return Carried(
        of,
        seconds,
        [float("inf") if stall is None else float(stall) for stall in stalls],
        sum(at < seconds for at, _ in of.moves),
    )


class Traced(NamedTuple):
    """What the sender's timer and window did across one handover."""

    of: Round
    rto_before_s: float
    rto_greatest_s: float
    """From the loss of the old link to the first new data."""
    rto_at_end_s: float
    """With TCP-CM when a sender on the mobile node was told, or one at the correspondent has measured the new path;
    otherwise when the mobile node was registered."""
    cwnd_before_b: int
    cwnd_least_b: int
    """From that end on, for three seconds."""
    cwnd_at_end_b: int
    ssthresh_at_end_b: int
    round_trip_s: float
    """The sender's estimate then; 0 where it has none."""
    product_b: float
    """Of the bandwidth that it has estimated and that; 0 where it has not."""


_WATCHED_S = 3.0
_AFTER_S = 15.0


def trace(of: Round, progress: Watcher | None = None) -> Traced:
    """Carry a file until some time after its first handover, and look at its sender."""
    (lost, gap), *_ = of.moves
    settings = [f"assist={of.assist}", f"duration={lost + gap + _AFTER_S:.3f} s"]
    result = run(of.scenario(), set=settings, progress=progress)
    events = result.events
    (handover,) = result.summary["handovers"]
    registered = float(handover["ready_at_s"])
    stall = handover["stall_after_s"]
    resumed = registered + (_AFTER_S if stall is None else float(stall))
    at_sender = events.filter(pc.equal(events["node"], of.sender))
    cause = "resume" if of.upload else "measured"
    told = at_sender.filter(pc.and_(pc.equal(at_sender["kind"], "assist"), pc.equal(at_sender["cause"], cause)))
    end = told["time_ns"][0].as_py() / 1e9 if told.num_rows else registered
    states = at_sender.filter(pc.is_valid(at_sender["cwnd_bytes"]))
    times = [instant / 1e9 for instant in states["time_ns"].to_pylist()]
    rto = [value / 1e9 for value in states["rto_ns"].to_pylist()]
    cwnd, ssthresh = states["cwnd_bytes"].to_pylist(), states["ssthresh_bytes"].to_pylist()
    before = max(number for number, instant in enumerate(times) if instant < lost)
    # What follows at the very instant is the sender's answer.
    last = _state_at(times, end, after=bool(told.num_rows))
    (flow,) = handover["flows"]
    estimate = float(flow.get("bandwidth_estimate_bps", 0.0))
    round_trip = (states["srtt_ns"].to_pylist()[last] or 0) / 1e9
    across = [rto[number] for number, instant in enumerate(times) if lost <= instant <= resumed]
    later = [cwnd[number] for number, instant in enumerate(times) if end <= instant <= end + _WATCHED_S]
    return Traced(
        of,
        rto_before_s=rto[before],
        rto_greatest_s=max(across, default=rto[before]),
        rto_at_end_s=rto[last],
        cwnd_before_b=cwnd[before],
        cwnd_least_b=min(later, default=cwnd[last]),
        cwnd_at_end_b=cwnd[last],
        ssthresh_at_end_b=ssthresh[last] or 0,
        round_trip_s=round_trip,
        product_b=estimate * round_trip / 8,
    )


def _state_at(times: list[float], instant: float, *, after: bool) -> int:
    if after:
        first = next(one for one in times if one >= instant)
        return max(number for number, one in enumerate(times) if one == first)
    return max(number for number, one in enumerate(times) if one <= instant)
