"""The study `overheads`: the paper's rows, its cures, and the page that holds them."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import cache
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from careof import native
from careof.studies import overheads
from careof.studies._mean import Mean
from careof.studies._overheads_rows import o4, o6
from careof.studies._overheads_runs import (
    HAND_OFF_SCENARIO,
    PLACEMENTS,
    Transfer,
    Walk,
    Walked,
    transfer,
    transfer_scenario,
    walk,
    walk_scenario,
)
from careof.studies._overheads_tables import CURES
from careof.text import Style
from linux_hosts import need_linux_hosts

if TYPE_CHECKING:
    from careof.studies import Row, Study, Table

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "studies" / "overheads.md"
BEGIN = "<!-- Printed by `careof study overheads --markdown`; UPDATE_DOCS=1 pytest tests/studies renews it. -->\n"
END = "<!-- End of what is printed. -->\n"


@cache
def whole() -> Study:
    return overheads.carry_out(None, None)


def row(study: Study, name: str) -> Row:
    return next(one for one in study.rows if one.id == name)


def table(study: Study, title: str) -> Table:
    return next(one for one in study.tables if one.title.startswith(title))


def mean(study: Study, title: str, name: str, what: str = "") -> float:
    found = next(one for one in table(study, title).rows if one.id == name and what in one.what)
    assert isinstance(found.ours, float)
    return found.ours


def test_every_row_of_the_paper_matches() -> None:
    study = whole()
    assert [one.id for one in study.rows] == ["O1", "O2", "O3", "O4", "O5", "O6", "O7"]
    assert all(one.match for one in study.rows), study.for_people(Style(None))


def test_latencies_are_means_of_as_many_handovers_as_they_say_within_their_confidence() -> None:
    found = row(whole(), "O4")
    assert found.interval is not None
    low, high = found.interval
    assert low <= 2.5 <= high
    # Uniform over an interval: 0.289 of it, and 1000 handovers.
    assert high - low == pytest.approx(2 * 1.96 * 0.2887 / 1000**0.5, rel=0.1)


def test_a_latency_beside_its_prediction_is_no_match() -> None:
    of = Walk("network 1.0", 1.0, 200)
    ours = [2.0 + number / 200 for number in range(200)]
    assert o4([Walked(of, network_s=ours)]).match is True
    assert o4([Walked(of, network_s=[one + 0.1 for one in ours])]).match is False
    assert o4([Walked(of, network_s=[*ours[1:], float("inf")])]).match is False
    fast = replace(of, interval_s=0.01)
    found = [one / 100 for one in ours]
    assert o6(Walked(fast, network_s=found, detection_s=found, advertised_bps=35_200)).match is True
    assert o6(Walked(fast, network_s=found, detection_s=found, advertised_bps=41_600)).match is False


def test_the_cures_shorten_what_they_are_for() -> None:
    study = whole()
    title = "O8: the paper's cures"
    network = {
        way: mean(study, title, f"O8, {way}", "network")
        for way in (
            "three missed advertisements, no overlap",
            "link trigger, no overlap, waits for an advertisement",
            "link trigger, no overlap, solicits",
            "eager, cells overlap",
        )
    }
    slow, waits, asks, eager = network.values()
    assert slow > 10 * asks
    assert slow > waits > asks > eager == 0.0
    way = "three missed advertisements, no overlap"
    alone, helped = (mean(study, title, f"O8, {way}, assist {assist}", "TCP") for assist in ("none", "default"))
    assert alone > helped + 0.5
    # With the default assists the transfer goes on about when the path is there.
    assert helped - slow < 0.1


def test_route_optimisation_takes_the_dogleg_away_and_a_reverse_tunnel_adds_one() -> None:
    of_home = {line[0]: float(line[3]) for line in table(whole(), "O8: other routes").lines}
    assert of_home["E, route optimisation"] < 1.15
    assert of_home["C, route optimisation"] < 1.25
    assert of_home["D, reverse tunnel"] > 1.7
    assert of_home["E, reverse tunnel"] > 1.9


def test_a_smooth_hand_off_loses_less() -> None:
    lost = {line[0]: float(line[1].split()[0]) for line in table(whole(), "O8: smooth hand-off").lines}
    assert lost["link-trigger, smooth"] < 0.1 * lost["link-trigger, as it comes"]
    # No more than the window has segments, and so nothing of what was on its way at the end.
    assert all(segments < 64_000 / 1440 + 3 for segments in lost.values())


def test_an_address_without_checks_is_there_far_sooner() -> None:
    lines = {line[0]: float(line[1].split()[0]) for line in table(whole(), "What the care-of address costs").lines}
    assert lines["DHCP, no check"] < 0.04 * lines["DHCP, both look"]
    assert lines["known beforehand (static)"] < lines["DHCP, no check"] < lines["DHCP, the server looks (1 s)"]


def test_on_a_switch_the_dogleg_costs_next_to_nothing() -> None:
    for line in table(whole(), "The same on today's Ethernet").lines:
        assert float(line[-1]) < 1.05


def test_the_study_runs_the_scenarios_that_lie_ready() -> None:
    for placement in PLACEMENTS:
        ready = (ROOT / "scenarios" / "overheads" / f"{placement.letter.lower()}.toml").read_text()
        ours = transfer_scenario(placement)
        there, here = (native.check("x.toml", text) for text in (ready, ours))
        for one in (there, here):
            del one["title"], one["description"]
        assert here == there, placement.letter
    text = (ROOT / "scenarios" / "smooth-handoff.toml").read_text()
    there, here = (native.check("x.toml", one) | {"description": ""} for one in (text, HAND_OFF_SCENARIO))
    assert here == there


def test_every_walk_asks_for_what_the_simulator_can_do() -> None:
    for one in CURES:
        native.check_world("sim", "walk", walk_scenario(one), [*one.settings, f"assist={one.assist}"])


def test_a_quick_study_writes_its_rows_and_figures(tmp_path: Path) -> None:
    study = overheads.carry_out(tmp_path / "o", None, quick=True)
    rows = json.loads((tmp_path / "o" / "rows.json").read_text())
    assert [one["id"] for one in rows[:7]] == [f"O{number}" for number in range(1, 8)]
    for name in ("figure-7", "figure-8", "intervals"):
        assert (tmp_path / "o" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert len(study.files) == 4
    assert len(study.tables) == 4


def test_a_mean_says_how_sure_it_is() -> None:
    found = Mean.of([1.0, 2.0, 3.0])
    assert found.value == 2.0
    # Student's t with two degrees of freedom is below 4.303 with 97.5 %.
    assert found.half == pytest.approx(4.303 / 3**0.5, rel=1e-3)
    assert found.holds(4.4)
    assert not found.holds(4.5)
    assert not Mean.of([2.0]).holds(2.1)
    assert Mean.of([1.0, float("inf")]).shown() == "never"
    assert not Mean.of([1.0, float("inf")]).holds(1.0)


@pytest.mark.measures
def test_a_file_through_the_tunnel_takes_a_kernel_about_as_long_as_the_simulator() -> None:
    need_linux_hosts()
    small = ("flow.0.size=1 MB", "duration=6 s")
    for placement in PLACEMENTS:
        if placement.letter in "DE":
            here, there = (transfer(Transfer(placement, world=world, settings=small)) for world in native.WORLDS)
            # An Ethernet that were none, or a dogleg missing, is far off.
            assert here.seconds == pytest.approx(there.seconds, rel=0.5), placement.letter


def test_a_node_on_a_real_host_does_not_leave_before_two_advertisements_are_missed() -> None:
    need_linux_hosts()
    walked = walk(Walk("network 0.2", 0.2, 4, world="linux"))
    assert any(map(isfinite, walked.detection_s))
    for latency, detection in zip(walked.network_s, walked.detection_s, strict=True):
        # How much later it does, and whether before the next handover, is for the machine to say.
        assert 0.35 < detection <= latency


@pytest.mark.measures
def test_a_kernel_is_without_a_path_until_the_third_advertisement_is_missed() -> None:
    need_linux_hosts()
    walked = walk(Walk("network 0.2", 0.2, 4, world="linux"))
    for latency, detection in zip(walked.network_s, walked.detection_s, strict=True):
        # 2 to 3 intervals, and what a loaded machine adds.
        assert 0.35 < detection <= latency < 2.0


def test_the_page_holds_what_is_printed() -> None:
    before, rest = PAGE.read_text().split(BEGIN)
    held, after = rest.split(END)
    printed = whole().as_markdown().split("\n", 2)[2].strip()
    if os.environ.get("UPDATE_DOCS") == "1":
        PAGE.write_text(f"{before}{BEGIN}\n{printed}\n\n{END}{after}")
    else:
        assert held.strip() == printed, "run UPDATE_DOCS=1 pytest tests/studies"
