"""Explanations of event tables written by hand, whose parts follow by arithmetic.

Links carry a byte in a microsecond (8 Mbit/s, no framing) and take a millisecond to the other end.
A packet of 1000 bytes that meets nobody is therefore there after 2 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import careof
from careof import events

if TYPE_CHECKING:
    from careof.native import Json

MS = 1_000_000
BYTE = 1000
"""Nanoseconds."""


class Story:
    """An event table and the run around it, written line by line; times in nanoseconds."""

    def __init__(self, *links: Json, kind: str = "bulk") -> None:
        self.rows: list[dict[str, Any]] = []
        self.links = list(links) or [link("air", "correspondent", "mobile", access=True)]
        self.handovers: list[Json] = []
        self.kind = kind
        self.packets: dict[int, Json] = {}

    def add(self, at: int, kind: str, **columns: Any) -> None:
        """One row."""
        self.rows.append({"time_ns": at, "kind": kind, **columns})

    def begin(self) -> None:
        """The flow is opened."""
        self.add(0, "flow-start", node="correspondent", flow="file")

    def send(self, at: int, node: str, packet: int, **columns: Any) -> None:
        """A segment is sent; it is as large as it says."""
        segment = {"seq": 1, "ack": 1, "len_bytes": 960, "window_bytes": 65_000, "flags": ".", "size_bytes": 1000}
        self.packets[packet] = {**segment, "retransmission": False, **columns}
        self.add(at, "segment-sent", node=node, flow="file", packet=packet, **self.packets[packet])

    def receive(self, at: int, node: str, packet: int, *, carries: int | None = None) -> None:
        """A segment reaches an endpoint, in the packet sent or in another one."""
        segment = self.packets[packet if carries is None else carries]
        self.add(at, "segment-received", node=node, flow="file", packet=packet, **segment)

    def deliver(self, at: int, count: int) -> None:
        """The application gets data."""
        self.add(at, "data-delivered", node="mobile", flow="file", delivered_bytes=count)

    def cross(self, begin: int, end: int, over: str, packet: int, size: int, **how: Any) -> None:
        """A packet crosses a link, or is lost on it with a `cause`."""
        flow = how.get("flow", "file")
        self.add(begin, "packet-enqueued", link=over, flow=flow, packet=packet, size_bytes=size)
        if "cause" in how:
            self.add(end, "packet-dropped", link=over, flow=flow, packet=packet, size_bytes=size, cause=how["cause"])
        else:
            self.add(end, "packet-delivered", link=over, flow=flow, packet=packet, size_bytes=size)

    def explained(self, *, complete: bool = True, active_ns: int | None = None) -> dict[str, int]:
        """The parts of its time that are not nothing, in nanoseconds, after checks of what always holds."""
        flow = self.explain(complete=complete, active_ns=active_ns)
        parts = {key: round(time * 1e9) for key, time in flow.time_s.items()}
        assert sum(parts.values()) == round(flow.transfer_s * 1e9)
        return {key: time for key, time in parts.items() if time}

    def explain(self, *, complete: bool = True, active_ns: int | None = None) -> Any:
        """The flow, explained."""
        self.rows.sort(key=lambda row: row["time_ns"])
        schema = events.schema()
        table = pa.Table.from_pylist(self.rows, schema=schema)
        ends = [row["time_ns"] for row in self.rows if row["kind"] == "data-delivered"]
        active = ends[-1] if active_ns is None else active_ns
        summary = {
            "world": "sim",
            "seed": 1,
            "handovers": self.handovers,
            "links": [{"name": f"{one['name']}.{way}"} for one in self.links for way in ("down", "up")],
            "flows": [
                {
                    "name": "file",
                    "from": "correspondent",
                    "to": "mobile",
                    "kind": self.kind,
                    "variant": "reno",
                    "start_s": 0.0,
                    "active_s": active / 1e9,
                    "complete": complete,
                    "bytes_delivered": 0,
                }
            ],
        }
        nodes = sorted({end for one in self.links for end in one["between"]})
        scenario = {
            "title": "by hand",
            "duration_ns": 1000 * MS,
            "nodes": [{"name": node, "role": node} for node in nodes],
            "links": self.links,
            "mobility": {},
            "flows": [{"name": "file", "tcp": {}}],
        }
        run = careof.Run(summary=summary, scenario=scenario, scenario_text="", events=table)
        return careof.explain(run).flows[0]


def link(name: str, one: str, other: str, *, access: bool = False, medium: str | None = None) -> Json:
    """A link as a resolved scenario has it."""
    way = {
        "rate_bps": 8_000_000,
        "delay_ns": MS if medium is None else 0,
        "jitter": {"kind": "none"},
        "framing": {"bits_per_byte": 8, "overhead_bytes": 0},
    }
    return {"name": name, "between": [one, other], "access": access, "medium": medium, "down": way, "up": way}


def test_one_segment_is_sent_and_on_its_way() -> None:
    story = Story()
    story.begin()
    story.send(0, "correspondent", 1)
    story.cross(0, 2 * MS, "air.down", 1, 1000)
    story.receive(2 * MS, "mobile", 1)
    story.deliver(2 * MS, 960)
    assert story.explained() == {"payload": MS, "propagation": MS}
    flow = story.explain()
    assert {key: count for key, count in flow.bytes.items() if count} == {"payload": 960, "headers": 40}


@pytest.mark.parametrize(("other", "part"), [("voice", "other_flows"), (None, "signalling")])
def test_a_packet_waits_behind_those_of_others(other: str | None, part: str) -> None:
    story = Story()
    story.cross(0, 500 * BYTE + MS, "air.down", 9, 500, flow=other)
    story.begin()
    story.send(0, "correspondent", 1)
    story.cross(0, 500 * BYTE + 2 * MS, "air.down", 1, 1000)
    story.receive(500 * BYTE + 2 * MS, "mobile", 1)
    story.deliver(500 * BYTE + 2 * MS, 960)
    assert story.explained() == {part: 500 * BYTE, "payload": MS, "propagation": MS}


def lost_and_sent_again() -> Story:
    """The only segment is lost, its timer runs out after 200 ms, and the repetition arrives."""
    story = Story()
    story.begin()
    story.send(0, "correspondent", 1)
    story.cross(0, 2 * MS, "air.down", 1, 1000, cause="loss")
    story.add(200 * MS, "timeout", node="correspondent", flow="file", seq=1)
    story.send(200 * MS, "correspondent", 2, retransmission=True)
    story.cross(200 * MS, 202 * MS, "air.down", 2, 1000)
    story.receive(202 * MS, "mobile", 2)
    story.deliver(202 * MS, 960)
    return story


def test_a_loss_costs_its_timer_and_the_repetition() -> None:
    story = lost_and_sent_again()
    assert story.explained() == {"timer_rto": 200 * MS, "retransmissions_needed": 2 * MS}
    flow = story.explain()
    assert flow.bytes["retransmissions_needed"] == 1000
    assert flow.dropped_bytes == 1000
    assert flow.bytes["payload"] == 0


def test_a_wait_is_charged_to_the_handover_it_falls_into() -> None:
    story = lost_and_sent_again()
    story.links.append(link("new", "correspondent", "mobile", access=True))
    for at, cause in ((60, "link-up"), (80, "initiated"), (90, "address-acquired"), (100, "registered")):
        story.add(at * MS, "handover", node="mobile", link="new.up", cause=cause)
    story.handovers = [{"at_s": 0.05, "until_s": 1.0, "ready_at_s": 0.1, "to": "new"}]
    assert story.explained() == {
        "timer_rto": 50 * MS,
        "handover_link": 10 * MS,
        "handover_detection": 20 * MS,
        "handover_address": 10 * MS,
        "handover_registration": 10 * MS,
        "handover_transport": 100 * MS,
        "retransmissions_needed": 2 * MS,
    }


def test_two_timers_in_a_row_are_both_waited_for() -> None:
    story = lost_and_sent_again()
    story.rows = [row for row in story.rows if row["time_ns"] <= 200 * MS]
    story.cross(200 * MS, 202 * MS, "air.down", 2, 1000, cause="loss")
    story.rows = [row for row in story.rows if row.get("cause") == "loss" or row["kind"] != "packet-delivered"]
    story.add(600 * MS, "timeout", node="correspondent", flow="file", seq=1)
    story.send(600 * MS, "correspondent", 3, retransmission=True)
    story.cross(600 * MS, 602 * MS, "air.down", 3, 1000)
    story.receive(602 * MS, "mobile", 3)
    story.deliver(602 * MS, 960)
    assert story.explained() == {"timer_rto": 600 * MS, "retransmissions_needed": 2 * MS}


def test_a_repetition_of_what_had_arrived_is_unnecessary() -> None:
    story = Story()
    story.begin()
    story.send(0, "correspondent", 1)
    story.cross(0, 2 * MS, "air.down", 1, 1000)
    story.receive(2 * MS, "mobile", 1)
    story.deliver(2 * MS, 960)
    story.send(2 * MS, "mobile", 2, len_bytes=0, size_bytes=40, ack=961)
    story.cross(2 * MS, 3 * MS + 40 * BYTE, "air.up", 2, 40, cause="loss")
    story.add(200 * MS, "timeout", node="correspondent", flow="file", seq=1)
    story.send(200 * MS, "correspondent", 3, retransmission=True)
    story.cross(200 * MS, 202 * MS, "air.down", 3, 1000)
    story.receive(202 * MS, "mobile", 3)
    story.send(202 * MS, "mobile", 4, len_bytes=0, size_bytes=40, ack=961)
    story.cross(202 * MS, 203 * MS + 40 * BYTE, "air.up", 4, 40)
    story.receive(203 * MS + 40 * BYTE, "correspondent", 4)
    story.send(203 * MS + 40 * BYTE, "correspondent", 5, seq=961)
    story.cross(203 * MS + 40 * BYTE, 205 * MS + 40 * BYTE, "air.down", 5, 1000)
    story.receive(205 * MS + 40 * BYTE, "mobile", 5)
    story.deliver(205 * MS + 40 * BYTE, 1920)
    assert story.explained() == {
        "timer_rto": 200 * MS,
        "retransmissions_unnecessary": 2 * MS,
        "acknowledgements": 40 * BYTE,
        "payload": MS,
        "propagation": 2 * MS,
    }


def test_a_repetition_that_overtakes_the_original_was_unnecessary_too() -> None:
    story = Story(
        link("slow", "correspondent", "mobile", access=True), link("fast", "correspondent", "mobile", access=True)
    )
    story.begin()
    story.send(0, "correspondent", 1)
    story.cross(0, 400 * MS, "slow.down", 1, 1000)
    story.add(200 * MS, "timeout", node="correspondent", flow="file", seq=1)
    story.send(200 * MS, "correspondent", 2, retransmission=True)
    story.cross(200 * MS, 202 * MS, "fast.down", 2, 1000)
    story.receive(202 * MS, "mobile", 2)
    story.deliver(202 * MS, 960)
    story.receive(400 * MS, "mobile", 1)
    assert story.explain().bytes["retransmissions_unnecessary"] == 1000
    assert story.explained() == {"timer_rto": 200 * MS, "retransmissions_unnecessary": 2 * MS}


def answered_after(pause: int, *, window: int, update: bool = False, kind: str = "bulk", by: str = "mobile") -> Story:
    """A segment, an acknowledgement, a second segment; somebody pauses in between, and who it is decides what for."""
    story = Story(kind=kind)
    story.begin()
    story.send(0, "correspondent", 1)
    story.cross(0, 2 * MS, "air.down", 1, 1000)
    story.receive(2 * MS, "mobile", 1)
    story.deliver(2 * MS, 960)
    now = 2 * MS
    if by == "mobile" and not update:
        now += pause
    story.send(now, "mobile", 2, len_bytes=0, size_bytes=40, ack=961, window_bytes=window)
    story.cross(now, now + MS + 40 * BYTE, "air.up", 2, 40)
    story.receive(now + MS + 40 * BYTE, "correspondent", 2)
    now += MS + 40 * BYTE
    if update:
        now = 2 * MS + pause
        story.send(now, "mobile", 3, len_bytes=0, size_bytes=40, ack=961, window_bytes=5000)
        story.cross(now, now + MS + 40 * BYTE, "air.up", 3, 40)
        now += MS + 40 * BYTE
        story.receive(now, "correspondent", 3)
    elif by == "correspondent":
        now += pause
    story.send(now, "correspondent", 4, seq=961)
    story.cross(now, now + 2 * MS, "air.down", 4, 1000)
    story.receive(now + 2 * MS, "mobile", 4)
    story.deliver(now + 2 * MS, 1920)
    return story


ROUND = {"payload": 2 * MS, "propagation": 3 * MS, "acknowledgements": 40 * BYTE}


def test_nobody_waits_where_each_answers_at_once() -> None:
    assert answered_after(0, window=5000).explained() == ROUND


def test_an_acknowledgement_can_be_what_is_waited_for() -> None:
    assert answered_after(150 * MS, window=5000).explained() == ROUND | {"timer_delayed_ack": 150 * MS}


def test_a_closed_window_is_waited_for_until_it_opens() -> None:
    assert answered_after(500 * MS, window=0, update=True).explained() == ROUND | {"closed_window": 500 * MS}


def test_a_sender_that_probes_a_closed_window_waited_for_that() -> None:
    story = answered_after(300 * MS, window=100, by="correspondent")
    assert story.explained() == ROUND | {"closed_window": 300 * MS}


@pytest.mark.parametrize(("kind", "part"), [("paced", "application"), ("bulk", "timer_other")])
def test_silence_is_the_applications_where_it_has_a_clock(kind: str, part: str) -> None:
    story = answered_after(100 * MS, window=5000, kind=kind, by="correspondent")
    assert story.explained() == ROUND | {part: 100 * MS}


def by_way_of_the_home_agent() -> Story:
    """The direct route is one link and the access; packets go over the home agent instead."""
    return Story(
        link("first", "correspondent", "home-agent"),
        link("second", "home-agent", "station"),
        link("short", "correspondent", "station"),
        link("air", "station", "mobile", access=True),
    )


def test_links_beside_the_direct_route_are_stretch_and_a_tunnel_is_divided_by_bytes() -> None:
    story = by_way_of_the_home_agent()
    story.begin()
    story.send(0, "correspondent", 1)
    story.cross(0, 2 * MS, "first.down", 1, 1000)
    story.cross(2 * MS, 4 * MS + 20 * BYTE, "second.down", 1, 1020)
    # The tunnel ends at the mobile node, so that its header crosses the air too.
    story.cross(4 * MS + 20 * BYTE, 6 * MS + 40 * BYTE, "air.down", 1, 1020)
    story.receive(6 * MS + 40 * BYTE, "mobile", 1)
    story.deliver(6 * MS + 40 * BYTE, 960)
    assert story.explained() == {
        "path_stretch": 4 * MS + 20 * BYTE,
        "payload": MS,
        "encapsulation": 20 * BYTE,
        "propagation": MS,
    }
    parts = {key: count for key, count in story.explain().bytes.items() if count}
    assert parts == {"path_stretch": 2020, "payload": 960, "headers": 40, "encapsulation": 20}


def test_without_a_shorter_way_nothing_is_stretch() -> None:
    story = by_way_of_the_home_agent()
    story.links = [one for one in story.links if one["name"] != "short"]
    story.begin()
    story.send(0, "correspondent", 1)
    for number, name in enumerate(("first", "second", "air")):
        story.cross(2 * number * MS, 2 * (number + 1) * MS, f"{name}.down", 1, 1000)
    story.receive(6 * MS, "mobile", 1)
    story.deliver(6 * MS, 960)
    assert story.explained() == {"payload": 3 * MS, "propagation": 3 * MS}


def test_of_two_crossings_of_a_medium_the_first_is_stretch() -> None:
    def cable(name: str, one: str, other: str) -> Json:
        return link(name, one, other, medium="cable")

    story = Story(
        cable("a", "correspondent", "home-agent"),
        cable("b", "home-agent", "station"),
        cable("c", "correspondent", "station"),
        link("air", "station", "mobile", access=True),
    )
    # 18 bytes of frame and 8 of preamble; the gap of 12 follows the frame that was sent before.
    frame = 1026 * BYTE
    story.begin()
    story.send(0, "correspondent", 1)
    story.cross(0, frame, "a.down", 1, 1000)
    # The second crossing loses 300 µs to a collision that is in no row.
    again = frame + 300 * BYTE + 12 * BYTE + frame + 20 * BYTE
    story.cross(frame, again, "b.down", 1, 1020)
    story.cross(again, again + 2 * MS, "air.down", 1, 1000)
    story.receive(again + 2 * MS, "mobile", 1)
    story.deliver(again + 2 * MS, 960)
    assert story.explained() == {
        "path_stretch": frame,
        "contention": 300 * BYTE,
        "encapsulation": 20 * BYTE,
        "payload": frame + 12 * BYTE + MS,
        "propagation": MS,
    }


def test_a_further_fragment_costs_its_header() -> None:
    story = Story(link("wire", "correspondent", "home-agent"), link("air", "home-agent", "mobile", access=True))
    story.begin()
    story.send(0, "correspondent", 1, len_bytes=1460, size_bytes=1500)
    begin = 1500 * BYTE + MS
    story.cross(0, begin, "wire.down", 1, 1500)
    # In the tunnel it is 20 bytes longer, and goes on in packets of 1500 and 40.
    for packet, size in ((2, 1500), (3, 40)):
        story.add(begin, "packet-derived", node="home-agent", flow="file", packet=packet, of_packet=1, cause="fragment")
        story.rows[-1]["size_bytes"] = size
    story.cross(begin, begin + 1500 * BYTE + MS, "air.down", 2, 1500)
    end = begin + 1540 * BYTE + MS
    story.cross(begin, end, "air.down", 3, 40)
    story.receive(end, "mobile", 3, carries=1)
    story.deliver(end, 1460)
    assert story.explained() == {
        "payload": 3000 * BYTE,
        "encapsulation": 20 * BYTE,
        "fragmentation": 20 * BYTE,
        "propagation": 2 * MS,
    }
    parts = {key: count for key, count in story.explain().bytes.items() if count}
    assert parts == {"payload": 2920, "headers": 80, "encapsulation": 20, "fragmentation": 20}


def test_a_copy_that_the_network_made_is_none_of_the_senders_repetitions() -> None:
    story = Story(
        link("wire", "correspondent", "home-agent"),
        link("old", "home-agent", "mobile", access=True),
        link("new", "home-agent", "mobile", access=True),
    )
    story.begin()
    story.send(0, "correspondent", 1)
    story.cross(0, 2 * MS, "wire.down", 1, 1000)
    story.add(2 * MS, "packet-derived", node="home-agent", flow="file", packet=2, of_packet=1, cause="copy")
    story.rows[-1]["size_bytes"] = 1000
    story.cross(2 * MS, 9 * MS, "old.down", 1, 1000)
    story.cross(2 * MS, 4 * MS, "new.down", 2, 1000)
    story.receive(4 * MS, "mobile", 2, carries=1)
    story.deliver(4 * MS, 960)
    story.receive(9 * MS, "mobile", 1)
    assert story.explained() == {"payload": MS, "propagation": MS, "copies": 2 * MS}
    assert story.explain().bytes["copies"] == 1000
    assert story.explain().bytes["retransmissions_unnecessary"] == 0


def test_a_link_that_sends_nothing_is_silent() -> None:
    story = Story()
    story.begin()
    story.send(0, "correspondent", 1)
    story.cross(0, 52 * MS, "air.down", 1, 1000)
    story.receive(52 * MS, "mobile", 1)
    story.deliver(52 * MS, 960)
    assert story.explained() == {"outage": 50 * MS, "payload": MS, "propagation": MS}


def test_a_packet_held_between_two_links_is_in_a_host() -> None:
    story = Story(link("wire", "correspondent", "home-agent"), link("air", "home-agent", "mobile", access=True))
    story.begin()
    story.send(0, "correspondent", 1)
    story.cross(0, 2 * MS, "wire.down", 1, 1000)
    story.cross(32 * MS, 34 * MS, "air.down", 1, 1000)
    story.receive(34 * MS, "mobile", 1)
    story.deliver(34 * MS, 960)
    assert story.explained() == {"hosts": 30 * MS, "payload": 2 * MS, "propagation": 2 * MS}


def test_a_flow_that_is_stuck_is_charged_to_its_end() -> None:
    story = lost_and_sent_again()
    parts = story.explained(complete=False, active_ns=500 * MS)
    assert parts == {"timer_rto": 200 * MS, "retransmissions_needed": 2 * MS, "unfinished": 298 * MS}


def test_a_flow_whose_application_is_silent_is_not_stuck() -> None:
    story = lost_and_sent_again()
    story.kind = "paced"
    parts = story.explained(complete=False, active_ns=500 * MS)
    assert parts == {"timer_rto": 200 * MS, "retransmissions_needed": 2 * MS, "application": 298 * MS}
    story.send(300 * MS, "correspondent", 4, seq=961)
    story.cross(300 * MS, 302 * MS, "air.down", 4, 1000, cause="loss")
    parts = story.explained(complete=False, active_ns=500 * MS)
    assert parts == {"timer_rto": 200 * MS, "retransmissions_needed": 2 * MS, "unfinished": 298 * MS}


def test_what_the_trace_does_not_say_is_unknown_and_still_sums() -> None:
    story = Story()
    story.begin()
    # Nothing says where this came from.
    story.packets[1] = {"seq": 1, "ack": 1, "len_bytes": 960, "window_bytes": 1, "flags": ".", "size_bytes": 1000}
    story.receive(7 * MS, "mobile", 1)
    story.deliver(7 * MS, 960)
    assert story.explained() == {"unknown": 7 * MS}
