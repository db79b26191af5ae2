"""The runs behind the thesis's future work: its four scenarios, and every cure that somebody proposed, in each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from careof import native
from careof.errors import ScenarioError, WorldError
from careof.runs import SIMULATED, run
from careof.studies._vertical_runs import link

if TYPE_CHECKING:
    from careof.native import Json
    from careof.studies import Watcher

SCENARIO = """\
title = "Vertical handover between WaveLAN and GSM: the thesis's future work"
description = \"\"\"
The network of the thesis: a laptop with two links, or a base station for each of them, in the middle of a bulk
transfer.
\"\"\"
duration = "90 s"

[links]
wavelan = { preset = "wavelan" }
gsm = { preset = "gsm-csd" }
ethernet = { preset = "ethernet-10m" }

[mobility]
protocol = "mobile-ipv4"
care_of = "co-located"
routing = "triangle"

[[handover]]
at = "12 s"
from = "wavelan"
to = "gsm"
style = "make-before-break"
notice = "2 s"

[[flow]]
name = "netperf"
from = "correspondent"
to = "mobile"
kind = "bulk"
tcp = { profile = "linux-2.0", window = "16 KiB", mss = "1420 B" }
"""

NAME = "careof/studies/vertical.toml"

AFTER_S = 75.0
"""A run goes on for at least as long after the handover: the minute of `goodput_after_share`, and room for a
registration over GSM after a gap and for the last window of `recovery_90_s`."""

GAP_S = 2.0
"""Between two cells that do not overlap."""

_BEGIN_S = {True: 12.0, False: 70.0}
"""When the handover is in the thesis: to the slow link and to the fast one."""
_SPAN_S = {True: 5.0, False: 15.5}
"""Over how long its instants are spread: a cycle of CUBIC on WaveLAN, and ten segments on GSM."""
_FULL_PACKET_S = 1487 * 10 / 9600
"""A segment of 1420 bytes on GSM with headers, tunnel and PPP, ten bits a byte."""
_GSM_ROUND_TRIP_S = 0.7
# RFC 8289, section 4: an interval of a round trip, and a target that is no less than a full packet's time.
_SLOW_CODEL = (
    f', target = "{_FULL_PACKET_S * 1e3:.0f} ms", interval = "{(_FULL_PACKET_S + _GSM_ROUND_TRIP_S) * 1e3:.0f} ms"'
)


@dataclass(frozen=True)
class World:
    """One of the thesis's scenarios in one of its forms."""

    to_slow: bool
    gap: bool
    upload: bool
    far: bool
    """Whether correspondent and home agent are 100 ms apart: the thesis's scenarios 3 and 4."""

    @property
    def number(self) -> int:
        """Of the thesis's scenario."""
        return 1 + (not self.to_slow) + 2 * self.far

    @property
    def key(self) -> str:
        """For a row."""
        return f"{self.number}-{'up' if self.upload else 'down'}-{'gap' if self.gap else 'soft'}"

    @property
    def what(self) -> str:
        """For people."""
        way = "WaveLAN to GSM" if self.to_slow else "GSM to WaveLAN"
        style = f"with a gap of {GAP_S:g} s" if self.gap else "soft"
        distance = ", 100 ms to the home agent" if self.far else ""
        return f"scenario {self.number}: {way}, {style}, {'upload' if self.upload else 'download'}{distance}"

    @property
    def old(self) -> str:
        """The link it leaves."""
        return "wavelan" if self.to_slow else "gsm"

    @property
    def new(self) -> str:
        """The link it goes to."""
        return "gsm" if self.to_slow else "wavelan"


WORLDS = tuple(
    World(to_slow, gap, upload, far)
    for to_slow in (True, False)
    for gap in (False, True)
    for upload in (False, True)
    for far in (False, True)
)

SENDERS = {
    "linux-2.0": 'profile = "linux-2.0", window = "16 KiB"',
    "linux": 'profile = "linux"',
}
"""The thesis's sender with its window, and today's (CUBIC) with the window that it chooses itself."""


@dataclass(frozen=True)
class Cure:
    """Something that is to help, and what it changes in the scenario."""

    key: str
    what: str
    settings: tuple[str, ...] = ()
    stations: bool = False
    """Whether it needs a base station: foreign agents instead of co-located care-of addresses."""
    both_ways: bool = False
    """Whether both directions have to pass the home agent: a reverse tunnel."""
    hides_queue: bool = False
    """Whether packets may wait in an agent instead of in front of the link."""


