"""The analytic model of the paper: equations 4 to 20 and Table 1, for any delays.

The model counts how often something crosses each segment of the network of Figure 3, one way, from the sending of
the last segment that reaches the mobile node by the old access router to the receipt of the first new one by the
new access router: the *effective data resumption time*. Nothing else takes time: no queue, no transmission, no
radio (section 4.2).

The text that we have was extracted from a PDF, and where a formula disagrees with another place of the paper,
either may be at fault. So a protocol has several *readings*, each named after its place; the first is what section
4.4 states.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING

from careof.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Segment(StrEnum):
    """A path between two nodes of Figure 3, in either direction; the delay of `CN-oAR` is the paper's T_CN-oAR."""

    CN_OAR = "CN-oAR"
    CN_NAR = "CN-nAR"
    CN_HA = "CN-HA"
    CN_MAP = "CN-MAP"
    OAR_NAR = "oAR-nAR"
    HA_MAP = "HA-MAP"
    HA_NAR = "HA-nAR"
    MAP_OAR = "MAP-oAR"
    MAP_NAR = "MAP-nAR"

    @property
    def is_local(self) -> bool:
        """Whether both its ends are in one domain (eq. 20); the others cross the Internet (eq. 19)."""
        return self in (Segment.MAP_OAR, Segment.MAP_NAR)


@dataclass(frozen=True)
class Delays:
    """One-way delays of all segments, in seconds."""

    cn_oar_s: float
    cn_nar_s: float
    cn_ha_s: float
    cn_map_s: float
    oar_nar_s: float
    ha_map_s: float
    ha_nar_s: float
    map_oar_s: float
    map_nar_s: float

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if not (math.isfinite(value) and value >= 0):
                raise InputError(f"{one.name} = {value!r}: a delay is a number of seconds, 0 or more")

    @classmethod
    def equal(cls, internet_s: float, local_s: float | None = None) -> Delays:
        """Eq. 19 and 20: every path over the Internet takes `internet_s`, those of one domain `local_s`.

        Without `local_s` these take as long as the others, which eq. 20 excludes.
        """
        local = internet_s if local_s is None else local_s
        return cls(*[internet_s] * 7, *[local] * 2)

    def of(self, segment: Segment) -> float:
        """The delay of one, in seconds."""
        value: float = getattr(self, f"{segment.value.lower().replace('-', '_')}_s")
        return value


@dataclass(frozen=True)
class Sum:
    """How often each segment is crossed; written as the paper writes it, without its T."""

    written: str
    counts: Mapping[Segment, int]

    @classmethod
    def parse(cls, written: str) -> Sum:
        """From "CN-oAR + 2 HA-nAR", or such a sum behind "2 * (" and before ")"."""
        factor, inner = 1, written
        if written.startswith("2 * ("):
            factor, inner = 2, written.removeprefix("2 * (").removesuffix(")")
        counts = dict.fromkeys(Segment, 0)
        for term in inner.split(" + "):
            number, _, name = term.rpartition(" ")
            counts[Segment(name)] += factor * int(number or 1)
        return cls(written, {segment: count for segment, count in counts.items() if count})

    def seconds(self, delays: Delays) -> float:
        """What it comes to."""
        return math.fsum(count * delays.of(segment) for segment, count in self.counts.items())

    @property
    def over_internet(self) -> int:
        """Crossings of the Internet: with equal delays, multiples of T (eq. 19)."""
        return sum(count for segment, count in self.counts.items() if not segment.is_local)

    @property
    def local(self) -> int:
        """Crossings within a domain (eq. 20)."""
        return sum(count for segment, count in self.counts.items() if segment.is_local)

    @property
    def collected(self) -> str:
        """The same with each segment once: `T_CN-oAR + 2 T_HA-nAR`."""
        return " + ".join(f"{count if count > 1 else ''} T_{name}".strip() for name, count in self.counts.items())

    @property
    def in_t(self) -> str:
        """With equal delays, t those within a domain: `5 T`, `4 T + 4 t`."""
        internet = f"{self.over_internet} T"
        return f"{internet} + {self.local} t" if self.local else internet

    def without(self, segment: Segment) -> Sum:
        """With one crossing of a segment less."""
        counts = {name: count - (name is segment) for name, count in self.counts.items()}
        return Sum(f"{self.written} - {segment}", {name: count for name, count in counts.items() if count})


@dataclass(frozen=True)
class Reading:
    """One place of the paper that gives a time."""

    place: str
    sum: Sum


def _reading(place: str, written: str) -> Reading:
    return Reading(place, Sum.parse(written))


