"""The runs that the model is fitted on, and those it is held against."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, NamedTuple

from careof.advice.model import SENDERS, Conditions, Scheme, Sender, buffer_packets, lead_s
from careof.runs import run

if TYPE_CHECKING:
    from careof.runs import Watcher

RTT_S = (0.02, 0.2)
RATE_BPS = (1e6, 10e6)
LONGEST_S = 0.5
"""A gap or an overlap."""
EVERY_S = 6.0
HANDOVERS = 5
_NEAR_S = 0.001
"""One way, of the links between the gateway and the mobile node."""
_SPREAD_S = 0.2
_SHARE_OF_SOFT = 0.3


class Draw(NamedTuple):
    """Conditions, and a sender and scheme, or nobody moves."""

    number: int
    conditions: Conditions
    sender: Sender
    scheme: Scheme | None


class Outcome(NamedTuple):
    """What became of one."""

    goodput_bps: float
    timeouts: int


def conditions(number: int) -> Conditions:
    """The conditions of a number, always the same; rates and round trips are drawn by their logarithms."""
    draw = random.Random(number)  # noqa: S311 - numbers to simulate with

    def any_size(low: float, high: float) -> float:
        return math.exp(draw.uniform(math.log(low), math.log(high)))

    rtt, rate = any_size(*RTT_S), any_size(*RATE_BPS)
    is_soft, how_long = draw.random() < _SHARE_OF_SOFT, draw.uniform(0.0, LONGEST_S)
    milliseconds = round(1e3 * how_long) / 1e3
    return Conditions(
        0.0 if is_soft else milliseconds,
        max(1e-3, milliseconds) if is_soft else 0.0,
        round(rate, -3),
        round(1e6 * rtt) / 1e6,
    )


def scenario(of: Draw) -> str:
    """A domain of two base stations, between which the mobile node goes to and fro."""
    given = of.conditions
    far_us = round(1e6 * given.rtt_s / 2 - 1e6 * 3 * _NEAR_S)
    wire = f'rate = "100 Mbit/s", delay = "{_NEAR_S * 1e3:g} ms"'
    queue = f'queue = "{given.queue} packets"'
    radio = f'rate = "{given.rate_bps:.0f} bit/s", delay = "{_NEAR_S * 1e3:g} ms"'
    micro = moves = ""
    if of.scheme is not None:
        trigger = f'trigger = "source"\nlead = "{lead_s(given) * 1e6:.0f} us"\n'
        settings = {
            Scheme.BUFFER: f"{trigger}buffer = {{ packets = {buffer_packets(given)} }}\n",
            Scheme.NO_BUFFER: trigger,
            Scheme.BICAST: "",
        }[of.scheme]
        both = f'bicast = "{given.overlap_s * 1e3:g} ms"\n' if given.overlap_s else ""
        micro = f"{settings}{both}"
        span = (
            f'overlap = "{given.overlap_s * 1e3:g} ms"'
            if given.overlap_s
            else f'interruption = "{given.gap_s * 1e3:g} ms"'
        )
        moves = f'[[handover]]\nevery = "{EVERY_S:g} s"\nspread = "{_SPREAD_S:g} s"\n{span}\n'
    return f"""\
duration = "{EVERY_S * (HANDOVERS + 1):g} s"
[links]
server = {{ rate = "100 Mbit/s", delay = "{far_us} us", between = ["correspondent", "home-agent"] }}
uplink = {{ {wire}, between = ["home-agent", "gateway"] }}
cell = {{ {wire}, between = ["gateway", "station-*"], count = 2 }}
radio = {{ {radio}, {queue}, between = ["station-*", "mobile-*"] }}
[mobility]
nodes = 1
[micro_mobility]
protocol = "building-blocks"
{micro}{moves}[[flow]]
name = "download"
from = "correspondent"
to = "mobile-1"
kind = "bulk"
tcp = {of.sender.tcp}
"""


class Drawn(NamedTuple):
    """A draw and what became of it."""

    of: Draw
    outcome: Outcome


def carry_out(of: Draw, progress: Watcher | None = None) -> Drawn:
    """Run one."""
    result = run(scenario(of), trace=False, repetition=of.number, progress=progress)
    (flow,) = result.summary["flows"]
    return Drawn(of, Outcome(float(flow["goodput_bps"]), int(flow["timeouts"])))


def draws(numbers: range) -> list[Draw]:
    """Of each number every sender with every scheme, and without handovers."""
    return [
        Draw(number, conditions(number), sender, scheme)
        for number in numbers
        for sender in SENDERS.values()
        for scheme in (None, *Scheme)
    ]
