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


@needs_ns2
def test_a_seventh_of_the_suite_agrees_packet_by_packet() -> None:
    verdicts = ns2.compare_all(ns2.suite(quick=True))
    assert len(verdicts) > 30
    assert [verdict.case.name for verdict in verdicts if not verdict.same_order] == []


@needs_ns2
@pytest.mark.parametrize("variant", VARIANTS)
def test_up_to_the_first_retransmission_times_agree_as_well(variant: str) -> None:
    verdict = ns2.compare(ns2.Case(variant, drops=((40, 1), (45, 1)), window=1_000))
    assert verdict.same_transmissions
    first = next(index for index, sent in enumerate(verdict.ours) if sent.transmission > 1)
    until = list(zip(verdict.ours, verdict.theirs, strict=True))[: first + 1]
    assert max(abs(ours.at_s - theirs.at_s) for ours, theirs in until) < 1e-6


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
    assert "after a timeout" in row["reason"]
    assert row["first_difference"]["ours"]["segment"] != row["first_difference"]["ns2"]["segment"]


def test_a_difference_that_nobody_can_explain_is_called_one() -> None:
    sent = tuple(ns2.Sent(number / 10, number, 1, 10.0) for number in range(1, 30))
    more = (*sent, ns2.Sent(3.0, 29, 2, 10.0))
    verdict = ns2.Verdict(ns2.Case("tahoe"), sent, more)
    assert not verdict.same_segments
    assert verdict.first_difference == len(sent)
    assert verdict.reason is None
    assert "1 differing" in ns2.summary([verdict])


@pytest.mark.parametrize(
    ("theirs", "explained"),
    [
        # 2 was lost twice and 4 once; 3 and 5 had arrived.
        ([(2, 10.0), (4, 9.0), (2, 1.0), (3, 2.0), (5, 2.0)], True),
        # Nothing that had arrived is sent again: no reason for another order.
        ([(4, 10.0), (2, 9.0), (2, 1.0)], False),
        # 6 has never arrived, and ours did not send it again.
        ([(2, 10.0), (4, 9.0), (2, 1.0), (3, 2.0), (6, 2.0)], False),
        # No timeout: the window is nowhere one segment.
        ([(2, 10.0), (4, 9.0), (3, 8.0), (2, 8.0)], False),
        # 2 would have had to be sent a third time.
        ([(2, 10.0), (4, 1.0), (3, 2.0)], False),
    ],
)
def test_a_timeout_with_sack_explains_that_what_had_arrived_is_sent_again(
    theirs: list[tuple[int, float]], explained: bool
) -> None:
    def sent(repeated: list[tuple[int, float]]) -> tuple[ns2.Sent, ...]:
        counts = dict.fromkeys(range(1, 7), 1)
        found = [ns2.Sent(number / 100, number, 1, 10.0) for number in counts]
        for index, (segment, cwnd) in enumerate(repeated):
            counts[segment] += 1
            found.append(ns2.Sent(0.2 + index / 10, segment, counts[segment], cwnd))
        return tuple(found)

    ours = sent([(2, 10.0), (4, 9.0), (2, 1.0)])
    verdict = ns2.Verdict(ns2.Case("sack", drops=((2, 2), (4, 1), (6, 1))), ours, sent(theirs))
    assert not verdict.same_order
    assert (verdict.reason is not None) == explained


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
