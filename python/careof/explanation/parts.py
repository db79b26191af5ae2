"""The parts of a transfer: what each is called, and what it means."""

from __future__ import annotations

from typing import NamedTuple


class Part(NamedTuple):
    """Something that time or bytes of a transfer went to."""

    key: str
    name: str
    group: str
    """Parts of one group have one colour in the picture."""
    time: str
    """What time of it means; empty where it takes none."""
    bytes: str
    """What bytes of it means; empty where it has none."""


PARTS = (
    Part(
        "payload",
        "payload",
        "payload",
        "A link of the direct route sends the flow's data for the first time: the data, its TCP and IP headers and the "
        "link's framing with its gap. The frame may be the awaited one or one that the awaited one stands behind.",
        "Data sent for the first time, on links of the direct route.",
    ),
    Part("headers", "TCP/IP headers", "payload", "", "TCP and IP headers of these segments, and of SYN and FIN."),
    Part(
        "propagation",
        "propagation",
        "payload",
        "The awaited packet, data or acknowledgement, is on its way over a link of the direct route, jitter included.",
        "",
    ),
    Part(
        "acknowledgements",
        "acknowledgements",
        "acknowledgements",
        "A link of the direct route sends the flow's acknowledgements: awaited ones, or such as others stand behind.",
        "Segments without data of the side that receives, on links of the direct route.",
    ),
    Part(
        "encapsulation",
        "encapsulation",
        "mobile-ip",
        "The part of a frame's time that its outer header takes: time by bytes.",
        "Outer headers on links of the direct route: what a packet is larger than when it was sent.",
    ),
    Part(
        "fragmentation",
        "fragmentation",
        "mobile-ip",
        "The frames of further fragments, less what they carry: their headers, framing, padding and gaps.",
        "IP headers of every fragment but a packet's first.",
    ),
    Part(
        "path_stretch",
        "path stretch",
        "mobile-ip",
        "Sending and propagation on a link that the direct route does not have. Of several crossings of a shared "
        "medium the direct route has the one to the station where it leaves the medium, or ends.",
        "Everything on links that the direct route does not have.",
    ),
    Part(
        "retransmissions_needed",
        "retransmissions, needed",
        "loss",
        "Sending and propagation, on whatever link, of segments sent again that no earlier transmission made "
        "superfluous.",
        "The same segments, whole packets.",
    ),
    Part(
        "retransmissions_unnecessary",
        "retransmissions, unnecessary",
        "loss",
        "The same of segments sent again although an earlier transmission of their bytes reached the receiver's host, "
        "before or after.",
        "The same segments, whole packets.",
    ),
    Part(
        "copies",
        "copies",
        "loss",
        "The same of copies that the network made: for a further care-of address, or again by an assist.",
        "These copies, whole packets.",
    ),
    Part("timer_rto", "waiting: RTO", "timers", "The sender waited for its retransmission timer.", ""),
    Part(
        "timer_delayed_ack",
        "waiting: delayed ACK",
        "timers",
        "The receiver waited for its delayed-acknowledgement timer.",
        "",
    ),
    Part(
        "timer_other",
        "waiting: other timers",
        "timers",
        "The sender waited and then sent again, without an acknowledgement and without a retransmission timeout: loss "
        "probes and reordering timers.",
        "",
    ),
    Part(
        "icmp",
        "waiting: ICMP",
        "timers",
        "The sender waited until an ICMP message said what had become of a packet: that it was too large for a "
        "tunnel, or had no way.",
        "",
    ),
    Part(
        "pacing",
        "waiting: pacing",
        "timers",
        "The sender held new data of a bulk transfer back although nothing arrived that it waited for.",
        "",
    ),
    Part(
        "closed_window",
        "waiting: closed window",
        "timers",
        "The sender had no room in the receiver's window until it was opened, or probed it.",
        "",
    ),
    Part(
        "other_flows",
        "behind other flows",
        "queueing",
        "The awaited packet waited while its link, or the medium, sent packets of other flows.",
        "",
    ),
    Part(
        "signalling",
        "behind signalling",
        "queueing",
        "The same for packets of no flow: Mobile IP, DHCP, ICMP.",
        "",
    ),
    Part(
        "contention",
        "contention",
        "queueing",
        "The awaited packet waited for a shared medium that carried nothing whole: collisions, jams, back-off.",
        "",
    ),
    Part(
        "outage",
        "link silent or slower",
        "queueing",
        "The awaited packet waited for a link of its own that sent nothing: it was down, or took longer for a packet "
        "than at its rate in the scenario. Outside of handovers.",
        "",
    ),
    Part(
        "handover_link",
        "handover: no link",
        "handover",
        "Waiting, for whatever, from the handover's instant until the new link was up.",
        "",
    ),
    Part(
        "handover_detection",
        "handover: detection",
        "handover",
        "The same from then on until the mobile node acted on it.",
        "",
    ),
    Part(
        "handover_address",
        "handover: address",
        "handover",
        "The same until it had an address there, where it has to ask for one.",
        "",
    ),
    Part(
        "handover_registration",
        "handover: registration",
        "handover",
        "The same until its registration was accepted.",
        "",
    ),
    Part(
        "handover_transport",
        "handover: transport",
        "handover",
        "The same until the flow delivered something new: what TCP adds.",
        "",
    ),
    Part(
        "application",
        "application",
        "other",
        "The sender's application had nothing to send.",
        "",
    ),
    Part(
        "hosts",
        "in hosts",
        "other",
        "Between arriving and leaving: real hosts at work, an assist that holds a packet, a fragment that waits for "
        "another one.",
        "",
    ),
    Part(
        "unfinished",
        "after the last delivery",
        "other",
        "Of a flow that was not complete, if it had something to carry: from its last delivery to its stop or the end "
        "of the run.",
        "",
    ),
    Part("unknown", "unknown", "other", "The trace does not say what was waited for.", ""),
)
"""All of them, in the order in which they are shown."""

TIMES = tuple(part.key for part in PARTS if part.time)
BYTES = tuple(part.key for part in PARTS if part.bytes)

HANDOVER = ("handover_link", "handover_detection", "handover_address", "handover_registration", "handover_transport")
"""The phases of a handover, in order."""

WAITS = frozenset(
    {"timer_rto", "timer_delayed_ack", "timer_other", "icmp", "closed_window", "outage", "hosts", "unfinished"}
)
"""Waiting that a handover under way is charged with."""

SERVED = (
    "payload",
    "acknowledgements",
    "encapsulation",
    "fragmentation",
    "path_stretch",
    "retransmissions_needed",
    "retransmissions_unnecessary",
    "copies",
    "other_flows",
    "signalling",
)
"""What a link can be busy with, as one flow sees it."""


def named(key: str) -> Part:
    """The part with a key."""
    return next(part for part in PARTS if part.key == key)


def markdown() -> str:
    """The table of docs/explain.md."""
    lines = ["| part | time | bytes |", "|---|---|---|"]
    lines += [f"| `{part.key}` | {part.time or '-'} | {part.bytes or '-'} |" for part in PARTS]
    return "\n".join(lines) + "\n"
