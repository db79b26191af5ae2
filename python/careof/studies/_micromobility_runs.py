"""The paper's network, one download in it, and what is measured of a run.

What the paper does not say is assumed, and named in `ASSUMED`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from careof.runs import run

if TYPE_CHECKING:
    from careof.studies import Watcher

DURATION_S = 100
HANDOVERS = 20
"""Of a run; section III A."""
STATIONS = 21
DELAYS_MS = tuple(range(-500, 501, 100))
"""Below 0 a hard handover with so long a gap, above 0 a soft one with so long an overlap (section III B.1)."""
HARD_MS = tuple(one for one in DELAYS_MS if one <= 0)
SOFT_MS = tuple(one for one in DELAYS_MS if one >= 0)
EVERY_MS = 4800
SPREAD_MS = 200
LEAD_MS = 100
LONG_LEAD_MS = 300
"""Longer than a window waits in the queue of a radio and an announcement for its turn."""
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
        "layer 3 notices a move, hard handover",
        "by the first advertisement of the base station, one a second",
        "III A: mobility detection takes time of its own; beacon_ of ns-2's Mobile IP",
    ),
    (
        "layer 3 notices a move, soft handover",
        "before the overlap that is given begins",
        "B.1: +x is how long packets come from both base stations; B.2: the old one sends while routes are repaired",
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

ONE_CHANNEL = "scenarios/micromobility/one-channel.toml"
"""A run of `ASSUMPTION` for people."""
TODAYS_SENDER = "scenarios/micromobility/foreign-agents.toml"
"""A run of `PLAIN` with a sender of today, without a domain."""

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
    """A transport."""

    key: str
    name: str
    transport: str
    """The key of the flow, ``tcp`` or ``quic``, and its value."""


PAPERS = tuple(
    Sender(key, name, f'tcp = {{ profile = "{key}", {_PAPERS_TCP}{_NEWRENO_OF_NS2 if key == "newreno" else ""} }}')
    for key, name in (("tahoe", "Tahoe"), ("reno", "Reno"), ("newreno", "NewReno"), ("sack", "SACK"))
)
TODAYS = (
    Sender("cubic", "Linux CUBIC", 'tcp = { profile = "linux" }'),
    Sender("bbr", "Linux BBR", 'tcp = { profile = "linux", congestion = "bbr" }'),
    Sender("linux-reno", "Linux Reno", 'tcp = { profile = "linux", congestion = "reno" }'),
)
"""Today's Linux with its defaults: RACK, F-RTO, timestamps and all."""
QUIC = Sender("quic", "QUIC CUBIC", 'quic = "cubic"')
MIGRATING = Sender("quic", "QUIC CUBIC", 'quic = { congestion = "cubic", migration = true }')
"""The same, which takes its connection along from address to address."""


