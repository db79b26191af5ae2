"""The paper's network, one download in it, and what is measured of a run.

What the paper does not say is assumed, and named in `ASSUMED`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from careof.runs import run

if TYPE_CHECKING:
    from careof.studies import Watcher

DURATION_S = 100
HANDOVERS = 20
"""Of a run; section III A."""
DELAYS_MS = tuple(range(-500, 501, 100))
"""Below 0 a hard handover with so long a gap, above 0 a soft one with so long an overlap (section III B.1)."""
HARD_MS = tuple(one for one in DELAYS_MS if one <= 0)
SOFT_MS = tuple(one for one in DELAYS_MS if one >= 0)
EVERY_MS = 4800
SPREAD_MS = 200
LEAD_MS = 100
BUFFER_PACKETS = 50

ASSUMED = (
    (
        "wired links",
        "10 Mbit/s, 2 ms each way, 50 packets",
        "the paper's [10], whose ns-2 code has these; ns-2's queue",
    ),
    (
        "radio",
        "one channel of 802.11: 2 Mbit/s, all but data at 1 Mbit/s, RTS and CTS, 50 packets at each station",
        "III: detailed 802.11 models; ns-2's wireless nodes have one channel, this rate and no threshold for RTS",
    ),
    (
        "radios, soft handover",
        "the mobile node has two of them, which compete with the base stations",
        "II C: it is connected to both; its [18] has two radios",
    ),
    (
        "layer 3 notices a move",
        "by the first advertisement of the base station, one a second",
        "III A: mobility detection takes time of its own; beacon_ of ns-2's Mobile IP",
    ),
    (
        "a candidate without a buffer",
        "sends as soon as its link layer has the mobile node; one with a buffer waits until that has told the network",
        "II C: what is cached is delivered once it joins; B.1: noBuffer minimizes the total handover delay",
    ),
    (
        "the tree",
        "correspondent, home agent, gateway, 2 and 7 routers, 21 base stations",
        "III A: 12 wired nodes, depth 5: gateway, two routers, base station, mobile node",
    ),
    (
        "handovers",
        f"one every {EVERY_MS / 1000:g} s and up to {SPREAD_MS} ms later, to the next base station in order",
        "III A: 20 in 100 s; drawn, so that no result hangs on the phase of a timer",
    ),
    (
        "the trigger",
        f"a source trigger {LEAD_MS} ms before the old radio goes, or before the new one comes",
        "II C has the trigger before the disconnection, and no time",
    ),
    ("the buffer", f"{BUFFER_PACKETS} packets", "III: some finite number; more than a window"),
    (
        "soft handover",
        "the network sends to both base stations as long as both hear the mobile node",
        "B.1: +x is how long the mobile node receives packets from both",
    ),
    ("what is in the old radio's queue", "is lost with the link", "nothing is said"),
    (
        "TCP",
        "segments of 1,000 B, a window of 20, an ACK for each, limited transmit, RTO from 1 s, NewReno slow but steady",
        "III A: ns-2.26; its tcl/lib/ns-default.tcl",
    ),
    ("the download", "bulk, from the correspondent", "III: TCP throughput"),
)
"""What is assumed, how, and from which words of the paper."""

LEAST_RTO_MS = 200
_PAPERS_TCP = (
    f'mss = "1000 B", window = "20000 B", rto_min = "{LEAST_RTO_MS} ms", rto_initial = "6 s", '
    'clock_granularity = "10 ms", delayed_ack = "off", limited_transmit = true, initial_window = "2 segments"'
)
"""Of ns-2.26: `packetSize_`, `window_`, `minrto_`, `rtxcur_init_`, `tcpTick_`, `singledup_` and `windowInit_`."""
_NEWRENO_OF_NS2 = ', partial_ack_timer = "slow-but-steady", burst_guard = false'
"""`newreno_changes1_` and `exit_recovery_fix_` are off there."""


_CHANNEL = """\
[media.air]
kind = "802.11b"
rate = "2 Mbit/s"
control_rate = "1 Mbit/s"
rts_threshold = "0 B"
queue = "50 packets"
"""
"""ns-2's wireless nodes: one channel, data at 2 Mbit/s, all else at 1 Mbit/s, a request to send before each frame."""


@dataclass(frozen=True)
class Sender:
    """A TCP."""

    key: str
    name: str
    tcp: str


