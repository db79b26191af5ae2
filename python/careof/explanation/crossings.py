"""Packets over links: every crossing, what was cut or copied from what, and what each crossing is to a flow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from careof.explanation.parts import SERVED
from careof.explanation.table import ABSENT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from careof.explanation.segments import Segments
    from careof.explanation.table import Events, Flags, Ints
    from careof.explanation.topology import Topology

    Numbers = NDArray[np.float64]

_IP_HEADER = 20
_LARGEST_OUTER = 60
"""Bytes that tunnels add at most to a fragment: what is larger by more is no fragment any more."""


class Crossings:
    """Every packet that a one-way link accepted, in the order of packet and time. Columns are arrays of one length."""

    def __init__(self, events: Events, topology: Topology) -> None:
        self.ways = [topology.ways.get(name) for name in events.names["link"]]
        entered, left = (events.code("kind", f"packet-{what}") for what in ("enqueued", "delivered"))
        dropped = events.code("kind", "packet-dropped")
        kind, link = events["kind"], events["link"]
        rows = np.flatnonzero(((kind == entered) | (kind == left) | (kind == dropped)) & (link >= 0))
        # A crossing is the row in which a link takes a packet, and the next row of the same packet on the same link.
        rows = rows[np.lexsort((rows, link[rows], events["packet"][rows]))]
        packet, over = events["packet"][rows], link[rows]
        begins = np.flatnonzero(kind[rows] == entered)
        following = np.minimum(begins + 1, len(rows) - 1)
        ended = (
            (following > begins)
            & (packet[following] == packet[begins])
            & (over[following] == over[begins])
            & (kind[rows[following]] != entered)
        )
        order = np.lexsort((rows[begins], packet[begins]))
        begins, following, ended = begins[order], following[order], ended[order]
        first, last = rows[begins], np.where(ended, rows[following], ABSENT)
        self.packet: Ints = packet[begins]
        self.link: Ints = over[begins]
        self.row: Ints = first
        self.last_row: Ints = last
        self.begin: Ints = events["time_ns"][first]
        self.end: Ints = np.where(ended, events["time_ns"][last], ABSENT)
        self.size: Ints = events["size_bytes"][first]
        self.flow: Ints = events["flow"][first]
        self.delivered: Flags = ended & (kind[last] == left)
        lost = events.code("cause", "loss")
        self.carried: Flags = self.delivered | (ended & (kind[last] == dropped) & (events["cause"][last] == lost))
        """It kept its link busy: it came out, or was lost on the way."""
        self.dropped: Flags = ended & (kind[last] == dropped)

    def __len__(self) -> int:
        return len(self.packet)

    def of_packet(self, packet: int) -> range:
        """The crossings of a packet, in order."""
        low, high = np.searchsorted(self.packet, (packet, packet + 1))
        return range(int(low), int(high))


@dataclass(frozen=True)
class _Cut:
    """How a fragment was made."""

    size: int
    first: bool
    outer: int
    """Bytes of the outer header in it."""


class Lineage:
    """Which packet was made of which."""

    def __init__(self, events: Events) -> None:
        rows = events.rows_of("packet-derived")
        packets, parents = (events[name][rows].tolist() for name in ("packet", "of_packet"))
        self.parent: dict[int, int] = dict(zip(packets, parents, strict=True))
        cause = events["cause"][rows]
        copied = set(np.isin(cause, [events.code("cause", word) for word in ("copy", "replay")]).nonzero()[0].tolist())
        self.copies = {packet for index, packet in enumerate(packets) if index in copied}
        self._sizes = dict(zip(packets, events["size_bytes"][rows].tolist(), strict=True))
        self._fragments: dict[int, list[int]] = {}
        for index, (packet, parent) in enumerate(zip(packets, parents, strict=True)):
            if index not in copied:
                self._fragments.setdefault(parent, []).append(packet)

    def root(self, packet: int) -> int:
        """The packet that an endpoint sent."""
        for _ in range(len(self.parent) + 1):
            if packet not in self.parent:
                break
            packet = self.parent[packet]
        return packet

    def is_copy(self, packet: int) -> bool:
        """Whether the network made it, or what it is a part of."""
        for _ in range(len(self.parent) + 1):
            if packet in self.copies:
                return True
            if packet not in self.parent:
                return False
            packet = self.parent[packet]
        return False

    def cuts(self, base: dict[int, int]) -> dict[int, _Cut]:
        """Of each fragment how it was made; `base` are the sizes with which packets were sent."""
        found = {}
        for whole, parts in self._fragments.items():
            size = sum(self._sizes[part] for part in parts) - _IP_HEADER * (len(parts) - 1)
            bare = self._sizes.get(whole) if whole in found else base.get(self.root(whole))
            outer = max(size - (size if bare is None else bare), 0)
            for part in parts:
                first = part == min(parts)
                found[part] = _Cut(self._sizes[part], first, outer if first else 0)
        return found


class Seen:
    """The crossings of one flow as this flow sees them: what of each is payload, headers, repetition, detour."""

    def __init__(
        self, crossings: Crossings, lineage: Lineage, segments: Segments, topology: Topology, flow: int
    ) -> None:
        self.index: Ints = np.flatnonzero(crossings.flow == flow)
        """Which of all crossings are its own."""
        self.place: Ints = np.full(len(crossings), ABSENT, np.int64)
        """Of each crossing its place among these, or `ABSENT`."""
        self.place[self.index] = np.arange(len(self.index))
        self._all = crossings
        self._topology = topology
        packets = crossings.packet[self.index]
        unique, self._which = np.unique(packets, return_inverse=True)
        roots = [lineage.root(int(packet)) for packet in unique]
        self._segment = np.array([segments.of_packet.get(root, ABSENT) for root in roots], np.int64)
        self._copy = np.array([lineage.is_copy(int(packet)) for packet in unique], bool)
        sizes = segments.sizes(self._whole_sizes(roots, unique, lineage))
        self._base = np.array([sizes.get(root, ABSENT) for root in roots], np.int64)
        cuts = lineage.cuts(sizes) if lineage.parent else {}
        of_cut = [cuts.get(int(packet)) for packet in unique]
        self._cut_size = np.array([ABSENT if cut is None else cut.size for cut in of_cut], np.int64)
        self._cut_first = np.array([cut is None or cut.first for cut in of_cut], bool)
        self._cut_outer = np.array([0 if cut is None else cut.outer for cut in of_cut], np.int64)
        self._segments = segments
        self.segment: Ints = self._segment[self._which]
        """The segment that each of them carries, by its place among the flow's; `ABSENT` where that is unknown."""

    def _whole_sizes(self, roots: list[int], unique: Ints, lineage: Lineage) -> dict[int, int]:
        """The least size of each packet on a link, whole: on real hosts a sender may be a tunnel's entrance."""
        least = np.full(len(unique), np.iinfo(np.int64).max)
        np.minimum.at(least, self._which, self._all.size[self.index])
        return {
            root: int(size)
            for root, packet, size in zip(roots, unique.tolist(), least.tolist(), strict=True)
            if packet not in lineage.parent
        }

    @cached_property
    def direct(self) -> Flags:
        """Which crossings the direct route has."""
        link = self._all.link[self.index]
        forward = self._with_segment(self._segments.forward) | (self.segment < 0)
        access = self._access()
        found = np.zeros(len(self.index), bool)
        ends = (self._segments.source, self._segments.target)
        for ahead in (True, False):
            source, target = ends if ahead else ends[::-1]
            for place in np.unique(access[forward == ahead]).tolist():
                way = self._all.ways[place] if place >= 0 else None
                cell = None if way is None else way.name.rpartition(".")[0]
                route = self._topology.direct(source, target, cell)
                on_route = np.array([one is not None and one.name in route for one in self._all.ways], bool)
                chosen = (forward == ahead) & (access == place)
                found[chosen] = on_route[link[chosen]]
        return found

    def _access(self) -> Ints:
        """By which of the mobile node's links each packet goes: its own last one, or that of the one sent before it."""
        link = self._all.link[self.index]
        is_access = np.array([way is not None and way.access for way in self._all.ways], bool)
        # Both directions of a link are one: `.down` and `.up` of it stand for the same cell.
        names = ["" if way is None else way.name.rpartition(".")[0] for way in self._all.ways]
        cell = np.array([names.index(name) for name in names], np.int64)
        by_segment = np.full(len(self._segments), ABSENT, np.int64)
        chosen = is_access[link] & (self.segment >= 0)
        order = np.argsort(self._all.row[self.index][chosen], kind="stable")
        by_segment[self.segment[chosen][order]] = cell[link[chosen][order]]
        last = ABSENT
        places = by_segment.tolist()
        for number, place in enumerate(places):
            if place >= 0:
                last = place
            places[number] = last
        first = next((place for place in places if place >= 0), ABSENT)
        filled = np.array([first if place < 0 else place for place in places], np.int64)
        access = np.full(len(link), first, np.int64)
        access[self.segment >= 0] = filled[self.segment[self.segment >= 0]]
        return access

    @cached_property
    def _is_fragment(self) -> Flags:
        cut = self._cut_size[self._which]
        grown = self._all.size[self.index] - cut
        return (cut >= 0) & (grown >= 0) & (grown <= _LARGEST_OUTER)

    @cached_property
    def outer(self) -> Ints:
        """Bytes of outer headers in each crossing."""
        size, base = self._all.size[self.index], self._base[self._which]
        of_fragment = self._cut_outer[self._which] + size - self._cut_size[self._which]
        of_whole = np.where(base >= 0, np.maximum(size - base, 0), 0)
        return np.where(self._is_fragment, of_fragment, of_whole)

    @cached_property
    def further_fragment(self) -> Flags:
        """Which are fragments, but not the first ones."""
        further: Flags = self._is_fragment & ~self._cut_first[self._which]
        return further

    @cached_property
    def whole_part(self) -> NDArray[np.str_]:
        """The part that a crossing belongs to whole, or empty where it is divided."""
        part = np.full(len(self.index), "", "U32")
        part[~self.direct] = "path_stretch"
        part[self._with_segment(self._segments.needed)] = "retransmissions_needed"
        part[self._with_segment(self._segments.unnecessary)] = "retransmissions_unnecessary"
        part[self._copy[self._which]] = "copies"
        return part

    def _with_segment(self, chosen: Flags) -> Flags:
        """Which carry one of the chosen segments."""
        known = self.segment >= 0
        found = np.zeros(len(self.index), bool)
        found[known] = chosen[self.segment[known]]
        return found

    @cached_property
    def has_data(self) -> Flags:
        """Which carry data, or what else the sender of data says; the rest are acknowledgements."""
        return self._with_segment(self._segments.is_data)

    def shares(self) -> dict[str, Numbers]:
        """Of the time that each crossing keeps its link busy, what goes to which part: they sum to 1."""
        size = self._all.size[self.index]
        bits = frame_bits(self._all, self.index)
        per_byte = self._per_byte()
        outer = self.outer * per_byte / bits
        carried = (size - _IP_HEADER) * per_byte / bits
        further = np.where(self.further_fragment, 1.0 - carried, 0.0)
        rest = 1.0 - outer - further
        divided = self.whole_part == ""
        plain = np.where(self.has_data, "payload", "acknowledgements")
        shares = {key: np.zeros(len(self.index)) for key in SERVED}
        for key in ("payload", "acknowledgements"):
            shares[key] = np.where(divided & (plain == key), rest, 0.0)
        shares["encapsulation"] = np.where(divided, outer, 0.0)
        shares["fragmentation"] = np.where(divided, further, 0.0)
        for key in ("path_stretch", "retransmissions_needed", "retransmissions_unnecessary", "copies"):
            shares[key] = (self.whole_part == key).astype(float)
        return shares

    def bytes_of(self, chosen: Flags) -> dict[str, Ints]:
        """Bytes of IP of the chosen crossings (others count nothing), by part: they sum to their sizes."""
        size = np.where(chosen, self._all.size[self.index], 0)
        divided = chosen & (self.whole_part == "")
        outer = np.where(divided, self.outer, 0)
        cut = np.where(divided & self.further_fragment, _IP_HEADER, 0)
        rest = np.where(divided, size - outer - cut, 0)
        data = self._data_in(rest, cut)
        found = {
            "payload": np.where(self.has_data, data, 0),
            "headers": np.where(self.has_data, rest - data, 0),
            "acknowledgements": np.where(self.has_data, 0, rest),
            "encapsulation": outer,
            "fragmentation": cut,
        }
        for key in ("path_stretch", "retransmissions_needed", "retransmissions_unnecessary", "copies"):
            found[key] = np.where(self.whole_part == key, size, 0)
        return found

    def _data_in(self, rest: Ints, cut: Ints) -> Ints:
        """Bytes of data: what is not headers of TCP and IP, which stand in a packet's first fragment."""
        length = np.zeros(len(self.index), np.int64)
        known = self.segment >= 0
        length[known] = self._segments.length[self.segment[known]]
        header = np.maximum(self._base[self._which] - length, 0)
        header = np.where(cut > 0, 0, header)
        return np.maximum(np.minimum(rest - header, np.where(self._is_fragment, rest, length)), 0)

    def _per_byte(self) -> Numbers:
        per_byte = np.array([8 if way is None or way.medium else way.bits_per_byte for way in self._all.ways], float)
        return per_byte[self._all.link[self.index]]


def frame_bits(crossings: Crossings, index: Ints) -> Numbers:
    """Bits that crossings keep their links busy with, framing and the gap before a frame included."""
    bits = np.ones(len(index))
    link, size = crossings.link[index], crossings.size[index]
    for number, way in enumerate(crossings.ways):
        chosen = link == number
        if way is not None and chosen.any():
            unique, which = np.unique(size[chosen], return_inverse=True)
            bits[chosen] = np.array([way.bits(int(one)) for one in unique])[which]
    return bits