@dataclass(frozen=True)
class Scheme:
    """A way to hand over."""

    key: str
    name: str
    micro: str
    """The settings of `[micro_mobility]` for a hard handover."""
    network: Literal["domain", "foreign agents", "own addresses"] = "domain"
    """What base stations are: of one domain; foreign agents, to each of which the mobile node moves; or routers, at
    each of which the mobile node has an address of its own, and the connection goes from one to the next."""
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
MOBILE_IP = Scheme("mobile-ip", "Mobile IP alone", "", "foreign agents")
HOLD_LAST = Scheme("hold-last", "Mobile IP with hold-last", "", "foreign agents", "hold-last")
REPLAY = Scheme("replay", "Mobile IP with replay", "", "foreign agents", "replay")
DEFAULT_ASSISTS = Scheme("default-assists", "Mobile IP with the default assists", "", "foreign agents", "default")
"""`replay` is among them, and `window-clamp`, which shows the sender no more than the home agent can keep."""
BETWEEN = (MOBILE_IP, HOLD_LAST, REPLAY, DEFAULT_ASSISTS)
"""Without a domain: each base station is a foreign agent, and the home agent hears of each handover, and helps."""
MIGRATION = Scheme("migration", "migration, no Mobile IP", "", "own addresses")
"""For QUIC that migrates."""


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
    lead_ms: int = LEAD_MS
    """From the trigger to the handover."""
    overlap_waits: bool = False
    """Whether the wait for an advertisement is a part of an overlap; else an overlap begins behind it."""

    @property
    def name(self) -> str:
        """For a table."""
        radio = "one channel of 802.11" if self.is_one_channel else "radios of full rate"
        heard = f"advertisements each {self.advertisements_ms} ms" if self.advertisements_ms else "moves known at once"
        lead = f", trigger {self.lead_ms} ms ahead" if self.lead_ms != LEAD_MS else ""
        waits = ", also in an overlap" if self.overlap_waits else ""
        return f"RTO from {self.least_rto_ms} ms, {radio}, {heard}{lead}{waits}"

    def advertised_ms(self, delay_ms: int) -> int:
        """From one advertisement to the next in a run with this gap or overlap; 0: the mobile node knows at once."""
        return self.advertisements_ms if delay_ms <= 0 or self.overlap_waits else 0


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
    Assumption(NS2_RTO_MS, is_one_channel=True, advertisements_ms=NS2_BEACON_MS, lead_ms=LONG_LEAD_MS),
    Assumption(NS2_RTO_MS, is_one_channel=True, advertisements_ms=NS2_BEACON_MS, overlap_waits=True),
)
"""One after the other what ns-2.26 has; then a trigger that is ahead of a whole window, and the other reading of an
overlap."""


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
        wire = 'rate = "10 Mbit/s", delay = "2 ms", queue = "50 packets"'
        is_one_channel = self.assumption.is_one_channel and self.scheme.network == "domain"
        mobile = "mobile" if self.scheme.network == "own addresses" else "mobile-1"
        least = f'rto_min = "{self.assumption.least_rto_ms} ms"'
        transport = self.sender.transport.replace(f'rto_min = "{LEAST_RTO_MS} ms"', least)
        assist = f'[assist]\nuse = "{self.scheme.assist}"\n' if self.scheme.assist else ""
        return f"""\
title = "{self.scheme.name}, {self.sender.name}, {self.delay_ms} ms"
duration = "{DURATION_S} s"
[links]
server = {{ {wire}, between = ["correspondent", "home-agent"] }}
uplink = {{ {wire}, between = ["home-agent", "gateway"] }}
core = {{ {wire}, between = ["gateway", "core-*"], count = 2 }}
area = {{ {wire}, between = ["core-*", "area-*"], count = 7 }}
cell = {{ {wire}, between = ["area-*", "station-*"], count = {STATIONS} }}
{self._radios(is_one_channel=is_one_channel)}{self._mobility()}{self._moves()}[[flow]]
name = "download"
from = "correspondent"
to = "{mobile}"
kind = "bulk"
{transport}
{assist}"""

    def _radios(self, *, is_one_channel: bool) -> str:
        radio = 'medium = "air"' if is_one_channel else 'rate = "2 Mbit/s", delay = "2 ms", queue = "50 packets"'
        if self.scheme.network != "own addresses":
            channel = _CHANNEL if is_one_channel else ""
            return f'radio = {{ {radio}, between = ["station-*", "mobile-*"] }}\n{channel}'
        return "".join(
            f'radio-{n} = {{ {radio}, between = ["station-{n}", "mobile"] }}\n' for n in range(1, STATIONS + 1)
        )

    def _mobility(self) -> str:
        if self.scheme.network == "own addresses":
            return "[mobility]\n"
        if self.scheme.network == "foreign agents":
            return "[mobility]\nnodes = 1\n"
        return f"[mobility]\nnodes = 1\n[micro_mobility]\n{self._micro()}"

    def _micro(self) -> str:
        delay = self.delay_ms or 0
        both = f'bicast = "{delay} ms"\n' if delay > 0 and self.scheme.sends_to_both else ""
        scheme = self.scheme.micro.replace(f'lead = "{LEAD_MS} ms"', f'lead = "{self.assumption.lead_ms} ms"')
        heard = self.assumption.advertised_ms(delay)
        notices = f'advertisement_interval = "{heard} ms"\n' if heard else ""
        return f'protocol = "{self.scheme.protocol}"\n{scheme}{both}{notices}'

    def _moves(self) -> str:
        if self.delay_ms is None:
            return ""
        how = f'overlap = "{self.delay_ms} ms"\n' if self._is_soft else f'interruption = "{-self.delay_ms} ms"\n'
        if self.scheme.network != "own addresses":
            return f'[[handover]]\nevery = "{EVERY_MS} ms"\n{how}spread = "{SPREAD_MS} ms"\n'
        style = "make-before-break" if self._is_soft else "break-before-make"
        late = random.Random(self.repetition)  # noqa: S311 - numbers to simulate with
        links = ", ".join(f'"radio-{n + 1}"' for n in range(1, HANDOVERS + 1))
        times = ", ".join(f'"{n * EVERY_MS + SPREAD_MS * late.random():.6f} ms"' for n in range(1, HANDOVERS + 1))
        return f'[[handover]]\nat = [{times}]\nfrom = "radio-1"\nto = [{links}]\nstyle = "{style}"\n{how}'

    def settings_of_today(self) -> str:
        """What makes this run, of `PLAIN` with one of `TODAYS` in a gap, of the scenario `TODAYS_SENDER`."""
        congestion = self.sender.transport.partition('congestion = "')[2].partition('"')[0]
        words = [f"flow.download.tcp.congestion={congestion}"] if congestion else []
        if self.scheme.network == "domain":
            words.append(f"'micro_mobility={{ {_inline(self._micro())} }}'")
        if self.scheme.assist:
            words.append(f"assist={self.scheme.assist}")
        words.append(f"'handover.interruption={-(self.delay_ms or 0)} ms'")
        return " ".join(f"--set {one}" for one in words)

    def settings(self) -> str:
        """What makes this run, of `ASSUMPTION` or another least RTO, with handovers, of the scenario `ONE_CHANNEL`."""
        if self.scheme == BUFFER and not self._is_soft:
            micro = ""
        elif self.scheme == NO_BUFFER and not self._is_soft:
            micro = " --set micro_mobility.buffer=false"
        else:
            micro = f" --set 'micro_mobility={{ {_inline(self._micro())} }}'"
        moves = f" --set 'handover.interruption={-(self.delay_ms or 0)} ms'"
        if self._is_soft:
            moves = f" --set 'handover=[{{ {_inline(self._moves().split(maxsplit=1)[1])} }}]'"
        tcp = f" --set flow.download.tcp.profile={self.sender.key}"
        if self.sender.key == "newreno":
            keys = _NEWRENO_OF_NS2.replace(" ", "").split(",")[1:]
            tcp += "".join(f" --set flow.download.tcp.{one}" for one in keys)
        if self.assumption.least_rto_ms != NS2_RTO_MS:
            tcp += f" --set 'flow.download.tcp.rto_min={self.assumption.least_rto_ms} ms'"
        return f"{tcp}{micro}{moves}".strip()

    @property
    def _is_soft(self) -> bool:
        return self.delay_ms is not None and self.delay_ms > 0


def _inline(lines: str) -> str:
    """The lines of a table of TOML as one."""
    return ", ".join(lines.strip().splitlines())


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
    # Of a mobile node whose links are its own, handovers are records, and nobody asks for more than their number.
    roaming = summary.get("roaming", {"handovers": len(summary["handovers"])})
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
        interruption_s=_seconds(roaming.get("interruption_median_s")),
        stall_s=_seconds(roaming.get("stall_after_median_s")),
    )


def _seconds(value: float | None) -> float:
    return float("inf") if value is None else float(value)
