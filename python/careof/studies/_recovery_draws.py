"""Handovers drawn by chance for the study `recovery`: what each is, and what it came to.

A handover's number says everything about it: the same number is the same handover on every machine and in every series.
"""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from careof.runs import run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from careof.studies import Watcher

CONGESTION = ("reno", "cubic", "bbr")
RATES_KBIT_S = (256, 50_000)
ROUND_TRIPS_MS = (10.0, 300.0)
OUTAGES_S = (0.3, 8.0)
QUEUES_PRODUCTS = (0.5, 4.0)
LEAST_QUEUE_BYTES = 15_000
"""Ten full packets: an initial window (RFC 6928)."""

_AGENT_MS = 1.0
"""Between correspondent and home agent, there and back; the rest of the path is the access link."""
_PACKET_BYTES = 1500
_WARM_UP_S = (2.0, 5.0)
_WARM_UP_TRIPS = 10
"""Long enough for slow start."""
_AFTER_S = 2.0
_AFTER_TRIPS = 8
_PATIENCE_S = 60.0
"""For those whose stall did not end within that: a sender left alone has waited for all of its timer by then."""
_BATCH = 20
"""Handovers in a piece of work: more pieces are only more to keep count of."""


@dataclass(frozen=True)
class Path:
    """An access link."""

    rate_kbit_s: int
    delay_us: int
    """One way."""
    queue_bytes: int

    @property
    def delays_s(self) -> float:
        """Propagation between mobile node and correspondent, there and back."""
        return (2 * self.delay_us / 1000 + _AGENT_MS) / 1000

    @property
    def round_trip_s(self) -> float:
        """That and the sending of a full packet, as in `careof compare`: the least that data and its ACK take."""
        return self.delays_s + _PACKET_BYTES * 8 / (self.rate_kbit_s * 1000)

    @property
    def text(self) -> str:
        """The link in a scenario."""
        return f'{{ rate = "{self.rate_kbit_s} kbit/s", delay = "{self.delay_us} us", queue = "{self.queue_bytes} B" }}'

    @property
    def words(self) -> str:
        """The link for people."""
        rate = f"{self.rate_kbit_s / 1000:.3g} Mbit/s"
        products = self.queue_bytes / (self.rate_kbit_s * 125 * self.delays_s)
        return f"{rate}, {self.delays_s * 1000:.0f} ms, {products:.1f} BDP"


@dataclass(frozen=True)
class Draw:
    """A hard handover with an outage."""

    number: int
    upload: bool
    congestion: str
    old: Path
    new: Path
    at_s: float
    outage_s: float

    def scenario(self, after_s: float) -> str:
        """The scenario that has it, with so long from the outage's end on."""
        ends = ("mobile", "correspondent") if self.upload else ("correspondent", "mobile")
        return f"""\
title = "Handover {self.number}"
duration = "{self.at_s + self.outage_s + after_s:.6f} s"
seed = {self.number}
assist = "default"

[links]
old = {self.old.text}
new = {self.new.text}
ethernet = {{ preset = "ethernet-1g", delay = "{_AGENT_MS / 2:g} ms" }}

[mobility]
routing = "reverse-tunnel"

[[handover]]
at = "{self.at_s:.6f} s"
from = "old"
to = "new"
style = "break-before-make"
interruption = "{self.outage_s:.6f} s"
queued = "drop"

[[flow]]
name = "transfer"
from = "{ends[0]}"
to = "{ends[1]}"
kind = "bulk"
tcp = {{ profile = "linux", congestion = "{self.congestion}" }}
"""


@dataclass(frozen=True)
class Drawn:
    """What a handover came to."""

    draw: Draw
    stall_s: float
    """From the new path's being ready to the first new byte at the receiving application; endless if none came."""
    timeouts: int
    retransmitted: int
    after_s: float
    """How long was looked at from the outage's end on."""

    @property
    def stall_rtt(self) -> float:
        """In round trips of the new path."""
        return self.stall_s / self.draw.new.round_trip_s

    @property
    def stall_delays(self) -> float:
        """The same where a round trip is propagation alone."""
        return self.stall_s / self.draw.new.delays_s

    @property
    def scenario(self) -> str:
        """The scenario that was run."""
        return self.draw.scenario(self.after_s)

    def as_json(self) -> dict[str, Any]:
        """For `handovers.json`."""
        never = self.stall_s == float("inf")
        return asdict(self.draw) | {
            "round_trip_s": round(self.draw.new.round_trip_s, 9),
            "delays_s": round(self.draw.new.delays_s, 9),
            "stall_s": None if never else self.stall_s,
            "stall_rtt": None if never else round(self.stall_rtt, 6),
            "timeouts": self.timeouts,
            "retransmitted": self.retransmitted,
        }


def draw(number: int) -> Draw:
    """The handover of that number."""
    chance = random.Random(f"handover {number}")  # noqa: S311 - scenarios, not secrets
    upload = chance.random() < 0.5
    congestion = chance.choice(CONGESTION)
    old, other = _path(chance), _path(chance)
    new = old if chance.random() < 0.5 else other
    outage_s = chance.uniform(*OUTAGES_S)
    at_s = chance.uniform(*_WARM_UP_S) + _WARM_UP_TRIPS * old.delays_s
    return Draw(number, upload, congestion, old, new, round(at_s, 6), round(outage_s, 6))


def _path(chance: random.Random) -> Path:
    rate = round(_between(chance, RATES_KBIT_S))
    delay_us = round((_between(chance, ROUND_TRIPS_MS) - _AGENT_MS) * 1000 / 2)
    products = _between(chance, QUEUES_PRODUCTS)
    queue = round(products * rate * 125 * (2 * delay_us / 1000 + _AGENT_MS) / 1000)
    return Path(rate, delay_us, max(queue, LEAST_QUEUE_BYTES))


def _between(chance: random.Random, ends: tuple[float, float]) -> float:
    """Evenly on a logarithmic scale."""
    low, high = ends
    return float(low * (high / low) ** chance.random())


def measure(one: Draw, progress: Watcher | None = None) -> Drawn:
    """Carry out one handover and read it."""
    after_s = _AFTER_S + _AFTER_TRIPS * one.new.delays_s
    handover = _carry_out(one, after_s, progress)
    if handover["stall"] == "never":
        after_s = _PATIENCE_S
        handover = _carry_out(one, after_s, progress)
    flow = handover["flows"][0]
    stall_s = float("inf") if handover["stall_after_s"] is None else handover["stall_after_s"]
    return Drawn(one, stall_s, flow["timeouts"], flow["segments_retransmitted"], after_s)


def _carry_out(one: Draw, after_s: float, progress: Watcher | None) -> Mapping[str, Any]:
    handover: Mapping[str, Any] = run(one.scenario(after_s), trace=False, progress=progress).summary["handovers"][0]
    return handover


def work(first: int, count: int) -> list[Callable[[Watcher], Sequence[Drawn]]]:
    """The runs, several in a piece."""
    numbers = range(first, first + count)
    return [partial(_measure_all, numbers[start : start + _BATCH]) for start in range(0, count, _BATCH)]


def _measure_all(numbers: Sequence[int], progress: Watcher) -> list[Drawn]:
    def one(done: int, number: int) -> Drawn:
        return measure(draw(number), lambda now, whole: progress(done + now / whole, len(numbers)))

    return [one(done, number) for done, number in enumerate(numbers)]
