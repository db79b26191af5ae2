"""What the links of a run join, how long they take for a packet, and which of them the direct route has."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from careof.errors import InputError

if TYPE_CHECKING:
    from careof.native import Json

# Half-duplex Ethernet (IEEE 802.3, clauses 3 and 4.4.2): preamble and gap in bits, addresses and check sequence and the
# least frame in bytes. They are those of crates/link/src/medium/config.rs.
_PREAMBLE_BITS = 64
_GAP_BITS = 96
_FRAME_BYTES = 18
_LEAST_BYTES = 64


@dataclass(frozen=True)
class Way:
    """A one-way link."""

    name: str
    source: str
    target: str
    access: bool
    """One end is the mobile node's."""
    medium: str | None
    rate_bps: int
    delay_ns: int
    bits_per_byte: int
    overhead_bytes: int
    jitter: bool
    jitter_ns: int
    """What jitter adds at most; 0 where it has no bound."""
    traced: bool
    """Its rate and delay follow a file."""

    @property
    def resource(self) -> str:
        """What its packets take turns on: the medium, or the one-way link itself."""
        return self.name if self.medium is None else self.medium

    def bits(self, size: int) -> float:
        """Bits that a packet keeps the link busy with, a gap before the frame included."""
        if self.medium is not None:
            return _PREAMBLE_BITS + _GAP_BITS + 8 * max(size + _FRAME_BYTES, _LEAST_BYTES)
        return (size + self.overhead_bytes) * self.bits_per_byte


class Topology:
    """The links of a resolved scenario, and the routes over them."""

    def __init__(self, scenario: Json) -> None:
        mobility = scenario.get("mobility") or {}
        if "nodes" in mobility:
            raise InputError(
                f"a run of many mobile nodes (`nodes = {mobility['nodes']}`) cannot be explained: their radios go from "
                "station to station, and routes with them",
                hint="explain a run of one mobile node",
            )
        self.mobiles = {str(node["name"]) for node in scenario["nodes"] if node["role"] == "mobile"}
        self.ways: dict[str, Way] = {}
        for link in scenario["links"]:
            ends = [str(end) for end in link["between"]]
            for direction, (source, target) in (("down", ends), ("up", ends[::-1])):
                way = _way(f"{link['name']}.{direction}", source, target, link, link[direction])
                self.ways[way.name] = way

    def direct(self, source: str, target: str, access: str | None) -> frozenset[str]:
        """The one-way links of the direct route, with the mobile node on the link `access`.

        Of a medium these are all links to the station where the route leaves it: whoever crosses it several times has
        crossed it once as the route would.
        """
        route = self._shortest(source, target, access)
        found = set()
        for way in route:
            if way.medium is None:
                found.add(way.name)
            else:
                found |= {
                    other.name
                    for other in self.ways.values()
                    if other.medium == way.medium and other.target == way.target
                }
        return frozenset(found)

    def _shortest(self, source: str, target: str, access: str | None) -> list[Way]:
        """Fewest links; of as many those named first, as the routes of a run are made. Mobile nodes pass nothing on."""
        came: dict[str, Way] = {}
        waiting = deque([source])
        while waiting and target not in came:
            here = waiting.popleft()
            if here in self.mobiles and here != source:
                continue
            for way in self.ways.values():
                usable = not way.access or access is None or way.name.rpartition(".")[0] == access
                if way.source == here and usable and way.target != source and way.target not in came:
                    came[way.target] = way
                    waiting.append(way.target)
        route: list[Way] = []
        here = target
        while here != source and here in came:
            route.append(came[here])
            here = came[here].source
        return route[::-1]


def _way(name: str, source: str, target: str, link: Json, how: Json) -> Way:
    jitter = how["jitter"]
    return Way(
        name=name,
        source=source,
        target=target,
        access=bool(link["access"]),
        medium=link.get("medium"),
        rate_bps=int(how["rate_bps"] or 0),
        delay_ns=int(how["delay_ns"]),
        bits_per_byte=int(how["framing"]["bits_per_byte"]),
        overhead_bytes=int(how["framing"]["overhead_bytes"]),
        jitter=jitter["kind"] != "none",
        jitter_ns=int(jitter.get("spread_ns") or 0),
        traced="trace" in how,
    )
