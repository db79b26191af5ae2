"""What the study `vertical` reads off a run, on small tables of events written by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from careof.studies._vertical_observed import Curve, Observed
from careof.studies._vertical_rows import Finding, Part, capacity, line_limit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from careof.native import Json

MSS = 1000
_COLUMNS = {
    "time_ns": pa.int64(),
    "kind": pa.dictionary(pa.int32(), pa.string()),
    "node": pa.dictionary(pa.int32(), pa.string()),
    "link": pa.dictionary(pa.int32(), pa.string()),
    "flow": pa.dictionary(pa.int32(), pa.string()),
    "cause": pa.dictionary(pa.int32(), pa.string()),
    "packet": pa.uint64(),
    "seq": pa.int64(),
    "ack": pa.int64(),
    "len_bytes": pa.uint32(),
    "retransmission": pa.bool_(),
    "rto_ns": pa.int64(),
    "queue_packets": pa.uint32(),
    "delivered_bytes": pa.uint64(),
}
_SCENARIO: Json = {"handovers": [{"at_ns": 2_000_000_000}], "flows": [{"tcp": {"mss_bytes": MSS}}]}


class Story:
    """Events of one download, written in the order in which they come to mind."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._packet = 0

    def event(self, at_s: float, kind: str, **columns: object) -> None:
        self._rows.append({"time_ns": round(at_s * 1e9), "kind": kind, **columns})

    def switch(self, at_s: float) -> None:
        self.event(at_s, "binding", node="home-agent", cause="updated")

    def segment(self, number: int, at_s: float, link: str, arrives_s: float | None, *, again: bool = False) -> None:
        """Segment `number`, from 0; it arrives over `link`, or is still on its way when the run ends."""
        self._packet += 1
        same: dict[str, Any] = {"flow": "f", "packet": self._packet}
        segment = same | {"seq": 1 + number * MSS, "len_bytes": MSS, "ack": 1, "retransmission": again}
        self.event(at_s, "segment-sent", node="correspondent", **segment)
        self.event(at_s, "packet-enqueued", link=link, queue_packets=0, **same)
        if arrives_s is not None:
            self.event(arrives_s, "packet-delivered", link=link, queue_packets=0, **same)
            self.event(arrives_s, "segment-received", node="mobile", **segment)

    def ack(self, next_number: int, at_s: float) -> None:
        """The receiver expects segment `next_number`."""
        columns: dict[str, Any] = {"seq": 1, "len_bytes": 0, "ack": 1 + next_number * MSS, "retransmission": False}
        self.event(at_s, "segment-received", node="correspondent", flow="f", packet=10_000, **columns)

    def timeout(self, number: int, at_s: float, rto_s: float) -> None:
        self.event(at_s, "timeout", node="correspondent", flow="f", seq=1 + number * MSS, rto_ns=round(rto_s * 1e9))

    def delivered(self, segments: int, at_s: float) -> None:
        self.event(at_s, "data-delivered", node="mobile", flow="f", delivered_bytes=segments * MSS)

    def observed(self) -> Observed:
        rows = sorted(self._rows, key=lambda row: row["time_ns"])
        arrays = [_array([row.get(name) for row in rows], kind) for name, kind in _COLUMNS.items()]
        return Observed(
            pa.table(arrays, names=list(_COLUMNS)),
            flow="f",
            sender="correspondent",
            receiver="mobile",
            old="wavelan.down",
            new="gsm.down",
            scenario=_SCENARIO,
        )


def _array(values: Iterable[object], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, pa.string()).dictionary_encode()
    return pa.array(values, kind)


def spurious() -> Story:
    """One segment over the old link, three over the new one, whose first times out twice."""
    story = Story()
    story.segment(0, 1.9, "wavelan.down", 1.95)
    story.delivered(1, 1.95)
    story.switch(2.1)
    story.segment(1, 2.2, "gsm.down", 4.0)
    story.segment(2, 2.2, "gsm.down", 5.0)
    story.ack(1, 2.3)
    story.timeout(1, 2.4, 0.4)
    story.segment(1, 2.4, "gsm.down", 6.0, again=True)
    story.timeout(1, 2.8, 0.8)
    story.segment(1, 2.8, "gsm.down", 7.0, again=True)
    story.delivered(2, 4.0)
    story.ack(2, 4.5)
    story.delivered(3, 5.0)
    story.ack(3, 5.5)
    story.segment(3, 5.5, "gsm.down", 9.0)
    story.ack(3, 6.5)
    story.ack(3, 7.5)
    story.delivered(4, 9.0)
    story.ack(4, 9.5)
    return story


def test_the_handover_is_the_change_of_the_binding_after_it_began() -> None:
    story = spurious()
    story.event(0.5, "binding", node="home-agent", cause="created")
    assert story.observed().switch_s == pytest.approx(2.1)


