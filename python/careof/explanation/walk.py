"""The critical path of a transfer: back from its last delivery, at every point to what that waited for.

The method is that of P. Barford and M. Crovella, "Critical path analysis of TCP transactions" (2000): the packet that
completed the delivery, back over its links to the segment that its sender sent; what released that, which is an
acknowledgement that had arrived, a timer, or the application; the packet that carried the acknowledgement; and so on.
What comes out is a chain without gaps from the flow's start to its end, so its parts sum to the transfer time.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from careof.explanation.crossings import Crossings, Lineage
    from careof.explanation.segments import Segments
    from careof.explanation.table import Events

_SOON_NS = 1_000_000
"""Real hosts take time to answer. What they send so soon after something arrived is taken for their answer; the
shortest timer that is none, Linux's delayed acknowledgement, waits 40 ms."""


class Step(NamedTuple):
    """A stretch of the path: a crossing of a link, or a wait."""

    begin: int
    end: int
    crossing: int
    """Which; negative for a wait."""
    part: str
    """What was waited for."""


class _Received(NamedTuple):
    """What an endpoint received, in order."""

    rows: list[int]
    times: list[int]
    packets: list[int]
    acks: list[int]
    windows: list[int]
    is_data: list[bool]
    advanced: list[int]
    """For each the place of the last one, itself included, that acknowledged something new; negative before any."""


class _Sent(NamedTuple):
    """What an endpoint sent: rows, and places among the flow's segments."""

    rows: list[int]
    places: list[int]
    furthest: list[int]
    """The end of all sequence numbers sent so far, with each."""


