"""Our classic senders beside ns-2's. Where ns-2 is not installed, the tests that need it say so and are skipped."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from careof.errors import InputError
from careof.oracles import ns2
from careof.oracles.ns2_command import VARIANTS
from conftest import Command

needs_ns2 = pytest.mark.skipif(shutil.which("ns") is None, reason="there is no ns; install the package ns2")


def test_the_command_offers_the_variants_that_are_compared() -> None:
    assert tuple(ns2.AGENTS) == VARIANTS


def test_the_suite_has_losses_outages_and_changes_for_every_variant() -> None:
    cases = ns2.suite()
    assert len(cases) >= 200
    assert len(set(cases)) == len(cases)
    for variant in VARIANTS:
        mine = [case for case in cases if case.variant == variant]
        assert {len(case.drops) for case in mine} == {0, 1, 2, 3, 4}
        assert {length for case in mine for _, length in case.outages} >= {0.3, 10.0}
        assert any(case.changes for case in mine)
        for queue in (8, 20):
            small = [case for case in mine if case.queue == queue]
            assert any(not (case.drops or case.outages or case.changes) for case in small)
            assert any(case.outages and not case.changes for case in small)
            assert any(case.changes and not case.outages for case in small)
            assert any(case.changes and case.outages for case in small)


@needs_ns2
def test_a_seventh_of_the_suite_agrees_packet_by_packet_or_names_why_not() -> None:
    verdicts = ns2.compare_all(ns2.suite(quick=True))
    assert len(verdicts) > 40
    assert [verdict.case.name for verdict in verdicts if not verdict.agrees and verdict.reason is None] == []
    large = [verdict for verdict in verdicts if verdict.case.queue == 1_000]
    assert [verdict.case.name for verdict in large if not verdict.same_order] == []
    assert sum(verdict.agrees for verdict in verdicts) > len(verdicts) / 3


@needs_ns2
def test_a_small_queue_loses_segments_on_both_sides(careof: Command) -> None:
    done = careof("oracle", "ns2", "--variant", "tahoe", "--queue", "8", "--window", "100", "--rate", "1", "--json")
    (row,) = json.loads(done.stdout)
    assert row["queue"] == 8
    assert row["retransmitted"]
    assert row["retransmitted_ns2"]
    assert "queue 8" in row["case"]


@needs_ns2
@pytest.mark.parametrize("variant", VARIANTS)
def test_up_to_the_first_retransmission_times_agree_as_well(variant: str) -> None:
    verdict = ns2.compare(ns2.Case(variant, drops=((40, 1), (45, 1)), window=1_000))
    assert verdict.same_transmissions
    first = next(index for index, sent in enumerate(verdict.ours) if sent.transmission > 1)
    until = list(zip(verdict.ours, verdict.theirs, strict=True))[: first + 1]
    assert max(abs(ours.at_s - theirs.at_s) for ours, theirs in until) <= ns2.TOLERANCE_S


@needs_ns2
def test_a_retransmission_can_be_lost_as_well() -> None:
    # The list of ns-2 counts packets: where it stands depends on what was sent again before.
    verdict = ns2.compare(ns2.Case("newreno", drops=((40, 3), (60, 1))))
    assert ns2.again(verdict.theirs)[:3] == [40, 40, 40]
    assert verdict.same_order


@needs_ns2
def test_a_difference_is_told_with_its_place_and_its_reason(careof: Command) -> None:
    done = careof("oracle", "ns2", "--variant", "sack", "--drop", "34:3,39:3", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert row["variant"] == "sack"
    assert not row["same_order"]
    assert row["retransmitted"] != row["retransmitted_ns2"]
    assert "RFC 6675" in row["reason"]
    assert row["compared"] == row["first_difference"]["transmission"] - 1
    assert row["first_difference"]["ours"]["at_s"] < row["first_difference"]["ns2"]["at_s"]


def test_a_difference_that_nobody_can_explain_is_called_one() -> None:
    sent = tuple(ns2.Sent(number / 10, number, 1, 10.0) for number in range(1, 30))
    more = (*sent, ns2.Sent(3.0, 29, 2, 10.0))
    verdict = ns2.Verdict(ns2.Case("tahoe"), sent, more)
    assert not verdict.same_segments
    assert not verdict.agrees
    assert verdict.first_difference == len(sent)
    assert verdict.reason is None
    assert "1 differing" in ns2.summary([verdict])


def test_a_segment_at_another_time_is_a_difference() -> None:
    sent = tuple(ns2.Sent(number / 10, number, 1, 10.0) for number in range(1, 30))
    late = (*sent[:-1], ns2.Sent(3.3, 29, 1, 10.0))
    verdict = ns2.Verdict(ns2.Case("tahoe"), sent, late)
    assert verdict.same_order
    assert (verdict.agrees, verdict.departure, verdict.reason) == (False, 28, None)
    assert verdict.near(1e-3) == 28
    assert verdict.near(1.0) == 29


def _lost(*segments: int) -> list[ns2.Sent]:
    """Six segments at once, of which these are lost."""
    return [ns2.Sent(0.0, number, 1, 10.0, 20.0, number in segments) for number in range(1, 7)]


@pytest.mark.parametrize(
    ("variant", "lost", "ours", "theirs", "words"),
    [
        # After a timeout ns-2 sends 3 again, which had arrived; 4 had not.
        ("sack", (2, 4), [(1.2, 2, 1), (1.3, 4, 2)], [(1.2, 2, 1), (1.3, 3, 2)], "what had arrived"),
        ("sack", (2, 3), [(1.2, 2, 1), (1.3, 4, 2)], [(1.2, 2, 1), (1.3, 3, 2)], None),
        ("newreno", (2, 4), [(1.2, 2, 1), (1.3, 4, 2)], [(1.2, 2, 1), (1.3, 3, 2)], None),
        # In a recovery ours repeats a second hole earlier, for which a second one must be there.
        ("sack", (2, 4), [(0.2, 2, 5), (0.21, 4, 5)], [(0.2, 2, 5), (0.22, 4, 5)], "pipe"),
        ("sack", (2,), [(0.2, 2, 5), (0.21, 4, 5)], [(0.2, 2, 5), (0.22, 4, 5)], None),
        # In a recovery ours sends new data first, ns-2 the hole.
        ("sack", (2, 4), [(0.2, 2, 5), (0.21, 7, 5)], [(0.2, 2, 5), (0.21, 4, 5)], "new data"),
        ("reno", (2, 4), [(0.2, 2, 5), (0.21, 7, 5)], [(0.2, 2, 5), (0.21, 4, 5)], None),
        # A window ahead by the growth of one acknowledgement after a recovery, and one that is ahead by another amount.
        ("reno", (2,), [(0.2, 2, 5), (0.3, 7, 5), (0.5, 8, 5)], [(0.2, 2, 5), (0.3, 7, 5.2), (0.4, 8, 5.2)], "ends a"),
        ("reno", (2,), [(0.2, 2, 5), (0.3, 7, 5), (0.5, 8, 5)], [(0.2, 2, 5), (0.3, 7, 5.6), (0.4, 8, 5.6)], None),
        ("reno", (), [(0.3, 7, 5), (0.5, 8, 5)], [(0.3, 7, 5.2), (0.4, 8, 5.2)], None),
        # A fast retransmission below two segments.
        ("sack", (2,), [(0.2, 2, 2), (0.2, 7, 2)], [(0.2, 2, 1), (0.3, 7, 2)], "below two"),
        ("sack", (2,), [(0.2, 2, 2), (0.2, 7, 2)], [(0.2, 2, 2), (0.3, 7, 2)], None),
    ],
)
def test_a_reason_counts_only_where_the_trace_shows_it(
    variant: str,
    lost: tuple[int, ...],
    ours: list[tuple[float, int, float]],
    theirs: list[tuple[float, int, float]],
    words: str | None,
) -> None:
    def sent(more: list[tuple[float, int, float]]) -> tuple[ns2.Sent, ...]:
        found = _lost(*lost)
        for at_s, segment, cwnd in more:
            transmission = 1 + sum(one.segment == segment for one in found)
            found.append(ns2.Sent(at_s, segment, transmission, cwnd, 20.0))
        return tuple(found)

    reason = ns2.Verdict(ns2.Case(variant), sent(ours), sent(theirs)).reason
    assert (words is None) == (reason is None)
    assert words is None or (reason is not None and words in reason)


@pytest.mark.parametrize("tied", [True, False])
def test_a_drop_at_a_tie_is_a_reason_only_at_a_tie(tied: bool) -> None:
    ours = (*_lost(), ns2.Sent(0.1, 7, 1, 12.0))
    theirs = (*_lost()[:-1], ns2.Sent(0.0, 6, 1, 10.0, 20.0, True, tied), ns2.Sent(0.2, 7, 1, 11.0))
    reason = ns2.Verdict(ns2.Case("tahoe", queue=4), ours, theirs).reason
    assert (reason is not None and "at one instant" in reason) == tied


@needs_ns2
def test_vegas_differs_from_ns2_where_its_ring_of_send_times_is_too_short_and_not_where_it_is_long_enough() -> None:
    # The window never gets beyond 26 segments: of the receiver's only the ring's length is left.
    short, long = (ns2.compare(ns2.Case("vegas", drops=((60, 1),), window=window)) for window in (40, 64))
    assert "ring of send times" in (short.reason or "")
    assert long.departure is None


@needs_ns2
def test_any_loss_outage_or_change_can_be_asked_for(careof: Command) -> None:
    done = careof(
        *("oracle", "ns2", "--variant", "vegas", "--drop", "40", "--outage", "2.5,0.4", "--change", "4,0.5,0.2"),
        *("--rate", "2", "--delay", "0.02", "--window", "30", "--segments", "900", "--json"),
    )
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert row["same_order"]
    assert row["rate_bps"] == 2_000_000
    assert row["changes"] == [{"at_s": 4.0, "rate_bps": 500_000, "delay_s": 0.2}]
    assert row["retransmitted"][0] == 40
    assert len(row["retransmitted"]) > 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--drop", "0"], "whole number"),
        (["--drop", "4,"], "whole number"),
        (["--outage", "3"], "START,LEN"),
        (["--change", "1,2"], "AT,RATE,DELAY"),
        (["--variant", "cubic"], "invalid choice"),
    ],
)
def test_what_makes_no_sense_is_refused(careof: Command, arguments: list[str], message: str) -> None:
    done = careof("oracle", "ns2", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "hint:" in done.stderr


def test_without_ns2_it_says_how_to_get_it(careof: Command, tmp_path: Path) -> None:
    done = careof("oracle", "ns2", "--drop", "40", env={"PATH": str(tmp_path), "HOME": str(tmp_path)})
    assert done.returncode == 2
    assert "apt-get install ns2" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_scene_out_of_bounds_is_an_error_of_input() -> None:
    with pytest.raises(InputError, match="mss"):
        ns2.ours(ns2.Case("reno", mss=10))
