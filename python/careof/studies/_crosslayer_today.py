"""What TCP-CM is worth to the senders of today, and beside what careof does on the path.

One bulk flow crosses one handover with a second without a link, and the round trip is 20, 100 or 300 ms. Two figures
tell how it went on: how long the application waited for new data, and what it was given in the ten seconds after the
new link was up.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from careof.runs import run
from careof.studies._crosslayer_paths import FAST_RETRANSMIT, FREEZE, MOBILE_TCP, TCP_CM, resumption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from careof.studies import Watcher

ROUND_TRIPS_MS = (20, 100, 300)
RATE_MBIT = 4
"""Of either cell."""
GAP_S = 1.0
"""Without any link."""
HANDOVER_S = 8.0
AFTER_S = 10.0
"""How long it is watched from the instant at which the new link is up."""
PHASES = 3
"""Instants of the handover, spread over a round trip."""


@dataclass(frozen=True)
class Sender:
    """Whose TCP sends."""

    name: str
    tcp: str
    """As scenarios have it."""


SENDERS = (
    Sender("Reno, as the paper's", 'profile = "reno"'),
    Sender("Linux, CUBIC", 'profile = "linux", congestion = "cubic"'),
    Sender("Linux, BBR", 'profile = "linux", congestion = "bbr"'),
)


@dataclass(frozen=True)
class Mechanism:
    """What helps."""

    name: str
    settings: tuple[str, ...]
    warned: bool = False
    """Whether it has to know of the handover ahead."""
    network: str = ""
    """What the network has for it: lines of `[mobility]` and after it."""


MECHANISMS = (
    Mechanism("nothing", ("assist=none",)),
    *(
        Mechanism(one.name, (f"assist={one.key}", *one.settings), warned=one is FREEZE)
        for one in (FAST_RETRANSMIT, FREEZE, MOBILE_TCP, TCP_CM)
    ),
    Mechanism("HMIPv6", ("assist=none",), network='[nodes]\ngateway = "map"\n'),
    Mechanism("FMIPv6", ("assist=none",), warned=True, network="fast_handover = true\n"),
    Mechanism("replay", ("assist=replay",)),
    Mechanism("careof's defaults", ("assist=default",)),
)


@dataclass(frozen=True)
class Moved:
    """A flow over a handover, once."""

    sender: Sender
    round_trip_ms: int
    mechanism: Mechanism
    upload: bool
    phase: int = 0

    @property
    def at_s(self) -> float:
        """When the old link goes."""
        return HANDOVER_S + self.phase * self.round_trip_ms / 1e3 / PHASES

    def scenario(self) -> str:
        """Its scenario: an eighth of the way to the core from each end, twice as much to the home agent and back.

        Mobility anchor points stand where the access routers are, and the access routers beside each other.
        """
        eighth = f'rate = "unlimited", delay = "{self.round_trip_ms / 8:g} ms"'
        product = self.round_trip_ms / 1e3 * RATE_MBIT * 1e6 / 8 / 1500
        cell = f'rate = "{RATE_MBIT} Mbit/s", delay = "0 s", queue = "{max(round(product), 20)} packets"'
        ends = ("mobile", "correspondent") if self.upload else ("correspondent", "mobile")
        notice = f'notice = "{self.round_trip_ms} ms"\n' if self.mechanism.warned else ""
        return f"""\
title = "{self.mechanism.name}, {self.sender.name}, {self.round_trip_ms} ms"
duration = "{self.at_s + GAP_S + AFTER_S:g} s"
[links]
server = {{ {eighth}, between = ["core", "correspondent"] }}
home = {{ {eighth}, between = ["core", "home-agent"] }}
access = {{ {eighth}, between = ["core", "gateway"] }}
to-old = {{ rate = "unlimited", delay = "0 s", between = ["gateway", "router-old"] }}
to-new = {{ rate = "unlimited", delay = "0 s", between = ["gateway", "router-new"] }}
old = {{ {cell}, between = ["router-old", "mobile"] }}
new = {{ {cell}, between = ["router-new", "mobile"] }}
[mobility]
protocol = "mobile-ipv6"
discovery = {{ response_delay = "0 s" }}
{self.mechanism.network}[[handover]]
at = "{1e6 * self.at_s:.0f} us"
from = "old"
to = "new"
style = "break-before-make"
interruption = "{1e3 * GAP_S:g} ms"
queued = "drop"
{notice}[[flow]]
name = "data"
from = "{ends[0]}"
to = "{ends[1]}"
kind = "bulk"
tcp = {{ {self.sender.tcp}, window = "4 MiB", window_scaling = true }}
"""


class WentOn(NamedTuple):
    """How it went on."""

    of: Moved
    resumption_s: float
    """From the sending of the last segment that the old path delivered to the first new data at the application."""
    delivered_b: int
    """To the application, in the ten seconds after the new link was up."""

    @property
    def share(self) -> float:
        """What was delivered, by what the cell carries in that time."""
        return self.delivered_b / (RATE_MBIT * 1e6 / 8 * AFTER_S)


def move(of: Moved, progress: Watcher | None = None) -> WentOn:
    """Carry it out."""
    result = run(of.scenario(), set=list(of.mechanism.settings), progress=progress)
    up_s = of.at_s + GAP_S
    since_sent, _ = resumption(result.events, "mobile" if of.upload else "correspondent", up_s)
    progressed = result.events.filter(pc.equal(result.events["kind"], "data-delivered"))
    before = progressed.filter(pc.less_equal(progressed["time_ns"], pa.scalar(round(up_s * 1e9), pa.int64())))
    total, old = (pc.max(one["delivered_bytes"]).as_py() or 0 for one in (progressed, before))
    return WentOn(of, since_sent, int(total - old))


def moves(round_trips_ms: Sequence[int]) -> list[Moved]:
    """Every sender with every mechanism, in either direction."""
    return [
        Moved(sender, round_trip, mechanism, upload, phase)
        for round_trip in round_trips_ms
        for upload in (False, True)
        for sender in SENDERS
        for mechanism in MECHANISMS
        for phase in range(PHASES)
    ]


def medians(
    went_on: Sequence[WentOn], sender: Sender, mechanism: Mechanism, round_trip_ms: int, *, upload: bool
) -> tuple[float, float]:
    """Of all phases: the effective data resumption time (s), and the share of what the cell carries."""
    key = (sender, mechanism, round_trip_ms, upload)
    chosen = [one for one in went_on if (one.of.sender, one.of.mechanism, one.of.round_trip_ms, one.of.upload) == key]
    return median(one.resumption_s for one in chosen), median(one.share for one in chosen)
