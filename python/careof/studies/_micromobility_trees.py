"""The named protocols in trees of other depths, and with mobile nodes that have nothing to say."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from careof.runs import run
from careof.studies import Table
from careof.studies._mean import Mean
from careof.studies._micromobility_runs import BICAST, BUFFER, NAMED, NO_BUFFER, PAPERS, Scheme

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from careof.studies import Watcher

NODES = 10
STATIONS = 16
DURATION_S = 60
EVERY_MS = 4800
DEPTHS = (1, 2, 4)
"""Links from the gateway down to a base station."""
FAN_OUT = {1: 16, 2: 4, 4: 2}
"""Of each router, so that there are as many base stations whatever the depth."""
IDLE = (0, 5, 9)
"""Mobile nodes of ten that have no flow."""
USUAL_DEPTH = 4
_NEWRENO = PAPERS[2]
COMPARED = (BUFFER, NO_BUFFER, BICAST, *NAMED)


@dataclass(frozen=True)
class Grown:
    """A run in a tree."""

    scheme: Scheme
    depth: int
    idle: int
    repetition: int

    def scenario(self) -> str:
        """Its scenario."""
        wire = 'rate = "100 Mbit/s", delay = "2 ms", queue = "100 packets"'
        fan_out = FAN_OUT[self.depth]
        names = ["gateway", *(f"level-{level}-*" for level in range(1, self.depth)), "station-*"]
        tree = "".join(
            f'link-{level} = {{ {wire}, between = ["{above}", "{below}"], count = {fan_out**level} }}\n'
            for level, (above, below) in enumerate(pairwise(names), start=1)
        )
        flows = "".join(
            f'[[flow]]\nname = "download-{n}"\nfrom = "correspondent"\nto = "mobile-{n}"\nkind = "bulk"\n'
            f"{_NEWRENO.transport}\n"
            for n in range(1, NODES - self.idle + 1)
        )
        return f"""\
title = "{self.scheme.name}, {self.depth} links deep, {self.idle} of {NODES} idle"
duration = "{DURATION_S} s"
[links]
server = {{ {wire}, between = ["correspondent", "home-agent"] }}
uplink = {{ {wire}, between = ["home-agent", "gateway"] }}
{tree}radio = {{ rate = "2 Mbit/s", delay = "2 ms", queue = "50 packets", between = ["station-*", "mobile-*"] }}
[mobility]
nodes = {NODES}
[micro_mobility]
protocol = "{self.scheme.protocol}"
{self.scheme.micro}[[handover]]
every = "{EVERY_MS} ms"
interruption = "0 s"
spread = "200 ms"
{flows}"""


class Counted(NamedTuple):
    """What became of one, a handover."""

    of: Grown
    interruption_s: float
    lost: float
    duplicates: float
    out_of_order: float
    messages: float


def grow(of: Grown, progress: Watcher | None = None) -> Counted:
    """Carry a run out."""
    summary: dict[str, Any] = run(of.scenario(), trace=False, repetition=of.repetition, progress=progress).summary
    roaming = summary["roaming"]
    count = max(1, int(roaming["handovers"]))
    flows = summary["flows"]
    median = roaming["interruption_median_s"]
    return Counted(
        of,
        interruption_s=float("inf") if median is None else float(median),
        lost=sum(summary["packets"]["dropped"].values()) / count,
        duplicates=sum(int(flow["network_duplicates"]) for flow in flows) / count,
        out_of_order=sum(int(flow["out_of_order_arrivals"]) for flow in flows) / count,
        messages=int(summary.get("micro_mobility", {}).get("messages_sent", 0)) / count,
    )


def grown(repetitions: int) -> list[Grown]:
    """All runs: each scheme at each depth, and at one with each share of idle mobile nodes."""
    points = [(depth, 0) for depth in DEPTHS] + [(USUAL_DEPTH, idle) for idle in IDLE if idle]
    return [
        Grown(scheme, depth, idle, repetition)
        for scheme in COMPARED
        for depth, idle in points
        for repetition in range(repetitions)
    ]


_COLUMNS: tuple[tuple[str, Callable[[Counted], float], int], ...] = (
    ("interruption (ms)", lambda one: 1e3 * one.interruption_s, 1),
    ("packets ended early", lambda one: one.lost, 1),
    ("duplicates", lambda one: one.duplicates, 1),
    ("out of order", lambda one: one.out_of_order, 1),
    ("messages, a link each", lambda one: one.messages, 1),
)


def tables(done: Sequence[Counted]) -> list[Table]:
    """By depth, and by how many are idle."""

    def lines(points: Sequence[tuple[int, int]], shown: Callable[[int, int], str]) -> list[list[str]]:
        found = []
        for scheme in COMPARED:
            for depth, idle in points:
                here = [one for one in done if (one.of.scheme, one.of.depth, one.of.idle) == (scheme, depth, idle)]
                if here:
                    values = [Mean.of([value(one) for one in here]).shown(digits) for _, value, digits in _COLUMNS]
                    found.append([scheme.name, shown(depth, idle), *values])
        return found

    columns = [name for name, _, _ in _COLUMNS]
    return [
        Table(
            title=f"The schemes against the depth of a tree of {STATIONS} base stations, {NODES} downloads, a handover",
            head=["scheme", "links to a base station", *columns],
            lines=lines([(depth, 0) for depth in DEPTHS], lambda depth, _: f"{depth} (fan-out {FAN_OUT[depth]})"),
            text=(
                "A gap of 0 ms. The next base station in order is behind another router of the lowest level one time "
                "in as many as the fan-out, so that a deep tree has ways of all lengths."
            ),
            rows=[],
        ),
        Table(
            title=f"The schemes against the share of idle mobile nodes, {USUAL_DEPTH} links deep, a handover",
            head=["scheme", "idle", *columns],
            lines=lines([(USUAL_DEPTH, idle) for idle in IDLE], lambda _, idle: f"{100 * idle // NODES} %"),
            text=(
                "Idle mobile nodes have no flow. With Cellular IP they send paging updates, while packets of the "
                "others say where these are, and announce no semi-soft handover; with the other protocols a move "
                "costs the same whoever moves. Loss, duplicates and disorder are divided by the handovers of all."
            ),
            rows=[],
        ),
    ]