def _queues(red_or_codel: str, gsm: str = "") -> tuple[str, ...]:
    """A discipline at both ends of both wireless links."""
    return (
        f'links.wavelan.queue={{ discipline = "{red_or_codel}" }}',
        f'links.gsm.queue={{ discipline = "{red_or_codel}"{gsm} }}',
    )


NONE = Cure("none", "nothing")
REVERSE = Cure("none, reverse tunnel", "nothing, what the laptop sends tunnelled too", both_ways=True)
STATIONS = Cure("none, base stations", "nothing, with base stations", stations=True)

CURES = (
    NONE,
    Cure(
        "small window",
        "the thesis's own advice, its measurement with window 4096 and MSS 1024",
        ("flow.0.tcp.window=4096 B", "flow.0.tcp.mss=1024 B"),
    ),
    Cure("red", "RED at both ends of the wireless links, with its usual constants", _queues("red")),
    Cure("codel", "CoDel at both ends of the wireless links, with its usual constants", _queues("codel")),
    Cure(
        "codel, slow",
        "CoDel whose target on GSM is a full packet's time and whose interval is a round trip of one",
        _queues("codel", _SLOW_CODEL),
    ),
    Cure("drop", "what waits for the old link is dropped", ("handover.0.queued=drop",)),
    Cure("re-route", "what waits for the old link takes the new one", ("handover.0.queued=re-route",)),
    Cure("default", "the default assists: replay, lcd-kick, window-clamp", ("assist=default",)),
    Cure("replay", "what the lost path owes is sent again", ("assist=replay",)),
    Cure("hold-last", "the last packets are sent again", ("assist=hold-last",)),
    Cure("lcd-kick", "ICMP takes back the sender's back-off", ("assist=lcd-kick",)),
    Cure("freeze", "zero window before an announced handover", ("assist=freeze",)),
    Cure("fast-retransmit", "duplicate ACKs on the new path", ("assist=fast-retransmit",)),
    Cure("ack-hold", "the last ACK is kept for the new path", ("assist=ack-hold",)),
    Cure(
        "window-clamp",
        "the advertised window follows the path's capacity, on every path",
        ('assist={ use = "window-clamp", window-clamp = { from = "always" } }',),
    ),
    Cure(
        "path-queue",
        "flow control between IP and link: a short queue in the agent that takes the new path",
        # What the handover itself does with the link's queue is in the agent's way.
        ("assist=path-queue", "handover.0.queued=drain-late"),
        hides_queue=True,
    ),
    Cure(
        "path-queue, drop",
        "the same, but the queue is dropped at the handover",
        ('assist={ use = "path-queue", path-queue = { at_handover = "drop" } }', "handover.0.queued=drain-late"),
        hides_queue=True,
    ),
    Cure("buffer-forward", "the agent buffers while there is no path", ("assist=buffer-forward",), hides_queue=True),
    Cure(
        "bicast",
        "copies by both paths",
        ("assist=bicast", "mobility.simultaneous_bindings=true"),
    ),
    Cure("rto-reset", "the sender's RTO begins anew, told at once", ("assist=rto-reset",)),
    Cure(
        "rto-reset, slow start",
        "the same, and slow start",
        ('assist={ use = "rto-reset", rto-reset = { slow_start = true } }',),
    ),
    Cure(
        "rto-reset, option",
        "the RTO begins anew, told in a TCP option",
        ('assist={ use = "rto-reset", rto-reset = { by = "option" } }',),
    ),
    Cure(
        "tcp-cm",
        "the sender is told round trip and capacity at once",
        ('assist={ use = "tcp-cm", tcp-cm = { estimator = "link" } }',),
    ),
    Cure("mobile-tcp", "the same in a TCP option", ("assist=mobile-tcp",)),
    Cure("rto-fast-decrease", "the RTO follows a shorter round trip at once", ("assist=rto-fast-decrease",)),
    STATIONS,
    Cure("snoop", "the base station repeats what is lost", ("assist=snoop",), stations=True),
    Cure("ebsn", "the base station has the sender's timer begin anew", ("assist=ebsn",), stations=True),
    Cure("m-tcp", "the base station closes the window", ("assist=m-tcp",), stations=True, hides_queue=True),
    REVERSE,
    Cure("split", "two connections, joined at the home agent", ("assist=split",), both_ways=True, hides_queue=True),
)


def baseline(cure: Cure) -> Cure:
    """What a cure is compared with."""
    if cure.stations:
        return STATIONS
    return REVERSE if cure.both_ways else NONE


