"""The runs behind the study `overheads`: files on one Ethernet, and a node that goes to and fro between two cells."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.compute as pc

from careof.runs import SIMULATED, run

if TYPE_CHECKING:
    from careof.runs import Run
    from careof.studies import Watcher

FILE_MB = 30.2
"""The paper's file, 30.2 Mbyte: 241.6 Mbit by its own sum."""


@dataclass(frozen=True)
class Placement:
    """One of the paper's five set-ups (Table 1)."""

    letter: str
    upload: bool
    """Whether the mobile node sends the file."""
    away: bool
    """Whether it is behind a foreign agent."""
    mtu: int = 1500
    """Of the correspondent's and the mobile node's link, bytes."""

    @property
    def sender(self) -> str:
        """As the paper has it."""
        return "MN" if self.upload else "CN"

    @property
    def place(self) -> str:
        """Where the mobile node is."""
        return "away" if self.away else "at home"


PLACEMENTS = (
    Placement("A", upload=False, away=False),
    Placement("B", upload=True, away=False),
    Placement("C", upload=False, away=True),
    Placement("D", upload=True, away=True),
    Placement("E", upload=False, away=True, mtu=1450),
)


def transfer_scenario(placement: Placement, *, switched: bool = False) -> str:
    """The scenario of a set-up, as in `scenarios/overheads`; or with a switch in place of cables."""
    mtu = "" if placement.mtu == 1500 else f', mtu = "{placement.mtu} B"'
    ends = ("mobile", "correspondent") if placement.upload else ("correspondent", "mobile")
    cable = 'rate = "10 Mbit/s"\ndelay = "25 ns"\n'
    media = f"[media.lan]\n{cable}" + (f"[media.visited]\n{cable}" if placement.away else "")

    def link(name: str, medium: str, mtu: str = mtu) -> str:
        kind = 'rate = "1 Gbit/s", delay = "50 us", queue = "1000 packets"' if switched else f'medium = "{medium}"'
        return f"{name} = {{ {kind}{mtu} }}\n"

    access = link("cell-backhaul", "lan", "") + link("cell", "visited") if placement.away else link("home", "lan")
    home = "" if placement.away else 'home = "home"\n'
    return f"""\
title = "Overheads of Mobile IP, {placement.letter}"
duration = "200 s"
{"" if switched else media}[links]
{link("ethernet", "lan")}{access}[mobility]
care_of = "foreign-agent"
{home}[[flow]]
name = "file"
from = "{ends[0]}"
to = "{ends[1]}"
kind = "bulk"
size = "{FILE_MB} MB"
tcp = {{ profile = "reno", pmtu_discovery = false }}
"""


@dataclass(frozen=True)
class Transfer:
    """One file, once."""

    placement: Placement
    world: str = SIMULATED
    repetition: int = 0
    settings: tuple[str, ...] = ()
    """What it changes in the scenario."""
    variant: str = ""
    """What these make of it, for whoever sorts the results; empty for the paper's set-up."""


@dataclass(frozen=True)
class Transferred:
    """How a transfer went."""

    of: Transfer
    seconds: float
    retransmitted: int
    kernel: str | None = None


def transfer(of: Transfer, progress: Watcher | None = None) -> Transferred:
    """Carry a file."""
    result = run(
        transfer_scenario(of.placement, switched=of.variant.startswith(SWITCHED)),
        world=of.world,
        set=list(of.settings),
        repetition=of.repetition,
        trace=False,
        progress=progress,
    )
    (flow,) = result.summary["flows"]
    return Transferred(
        of,
        seconds=flow["active_s"] if flow["complete"] else float("inf"),
        retransmitted=flow["segments_retransmitted"],
        kernel=result.summary["kernel"],
    )


WHOLE_SEGMENTS_B = 1460 * 1410 // 10
"""A file that segments of either size fill to the last byte."""


class Sizes(NamedTuple):
    """What crossed a tunnel's link."""

    letter: str
    by_size: dict[int, int]
    """Datagrams, by their size in bytes."""


def tunnelled_sizes(letter: str, progress: Watcher | None = None) -> Sizes:
    """How many datagrams of which size cross the tunnel's link with a file of whole segments, for every MTU."""
    placement = next(one for one in PLACEMENTS if one.letter == letter)
    result = run(transfer_scenario(placement), set=[f"flow.0.size={WHOLE_SEGMENTS_B} B"], progress=progress)
    events = result.events
    kinds, links, sizes, flows = (events.column(name).to_pylist() for name in ("kind", "link", "size_bytes", "flow"))
    found: dict[int, int] = {}
    for kind, link, size, flow in zip(kinds, links, sizes, flows, strict=True):
        if kind == "packet-enqueued" and link == "cell-backhaul.down" and flow == "file":
            found[size] = found.get(size, 0) + 1
    return Sizes(letter, found)