def test_a_run_without_a_completed_handover_says_so() -> None:
    with pytest.raises(ValueError, match="no completed handover"):
        _ = Story().observed().switch_s


def test_the_first_segment_for_the_new_link_is_counted_with_its_timeouts() -> None:
    run = spurious().observed()
    assert run.first.seq.tolist() == [1001, 1001, 1001]
    assert run.first.again.tolist() == [False, True, True]
    assert run.timeouts_of_first() == 2


def test_outstanding_counts_each_segment_once() -> None:
    run = spurious().observed()
    assert run.outstanding(2.25) == 3
    assert run.outstanding(3.0) == 2
    assert run.outstanding(9.6) == 0


def test_an_ack_is_a_duplicate_only_while_data_is_unacknowledged() -> None:
    run = spurious().observed()
    assert run.duplicates(2.1) == 2
    assert run.duplicates(7.0) == 1
    idle = Story()
    idle.segment(0, 1.0, "wavelan.down", 1.1)
    idle.ack(1, 1.2)
    idle.ack(1, 1.3)
    assert idle.observed().duplicates(0) == 0


def test_the_gap_and_the_silence_lie_where_new_data_waits() -> None:
    run = spurious().observed()
    assert run.gap() == pytest.approx((5.0, 9.0))
    assert run.silence() == pytest.approx((5.5, 9.5))


def test_repeated_segments_give_no_round_trip() -> None:
    rounds = [tuple(one) for one in spurious().observed().rounds]
    assert rounds == [pytest.approx(one) for one in ((1.9, 0.4), (2.2, 3.3), (5.5, 4.0))]


def test_what_the_old_link_still_carried_does_not_count_as_throughput() -> None:
    run = spurious().observed()
    assert run.carried(9.5) == 3 * MSS
    assert run.rate(2.2, 9.5) == pytest.approx(3 * MSS / 7.3)
    assert run.rate(2.25, 2.35) == 0
    assert run.time_for(2 * MSS) == pytest.approx(3.3)
    assert run.time_for(100 * MSS) == float("inf")


def test_what_comes_late_over_the_old_link_is_overtaken() -> None:
    story = Story()
    story.segment(0, 1.0, "wavelan.down", 3.0)
    story.segment(1, 1.0, "wavelan.down", 5.0)
    story.switch(2.1)
    story.delivered(1, 3.0)
    story.segment(2, 3.5, "gsm.down", 3.6)
    story.delivered(3, 5.0)
    story.segment(3, 5.5, "gsm.down", 5.6)
    run = story.observed()
    assert run.overtaken() == (1, 1)
    assert run.over("wavelan.down").time.tolist() == [3.0, 5.0]
    assert [one.seq for one in run.crossings("gsm.down")] == [2001, 3001]
    assert run.crossings("gsm.down")[0][:2] == pytest.approx((3.5, 3.6))


def test_the_rto_is_known_from_states_and_from_timeouts() -> None:
    story = spurious()
    story.event(1.0, "tcp-state", node="correspondent", flow="f", rto_ns=200_000_000)
    run = story.observed()
    assert run.rto.at(2.1) == pytest.approx(0.2)
    assert run.rto.at(2.5) == pytest.approx(0.4)


def test_a_curve_holds_its_value() -> None:
    curve = Curve(np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0]))
    assert np.isnan(curve.at(0.5))
    assert curve.at(2.0) == 20
    part = curve.between(1.5, 2.5)
    assert part.time.tolist() == [1.5, 2.0]
    assert part.value.tolist() == [10, 20]


@pytest.mark.parametrize(
    ("low", "high", "ours", "match"),
    [(10, 20, 10, True), (10, 20, 21, False), (None, 3, 4, False), (2, None, 9, True), (None, None, 5, None)],
)
def test_a_number_matches_inside_its_band_and_is_no_criterion_without_one(
    low: float | None, high: float | None, ours: float, match: bool | None
) -> None:
    assert Part("n", 1, ours, low, high).match is match


def test_a_row_matches_when_every_criterion_does() -> None:
    good, reported, bad = Part("a", 1, 1, 1, 1), Part("b", 1, 9), Part("c", 1, 9, 1, 1)
    assert Finding("X", "x", (good, reported)).match
    assert not Finding("X", "x", (good, bad)).match


def test_capacity_is_rate_by_round_trip() -> None:
    way = {"rate_bps": 9600, "delay_ns": 350_000_000, "framing": {"bits_per_byte": 10, "overhead_bytes": 7}}
    scenario: Json = {"links": [{"name": "gsm", "down": way, "up": way}]}
    assert capacity(scenario, ("gsm",)) == pytest.approx(6720)
    assert line_limit(scenario) == 960
