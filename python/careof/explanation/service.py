"""What links were busy with: of each frame from when to when its link sent it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from careof.explanation.crossings import frame_bits
from careof.explanation.parts import SERVED
from careof.explanation.table import ABSENT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from careof.explanation.crossings import Crossings, Numbers, Seen
    from careof.explanation.table import Ints
    from careof.explanation.topology import Way

_NANOS = 1e9


class Service:
    """When each crossing was being sent. `begin` and `end` are those of its frame, `ABSENT` where nothing was sent."""

    def __init__(self, crossings: Crossings) -> None:
        self._crossings = crossings
        self.begin: Ints = np.full(len(crossings), ABSENT, np.int64)
        self.end: Ints = np.full(len(crossings), ABSENT, np.int64)
        self.resource = [None if way is None else way.resource for way in crossings.ways]
        """By number of a one-way link, what its packets take turns on."""
        self.frames: dict[str, Ints] = {}
        """The crossings of each resource in the order in which it sent them."""
        for name in dict.fromkeys(name for name in self.resource if name is not None):
            links = [number for number, resource in enumerate(self.resource) if resource == name]
            index = np.flatnonzero(np.isin(crossings.link, links) & crossings.carried)
            self.frames[name] = self._lay_out(index)

    def _lay_out(self, index: Ints) -> Ints:
        crossings = self._crossings
        if not len(index):
            return index
        bits = frame_bits(crossings, index)
        rate = np.array([way.rate_bps if way is not None else 0 for way in crossings.ways], float)
        rate = rate[crossings.link[index]]
        takes = np.where(rate > 0, bits / np.maximum(rate, 1.0) * _NANOS, 0.0)
        ends = np.empty(len(index))
        for number, way in enumerate(crossings.ways):
            chosen = crossings.link[index] == number
            if way is not None and chosen.any():
                ends[chosen] = _ends(way, crossings.begin[index][chosen], crossings.end[index][chosen], takes[chosen])
        order = np.lexsort((crossings.row[index], ends))
        index, ends, takes = index[order], ends[order], takes[order]
        offered = crossings.begin[index].astype(float)
        before = np.concatenate([[-np.inf], ends[:-1]])
        # Of a frame that was offered to a silent medium no gap is waited for: it begins when it is offered.
        begins = np.maximum(np.maximum(offered, before), ends - takes)
        begins = np.minimum(begins, ends)
        self.begin[index] = np.rint(begins).astype(np.int64)
        self.end[index] = np.rint(ends).astype(np.int64)
        return index

    def timeline(self, resource: str, seen: Seen, shares: Mapping[str, Numbers]) -> Timeline:
        """What a resource was busy with, as one flow sees it."""
        frames = self.frames[resource]
        mine = seen.place[frames]
        weights = {}
        for key in SERVED:
            weights[key] = np.zeros(len(frames))
            weights[key][mine >= 0] = shares[key][mine[mine >= 0]]
        other = mine < 0
        flow = self._crossings.flow[frames]
        weights["other_flows"] = (other & (flow >= 0)).astype(float)
        weights["signalling"] = (other & (flow < 0)).astype(float)
        return Timeline(self.begin[frames], self.end[frames], weights)


class Timeline:
    """Frames one after the other and what they are."""

    def __init__(self, begin: Ints, end: Ints, weights: Mapping[str, Numbers]) -> None:
        # Corners of functions that grow while a frame is being sent and stand still between.
        self._at = np.stack([begin, end], axis=1).ravel().astype(float)
        self._grown = {}
        for key, weight in weights.items():
            if weight.any():
                sent = (end - begin) * weight
                total = np.cumsum(sent)
                self._grown[key] = np.stack([total - sent, total], axis=1).ravel()

    def between(self, begin: Ints, end: Ints) -> dict[str, Numbers]:
        """Time between two instants that went to each part; what is missing the resource was silent."""
        if not len(self._at):
            return {}
        return {
            key: np.interp(end, self._at, grown) - np.interp(begin, self._at, grown)
            for key, grown in self._grown.items()
        }


def _ends(way: Way, offered: Ints, came_out: Ints, takes: Numbers) -> Numbers:
    """When the last bit of each packet was sent, for packets of one one-way link in any order."""
    if way.traced:
        # The delay follows a file: what no packet was faster than is the best guess at it.
        least = float((came_out - offered - takes).min()) if len(takes) else 0.0
        ends = came_out - max(min(float(way.delay_ns), least), 0.0)
    else:
        ends = came_out - float(way.delay_ns)
    if not way.jitter:
        known: Numbers = np.maximum(ends, offered)
        return known
    # Jitter hides when a packet was sent, but the link is a queue: it is sent when it came, or when the one before it
    # was. Where the link was down in between, the bound on the jitter says that it was sent later.
    order = np.argsort(offered, kind="stable")
    sent = np.cumsum(takes[order])
    by_queue = np.empty(len(takes))
    by_queue[order] = sent + np.maximum.accumulate(offered[order] - (sent - takes[order]))
    if way.jitter_ns:
        by_queue = np.maximum(by_queue, ends - way.jitter_ns)
    latest = np.minimum(ends + way.jitter_ns, came_out) if way.jitter_ns else came_out
    inferred: Numbers = np.maximum(np.minimum(by_queue, latest), offered)
    return inferred