PAPERS = tuple(
    Sender(key, name, f'{{ profile = "{key}", {_PAPERS_TCP}{_NEWRENO_OF_NS2 if key == "newreno" else ""} }}')
    for key, name in (("tahoe", "Tahoe"), ("reno", "Reno"), ("newreno", "NewReno"), ("sack", "SACK"))
)
TODAYS = (
    Sender("cubic", "Linux CUBIC", '{ profile = "linux" }'),
    Sender("bbr", "Linux BBR", '{ profile = "linux", congestion = "bbr" }'),
    Sender("linux-reno", "Linux Reno", '{ profile = "linux", congestion = "reno" }'),
)
"""Today's Linux with its defaults: RACK, F-RTO, timestamps and all."""


@dataclass(frozen=True)
class Scheme:
    """A way to hand over."""

    key: str
    name: str
    micro: str
    """The settings of `[micro_mobility]` for a hard handover; empty where base stations are foreign agents."""
    assist: str = ""
    protocol: str = "building-blocks"
    sends_to_both: bool = True
    """Whether the network can be told for how long to send to both base stations where they overlap."""


_SOURCE = f'trigger = "source"\nlead = "{LEAD_MS} ms"\n'
BUFFER = Scheme("buffer", "buffer", f"{_SOURCE}buffer = {{ packets = {BUFFER_PACKETS} }}\n")
NO_BUFFER = Scheme("no-buffer", "noBuffer", _SOURCE)
BICAST = Scheme("bicast", "biCast", "")
"""It is reactive (II C): the network sends to the new base station when the mobile node has come there, and to both
from then on."""
SCHEMES = (BUFFER, NO_BUFFER, BICAST)
MOBILE_IP = Scheme("mobile-ip", "Mobile IP alone", "-")
HOLD_LAST = Scheme("hold-last", "Mobile IP with hold-last", "-", "hold-last")
REPLAY = Scheme("replay", "Mobile IP with replay", "-", "replay")
BETWEEN = (MOBILE_IP, HOLD_LAST, REPLAY)
"""Without a domain: each base station is a foreign agent, and the home agent hears of each handover, and helps."""


_KEPT = f"buffer = {{ packets = {BUFFER_PACKETS} }}\n"
_SEMI_SOFT = f'handover = "semi-soft"\nlead = "{LEAD_MS} ms"\n'
NAMED = (
    Scheme("cellular-ip", "Cellular IP, hard", "", protocol="cellular-ip", sends_to_both=False),
    Scheme("semi-soft", "Cellular IP, semi-soft", _SEMI_SOFT, protocol="cellular-ip", sends_to_both=False),
    Scheme("msf", "HAWAII MSF", f'scheme = "msf"\n{_KEPT}', protocol="hawaii", sends_to_both=False),
    Scheme("ssf", "HAWAII SSF", f'scheme = "ssf"\n{_KEPT}', protocol="hawaii", sends_to_both=False),
    Scheme("unf", "HAWAII UNF", 'scheme = "unf"\n', protocol="hawaii", sends_to_both=False),
    Scheme("mnf", "HAWAII MNF", 'scheme = "mnf"\n', protocol="hawaii", sends_to_both=False),
    Scheme("multicast", "M&M, biCast", "", protocol="multicast"),
    Scheme("multicast-car-set", "M&M, CAR set with buffer", f"{_SOURCE}{_KEPT}", protocol="multicast"),
)
"""The protocols that the blocks stand for."""


@dataclass(frozen=True)
class Assumption:
    """What may be assumed of what the paper does not say."""

    least_rto_ms: int
    is_one_channel: bool
    """Whether all stations share a channel of 802.11; else each base station has a radio of full rate."""
    advertisements_ms: int
    """From one advertisement of a base station to its next, by which the mobile node notices it; 0: at once."""

    @property
    def name(self) -> str:
        """For a table."""
        radio = "one channel of 802.11" if self.is_one_channel else "radios of full rate"
        heard = f"advertisements each {self.advertisements_ms} ms" if self.advertisements_ms else "moves known at once"
        return f"RTO from {self.least_rto_ms} ms, {radio}, {heard}"


NS2_RTO_MS = 1000
"""`minrto_` of ns-2.26 (tcl/lib/ns-default.tcl)."""
NS2_BEACON_MS = 1000
"""`beacon_` of the Mobile IP agents of ns-2 (mobile/mip-reg.cc)."""
ASSUMPTION = Assumption(NS2_RTO_MS, is_one_channel=True, advertisements_ms=NS2_BEACON_MS)
"""What the rows rest on: where the paper is silent, ns-2.26 as it comes."""
PLAIN = Assumption(LEAST_RTO_MS, is_one_channel=False, advertisements_ms=0)
"""No MAC, no wait for layer 3, the least RTO of ns-2 from 2004 on: for today's senders and the protocols."""
OTHERS = (
    PLAIN,
    Assumption(NS2_RTO_MS, is_one_channel=False, advertisements_ms=0),
    Assumption(LEAST_RTO_MS, is_one_channel=True, advertisements_ms=0),
    Assumption(NS2_RTO_MS, is_one_channel=True, advertisements_ms=0),
    Assumption(LEAST_RTO_MS, is_one_channel=True, advertisements_ms=NS2_BEACON_MS),
)
"""One after the other what ns-2.26 has."""


