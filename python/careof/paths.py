"""What the links of a scenario come to: how long a full queue lasts, and the paths of flows with their BDP."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from careof.native import Json

_NANO = 1e-9


@dataclass(frozen=True, slots=True)
class Hop:
    """One direction of a link on a path."""

    link: Json
    """As the overview of a scenario has it."""
    way: str
    """``down`` or ``up``."""

    @property
    def rate_bps(self) -> float | None:
        """Its rate; None where it has none, or changes with a trace."""
        rate: float | None = self.link[self.way].get("rate_bps")
        return rate

    @property
    def delay_s(self) -> float:
        """Its propagation delay."""
        return float(self.link[self.way]["delay_ns"]) * _NANO


@dataclass(frozen=True, slots=True)
class FlowPath:
    """The way of a flow's data over one access link, and that of its ACKs back."""

    flow: str
    access: str | None
    """The access link; None where no end of the flow moves."""
    there: tuple[Hop, ...]
    back: tuple[Hop, ...]

    @property
    def bottleneck(self) -> Hop | None:
        """The slowest link of the way there; None where one follows a trace or shares a medium, or none has a rate."""
        if any(hop.link["medium"] or hop.link[hop.way].get("trace") is not None for hop in self.there):
            return None
        limited = [hop for hop in self.there if hop.rate_bps]
        return min(limited, key=lambda hop: hop.rate_bps or 0.0, default=None)

    @property
    def round_trip_s(self) -> float:
        """Propagation there and back, without jitter, queues and the time to send a packet."""
        return sum(hop.delay_s for hop in (*self.there, *self.back))

    @property
    def bdp_bytes(self) -> float | None:
        """Bandwidth-delay product: the bottleneck's rate for a round trip."""
        slowest = self.bottleneck
        return None if slowest is None or not slowest.rate_bps else slowest.rate_bps * self.round_trip_s / 8


def full_queue_s(direction: Json) -> float | None:
    """How long the last byte of a full queue waits, with packets of the link's MTU; None without rate or limit."""
    rate, queue, framing = direction.get("rate_bps"), direction["queue"], direction["framing"]
    sizes = []
    if queue["limit_packets"] is not None:
        packet = direction["mtu_bytes"] + framing["overhead_bytes"]
        sizes.append(queue["limit_packets"] * packet)
    if queue["limit_bytes"] is not None:
        sizes.append(queue["limit_bytes"])
    return min(sizes) * framing["bits_per_byte"] / rate if rate and sizes else None


def flow_paths(overview: Json, scenario: Json) -> list[FlowPath]:
    """A path for each flow and each access link of the node of it that moves; shortest ways, by way of its home agent.

    Where routers of a tree lend a mobile node its link, only the first is shown.
    """
    found = []
    for flow in scenario["flows"]:
        # A probe measures one link.
        if flow["workload"]["kind"] == "probe":
            continue
        mobile = next((one for one in overview["mobiles"] if one["name"] in (flow["from"], flow["to"])), None)
        access: list[Json | None] = [None]
        if mobile is not None:
            access = [*_access_links(overview, mobile["name"])] or access
        for link in access:
            path = _path(overview, scenario, flow, mobile, link)
            if path is not None:
                found.append(path)
    return found


def _access_links(overview: Json, mobile: str) -> list[Json]:
    return [link for link in overview["links"] if mobile in link["between"] and (link["access"] or link["home"])]


def _path(overview: Json, scenario: Json, flow: Json, mobile: Json | None, access: Json | None) -> FlowPath | None:
    if mobile is None or access is None:
        there = _way(overview, [flow["from"], flow["to"]], None)
        back = _way(overview, [flow["to"], flow["from"]], None)
    else:
        mobility = scenario["mobility"] or {}
        agent = mobile["home_agent"]
        # Packets to the mobile node go by way of its home agent unless it is at home or somebody knows better.
        straight = access["home"] or mobility.get("route_optimization") or (flow.get("quic") or {}).get("migration")
        tunnelled = not straight and mobility.get("routing") != "triangle"
        down_by, up_by = ([] if straight else [agent]), ([agent] if tunnelled else [])
        receives = flow["to"] == mobile["name"]
        first, second = (down_by, up_by) if receives else (up_by, down_by)
        there = _way(overview, [flow["from"], *first, flow["to"]], access)
        back = _way(overview, [flow["to"], *second, flow["from"]], access)
    if there is None or back is None:
        return None
    return FlowPath(str(flow["name"]), None if access is None else str(access["name"]), there, back)


def _way(overview: Json, stops: Sequence[str], access: Json | None) -> tuple[Hop, ...] | None:
    """From stop to stop over as few links as possible; of the links of nodes that move only this one."""
    hops: list[Hop] = []
    for begin, end in pairwise(stops):
        part = _shortest(overview, begin, end, access)
        if part is None:
            return None
        hops += part
    return tuple(hops)


def _shortest(overview: Json, begin: str, end: str, access: Json | None) -> list[Hop] | None:
    moving = {one["name"] for one in overview["mobiles"]}
    reached: dict[str, list[Hop]] = {begin: []}
    waiting = [begin]
    for node in waiting:
        if node == end:
            return reached[node]
        # Nodes that move forward nothing.
        if node in moving and node != begin:
            continue
        for hop, other in _neighbours(overview, node, moving, access):
            if other not in reached:
                reached[other] = [*reached[node], hop]
                waiting.append(other)
    return None


def _neighbours(overview: Json, node: str, moving: Iterable[str], access: Json | None) -> Iterator[tuple[Hop, str]]:
    for link in overview["links"]:
        if node not in link["between"]:
            continue
        first, second = link["between"]
        if (first in moving or second in moving) and (access is None or link["name"] != access["name"]):
            continue
        yield (Hop(link, "down"), second) if node == first else (Hop(link, "up"), first)
