"""The runs behind the study `recovery`: one scenario, and what each run changes in it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from careof.runs import SIMULATED, run

if TYPE_CHECKING:
    from careof.studies import Watcher

AT_ONCE = 6
"""Runs on Linux hosts at the same time: each is waiting for most of its time."""

CONGESTION = ("reno", "cubic", "bbr")
OUTAGES_S = (0.2, 0.5, 1.0, 3.0, 8.0, 20.0)
ROUND_TRIPS_MS = (10, 100)

_WARM_UP_S = 4.0
"""Long enough for slow start and the first loss."""
_SPREAD_S = 1.0
"""The handover begins somewhere in this span: at least one period of every timer there is before the outage."""
_RATE_MBIT_S = 10
_AGENT_MS = 1.0
"""Round trip between correspondent and home agent; the rest of the path is the access link."""


@dataclass(frozen=True)
class Case:
    """What is measured."""

    upload: bool
    round_trip_ms: int
    outage_s: float
    congestion: str

    @property
    def id(self) -> str:
        """For its row."""
        way = "up" if self.upload else "down"
        return f"{way}-{self.round_trip_ms}ms-{self.outage_s:g}s-{self.congestion}"

    @property
    def what(self) -> str:
        """For people."""
        way = "upload" if self.upload else "download"
        return f"{way}, RTT {self.round_trip_ms} ms, outage {self.outage_s:g} s, {self.congestion}"


CASES = tuple(
    Case(upload, round_trip_ms, outage_s, congestion)
    for upload in (False, True)
    for round_trip_ms in ROUND_TRIPS_MS
    for outage_s in OUTAGES_S
    for congestion in CONGESTION
)
QUICK = tuple(
    case for case in CASES if case.congestion == "cubic" and case.outage_s in (0.5, 3.0) and case.round_trip_ms == 100
)


@dataclass(frozen=True)
class Setup:
    """One run."""

    case: Case
    assist: str
    repetition: int
    of: int
    world: str

    @property
    def handover_at_s(self) -> float:
        """When the path goes away: the repetitions are spread evenly, each case begins elsewhere."""
        shift = (self.repetition + _fraction(self.case.id)) / self.of % 1.0
        return round(_WARM_UP_S + _SPREAD_S * shift, 6)

    @property
    def duration_s(self) -> float:
        """Long enough to see the rate come back: a sender left alone waits for up to as long again as the outage."""
        after = 4.0 if self.assist != "none" else min(4.0 + 1.5 * self.case.outage_s, 30.0)
        return _WARM_UP_S + _SPREAD_S + self.case.outage_s + after

    @property
    def settings(self) -> list[str]:
        """What it changes in the scenario."""
        case = self.case
        product_kb = max(_RATE_MBIT_S * case.round_trip_ms / 8, 30)
        ends = ("mobile", "correspondent") if case.upload else ("correspondent", "mobile")
        variant = 'profile = "linux"' if self.world == SIMULATED else 'variant = "kernel"'
        delay_us = round((case.round_trip_ms - _AGENT_MS) * 1000 / 2)
        return [
            f"duration={self.duration_s:g} s",
            *(f"links.{link}.delay={delay_us} us" for link in ("old", "new")),
            *(f"links.{link}.queue={product_kb:g} kB" for link in ("old", "new")),
            f"handover.0.at={self.handover_at_s * 1e6:.0f} us",
            f"handover.0.interruption={case.outage_s:g} s",
            f"flow.0.from={ends[0]}",
            f"flow.0.to={ends[1]}",
            f'flow.0.tcp={{ {variant}, congestion = "{case.congestion}" }}',
            f"assist={self.assist}",
        ]


SCENARIO = f"""\
title = "Back at full speed after an outage"
description = \"\"\"
A path of {_RATE_MBIT_S} Mbit/s ends without warning; after an outage the mobile node has another one like it.
Everything that was queued or under way is lost.
\"\"\"
duration = "12 s"

[links]
old = {{ rate = "{_RATE_MBIT_S} Mbit/s", delay = "49.5 ms", queue = "125 kB" }}
new = {{ rate = "{_RATE_MBIT_S} Mbit/s", delay = "49.5 ms", queue = "125 kB" }}
ethernet = {{ preset = "ethernet-1g", delay = "{_AGENT_MS / 2:g} ms" }}

[mobility]
protocol = "mobile-ipv4"
routing = "reverse-tunnel"

[[handover]]
at = "4 s"
from = "old"
to = "new"
style = "break-before-make"
interruption = "1 s"
queued = "drop"

[[flow]]
name = "transfer"
from = "correspondent"
to = "mobile"
kind = "bulk"
"""


@dataclass(frozen=True)
class Measured:
    """What a run came to; what did not happen is endless."""

    setup: Setup
    stall_rtt: float
    """From the new path's being ready to the first new byte at the receiving application, round trips."""
    recovery_rtt: float
    """To the beginning of the first window at 90 % of the rate."""
    timeouts: int
    retransmitted: int
    unnecessary: int
    kernel: str | None

    def as_json(self) -> dict[str, Any]:
        """For `runs.json`."""
        row = asdict(self)
        return {key: None if value == float("inf") else value for key, value in row.items()}


def measure(setup: Setup, progress: Watcher | None = None) -> Measured:
    """Carry out one run and read it."""
    result = run(SCENARIO, world=setup.world, set=setup.settings, trace=False, progress=progress)
    handover = result.summary["handovers"][0]
    flow = handover["flows"][0]
    round_trip_s = setup.case.round_trip_ms / 1e3

    def trips(seconds: float | None) -> float:
        return float("inf") if seconds is None else seconds / round_trip_s

    return Measured(
        setup=setup,
        stall_rtt=trips(handover["stall_after_s"]),
        recovery_rtt=trips(handover["recovery_90_s"]),
        timeouts=flow["timeouts"],
        retransmitted=flow["segments_retransmitted"],
        unnecessary=flow["unnecessary_retransmissions"],
        kernel=result.summary["kernel"],
    )


def _fraction(name: str) -> float:
    """A number from 0 to 1 that goes with a name, the same everywhere."""
    # The golden ratio's multiples spread evenly, whatever number of them there is.
    return sum(name.encode()) * 0.6180339887498949 % 1.0
