"""What the study `vertical` reads off one run, as the thesis read it off tcpdump and the kernel."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from careof.native import Json

    Numbers = NDArray[np.float64]
    Counts = NDArray[np.int64]

_NANO = 1e-9


class Segments(NamedTuple):
    """Data segments in the order of time, at one host."""

    time: Numbers
    seq: Counts
    end: Counts
    """The sequence number after the last byte."""
    again: NDArray[np.bool_]
    """Whether the sender had sent any of it before."""
    packet: Counts

    def pick(self, chosen: NDArray[np.bool_] | Counts) -> Segments:
        """Some of them."""
        return Segments(self.time[chosen], self.seq[chosen], self.end[chosen], self.again[chosen], self.packet[chosen])


class Acks(NamedTuple):
    """ACKs in the order of time, as they reach the sender."""

    time: Numbers
    ack: Counts
    """The next byte that the receiver expects."""
    duplicate: NDArray[np.bool_]
    """Whether it repeats the ACK before it, while data is unacknowledged."""


class Curve(NamedTuple):
    """A value that holds from each time to the next."""

    time: Numbers
    value: Numbers

    def at(self, time: float) -> float:
        """The value at an instant; NaN before the first."""
        index = int(np.searchsorted(self.time, time, side="right")) - 1
        return float(self.value[index]) if index >= 0 else float("nan")

    def between(self, start: float, end: float) -> Curve:
        """The part of it that begins and ends there; its first point is the value at `start`."""
        inside = (self.time > start) & (self.time <= end)
        first = self.at(start)
        keep = [] if np.isnan(first) else [first]
        return Curve(
            np.concatenate([[start] * len(keep), self.time[inside]]), np.concatenate([keep, self.value[inside]])
        )


class Crossing(NamedTuple):
    """A TCP segment that crossed a one-way link."""

    entered: float
    left: float
    seq: int
    end: int
    """Equal to `seq` where it holds no data."""
    ack: int


class Round(NamedTuple):
    """A round trip measured on a segment that was sent only once."""

    sent: float
    duration: float


class Observed:
    """One run of the study: a bulk flow and one handover.

    Times are seconds since the run began. `old` and `new` are the one-way links that carry the flow's data before
    and after the handover.
    """

    def __init__(
        self, events: pa.Table, *, flow: str, sender: str, receiver: str, old: str, new: str, scenario: Json
    ) -> None:
        self.old = old
        self.new = new
        self.scenario = scenario
        self._sender = sender
        self._receiver = receiver
        self._flow = flow
        self._kinds = {kind: events.filter(pc.equal(events["kind"].cast(pa.string()), kind)) for kind in _KINDS}

    @property
    def mss(self) -> int:
        """Bytes of a full segment."""
        return int(self.scenario["flows"][0]["tcp"]["mss_bytes"])

    @property
    def begins_s(self) -> float:
        """When the scenario begins the handover: the new link comes up."""
        return float(self.scenario["handovers"][0]["at_ns"]) * _NANO

    @cached_property
    def switch_s(self) -> float:
        """From when on the flow's data takes the new link.

        Data for the mobile node does from the change of its binding at the home agent, data from the mobile node
        from the accepted registration.
        """
        kind, node = ("binding", "home-agent") if self._receiver == "mobile" else ("handover", "mobile")
        table = _at(self._kinds[kind], "node", node)
        if kind == "handover":
            table = _at(table, "cause", "registered")
        times = _times(table)
        after = times[times >= self.begins_s]
        if not len(after):
            raise ValueError("the run has no completed handover")
        return float(after[0])

    @cached_property
    def sent(self) -> Segments:
        """Data segments that left the sender."""
        return self._segments("segment-sent", self._sender)

    @cached_property
    def arrived(self) -> Segments:
        """Data segments that reached the receiver. `again` is the sender's mark."""
        return self._segments("segment-received", self._receiver)

    @cached_property
    def acks(self) -> Acks:
        """Pure ACKs that reached the sender."""
        table = _at(self._of_flow("segment-received"), "node", self._sender)
        table = table.filter(pc.and_(pc.is_valid(table["ack"]), pc.equal(table["len_bytes"], 0)))
        time, ack = _times(table), _counts(table["ack"])
        highest = np.maximum.accumulate(ack) if len(ack) else ack
        before = np.concatenate([[-1], highest[:-1]])
        sent_until = self._sent_until(time)
        return Acks(time, ack, (ack == before) & (sent_until > ack))

    @cached_property
    def acked(self) -> Curve:
        """Bytes acknowledged at the sender."""
        highest = np.maximum.accumulate(self.acks.ack) if len(self.acks.ack) else self.acks.ack
        return Curve(self.acks.time, (highest - 1).clip(0).astype(np.float64))

    @cached_property
    def delivered(self) -> Curve:
        """Bytes in order at the receiving application."""
        table = self._of_flow("data-delivered")
        return Curve(_times(table), _numbers(table["delivered_bytes"]))

    @cached_property
    def rto(self) -> Curve:
        """The sender's retransmission timeout, back-off included, in seconds."""
        kinds = [_at(self._of_flow(kind), "node", self._sender) for kind in ("tcp-state", "timeout")]
        table = pa.concat_tables([one.select(["time_ns", "rto_ns"]) for one in kinds])
        table = table.filter(pc.is_valid(table["rto_ns"]))
        time, value = _times(table), _numbers(table["rto_ns"]) * _NANO
        order = np.argsort(time, kind="stable")
        return Curve(time[order], value[order])

    @cached_property
    def timeouts(self) -> tuple[Numbers, Counts]:
        """When the retransmission timer ran out, and for which sequence number."""
        table = _at(self._of_flow("timeout"), "node", self._sender)
        return _times(table), _counts(table["seq"])

    @cached_property
    def rounds(self) -> list[Round]:
        """Round trips of the segments that were sent once, in the order of sending."""
        sent = self.sent
        _, first, times = np.unique(sent.seq, return_index=True, return_counts=True)
        once = sent.pick(np.sort(first[times == 1]))
        highest = self.acked.value + 1
        answer = np.searchsorted(highest, once.end, side="left")
        known = answer < len(highest)
        return [
            Round(float(at), float(self.acked.time[index] - at))
            for at, index in zip(once.time[known], answer[known], strict=True)
        ]

    def queue(self, link: str) -> Curve:
        """Packets waiting before a one-way link, the one being sent not among them."""
        tables = [_at(self._kinds[kind], "link", link) for kind in ("packet-enqueued", "packet-delivered")]
        table = pa.concat_tables([one.select(["time_ns", "queue_packets"]) for one in tables])
        time = _times(table)
        order = np.argsort(time, kind="stable")
        return Curve(time[order], _numbers(table["queue_packets"])[order])

    @cached_property
    def drops(self) -> int:
        """Packets of the flow that were dropped anywhere."""
        return int(self._of_flow("packet-dropped").num_rows)

    def lost(self, start: float) -> int:
        """Packets of the flow that were dropped anywhere from an instant on."""
        return int(np.count_nonzero(_times(self._of_flow("packet-dropped")) >= start))

    def over(self, link: str) -> Segments:
        """The data segments among :attr:`arrived` that came over this one-way link."""
        carried = _counts(_at(self._of_flow("packet-delivered"), "link", link)["packet"])
        return self.arrived.pick(np.isin(self.arrived.packet, carried))

    def entered(self, link: str) -> Segments:
        """The data segments among :attr:`sent` that this one-way link took; their time is that of sending."""
        carried = _counts(_at(self._of_flow("packet-enqueued"), "link", link)["packet"])
        return self.sent.pick(np.isin(self.sent.packet, carried))

    @cached_property
    def first(self) -> Segments:
        """The first segment for the new link that had not been sent before, and all of its repetitions."""
        new = self.entered(self.new)
        fresh = np.flatnonzero(~new.again & (new.time >= self.switch_s - _SLACK_S))
        if not len(fresh):
            raise ValueError("no data took the new link")
        return self.sending(int(new.seq[fresh[0]]))

    @property
    def after_s(self) -> float:
        """When the first segment for the new link was sent: what the sender's own capture shows of the handover."""
        return float(self.first.time[0])

    def sending(self, seq: int) -> Segments:
        """Every time that the segment at `seq` was sent."""
        return self.sent.pick(self.sent.seq == seq)

    def acked_at(self, end: int) -> float:
        """When the sender learnt that everything before `end` had arrived; infinity if never."""
        index = int(np.searchsorted(self.acked.value + 1, end, side="left"))
        return float(self.acked.time[index]) if index < len(self.acked.time) else float("inf")

    def outstanding(self, time: float) -> int:
        """Distinct segments sent and not acknowledged at an instant."""
        before = self.sent.pick(self.sent.time <= time)
        acked = self.acked.at(time)
        return len(np.unique(before.seq[before.end > (0 if np.isnan(acked) else acked) + 1]))

    def crossings(self, link: str) -> list[Crossing]:
        """What crossed a one-way link, in the order of arrival."""
        names = ["packet", "seq", "len_bytes", "ack"]
        packet, seq, length, ack = (_counts(self._of_flow("segment-sent")[name]).tolist() for name in names)
        segments = {
            number: (first, first + count, expected)
            for number, first, count, expected in zip(packet, seq, length, ack, strict=True)
        }
        into = _at(self._of_flow("packet-enqueued"), "link", link)
        entered = dict(zip(_counts(into["packet"]).tolist(), _times(into).tolist(), strict=True))
        out = _at(self._of_flow("packet-delivered"), "link", link)
        return [
            Crossing(entered[number], left, *segments[number])
            for number, left in zip(_counts(out["packet"]).tolist(), _times(out).tolist(), strict=True)
            if number in entered and number in segments
        ]

    def timeouts_of_first(self) -> int:
        """Timeouts of the first segment for the new link before its ACK."""
        first = self.first
        until = self.acked_at(int(first.end[0]))
        time, seq = self.timeouts
        return int(np.count_nonzero((seq == first.seq[0]) & (time > first.time[0]) & (time < until)))

    def repeated(self, start: float, end: float = float("inf")) -> Segments:
        """Segments sent again from one instant to another."""
        sent = self.sent
        return sent.pick(sent.again & (sent.time > start) & (sent.time <= end))

    def duplicates(self, start: float, end: float = float("inf")) -> int:
        """Duplicate ACKs that reached the sender from one instant to another."""
        acks = self.acks
        return int(np.count_nonzero(acks.duplicate & (acks.time > start) & (acks.time <= end)))

    def gap(self) -> tuple[float, float]:
        """The longest time after the handover without new data in order at the receiver: begin and end."""
        time = self.delivered.time
        time = time[time >= self.switch_s]
        longest = int(np.argmax(np.diff(time)))
        return float(time[longest]), float(time[longest + 1])

    def silence(self) -> tuple[float, float]:
        """From sending the first new segment after the first window to its ACK, as the thesis measured its gap."""
        times, _ = self.timeouts
        after = times[times > self.switch_s]
        start = float(after[0]) if len(after) else self.switch_s
        fresh = np.flatnonzero(~self.sent.again & (self.sent.time > start))
        if not len(fresh):
            return start, float("inf")
        return float(self.sent.time[fresh[0]]), self.acked_at(int(self.sent.end[fresh[0]]))

    def carried(self, end: float) -> float:
        """Bytes acknowledged by `end` of those sent for the new link."""
        acked = self.acked.at(end)
        return (0.0 if np.isnan(acked) else acked) - float(self.first.seq[0] - 1)

    def rate(self, start: float, end: float) -> float:
        """Bytes acknowledged a second from one instant to another, not counting what the old link still carried."""
        return (max(self.carried(end), 0.0) - max(self.carried(start), 0.0)) / (end - start)

    def time_for(self, count: float) -> float:
        """How long the new link takes for its first `count` bytes, to their ACK; infinity if it never comes so far."""
        goal = count + float(self.first.seq[0] - 1)
        index = int(np.searchsorted(self.acked.value, goal, side="left"))
        return float(self.acked.time[index]) - self.after_s if index < len(self.acked.time) else float("inf")

    def overtaken(self) -> tuple[int, int]:
        """How many segments came over the new link while the old one still delivered, and how many out of order."""
        late = self.over(self.old).time
        last = late[-1] if len(late) else self.switch_s
        new = self.over(self.new)
        new = new.pick((new.time >= self.switch_s) & (new.time <= last))
        expected = np.array([self.delivered.at(time) for time in new.time]) + 1
        return len(new.time), int(np.count_nonzero(new.seq > expected))

    def _sent_until(self, times: Numbers) -> Counts:
        """The highest sequence number sent by each instant."""
        if not len(self.sent.time):
            return np.zeros(len(times), np.int64)
        highest = np.maximum.accumulate(self.sent.end)
        index = np.searchsorted(self.sent.time, times, side="left") - 1
        return np.where(index >= 0, highest[index.clip(0)], 0)

    def _segments(self, kind: str, node: str) -> Segments:
        table = _at(self._of_flow(kind), "node", node)
        table = table.filter(pc.greater(table["len_bytes"], 0))
        seq = _counts(table["seq"])
        return Segments(
            _times(table),
            seq,
            seq + _counts(table["len_bytes"]),
            _counts(table["retransmission"].cast(pa.int8())).astype(np.bool_),
            _counts(table["packet"]),
        )

    def _of_flow(self, kind: str) -> pa.Table:
        return _at(self._kinds[kind], "flow", self._flow)


_KINDS = (
    "segment-sent",
    "segment-received",
    "tcp-state",
    "timeout",
    "data-delivered",
    "packet-enqueued",
    "packet-delivered",
    "packet-dropped",
    "binding",
    "handover",
)
_SLACK_S = 0.05
"""A segment sent this shortly before the switch can be the first to take the new link: it was on its way to it."""


def _at(table: pa.Table, column: str, name: str) -> pa.Table:
    return table.filter(pc.equal(table[column].cast(pa.string()), name))


def _times(table: pa.Table) -> Numbers:
    return _numbers(table["time_ns"]) * _NANO


def _numbers(column: pa.ChunkedArray) -> Numbers:
    result: Numbers = column.cast(pa.float64(), safe=False).to_numpy()
    return result


def _counts(column: pa.ChunkedArray) -> Counts:
    result: Counts = column.cast(pa.int64()).fill_null(-1).to_numpy()
    return result