@dataclass(frozen=True)
class Download:
    """A run."""

    scheme: Scheme
    sender: Sender
    delay_ms: int | None
    """None: nobody moves."""
    repetition: int
    assumption: Assumption

    def scenario(self) -> str:
        """Its scenario."""
        delay = self.delay_ms or 0
        wire = 'rate = "10 Mbit/s", delay = "2 ms", queue = "50 packets"'
        is_one_channel = self.assumption.is_one_channel and self.scheme.micro != "-"
        radio = 'medium = "air"' if is_one_channel else 'rate = "2 Mbit/s", delay = "2 ms", queue = "50 packets"'
        channel = _CHANNEL if is_one_channel else ""
        in_domain = self.scheme.micro != "-"
        micro = ""
        if in_domain:
            both = f'bicast = "{delay} ms"\n' if delay > 0 and self.scheme.sends_to_both else ""
            heard = self.assumption.advertisements_ms
            notices = f'advertisement_interval = "{heard} ms"\n' if heard else ""
            micro = f'[micro_mobility]\nprotocol = "{self.scheme.protocol}"\n{self.scheme.micro}{both}{notices}'
        gap = f'overlap = "{delay} ms"' if delay > 0 else f'interruption = "{-delay} ms"'
        spread = f'spread = "{SPREAD_MS} ms"\n' if in_domain else ""
        moves = f'[[handover]]\nevery = "{EVERY_MS} ms"\n{gap}\n{spread}' if self.delay_ms is not None else ""
        least = f'rto_min = "{self.assumption.least_rto_ms} ms"'
        tcp = self.sender.tcp.replace(f'rto_min = "{LEAST_RTO_MS} ms"', least)
        assist = f'[assist]\nuse = ["{self.scheme.assist}"]\n' if self.scheme.assist else ""
        return f"""\
title = "{self.scheme.name}, {self.sender.name}, {self.delay_ms} ms"
duration = "{DURATION_S} s"
[links]
server = {{ {wire}, between = ["correspondent", "home-agent"] }}
uplink = {{ {wire}, between = ["home-agent", "gateway"] }}
core = {{ {wire}, between = ["gateway", "core-*"], count = 2 }}
area = {{ {wire}, between = ["core-*", "area-*"], count = 7 }}
cell = {{ {wire}, between = ["area-*", "station-*"], count = 21 }}
radio = {{ {radio}, between = ["station-*", "mobile-*"] }}
{channel}[mobility]
nodes = 1
{micro}{moves}[[flow]]
name = "download"
from = "correspondent"
to = "mobile-1"
kind = "bulk"
tcp = {tcp}
{assist}"""


class Downloaded(NamedTuple):
    """What became of a run."""

    of: Download
    goodput_bps: float
    timeouts: int
    spurious: int
    duplicates: int
    """Segments that arrived twice because the network copied them."""
    out_of_order: int
    retransmitted: int
    unnecessary: int
    handovers: int
    lost: int
    """Packets that ended before their destination, copies that nobody needed among them."""
    messages: int
    """Of micro-mobility, a link each."""
    interruption_s: float
    """The median from leaving to the confirmation through the new base station."""
    stall_s: float
    """The median from there to the first new data."""


def download(of: Download, progress: Watcher | None = None) -> Downloaded:
    """Carry a run out."""
    result = run(of.scenario(), trace=False, repetition=of.repetition, progress=progress)
    summary: dict[str, Any] = result.summary
    (flow,) = summary["flows"]
    roaming = summary["roaming"]
    return Downloaded(
        of,
        goodput_bps=float(flow["goodput_bps"]),
        timeouts=int(flow["timeouts"]),
        spurious=int(flow["spurious_timeouts"]),
        duplicates=int(flow["network_duplicates"]),
        out_of_order=int(flow["out_of_order_arrivals"]),
        retransmitted=int(flow["segments_retransmitted"]),
        unnecessary=int(flow["unnecessary_retransmissions"]),
        handovers=int(roaming["handovers"]),
        lost=sum(summary["packets"]["dropped"].values()),
        messages=int(summary.get("micro_mobility", {}).get("messages_sent", 0)),
        interruption_s=_seconds(roaming["interruption_median_s"]),
        stall_s=_seconds(roaming["stall_after_median_s"]),
    )


def _seconds(value: float | None) -> float:
    return float("inf") if value is None else float(value)
