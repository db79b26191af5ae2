"""The model's network, simulated: from the last segment by the old path to the first by the new one.

Every two of correspondent, home agent and access routers have a path of their own, as in Figure 3. The sender
writes small messages at an even pace, so that neither queues nor windows take time: as in the model, only paths do.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from careof.runs import run
from careof.studies._crosslayer_model import Delays, Segment, Sum

if TYPE_CHECKING:
    from careof.runs import Run
    from careof.studies import Watcher


class Way(Enum):
    """How packets travel between the correspondent and a mobile node that is away."""

    TUNNEL = "by the home agent"
    STRAIGHT = "straight"
    """Route optimisation (RFC 6275), as the paper has it."""


@dataclass(frozen=True)
class Paths:
    """One-way delays of the simulated network, milliseconds."""

    name: str
    cn_ha: int
    ha_oar: int
    ha_nar: int
    cn_oar: int
    cn_nar: int

    def delays(self, way: Way) -> Delays:
        """The model's delays: where the home agent tunnels, its T_CN-oAR and T_CN-nAR lead over it."""
        tunnel = way is Way.TUNNEL
        oar = self.cn_ha + self.ha_oar if tunnel else self.cn_oar
        nar = self.cn_ha + self.ha_nar if tunnel else self.cn_nar
        return Delays(
            cn_oar_s=oar / 1e3,
            cn_nar_s=nar / 1e3,
            cn_ha_s=self.cn_ha / 1e3,
            cn_map_s=0.0,
            oar_nar_s=0.0,
            ha_map_s=0.0,
            ha_nar_s=self.ha_nar / 1e3,
            map_oar_s=0.0,
            map_nar_s=0.0,
        )


PATHS = (
    Paths("A", 50, 50, 50, 50, 50),
    Paths("B", 10, 10, 10, 10, 10),
    Paths("C", 100, 100, 100, 100, 100),
    Paths("D", 20, 30, 40, 50, 60),
    Paths("E", 60, 20, 10, 30, 80),
    Paths("F", 5, 40, 90, 25, 15),
    Paths("G", 90, 5, 5, 10, 10),
    Paths("H", 10, 80, 30, 70, 20),
    Paths("I", 35, 15, 75, 45, 25),
    Paths("J", 70, 60, 25, 15, 40),
    Paths("K", 15, 95, 85, 90, 95),
    Paths("L", 40, 10, 60, 100, 5),
)
"""All equal in A to C; elsewhere now one path is long, now another, and G has home far from both ends."""


@dataclass(frozen=True)
class Helped:
    """What helps the sender, and the steps that the simulator takes with it."""

    key: str
    """As scenarios name it."""
    name: str
    protocol: str | None
    """Its line of the paper's Table 1."""
    settings: tuple[str, ...]
    steps: dict[Way, Sum]
    """To the first new data; none where it hangs on a timer or on which of two is first."""


_REGISTERED_AND_BACK = Sum.parse("CN-oAR + 2 HA-nAR + 2 CN-nAR")
"""Home registration; the correspondent is told; data."""
_TOLD_WITH_THE_UPDATE = Sum.parse("CN-oAR + 2 HA-nAR + 4 CN-nAR")
"""Home registration; care-of test; update, which tells it; data."""
_KNOWN_AND_BACK = Sum.parse("CN-oAR + 2 HA-nAR + 6 CN-nAR")
"""Home registration; care-of test; update; its acknowledgement or new data; option or duplicate ACKs; data."""

NONE = Helped(
    "none",
    "nothing (standard TCP)",
    None,
    (),
    {Way.TUNNEL: _REGISTERED_AND_BACK, Way.STRAIGHT: _KNOWN_AND_BACK},
)
TCP_CM = Helped(
    "tcp-cm",
    "TCP-CM",
    "tcp-cm",
    (),
    {Way.TUNNEL: _REGISTERED_AND_BACK, Way.STRAIGHT: _TOLD_WITH_THE_UPDATE},
)
MOBILE_TCP = Helped(
    "mobile-tcp",
    "Mobile TCP",
    "mobile-tcp",
    (),
    {Way.TUNNEL: _REGISTERED_AND_BACK, Way.STRAIGHT: _KNOWN_AND_BACK},
)
FAST_RETRANSMIT = Helped(
    "fast-retransmit",
    "FR",
    "fast-retransmit",
    ("assist.fast-retransmit.longest_outage=any",),
    {Way.TUNNEL: _REGISTERED_AND_BACK, Way.STRAIGHT: _KNOWN_AND_BACK},
)
FREEZE = Helped(
    "freeze",
    "Freeze TCP",
    "freeze",
    (),
    {Way.TUNNEL: _REGISTERED_AND_BACK, Way.STRAIGHT: _KNOWN_AND_BACK},
)

HELPED = (TCP_CM, FAST_RETRANSMIT, FREEZE, MOBILE_TCP, NONE)

GAPS_MS = (0, 300, 700, 1500, 4000)

HANDOVER_S = 2.0
_END_S = 4.2
"""And twice the time without a link later: a doubled timeout is no later than that."""