@dataclass(frozen=True)
class Protocol:
    """A line of Table 1."""

    key: str
    name: str
    stated: str
    """Section 4.4 about it, with equal delays."""
    readings: tuple[Reading, ...]
    """The first is what section 4.4 states."""
    remark: str = ""
    """What disagrees with what."""

    @property
    def sum(self) -> Sum:
        """The reading that section 4.4 states."""
        return self.readings[0].sum

    def seconds(self, delays: Delays) -> float:
        """The effective data resumption time by that reading, in seconds."""
        return self.sum.seconds(delays)

    @property
    def agrees(self) -> bool:
        """Whether all readings are one."""
        return all(one.sum.counts == self.sum.counts for one in self.readings)


_ONE_MORE = "In our text the equation has one T_CN-nAR more than Table 1, the steps listed before it and section 4.4."

TCP_CM = Protocol(
    "tcp-cm",
    "TCP-CM",
    "5 T",
    (
        _reading("Table 1", "CN-oAR + 2 CN-nAR + 2 HA-nAR"),
        _reading("eq. 5", "CN-oAR + HA-nAR + HA-nAR + CN-nAR + CN-nAR + CN-nAR"),
    ),
    _ONE_MORE,
)
FAST_RETRANSMIT = Protocol(
    "fast-retransmit",
    "FR",
    "at least 6 T",
    (
        _reading("Table 1", "CN-oAR + 3 CN-nAR + 2 HA-nAR"),
        _reading("eq. 6", "CN-oAR + HA-nAR + HA-nAR + CN-nAR + CN-nAR + CN-nAR + CN-nAR"),
    ),
    f"{_ONE_MORE} One more is what the listed steps leave out: the way of the data back to the mobile node.",
)
FREEZE = Protocol(
    "freeze",
    "Freeze TCP",
    "at least 6 T",
    (
        _reading("Table 1, as FR", "CN-oAR + 3 CN-nAR + 2 HA-nAR"),
        _reading("eq. 7", "CN-oAR + HA-nAR + HA-nAR + CN-nAR + CN-nAR + CN-nAR + CN-nAR"),
    ),
    "As FR, which section 4.3.3 says it equals; the subscripts of its line of Table 1 are garbled.",
)
MOBILE_TCP = Protocol(
    "mobile-tcp",
    "Mobile TCP",
    "at least 6 T",
    (
        _reading("Table 1", "CN-oAR + 3 CN-nAR + 2 HA-nAR"),
        _reading("eq. 8", "CN-oAR + HA-nAR + HA-nAR + CN-nAR + CN-nAR + CN-nAR"),
    ),
    "Equation 8 has the 6 T that are stated, and so one term less than equations 6 and 7, which should come to the"
    " same.",
)
FMIPV6 = Protocol(
    "fmipv6",
    "FMIPv6",
    "6 T",
    (
        _reading("Table 1, by eq. 10", "4 CN-oAR + 2 oAR-nAR"),
        _reading("eq. 10", "CN-oAR + CN-oAR + CN-oAR + oAR-nAR + oAR-nAR + CN-oAR"),
    ),
    "The subscripts of its line of Table 1 are garbled. Section 4.4 bases its 6 T on equations 16 and 17, and means"
    " 10.",
)
HMIPV6_INTRA = Protocol(
    "hmipv6-intra",
    "HMIPv6, intra-domain",
    "more than 4 T",
    (
        _reading("Table 1", "4 CN-MAP + 2 MAP-oAR + 2 MAP-nAR"),
        _reading(
            "eq. 13",
            "CN-MAP + MAP-oAR + MAP-oAR + CN-MAP + CN-MAP + CN-MAP + MAP-nAR + MAP-nAR + MAP-nAR + CN-MAP",
        ),
    ),
    "As our text has it, equation 13 has one T_CN-MAP and one T_MAP-nAR more than Table 1.",
)
HMIPV6_INTER = Protocol(
    "hmipv6-inter",
    "HMIPv6, inter-domain",
    "more than 10 T",
    (
        _reading("Table 1", "2 CN-oAR + 4 CN-MAP + 12 MAP-nAR + 4 HA-MAP"),
        _reading(
            "eq. 15",
            "2 * (CN-oAR + MAP-nAR + MAP-nAR + MAP-nAR + MAP-nAR + HA-MAP + HA-MAP + MAP-nAR + CN-MAP + CN-MAP + CN-MAP"
            " + MAP-nAR)",
        ),
        _reading(
            "twice T_CN-oAR and eq. 14",
            "2 * (CN-oAR + MAP-nAR + MAP-nAR + MAP-nAR + HA-MAP + HA-MAP + MAP-nAR + MAP-nAR + CN-MAP + CN-MAP"
            " + MAP-nAR)",
        ),
    ),
    "Equation 15 doubles the handover latency of equation 14 with the way of the last segment; as our text has it,"
    " with one T_CN-MAP more. Section 4.4 calls its 10 T those of the intra-domain case.",
)
TCP_CM_FMIPV6 = Protocol(
    "tcp-cm-fmipv6",
    "TCP-CM over FMIPv6",
    "better than each alone",
    (
        _reading("eq. 16", "CN-oAR + 2 oAR-nAR + CN-oAR"),
        _reading("Table 1, by eq. 16", "2 CN-oAR + 2 oAR-nAR"),
    ),
    "The subscripts of its line of Table 1 are garbled.",
)
TCP_CM_HMIPV6_INTRA = Protocol(
    "tcp-cm-hmipv6-intra",
    "TCP-CM over HMIPv6, intra-domain",
    "better than each alone",
    (
        _reading("eq. 17", "2 CN-MAP + 3 MAP-nAR"),
        _reading("Table 1", "4 CN-MAP + 2 MAP-oAR + 2 MAP-nAR"),
    ),
    "Table 1 repeats the line of HMIPv6 alone, than which section 4.4 says that it is better; equation 17 is.",
)
TCP_CM_HMIPV6_INTER = Protocol(
    "tcp-cm-hmipv6-inter",
    "TCP-CM over HMIPv6, inter-domain",
    "better than each alone",
    (
        _reading("eq. 18", "2 CN-oAR + 2 MAP-nAR + 2 MAP-nAR + 2 HA-MAP"),
        _reading("Table 1", "2 CN-oAR + 2 MAP-nAR + 2 MAP-nAR + 2 HA-MAP"),
        _reading("eq. 14, counted as TCP-CM's steps are", "CN-oAR + 6 MAP-nAR + 2 HA-MAP + 2 CN-MAP"),
    ),
    "Equation 18 has no way to the correspondent by the new domain. The steps of section 4.3.1 with the handover of"
    " equation 14 - local and home registration, the update to the correspondent and the data back, all through the"
    " MAP - give the third reading, 1 T and 2 t more.",
)