LOST = "mobility.movement_detection=missed-advertisements"
EAGER = "mobility.movement_detection=eager"
TOLD = "mobility.movement_detection=link-trigger"
UNASKED = ("mobility.discovery.solicitation=false", "mobility.discovery.on_link_up=false")
ASKED = ("mobility.discovery.on_link_up=false",)
BY_THE_CLOCK = ("mobility.discovery.margin=0",)
"""With advertisements that come like a clock: three missed ones count when the third is due."""

OVERLAP = 1.5
"""How long two cells overlap, in intervals of advertisements: long enough to hear the new agent once."""


@dataclass(frozen=True)
class Walk:
    """A node that goes to and fro between home and a foreign agent, and what happens meanwhile."""

    key: str
    """Which figures it is for."""
    interval_s: float
    """Between advertisements."""
    handovers: int
    overlap: bool = True
    """Whether the node is in both cells for a while, and hears both agents."""
    clockwork: bool = True
    """Whether advertisements come like a clock; otherwise at random intervals, as RFC 1256 has it."""
    settings: tuple[str, ...] = (LOST, *UNASKED, *BY_THE_CLOCK)
    tcp: str | None = None
    """The profile of a download that goes on all the time; None is a silent network."""
    assist: str = "none"
    repetition: int = 0
    world: str = SIMULATED
    every_s: float | None = None
    """From one handover to the next; None is as soon as may be."""

    @property
    def period_s(self) -> float:
        """From one handover to the next, seconds.

        Registrations are a second apart at least (RFC 5944, section 3.6), and the timer of a sender that was left alone
        has run out by then.
        """
        if self.every_s is not None:
            return self.every_s
        return max(8 * self.interval_s, 2.5) if self.tcp is None else 9 * self.interval_s + 2

    @property
    def losses_s(self) -> list[float]:
        """When the old link goes: at instants spread by chance over the interval of advertisements."""
        chance = random.Random(f"{self.key} {self.repetition}")  # noqa: S311 - instants, not secrets
        return [self.period_s * (number + 1) + self.interval_s * chance.random() for number in range(self.handovers)]


def walk_scenario(of: Walk) -> str:
    """The scenario of a walk."""
    overlap = OVERLAP * of.interval_s if of.overlap else 0.0
    handovers = []
    for number, loss in enumerate(of.losses_s):
        old, new = ("home", "away") if number % 2 == 0 else ("away", "home")
        style = f'overlap = "{_us(overlap)} us"' if of.overlap else 'style = "break-before-make"'
        handovers.append(
            f'[[handover]]\nat = "{_us(loss - overlap)} us"\nfrom = "{old}"\nto = "{new}"\n{style}\nqueued = "drop"\n'
        )
    # A silent network carries one segment, so that there is a path to speak of.
    size = "" if of.tcp else 'size = "1 B"\n'
    least = f'least_interval = "{_us(of.interval_s)} us"\n' if of.clockwork else ""
    fast = "above_recommended_rate = true\n" if of.interval_s < 1 else ""
    return f"""\
title = "Mobile IP between two cells"
duration = "{of.period_s * (of.handovers + 1) + of.interval_s:.6f} s"
[links]
home = "ethernet-10m"
away = "ethernet-10m"
[mobility]
care_of = "foreign-agent"
early_requests = 0
home = "home"
advertisement_interval = "{_us(of.interval_s)} us"
lifetime = "infinity"
[mobility.discovery]
prefix = false
{least}{fast}{"".join(handovers)}[[flow]]
name = "file"
from = "correspondent"
to = "mobile"
kind = "bulk"
{size}tcp = {{ profile = "{of.tcp or "reno"}", pmtu_discovery = false, window = "32 KiB" }}
"""


@dataclass(frozen=True)
class Walked:
    """What each handover of a walk cost, seconds; what never came is endless."""

    of: Walk
    network_s: list[float] = field(default_factory=list)
    """From losing the old link to the accepted registration by the new one."""
    detection_s: list[float] = field(default_factory=list)
    """From losing the old link to the node's own beginning of the handover; on a silent network alone."""
    tcp_s: list[float] = field(default_factory=list)
    """From losing the old link to the first new data at the receiving application; empty on a silent network."""
    advertised_bps: float = 0.0
    """Bits of IP a second that advertisements take on a link; on a silent network alone."""