@dataclass(frozen=True)
class Crossing:
    """One handover between the access routers of a network."""

    paths: Paths
    way: Way
    helped: Helped
    gap_ms: int = 0
    """How long there is no link between the two: what detection of the movement would take."""

    def scenario(self) -> str:
        """Its scenario."""
        p, delays = self.paths, self.paths.delays(self.way)
        links = (
            path("cn-home", p.cn_ha, "correspondent", "home-agent")
            + path("cn-old", p.cn_oar, "correspondent", "router-old")
            + path("cn-new", p.cn_nar, "correspondent", "router-new")
            + path("home-old", p.ha_oar, "home-agent", "router-old")
            + path("home-new", p.ha_nar, "home-agent", "router-new")
        )
        # Ahead of the end by a round trip, so that all that is sent before still arrives.
        notice_ms = round(2e3 * delays.of(Segment.CN_OAR)) if self.helped is FREEZE else 0
        return crossing_scenario(
            f"One handover, {self.paths.name}, {self.way.value}",
            links,
            f"route_optimization = {str(self.way is Way.STRAIGHT).lower()}\n",
            _REGISTERED_AND_BACK.seconds(delays),
            gap_ms=self.gap_ms,
            notice_ms=notice_ms,
        )


def path(name: str, delay_ms: float, *ends: str) -> str:
    """A link of the model's: it takes its delay, and nothing else."""
    between = ", ".join(f'"{end}"' for end in ends)
    return f'{name} = {{ rate = "unlimited", delay = "{delay_ms} ms", between = [{between}] }}\n'


def crossing_scenario(
    title: str, links: str, mobility: str, model_s: float, *, gap_ms: int = 0, notice_ms: int = 0
) -> str:
    """A mobile node goes from the access router `router-old` to `router-new` while the correspondent sends to it.

    A message is a hundredth of the model's time, `model_s` (s). `mobility` is what else is in `[mobility]`, and tables
    that follow it.
    """
    rate = round(100 / model_s) * 8 * _MESSAGE_B
    notice = f'notice = "{notice_ms} ms"\n' if notice_ms else ""
    return f"""\
title = "{title}"
duration = "{_END_S + 2 * gap_ms / 1e3:g} s"
[links]
{links}{path("old", 0, "router-old", "mobile")}{path("new", 0, "router-new", "mobile")}[mobility]
protocol = "mobile-ipv6"
discovery = {{ response_delay = "0 s" }}
{mobility}[[handover]]
at = "{HANDOVER_S:g} s"
from = "old"
to = "new"
style = "break-before-make"
interruption = "{gap_ms} ms"
queued = "drop"
{notice}[[flow]]
name = "data"
from = "correspondent"
to = "mobile"
kind = "paced"
rate = "{rate} bit/s"
message = "{_MESSAGE_B} B"
tcp = {{ profile = "reno", nagle = false, initial_window = "64 segments" }}
"""


_MESSAGE_B = 100


class Crossed(NamedTuple):
    """How long it took."""

    of: Crossing
    since_sent_s: float
    """From the sending of the last segment that the old path delivered to the first new data at the application."""
    since_received_s: float
    """The same from that segment's receipt."""


def cross(of: Crossing, progress: Watcher | None = None) -> Crossed:
    """Carry it out."""
    settings = [f"assist={of.helped.key}", *of.helped.settings]
    return _crossed(of, run(of.scenario(), set=settings, progress=progress))


def _crossed(of: Crossing, result: Run) -> Crossed:
    return Crossed(of, *resumption(result.events, "correspondent", HANDOVER_S))


def resumption(events: pa.Table, sender: str, since_s: float) -> tuple[float, float]:
    """The effective data resumption time (s) of a run's only flow.

    It ends with the first data at the application after `since_s`, when all that the old path carried has arrived, and
    begins with the sending, and with the receipt, of the last segment that the old link delivered.
    """
    kinds = events["kind"]
    old = "old.up" if sender == "mobile" else "old.down"
    carried = events.filter(pc.and_(pc.equal(kinds, "packet-delivered"), pc.equal(events["link"], old)))
    sent = events.filter(
        pc.and_(
            pc.and_(pc.equal(kinds, "segment-sent"), pc.equal(events["node"], sender)),
            pc.greater(events["len_bytes"], 0),
        )
    )
    segments = dict(zip(sent["packet"].to_pylist(), sent["time_ns"].to_pylist(), strict=True))
    last_sent, last_received = max(
        (segments[packet], at)
        for packet, at in zip(carried["packet"].to_pylist(), carried["time_ns"].to_pylist(), strict=True)
        if packet in segments
    )
    delivered = events.filter(
        pc.and_(
            pc.equal(kinds, "data-delivered"),
            pc.greater(events["time_ns"], pa.scalar(round(since_s * 1e9), pa.int64())),
        )
    )
    if delivered.num_rows == 0:
        return float("inf"), float("inf")
    first = delivered["time_ns"][0].as_py()
    return (first - last_sent) / 1e9, (first - last_received) / 1e9