@dataclass(frozen=True)
class Setup:
    """One run."""

    world: World
    sender: str
    cure: Cure
    repetition: int
    of: int

    @property
    def handover_at_s(self) -> float:
        """The same instants for every cure."""
        return round(_BEGIN_S[self.world.to_slow] + _SPAN_S[self.world.to_slow] * self.repetition / self.of, 6)

    @property
    def duration_s(self) -> float:
        """Of the whole run."""
        return _BEGIN_S[self.world.to_slow] + _SPAN_S[self.world.to_slow] + AFTER_S

    @property
    def settings(self) -> list[str]:
        """What it changes in the scenario."""
        world = self.world
        ends = ("mobile", "correspondent") if world.upload else ("correspondent", "mobile")
        # Triangle routing: only what goes to the mobile node needs room for the tunnel's header.
        mss = 1460 if world.upload else 1420
        style, gap, queued = (
            ("break-before-make", GAP_S, "drop") if world.gap else ("make-before-break", 0.0, "drain-late")
        )
        return [
            f"duration={self.duration_s:g} s",
            *(["links.ethernet.delay=50 ms"] if world.far else []),
            *(["mobility.care_of=foreign-agent"] if self.cure.stations else []),
            f"handover.0.at={self.handover_at_s * 1e6:.0f} us",
            f"handover.0.from={world.old}",
            f"handover.0.to={world.new}",
            f"handover.0.style={style}",
            f"handover.0.interruption={gap:g} s",
            f"handover.0.queued={queued}",
            f"flow.0.from={ends[0]}",
            f"flow.0.to={ends[1]}",
            f'flow.0.tcp={{ {SENDERS[self.sender]}, mss = "{mss} B" }}',
            *self.cure.settings,
            *(["mobility.routing=reverse-tunnel", "flow.0.tcp.mss=1420 B"] if self.cure.both_ways else []),
        ]


def refusal(setup: Setup) -> str:
    """What the simulator says where it does not have the cure; empty if it does."""
    try:
        native.check_world(SIMULATED, NAME, SCENARIO, setup.settings)
    except (ScenarioError, WorldError) as error:
        return str(error).removeprefix(f"{NAME}: ").splitlines()[0]
    return ""


METRICS = ("share", "stall_s", "recovery_s", "in_vain", "timeouts", "crossed", "wait_s")


@dataclass(frozen=True)
class Measured:
    """What a run came to, counted from the moment when the new path was ready."""

    setup: Setup
    share: float
    """Goodput of the minute after, of what the new path can carry."""
    stall_s: float
    """To the first new byte; the rest of the run if there was none."""
    recovery_s: float
    """To 90 % of the new path's rate; the rest of the run if it did not come to that."""
    in_vain: float
    """Segments that brought the receiver nothing new."""
    timeouts: float
    crossed: float | None
    """Bytes of IP through the new link, per byte delivered since the handover; None where nothing was."""
    wait_s: float | None
    """What the longest queue in front of the new link takes at its rate; None where packets may wait elsewhere."""
    resumed: bool
    recovered: bool


def measure(setup: Setup, progress: Watcher | None = None) -> Measured:
    """Carry out one run and read it."""
    result = run(SCENARIO, set=setup.settings, trace=False, repetition=setup.repetition, progress=progress)
    handover = result.summary["handovers"][0]
    flow = handover["flows"][0]
    ready = handover["ready_at_s"]
    rest_s = setup.duration_s - (setup.handover_at_s if ready is None else ready)
    stall, recovery = handover["stall_after_s"], handover["recovery_90_s"]
    way = "up" if setup.world.upload else "down"
    new = next(one for one in result.summary["links"] if one["name"] == f"{setup.world.new}.{way}")
    return Measured(
        setup=setup,
        share=handover["goodput_after_share"] or 0.0,
        stall_s=rest_s if stall is None else stall,
        recovery_s=rest_s if recovery is None else recovery,
        in_vain=flow["unnecessary_retransmissions"],
        timeouts=flow["timeouts"],
        crossed=new["delivered_bytes"] / flow["bytes_delivered"] if flow["bytes_delivered"] else None,
        wait_s=None if setup.cure.hides_queue else _wait_s(new, link(result.scenario, setup.world.new)[way]),
        resumed=stall is not None,
        recovered=recovery is not None,
    )


def _wait_s(found: Json, one_way: Json) -> float:
    """Seconds that the longest queue of a link needs to leave it."""
    framing = one_way["framing"]
    count = found["max_queue_bytes"] + found["max_queue_packets"] * framing["overhead_bytes"]
    return float(count * framing["bits_per_byte"] / one_way["rate_bps"])
