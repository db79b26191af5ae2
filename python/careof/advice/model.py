"""A quantified model of what a handover inside a domain does to a TCP download.

What a handover costs is written as a sum of spans that follow from the path, each with a coefficient of its own for
each sender and scheme. The spans, in seconds:

- *away*: the time without any link, and the repair of the path behind it.
- *waiting*: from then on to the retransmission that finds the path again, if what was sent meanwhile is lost.
  Retransmission timeouts double (RFC 6298, section 5.5), so that the n-th is (2^n - 1) RTO behind the last ACK.
- *slow start*: the round trips to a full pipe from one segment, log2 of the pipe in segments (RFC 5681, section 3.1).
- *avoidance*: what a window that grows by a segment a round trip leaves out (RFC 5681, section 3.1), behind a timeout:
  from half a pipe, or from two segments if there was another one before.
- *halved*: the same from half a pipe, without a timeout: duplicates have begun a recovery.
- *round trip*, and *both*: how long both base stations send, up to a queue of the radio.

The coefficients are fitted by least squares (`careof.advice.fit`) on runs of the simulator, and the error of a
prediction is that against runs that were not fitted.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

SEGMENT_BYTES = 1000
REPAIR_S = 0.005
"""From the arrival at a base station to the first packet by it: up to the crossover router and down, as fitted on."""
LEAST_QUEUE = 10
"""Packets of room before the radio: a round trip of them, and no fewer than these."""


class Scheme(Enum):
    """What the domain does about a handover."""

    BUFFER = "buffer"
    NO_BUFFER = "no-buffer"
    BICAST = "bicast"

    @property
    def said(self) -> str:
        """In a sentence."""
        return {
            Scheme.BUFFER: "announced, and the next base station keeps what comes",
            Scheme.NO_BUFFER: "announced, and the next base station keeps nothing",
            Scheme.BICAST: "not announced; packets follow when the mobile node has come",
        }[self]


@dataclass(frozen=True)
class Sender:
    """A TCP, and what its timer is like."""

    key: str
    name: str
    tcp: str
    least_rto_s: float
    margin_s: float
    """What the timer has above the round trip at least."""


_OF_2003 = 'mss = "1000 B", window = "4 MiB", window_scaling = true, delayed_ack = "off", rto_min = "1 s"'
SENDERS = {
    one.key: one
    for one in (
        Sender("cubic", "Linux CUBIC", '{ profile = "linux", mss = "1000 B" }', 0.2, 0.2),
        Sender("bbr", "Linux BBR", '{ profile = "linux", congestion = "bbr", mss = "1000 B" }', 0.2, 0.2),
        Sender("reno", "Linux Reno", '{ profile = "linux", congestion = "reno", mss = "1000 B" }', 0.2, 0.2),
        Sender("newreno", "NewReno of RFC 6582", f'{{ profile = "newreno", {_OF_2003} }}', 1.0, 0.0),
        Sender("sack", "SACK of RFC 6675", f'{{ profile = "sack", {_OF_2003} }}', 1.0, 0.0),
    )
}
"""Linux has a least RTO of 200 ms above the smoothed round trip (`tcp_rto_min`), the others one of 1 s (RFC 6298)."""


@dataclass(frozen=True)
class Conditions:
    """A handover of a download, and the path of it."""

    gap_s: float
    """Without any link; 0 where base stations overlap."""
    overlap_s: float
    rate_bps: float
    """Of the radio, which is the slowest link."""
    rtt_s: float
    """Without queues."""

    @property
    def pipe(self) -> float:
        """Segments that fill the path."""
        return max(1.0, self.rate_bps * self.rtt_s / (8 * SEGMENT_BYTES))

    @property
    def queue(self) -> int:
        """Packets of room before the radio."""
        return max(LEAST_QUEUE, math.ceil(self.pipe))

    @property
    def loaded_rtt_s(self) -> float:
        """The round trip with half that room in use, as it is on average while a sender fills it again and again."""
        return self.rtt_s + 0.5 * self.queue_s

    @property
    def queue_s(self) -> float:
        """How long the room before the radio takes to leave."""
        return self.queue * 8 * SEGMENT_BYTES / self.rate_bps

    @property
    def away_s(self) -> float:
        """From the loss of the link to the first packet by the next base station."""
        return self.gap_s + REPAIR_S if self.overlap_s == 0 else 0.0


class Timer(NamedTuple):
    """What the retransmission timer does in a handover."""

    expiries: int
    until_s: float
    """From the last ACK to the retransmission behind the gap; if nothing is kept, this one finds the path again."""


def timer(sender: Sender, of: Conditions) -> Timer:
    """Timeouts in a gap, and the one behind it."""
    rto = max(sender.least_rto_s, of.loaded_rtt_s + sender.margin_s)
    expiries, until = 1, rto
    while until < of.away_s and expiries < 16:
        expiries, until = expiries + 1, until + rto * 2**expiries
    return Timer(expiries, until)


def spans(sender: Sender, scheme: Scheme, of: Conditions) -> list[float]:
    """What the cost of a handover is a sum of, in seconds; the last is a constant."""
    ran = timer(sender, of)
    is_lost = scheme is not Scheme.BUFFER and of.overlap_s == 0
    spurious = ran.expiries - 1
    expiries = ran.expiries if is_lost else spurious
    waiting = max(0.0, ran.until_s - of.away_s) if is_lost else 0.0
    slow_start = of.rtt_s * math.log2(1 + of.pipe) if expiries else 0.0
    avoidance = _avoidance_s(of, of.pipe / 2 if expiries == 1 else 2.0) if expiries else 0.0
    halved = 0.0 if expiries else _avoidance_s(of, of.pipe / 2)
    both = min(of.overlap_s, of.queue_s)
    return [of.away_s, waiting, slow_start, avoidance, halved, of.loaded_rtt_s, both, 0.1]


SPANS = ("away", "waiting", "slow start", "avoidance", "halved", "round trip", "both", "always, 100 ms")


def _avoidance_s(of: Conditions, begin: float) -> float:
    missing = max(0.0, of.pipe - begin)
    return of.rtt_s * missing**2 / (2 * of.pipe)


def counts(sender: Sender, scheme: Scheme, of: Conditions) -> list[float]:
    """What the number of timeouts is a sum of; the last is a constant."""
    ran = timer(sender, of)
    is_lost = scheme is not Scheme.BUFFER and of.overlap_s == 0
    return [float(ran.expiries if is_lost else 0), float(ran.expiries - 1), of.away_s, 1.0]


class Prediction(NamedTuple):
    """What a handover costs."""

    lost_s: float
    """Of the full rate."""
    lost_error_s: float
    """Nine of ten runs that were not fitted are no further off."""
    timeouts: float
    timeouts_error: float


def predict(sender: str, scheme: Scheme, of: Conditions) -> Prediction:
    """What a handover costs a download.

    Raises:
        KeyError: there is no such sender.
    """
    fit = fitted()["senders"][sender][scheme.value]
    who = SENDERS[sender]

    def total(coefficients: list[float], values: list[float]) -> float:
        return max(0.0, sum(one * value for one, value in zip(coefficients, values, strict=True)))

    return Prediction(
        total(fit["lost"], spans(who, scheme, of)),
        float(fit["lost_error_s"]),
        total(fit["timeouts"], counts(who, scheme, of)),
        float(fit["timeouts_error"]),
    )


class Advice(NamedTuple):
    """What to do."""

    scheme: Scheme
    buffer_packets: int
    """Room for what comes from the trigger on until the mobile node has come; 0 without a buffer."""
    lead_s: float | None
    """How long before the handover the trigger is to come; None without one."""
    predicted: dict[Scheme, Prediction]

    @property
    def alike(self) -> list[Scheme]:
        """Other schemes that the model cannot tell from it: they cost more by no more than its error."""
        best = self.predicted[self.scheme]
        most = best.lost_s + best.lost_error_s
        return [scheme for scheme, one in self.predicted.items() if scheme is not self.scheme and one.lost_s <= most]


def lead_s(of: Conditions) -> float:
    """How early a trigger has to be: a queue before it may have to leave the old radio first, and it travels itself."""
    return of.queue_s + REPAIR_S


def buffer_packets(of: Conditions) -> int:
    """What comes from the trigger on, at the rate of the radio."""
    return math.ceil(of.rate_bps * (lead_s(of) + of.away_s) / (8 * SEGMENT_BYTES))


def advise(sender: str, of: Conditions) -> Advice:
    """The scheme that costs least.

    Raises:
        KeyError: there is no such sender.
    """
    predicted = {scheme: predict(sender, scheme, of) for scheme in Scheme}
    best = min(Scheme, key=lambda scheme: predicted[scheme].lost_s)
    return Advice(
        best,
        buffer_packets(of) if best is Scheme.BUFFER else 0,
        None if best is Scheme.BICAST else lead_s(of),
        predicted,
    )


@cache
def fitted() -> dict[str, Any]:
    """The coefficients, their errors, and the ranges of what they were fitted on."""
    found: dict[str, Any] = json.loads(files("careof.advice").joinpath("fitted.json").read_text(encoding="utf-8"))
    return found