class Walk:
    """Walks one flow."""

    def __init__(
        self,
        events: Events,
        crossings: Crossings,
        lineage: Lineage,
        segments: Segments,
        flow: int,
        *,
        kind: str,
        paces: bool,
        real: bool,
    ) -> None:
        self._events, self._crossings, self._lineage, self._segments = events, crossings, lineage, segments
        self._flow, self._kind, self._paces = flow, kind, paces
        self._passing: dict[str, tuple[list[int], list[int]]] = {}
        self._soon = _SOON_NS if real else 0
        self._steps: list[Step] = []
        self._start = self._cursor = 0
        of_flow = events["flow"] == flow
        received = np.flatnonzero(of_flow & (events["kind"] == events.code("kind", "segment-received")))
        timeouts = np.flatnonzero(of_flow & (events["kind"] == events.code("kind", "timeout")))
        nodes = np.unique(np.concatenate([events["node"][received], segments.node])).tolist()
        messages = events.rows_of("message-received")
        self._messages = {node: messages[events["node"][messages] == node].tolist() for node in nodes}
        self._received = {node: self._arrivals(received[events["node"][received] == node]) for node in nodes}
        self._sent = {node: self._departures(node) for node in nodes}
        self._timeouts = {node: timeouts[events["node"][timeouts] == node].tolist() for node in nodes}

    def _arrivals(self, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> _Received:
        events = self._events
        ack = events["ack"][rows]
        before = np.concatenate([[-1], np.maximum.accumulate(ack)[:-1]]) if len(ack) else ack
        places = np.where(ack > before, np.arange(len(ack)), -1)
        opens = np.array(["S" in word or "F" in word for word in events.names["flags"]] or [False])
        is_data = (events["len_bytes"][rows] > 0) | opens[np.maximum(events["flags"][rows], 0)]
        return _Received(
            rows.tolist(),
            events["time_ns"][rows].tolist(),
            events["packet"][rows].tolist(),
            ack.tolist(),
            events["window_bytes"][rows].tolist(),
            is_data.tolist(),
            np.maximum.accumulate(places).tolist() if len(places) else [],
        )

    def _departures(self, node: int) -> _Sent:
        places = np.flatnonzero(self._segments.node == node)
        furthest = np.maximum.accumulate(self._segments.until[places]).tolist() if len(places) else []
        return _Sent(self._segments.row[places].tolist(), places.tolist(), furthest)

    def steps(self, start: int, delivery_row: int) -> list[Step]:
        """The path from the instant `start` to the delivery in a row, last step first."""
        events = self._events
        self._start, self._cursor = start, int(events["time_ns"][delivery_row])
        node = int(events["node"][delivery_row])
        arrived = self._received.get(node)
        place = -1 if arrived is None else bisect_left(arrived.rows, delivery_row) - 1
        # The delivery came with the last data that had arrived.
        while arrived is not None and place >= 0 and not arrived.is_data[place]:
            place -= 1
        at: tuple[str, int, int] | None = ("received", node, place) if place >= 0 else None
        while at is not None and self._cursor > self._start:
            what, node, place = at
            at = self._from_arrival(node, place) if what == "received" else self._from_sending(node, place)
        self._wait(self._start, "unknown")
        return self._steps

    def _wait(self, since: int, part: str) -> None:
        """The path waited since an instant."""
        since = max(min(since, self._cursor), self._start)
        if since < self._cursor:
            self._steps.append(Step(since, self._cursor, -1, part))
            self._cursor = since

    def _cross(self, crossing: int) -> None:
        self._wait(int(self._crossings.end[crossing]), "hosts")
        since = max(min(int(self._crossings.begin[crossing]), self._cursor), self._start)
        if since < self._cursor:
            self._steps.append(Step(since, self._cursor, crossing, ""))
            self._cursor = since

    def _from_arrival(self, node: int, place: int) -> tuple[str, int, int] | None:
        """Back over the links that a packet came by, to where it was sent."""
        arrived = self._received[node]
        self._wait(arrived.times[place], "hosts")
        return self._from_packet(arrived.packets[place], self._events.names["node"][node], arrived.rows[place])

    def _from_packet(self, packet: int, here: str, before: int) -> tuple[str, int, int] | None:
        """Back from where a packet was before a row."""
        while True:
            crossing = self._last_crossing(packet, here, before)
            if crossing is not None:
                way = self._crossings.ways[int(self._crossings.link[crossing])]
                self._cross(crossing)
                here, before = here if way is None else way.source, int(self._crossings.row[crossing])
            elif packet in self._lineage.parent:
                packet = self._lineage.parent[packet]
            elif packet in self._segments.of_packet:
                break
            else:
                # No endpoint sent it: an assist made it there, of what had come by last.
                crossing = self._last_passing(here, before)
                if crossing is None:
                    return None
                packet = int(self._crossings.packet[crossing])
        sent = self._segments.of_packet[packet]
        self._wait(int(self._segments.time[sent]), "hosts")
        sender = int(self._segments.node[sent])
        return "sent", sender, bisect_left(self._sent[sender].rows, int(self._segments.row[sent]))

    def _last_passing(self, target: str, before: int) -> int | None:
        """The last crossing of the flow that had come to a node."""
        if target not in self._passing:
            crossings = self._crossings
            to_it = np.array([way is not None and way.target == target for way in crossings.ways], bool)
            index = np.flatnonzero((crossings.flow == self._flow) & crossings.delivered & to_it[crossings.link])
            index = index[np.argsort(crossings.last_row[index])]
            self._passing[target] = (crossings.last_row[index].tolist(), index.tolist())
        rows, places = self._passing[target]
        last = bisect_left(rows, before) - 1
        return places[last] if last >= 0 else None

    def _last_crossing(self, packet: int, target: str, before: int) -> int | None:
        crossings = self._crossings
        for crossing in reversed(crossings.of_packet(packet)):
            way = crossings.ways[int(crossings.link[crossing])]
            came = crossings.delivered[crossing] and int(crossings.last_row[crossing]) < before
            if came and way is not None and way.target == target:
                return crossing
        return None

    def _from_sending(self, node: int, place: int) -> tuple[str, int, int] | None:
        """Back to what released a segment."""
        sent, arrived = self._sent[node], self._received[node]
        row, segment = sent.rows[place], sent.places[place]
        now = int(self._segments.time[segment])
        last = bisect_left(arrived.rows, row) - 1
        expired = bisect_left(self._timeouts[node], row) - 1
        expiry = self._timeouts[node][expired] if expired >= 0 else -1
        soon = expiry >= 0 and now - int(self._events["time_ns"][expiry]) <= self._soon
        if soon and (last < 0 or arrived.rows[last] < expiry):
            return self._from_timeout(node, expiry)
        if last >= 0 and now - arrived.times[last] <= self._soon:
            return "received", node, last
        if now - self._start <= self._soon:
            self._wait(self._start, "hosts")
            return None
        if last < 0 and place == 0:
            # A relay that opens its connection: what it opens it for is not for it.
            here = self._events.names["node"][node]
            crossing = self._last_passing(here, row)
            return None if crossing is None else self._from_packet(int(self._crossings.packet[crossing]), here, row)
        if self._segments.length[segment] == 0 and self._segments.until[segment] == self._segments.seq[segment]:
            return self._from_late_acknowledgement(node, place, last)
        return self._from_late_data(node, place, last)

    def _from_timeout(self, node: int, row: int) -> tuple[str, int, int] | None:
        """Back to where a retransmission timer was started (RFC 6298, section 5), over all expiries since then."""
        sent, arrived = self._sent[node], self._received[node]
        self._wait(int(self._events["time_ns"][row]), "hosts")
        last = bisect_left(arrived.rows, row) - 1
        news = arrived.advanced[last] if last >= 0 else -1
        news_row = arrived.rows[news] if news >= 0 else -1
        before = bisect_left(sent.rows, news_row) - 1 if news >= 0 else -1
        outstanding = before >= 0 and sent.furthest[before] > arrived.acks[news]
        first = before + 1
        if news >= 0 and (outstanding or first >= len(sent.rows) or sent.rows[first] > row):
            self._wait(arrived.times[news], "timer_rto")
            return "received", node, news
        if first >= len(sent.rows) or sent.rows[first] > row:
            return None
        self._wait(int(self._segments.time[sent.places[first]]), "timer_rto")
        return "sent", node, first

    def _from_late_acknowledgement(self, node: int, place: int, last: int) -> tuple[str, int, int] | None:
        """Back from an acknowledgement that nothing released which had just arrived."""
        sent, arrived = self._sent[node], self._received[node]
        previous = sent.rows[place - 1] if place > 0 else -1
        first = bisect_left(arrived.rows, previous)
        while first <= last and not arrived.is_data[first]:
            first += 1
        if first <= last:
            self._wait(arrived.times[first], "timer_delayed_ack")
            return "received", node, first
        window = self._segments.window
        opened = place > 0 and window[sent.places[place]] > window[sent.places[place - 1]]
        return self._from_latest(node, place, last, "closed_window" if opened else "timer_other")

    def _from_late_data(self, node: int, place: int, last: int) -> tuple[str, int, int] | None:
        """Back from data that nothing released which had just arrived."""
        sent, arrived = self._sent[node], self._received[node]
        segment = sent.places[place]
        if self._segments.repeated[segment]:
            now, row = int(self._segments.time[segment]), sent.rows[place]
            told = self._was_told(node, now, row)
            return self._from_latest(node, place, last, "icmp" if told else "timer_other")
        furthest = sent.furthest[place - 1] if place > 0 else 0
        length = int(self._segments.length[segment])
        if last >= 0 and furthest + length > arrived.acks[last] + arrived.windows[last]:
            return self._from_latest(node, place, last, "closed_window")
        if self._kind == "bulk":
            # A probe for lost tails sends something new where there is something (RFC 8985, section 7.3).
            return self._from_latest(node, place, last, "pacing" if self._paces else "timer_other")
        # Nobody is silent while what was sent is under way and no data comes back: then the application's silence
        # began with what it sent before.
        while last >= 0 and not arrived.is_data[last] and arrived.acks[last] < furthest:
            last -= 1
        return self._from_latest(node, place, last, "application")

    def _was_told(self, node: int, now: int, row: int) -> bool:
        """Whether a message had just reached a node."""
        messages = self._messages.get(node, [])
        last = bisect_left(messages, row) - 1
        return last >= 0 and now - int(self._events["time_ns"][messages[last]]) <= self._soon

    def _from_latest(self, node: int, place: int, last: int, part: str) -> tuple[str, int, int] | None:
        """Back to the last thing that an endpoint sent or received."""
        sent, arrived = self._sent[node], self._received[node]
        previous = sent.rows[place - 1] if place > 0 else -1
        received = arrived.rows[last] if last >= 0 else -1
        if max(previous, received) < 0:
            return None
        if received > previous:
            self._wait(arrived.times[last], part)
            return "received", node, last
        self._wait(int(self._segments.time[sent.places[place - 1]]), part)
        return "sent", node, place - 1
