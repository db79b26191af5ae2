"""Picking events out of a run: the only place that knows the columns of the event table by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from careof import events
from careof.staging import EVENTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from careof.native import Json
    from careof.runs import Run

    Numbers = NDArray[np.float64]

_NANO = 1e-9


@dataclass(frozen=True)
class Drop:
    """Packets that ended at one place for one reason."""

    place: str
    cause: str
    packets: int
    bytes: int


@dataclass(frozen=True)
class Step:
    """A phase of a handover as the mobile node or its agents saw it."""

    at_s: float
    node: str
    cause: str
    link: str | None
    detail: str | None


@dataclass(frozen=True)
class Message:
    """A signalling message on its way from one node to another, or one whose other end was not seen."""

    name: str
    detail: str | None
    sent_s: float | None
    sender: str | None
    received_s: float | None
    receiver: str | None


class Trace:
    """The events of a run, read as they are asked for: a long run's table need not fit into memory."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._cache: dict[str, pa.Table] = {}

    @property
    def stalls(self) -> list[Json]:
        """The stalls as the summary has them; none in one from before they were listed."""
        found: list[Json] = self._run.summary.get("stalls", [])
        return found

    @property
    def handovers(self) -> list[Json]:
        """The handovers as the summary has them."""
        found: list[Json] = self._run.summary["handovers"]
        return found

    def sent(self, flow: str) -> Mapping[str, Numbers]:
        """Segments with data that left the flow's sender: time, seq, len, retransmission."""
        return self._segments("segment-sent", flow, self.sender(flow), data=True)

    def acknowledged(self, flow: str) -> Mapping[str, Numbers]:
        """Segments that reached the flow's sender: time, ack, window."""
        return self._segments("segment-received", flow, self.sender(flow), data=False)

    def sender(self, flow: str) -> str:
        """The node that sends the flow's data."""
        return self._end(flow, "from")

    def state(self, flow: str) -> Mapping[str, Numbers]:
        """The sender's TCP state whenever it changed: cwnd, ssthresh, flight (bytes); srtt, rto (seconds)."""
        names = ["cwnd_bytes", "ssthresh_bytes", "flight_bytes", "srtt_ns", "rto_ns"]
        table = _at(self._of_flow("tcp-state", flow), self.sender(flow))
        values = {name.rpartition("_")[0]: _numbers(table[name]) for name in names}
        for name in ("srtt", "rto"):
            values[name] = values[name] * _NANO
        return {"time": _times(table), **values}

    def timeouts(self, flow: str) -> Mapping[str, Numbers]:
        """Expiries of the sender's retransmission timer: time, seq."""
        table = _at(self._of_flow("timeout", flow), self.sender(flow))
        return {"time": _times(table), "seq": _numbers(table["seq"])}

    def drops_of(self, flow: str) -> Mapping[str, Numbers]:
        """The flow's data segments that were dropped anywhere: time, seq."""
        dropped = self._of_flow("packet-dropped", flow)
        sent = _at(self._of_flow("segment-sent", flow), self.sender(flow))
        data = sent.filter(pc.greater(sent["len_bytes"], 0)).select(["packet", "seq"])
        known = dropped.select(["time_ns", "packet"]).join(data, "packet", join_type="inner").sort_by("time_ns")
        return {"time": _times(known), "seq": _numbers(known["seq"])}

    def links(self) -> list[str]:
        """The one-way links that carried packets, in the order of first use."""
        table = self._all("packet-enqueued")
        return [str(name) for name in pc.unique(table["link"].cast(pa.string())).to_pylist() if name is not None]

    def queue(self, link: str) -> Mapping[str, Numbers]:
        """The queue of a one-way link after each change: time, packets."""
        parts = [_where(self._all(kind), "link", link) for kind in _QUEUE_KINDS]
        table = pa.concat_tables([part.select(["time_ns", "queue_packets"]) for part in parts]).sort_by("time_ns")
        return {"time": _times(table), "packets": _numbers(table["queue_packets"])}

    def handover_steps(self) -> list[Step]:
        """The phases of all handovers in the order of time."""
        return [
            Step(row["time_ns"] * _NANO, row["node"], row["cause"], row["link"], row["detail"])
            for row in self._rows("handover")
        ]

    def bindings(self) -> list[Step]:
        """Mobility bindings and visitor entries made, changed and ended."""
        return [
            Step(row["time_ns"] * _NANO, row["node"], f"binding {row['cause']}", None, row["detail"])
            for row in self._rows("binding")
        ]

    def messages(self) -> list[Message]:
        """Signalling messages, the two ends of each brought together, by the time of the first."""
        open_: dict[object, dict[str, Any]] = {}
        found: list[Message] = []
        both = [(row["time_ns"], 0, row) for row in self._rows("message-sent")]
        both += [(row["time_ns"], 1, row) for row in self._rows("message-received")]
        seen: set[object] = set()
        for at, received, row in sorted(both, key=lambda event: event[:2]):
            if not received:
                open_[row["packet"] if row["packet"] is not None else ("none", at, row["node"])] = row
                continue
            sent = open_.get(row["packet"]) if row["packet"] is not None else None
            seen.add(row["packet"])
            found.append(
                Message(
                    name=row["message"],
                    detail=row["detail"] or (sent["detail"] if sent else None),
                    sent_s=sent["time_ns"] * _NANO if sent else None,
                    sender=sent["node"] if sent else None,
                    received_s=at * _NANO,
                    receiver=row["node"],
                )
            )
        found += [
            Message(row["message"], row["detail"], row["time_ns"] * _NANO, row["node"], None, None)
            for packet, row in open_.items()
            if packet not in seen
        ]
        return sorted(found, key=lambda one: one.sent_s if one.sent_s is not None else one.received_s or 0.0)

    def drops(self) -> list[Drop]:
        """Every packet dropped, by place and cause."""
        table = self._all("packet-dropped")
        place = pc.coalesce(table["link"].cast(pa.string()), table["node"].cast(pa.string()))
        counted = (
            pa.table({"place": place, "cause": table["cause"].cast(pa.string()), "size": table["size_bytes"]})
            .group_by(["place", "cause"])
            .aggregate([("size", "count"), ("size", "sum")])
            .sort_by([("place", "ascending"), ("cause", "ascending")])
        )
        return [
            Drop(row["place"], row["cause"], row["size_count"], row["size_sum"] or 0) for row in counted.to_pylist()
        ]

    def delivered(self, flow: str) -> Mapping[str, Numbers]:
        """Bytes in order at the receiving application: time, bytes (cumulative)."""
        table = _at(self._of_flow("data-delivered", flow), self._end(flow, "to"))
        return {"time": _times(table), "bytes": _numbers(table["delivered_bytes"])}

    def _segments(self, kind: str, flow: str, node: str, *, data: bool) -> Mapping[str, Numbers]:
        table = _at(self._of_flow(kind, flow), node)
        table = table.filter(pc.greater(table["len_bytes"], 0) if data else pc.is_valid(table["ack"]))
        return {
            "time": _times(table),
            "seq": _numbers(table["seq"]),
            "ack": _numbers(table["ack"]),
            "len": _numbers(table["len_bytes"]),
            "window": _numbers(table["window_bytes"]),
            "retransmission": _numbers(table["retransmission"]),
        }

    def _end(self, flow: str, end: str) -> str:
        return next((str(one[end]) for one in self._run.summary["flows"] if one["name"] == flow), "")

    def _of_flow(self, kind: str, flow: str) -> pa.Table:
        """Events of a flow's connection. Where data goes both ways, it is one connection and two flows."""
        connections = {one["name"] for one in self._run.scenario["flows"]}
        name = flow if flow in connections else flow.removesuffix(_SECOND).removesuffix(_BACK)
        return _where(self._all(kind), "flow", name)

    def _rows(self, kind: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._all(kind).to_pylist()
        return rows

    def _all(self, kind: str) -> pa.Table:
        """All events of a kind: the columns that graphs need of it."""
        if kind not in self._cache:
            columns = ["time_ns", *_COLUMNS[kind]]
            path = self._run.path
            if path is not None and (path / EVENTS).exists():
                self._cache[kind] = events.read(path / EVENTS, kind, columns)
            else:
                # Columns that no graph needs are not copied.
                self._cache[kind] = _where(self._run.events.select(["kind", *columns]), "kind", kind).select(columns)
        return self._cache[kind]


_SECOND = ".requests"
"""How the flow of requests is named after the connection that carries it."""
_BACK = ".back"
"""And what comes back over a connection that a program opened."""

_SEGMENT = ["node", "flow", "packet", "seq", "ack", "len_bytes", "window_bytes", "retransmission"]
_QUEUE = ["link", "queue_packets"]
_COLUMNS = {
    "segment-sent": _SEGMENT,
    "segment-received": _SEGMENT,
    "tcp-state": ["node", "flow", "cwnd_bytes", "ssthresh_bytes", "flight_bytes", "srtt_ns", "rto_ns"],
    "timeout": ["node", "flow", "seq"],
    "data-delivered": ["node", "flow", "delivered_bytes"],
    "packet-enqueued": _QUEUE,
    "packet-delivered": _QUEUE,
    "packet-dropped": [*_QUEUE, "node", "flow", "packet", "cause", "size_bytes"],
    "message-sent": ["node", "packet", "message", "detail"],
    "message-received": ["node", "packet", "message", "detail"],
    "binding": ["node", "cause", "detail"],
    "handover": ["node", "link", "cause", "detail"],
}
_QUEUE_KINDS = ("packet-enqueued", "packet-delivered", "packet-dropped")


def _where(table: pa.Table, column: str, name: str) -> pa.Table:
    # By the numbers that stand for names: there are few names, and many rows.
    found = table[column]
    if found.null_count == 0 and all(one.dictionary.to_pylist() == [name] for one in found.chunks):
        return table
    same = [pc.equal(one.indices, one.dictionary.index(name)) for one in found.chunks]
    return table.filter(pa.chunked_array(same, pa.bool_()))


def _at(table: pa.Table, node: str) -> pa.Table:
    return _where(table, "node", node)


def _times(table: pa.Table) -> Numbers:
    return _numbers(table["time_ns"]) * _NANO


def _numbers(column: pa.ChunkedArray) -> Numbers:
    """As floats; what is null becomes NaN."""
    result: Numbers = column.cast(pa.float64(), safe=False).to_numpy()
    return result