def walk(of: Walk, progress: Watcher | None = None) -> Walked:
    """Carry out a walk."""
    settings = [*of.settings, *([] if of.assist == "none" else [f"assist={of.assist}"])]
    result = run(
        walk_scenario(of),
        world=of.world,
        set=settings,
        trace=of.tcp is None,
        repetition=of.repetition,
        progress=progress,
    )
    walked = Walked(of)
    for handover in result.summary["handovers"]:
        network = float("inf") if handover["ready_at_s"] is None else handover["interruption_s"]
        walked.network_s.append(network)
        if of.tcp is not None:
            (flow,) = handover["flows"]
            stall = flow["stall_after_s"]
            walked.tcp_s.append(float("inf") if stall is None else network + stall)
    if of.tcp is not None:
        return walked
    begun = _times_s(result, "handover", "cause", "initiated")
    walked.detection_s.extend(
        next((instant - loss for instant in begun if instant >= loss), float("inf")) for loss in of.losses_s
    )
    return replace(walked, advertised_bps=_advertised_bps(result))


def _times_s(result: Run, kind: str, column: str, value: str) -> list[float]:
    events = result.events
    chosen = pc.and_(pc.equal(events["kind"], kind), pc.equal(events[column], value))
    return [instant / 1e9 for instant in events.filter(chosen)["time_ns"].to_pylist()]


def _advertised_bps(result: Run) -> float:
    """Of the home agent, whose link is up at the beginning, by two of its advertisements before the first handover."""
    events = result.events
    sent = pc.and_(pc.equal(events["kind"], "message-sent"), pc.equal(events["message"], "AgentAdvertisement"))
    rows = events.filter(pc.and_(sent, pc.equal(events["node"], "home-agent"))).slice(0, 2)
    first, second = rows["time_ns"].to_pylist()
    return float(rows["size_bytes"].to_pylist()[0] * 8e9 / (second - first))


def _us(seconds: float) -> int:
    return round(seconds * 1e6)


@dataclass(frozen=True)
class Long:
    """A transfer of three minutes, with a handover every so often or without any."""

    tcp: str
    handovers: bool
    repetition: int = 0


EVERY_S = 30.0
_LONG_MB = 210
"""About what crosses 10 Mbit/s in three minutes."""


class TookLong(NamedTuple):
    """How long a long transfer took."""

    of: Long
    seconds: float


def long_transfer(of: Long, progress: Watcher | None = None) -> TookLong:
    """How long the file took, seconds."""
    handovers = 12 if of.handovers else 0
    walk = Walk("long", 1.0, handovers, tcp=of.tcp, repetition=of.repetition, every_s=EVERY_S)
    settings = [*walk.settings, "duration=420 s", f"flow.0.size={_LONG_MB} MB"]
    result = run(walk_scenario(walk), set=settings, trace=False, repetition=of.repetition, progress=progress)
    (flow,) = result.summary["flows"]
    return TookLong(of, float(flow["active_s"]) if flow["complete"] else float("inf"))


@dataclass(frozen=True)
class Acquisition:
    """A handover to a link on which the care-of address has to be obtained."""

    title: str
    settings: tuple[str, ...]


ACQUISITIONS = (
    Acquisition("known beforehand (static)", ("mobility.care_of=co-located",)),
    Acquisition(
        "a foreign agent's, solicited", ("mobility.care_of=foreign-agent", "mobility.discovery.on_link_up=false")
    ),
    Acquisition("DHCP, no check", ("mobility.dhcp.client_check=none", "mobility.dhcp.server_check=none")),
    Acquisition("DHCP, the server looks (1 s)", ("mobility.dhcp.client_check=none",)),
    Acquisition("DHCP, the client looks (RFC 5227)", ("mobility.dhcp.server_check=none",)),
    Acquisition("DHCP, both look", ("mobility.care_of=dhcp",)),
)
UNCHECKED, CHECKED = 2, 5
"""Of these, the two that the thesis behind `vertical` compares."""