TABLE_1 = (
    FMIPV6,
    HMIPV6_INTRA,
    HMIPV6_INTER,
    FAST_RETRANSMIT,
    FREEZE,
    MOBILE_TCP,
    TCP_CM,
    TCP_CM_FMIPV6,
    TCP_CM_HMIPV6_INTRA,
    TCP_CM_HMIPV6_INTER,
)
"""In the paper's order."""

COMPARED = (TCP_CM, FAST_RETRANSMIT, FREEZE, MOBILE_TCP, FMIPV6, HMIPV6_INTRA, HMIPV6_INTER)
"""Those whose multiples of T section 4.4 states."""

HANDOVER_INTRA = Sum.parse("2 MAP-nAR")
"""Eq. 11: the handover latency within a domain."""
HANDOVER_INTER = Sum.parse(
    "MAP-nAR + MAP-nAR + MAP-nAR + HA-MAP + HA-MAP + MAP-nAR + MAP-nAR + CN-MAP + CN-MAP + MAP-nAR"
)
"""Eq. 14: the handover latency between domains."""
RTO_DIRECT = Sum.parse("2 CN-oAR")
"""Eq. 9: the retransmission timeout at the old access router, taken for one round trip."""
RTO_BY_MAP = Sum.parse("2 MAP-oAR + 2 CN-MAP")
"""Eq. 12: the same where the MAP tunnels; our text has a T_CN-MPA in it."""
ROUND_TRIP_FORWARDED = Sum.parse("2 CN-oAR + 2 oAR-nAR")
"""Section 4.3.5: the round trip by the tunnel between the access routers."""


def total(transmission_s: float, handover_s: float, recovery_s: float) -> float:
    """Eq. 4: the way of the last segment, the handover, and TCP's own time, seconds."""
    return transmission_s + handover_s + recovery_s


@dataclass(frozen=True)
class Premise:
    """An inequality that an equation rests on."""

    of: str
    what: str
    holds: bool


def premises(delays: Delays) -> list[Premise]:
    """What section 4.3.5 takes for granted, with these delays; where it does not hold, neither does its equation."""
    rto, by_map = RTO_DIRECT.seconds(delays), RTO_BY_MAP.seconds(delays)
    return [
        Premise(
            "eq. 10",
            "the round trip by the tunnel is longer than RTO: a timeout before the handover is over",
            ROUND_TRIP_FORWARDED.seconds(delays) > rto,
        ),
        Premise(
            "eq. 13",
            "the handover within a domain is shorter than RTO: one timeout, after it",
            HANDOVER_INTRA.seconds(delays) < by_map,
        ),
        Premise(
            "eq. 15",
            "the handover between domains is longer than RTO: several timeouts",
            HANDOVER_INTER.seconds(delays) > by_map,
        ),
    ]
