"""The segments of a flow: who sent what when, what of it was a repetition, and whether that was needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from careof.explanation.table import ABSENT

if TYPE_CHECKING:
    from careof.explanation.crossings import Lineage
    from careof.explanation.table import Events, Flags, Ints


class Segments:
    """What endpoints of a flow sent, in order. `source` sends the data that is explained, `target` gets it."""

    def __init__(
        self, events: Events, lineage: Lineage, flow: int, source: str, target: str, *, both_ways: bool
    ) -> None:
        self.source, self.target = source, target
        kind, of_flow = events["kind"], events["flow"] == flow
        self.row: Ints = np.flatnonzero(of_flow & (kind == events.code("kind", "segment-sent")))
        received: Ints = np.flatnonzero(of_flow & (kind == events.code("kind", "segment-received")))
        self.time: Ints = events["time_ns"][self.row]
        self.node: Ints = events["node"][self.row]
        self.packet: Ints = events["packet"][self.row]
        self.seq: Ints = events["seq"][self.row]
        self.ack: Ints = events["ack"][self.row]
        self.window: Ints = events["window_bytes"][self.row]
        self.length: Ints = events["len_bytes"][self.row]
        self.repeated: Flags = events.retransmission[self.row]
        self._size: Ints = events["size_bytes"][self.row]
        flags = events["flags"][self.row]
        occupies = np.array([("S" in word) + ("F" in word) for word in events.names["flags"]] or [0], np.int64)
        self.until: Ints = self.seq + self.length + occupies[np.maximum(flags, 0)]
        self.of_packet: dict[int, int] = {}
        for place, packet in enumerate(self.packet.tolist()):
            self.of_packet.setdefault(packet, place)
        from_source = self.node == events.code("node", source)
        from_target = self.node == events.code("node", target)
        with_data = self.length > 0
        self.is_data: Flags = with_data | (from_source & (self.until > self.seq))
        self.arrived: Ints = self._arrivals(events, lineage, received)
        """The row in which each reached an endpoint first, or `ABSENT`."""
        self.forward: Flags = from_source | (~from_target & self._goes_to_target(events))
        """Which go from the source to the target."""
        self.own: Flags = np.ones(len(self.row), bool)
        """Which are this direction's: data, and what the other way answers it with."""
        if both_ways:
            self.own = with_data == self.forward
        self.unnecessary: Flags = self._superfluous()
        self.needed: Flags = self.repeated & ~self.unnecessary

    def __len__(self) -> int:
        return len(self.row)

    def sizes(self, least: dict[int, int]) -> dict[int, int]:
        """The size of each packet without any tunnel."""
        return {
            packet: min(size, least.get(packet, size))
            for packet, size in zip(self.packet.tolist(), self._size.tolist(), strict=True)
        }

    def _arrivals(self, events: Events, lineage: Lineage, received: Ints) -> Ints:
        arrived = np.full(len(self.row), ABSENT, np.int64)
        for row, packet in zip(received[::-1].tolist(), events["packet"][received][::-1].tolist(), strict=True):
            place = self.of_packet.get(lineage.root(packet))
            if place is not None:
                arrived[place] = row
        return arrived

    def _goes_to_target(self, events: Events) -> Flags:
        """Where a relay's segments go: where they arrived; if they did not, to the end whose name comes first."""
        there = self.source > self.target
        went = np.full(len(self.row), there)
        known = self.arrived >= 0
        went[known] = events["node"][self.arrived[known]] == events.code("node", self.target)
        return went

    def _superfluous(self) -> Flags:
        """Repetitions of which an earlier transmission, or several together, reached the other end."""
        found = np.zeros(len(self.row), bool)
        if not self.repeated.any():
            return found
        longest = int((self.until - self.seq).max())
        for node in np.unique(self.node[self.repeated]).tolist():
            there = np.flatnonzero((self.node == node) & (self.arrived >= 0) & (self.until > self.seq))
            there = there[np.argsort(self.seq[there], kind="stable")]
            begins = self.seq[there]
            for place in np.flatnonzero(self.repeated & (self.node == node)).tolist():
                low = int(np.searchsorted(begins, self.seq[place] - longest))
                high = int(np.searchsorted(begins, self.until[place]))
                near = there[low:high]
                found[place] = self._covered(near[near < place], place)
        return found

    def _covered(self, earlier: Ints, place: int) -> bool:
        reached, until = int(self.seq[place]), int(self.until[place])
        for seq, end in zip(self.seq[earlier].tolist(), self.until[earlier].tolist(), strict=True):
            if seq <= reached:
                reached = max(reached, end)
        return reached >= until