_ACQUISITION = """\
title = "A care-of address for the new link"
duration = "40 s"
[links]
old = "ethernet-10m"
new = "ethernet-10m"
[mobility]
care_of = "dhcp"
[[handover]]
at = "10 s"
from = "old"
to = "new"
style = "break-before-make"
queued = "drop"
[[flow]]
name = "file"
from = "correspondent"
to = "mobile"
kind = "bulk"
size = "1 B"
tcp = "sack"
"""


class Acquired(NamedTuple):
    """How long it took."""

    of: Acquisition
    seconds: float


def acquire(of: Acquisition, repetition: int, progress: Watcher | None = None) -> Acquired:
    """From the loss of the old link to the registration by the new one, seconds."""
    result = run(_ACQUISITION, set=list(of.settings), repetition=repetition, trace=False, progress=progress)
    (handover,) = result.summary["handovers"]
    return Acquired(of, float("inf") if handover["ready_at_s"] is None else float(handover["interruption_s"]))


SWITCHED = "1 Gbit/s, switched"
"""Set-ups on today's Ethernet, each datagram for itself."""

TODAY = tuple(
    Transfer(
        placement,
        settings=("flow.0.size=302 MB", f'flow.0.tcp={{ profile = "linux", pmtu_discovery = {flag} }}'),
        variant=f"{SWITCHED}, {words}",
    )
    for placement in PLACEMENTS
    for flag, words in (("false", "fragments allowed"), ("true", "path MTU discovered"))
)


_OPTIMIZED = "mobility.route_optimization=true"
_SMALL = "flow.0.tcp.mss=1410 B"
"""Segments as small as E's: an MTU of 1450 bytes would be that of the correspondent's own tunnel, too."""

ROUTES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("C, route optimisation", "C", (_OPTIMIZED,)),
    ("E, route optimisation", "C", (_OPTIMIZED, _SMALL)),
    ("D, reverse tunnel", "D", ("mobility.routing=reverse-tunnel",)),
    ("E, reverse tunnel", "E", ("mobility.routing=reverse-tunnel",)),
)
"""Other ways for the packets: what it is called, of which set-up, and what it changes there."""

ROUTED = tuple(
    Transfer(placement, repetition=repetition, settings=settings, variant=name)
    for name, letter, settings in ROUTES
    for placement in PLACEMENTS
    if placement.letter == letter
    for repetition in range(5)
)


@dataclass(frozen=True)
class HandOff:
    """A handover between two foreign agents far from home, with or without smooth hand-off."""

    smooth: bool
    detection: str
    number: int


HAND_OFFS = 20
"""Of each kind, at instants spread over a second."""


@dataclass(frozen=True)
class HandedOff:
    """What it cost."""

    of: HandOff
    lost: float
    """Segments of the download that did not arrive."""
    stall_s: float
    """From the new path's being ready to the first new data."""


HAND_OFF_SCENARIO = """\
title = "Smooth hand-off between two foreign agents"
duration = "60 s"
[links]
wan = { rate = "1.5 Mbit/s", delay = "60 ms", queue = "50 packets", between = ["home-agent", "campus"] }
first-lan = { preset = "ethernet-10m", between = ["campus", "foreign-agent-first"] }
second-lan = { preset = "ethernet-10m", between = ["campus", "foreign-agent-second"] }
first = "wavelan"
second = "wavelan"
[mobility]
care_of = "foreign-agent"
smooth_handoff = true
early_requests = 0
[[handover]]
at = "20 s"
from = "first"
to = "second"
style = "break-before-make"
queued = "drop"
[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
kind = "bulk"
tcp = { profile = "newreno", window = "64 kB" }
"""


_COUNTED = ("flow.0.size=6 MB", "flow.0.tcp.mss=1440 B")
"""So that what did not arrive was lost at the handover: nothing is under way at the end, or too large."""


def hand_off(of: HandOff, progress: Watcher | None = None) -> HandedOff:
    """Carry it out."""
    flag = "true" if of.smooth else "false"
    settings = [
        f"mobility.smooth_handoff={flag}",
        f"mobility.movement_detection={of.detection}",
        f"handover.0.at={20 + of.number / HAND_OFFS:.3f} s",
        *_COUNTED,
    ]
    result = run(HAND_OFF_SCENARIO, set=settings, repetition=of.number, trace=False, progress=progress)
    (handover,) = result.summary["handovers"]
    (flow,) = result.summary["flows"]
    stall = handover["stall_after_s"]
    lost = float(flow["segments_sent"] - flow["segments_arrived"]) if flow["complete"] else float("inf")
    return HandedOff(of, lost, float("inf") if stall is None else float(stall))
