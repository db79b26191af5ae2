"""What the links of a run join, how long they take for a packet, and which of them the direct route has."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from careof.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from careof.native import Json

# Half-duplex Ethernet (IEEE 802.3, clauses 3 and 4.4.2): preamble and gap in bits, addresses and check sequence and the
# least frame in bytes. They are those of crates/link/src/medium/ethernet/config.rs.
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

    def __init__(self, scenario: Json, names: Sequence[str]) -> None:
        """`names` are those of all one-way links in order: a scenario names only the first of many that are alike."""
        mobility = scenario.get("mobility") or {}
        if "nodes" in mobility:
            raise InputError(
                f"a run of many mobile nodes (`nodes = {mobility['nodes']}`) cannot be explained: their radios go from "
                "station to station, and routes with them",
                hint="explain a run of one mobile node",
            )
        wireless = [str(medium["name"]) for medium in scenario.get("media", []) if medium["kind"] != "csma-cd"]
        if wireless:
            raise InputError(
                f"a run over a radio channel (`media.{wireless[0]}`) cannot be explained: how long a frame takes there "
                "depends on who else sends",
                hint="explain a run over links of their own, or over a cable",
            )
        self.mobiles = {str(node["name"]) for node in scenario["nodes"] if node["role"] == "mobile"}
        self.ways: dict[str, Way] = {}
        named = iter(names)
        for link in scenario["links"]:
            for ends in _ends_of(link):
                for direction, (source, target) in (("down", ends), ("up", ends[::-1])):
                    way = _way(next(named, ""), source, target, link, link[direction])
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


def _ends_of(link: Json) -> Iterator[list[str]]:
    """The ends of each link that an entry of the scenario stands for."""
    first = [str(end) for end in link["between"]]
    copies = link.get("copies")
    if copies is None:
        yield first
        return
    count = int(copies["count"])
    for number in range(1, count + 1):
        yield [
            _numbered(one, str(last), number, count) for one, last in zip(first, copies["last_between"], strict=True)
        ]


def _numbered(first: str, last: str, number: int, count: int) -> str:
    """The node of one of `count` links, which have those from `first` to `last` in turn, or share them out in order."""
    for at, char in enumerate(first):
        rest = first[at + 1 :]
        nodes = last[at : len(last) - len(rest)]
        if char == "1" and nodes.isdecimal() and f"{first[:at]}{nodes}{rest}" == last:
            place = number if int(nodes) >= count else (number - 1) * int(nodes) // count + 1
            return f"{first[:at]}{place}{rest}"
    return first


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
