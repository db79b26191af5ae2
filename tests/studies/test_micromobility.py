"""The study `micromobility`: the paper's network and blocks, what is made of its runs, and the page that holds it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from careof import run
from careof.errors import InputError, WorldError
from careof.studies import Study, micromobility
from careof.studies._micromobility_results import Results, difference
from careof.studies._micromobility_runs import (
    ASSUMPTION,
    BETWEEN,
    BICAST,
    BUFFER,
    DELAYS_MS,
    HANDOVERS,
    MIGRATING,
    MIGRATION,
    NAMED,
    NO_BUFFER,
    ONE_CHANNEL,
    OTHERS,
    PAPERS,
    PLAIN,
    QUIC,
    SCHEMES,
    TODAYS,
    TODAYS_SENDER,
    Assumption,
    Download,
    Scheme,
    download,
)
from careof.studies._micromobility_tables import SIDE_BY_SIDE_MS
from careof.studies._micromobility_today import SHOWN as CROSSINGS
from careof.studies._micromobility_today import cross
from careof.studies._micromobility_trace import SHOWN, SOONER, Look, watch
from careof.studies._micromobility_trees import DEPTHS, STATIONS, Counted, Grown, grow

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "studies" / "micromobility.md"
BEGIN = "<!-- Printed by `careof study micromobility --markdown`; UPDATE_DOCS=1 pytest tests/studies renews it. -->\n"
END = "<!-- End of what is printed. -->\n"
TAHOE, RENO, NEWRENO, SACK = PAPERS


def test_each_run_has_the_papers_twenty_handovers_and_no_other_registration() -> None:
    for scheme in (BUFFER, NO_BUFFER, BICAST, *NAMED):
        for delay in SIDE_BY_SIDE_MS:
            one = download(Download(scheme, NEWRENO, delay, 1, PLAIN))
            assert one.handovers == HANDOVERS, (scheme.name, delay)
            assert one.messages > HANDOVERS, (scheme.name, delay)
    summary = run(Download(BUFFER, RENO, -100, 0, ASSUMPTION).scenario(), trace=False).summary
    assert summary["mobility"]["registrations_sent"] == 1
    assert not any(summary["conservation"].values())
    nodes = {one["name"].split(".")[0] for one in summary["links"]}
    assert sum(name.startswith("cell-") for name in nodes) == 21


def test_repetitions_differ_in_when_handovers_come_and_schemes_do_not() -> None:
    def begun(scheme: object, repetition: int) -> list[int]:
        of = Download(scheme, RENO, -100, repetition, ASSUMPTION)  # type: ignore[arg-type]
        events = run(of.scenario(), repetition=repetition).events.to_pydict()
        rows = zip(events["time_ns"], events["kind"], events["cause"], strict=True)
        return [at for at, kind, cause in rows if (kind, cause) == ("handover", "initiated")][1:]

    first = begun(BUFFER, 0)
    assert len(first) == HANDOVERS
    assert first == begun(NO_BUFFER, 0)
    assert first != begun(BUFFER, 1)


def test_a_difference_is_real_where_it_is_large_beside_its_spread() -> None:
    found = difference([2.0, 3.0, 4.0, 5.0], [1.0, 1.9, 3.1, 4.0])
    # By hand: mean 1, standard deviation 0.0816, t = 24.5 with 3 degrees of freedom.
    assert found.mean.value == pytest.approx(1.0)
    assert found.p == pytest.approx(7.4e-5, rel=0.05)
    assert found.is_above
    back = difference([1.0, 1.9, 3.1, 4.0], [2.0, 3.0, 4.0, 5.0])
    assert back.p == pytest.approx(1 - found.p)
    assert not back.is_above
    assert difference([1.0, 2.0], [1.0, 2.0]).p == 1.0
    assert not difference([2.0], [1.0]).is_above


def test_a_buffer_ends_a_long_gap_with_fewer_timeouts_than_none() -> None:
    runs = [
        download(Download(scheme, sender, delay, repetition, PLAIN))
        for scheme in (BUFFER, NO_BUFFER)
        for sender in (RENO, TODAYS[0])
        for delay in (-500, None)
        for repetition in range(2)
    ]
    results = Results(runs)
    for sender in (RENO, TODAYS[0]):
        with_one, without = (results.mean(scheme, sender, -500, "timeouts").value for scheme in (BUFFER, NO_BUFFER))
        assert with_one < without


def test_all_points_are_run() -> None:
    wanted = micromobility.downloads(3, 1, 4)
    assert len({(one.scheme, one.sender, one.delay_ms, one.repetition, one.assumption) for one in wanted}) == len(
        wanted
    )
    of_a_point = [one for one in wanted if (one.scheme, one.sender, one.delay_ms) == (BUFFER, RENO, 0)]
    assert len(of_a_point) == 3 + len(OTHERS)
    assert {one.delay_ms for one in wanted} == {None, *DELAYS_MS}
    for scheme, sender, delay in (
        *((scheme, sender, -300) for scheme in (BUFFER, *BETWEEN) for sender in TODAYS),
        (MIGRATION, MIGRATING, 300),
        *((scheme, NEWRENO, 0) for scheme in (BUFFER, *NAMED)),
    ):
        assert len([one for one in wanted if (one.scheme, one.sender, one.delay_ms) == (scheme, sender, delay)]) >= 4
    # Without handovers one run of a sender is enough, whatever the scheme.
    still = [(one.sender.key, one.assumption) for one in wanted if one.delay_ms is None]
    assert len(still) == len(set(still))


def test_runs_that_are_the_same_are_made_once_and_layer_3_is_waited_for_in_gaps_alone() -> None:
    def scenario(delay_ms: int, assumption: Assumption) -> str:
        return Download(BUFFER, RENO, delay_ms, 0, assumption).scenario()

    other_reading = next(one for one in OTHERS if one.overlap_waits)
    known_at_once = next(one for one in OTHERS if one == replace(ASSUMPTION, advertisements_ms=0))
    assert "advertisement_interval" in scenario(0, ASSUMPTION)
    assert "advertisement_interval" not in scenario(100, ASSUMPTION)
    assert "advertisement_interval" in scenario(100, other_reading)
    assert scenario(100, ASSUMPTION) == scenario(100, known_at_once)
    assert scenario(-100, ASSUMPTION) == scenario(-100, other_reading)
    wanted = micromobility.downloads(3, 2, 2)
    together = micromobility.alike(wanted)
    assert sorted(map(wanted.index, (one for same in together for one in same))) == list(range(len(wanted)))
    assert len(together) < len(wanted)


def test_what_is_printed_opens_the_run_that_was_looked_at() -> None:
    for scheme in SCHEMES:
        for sender, delay in ((NEWRENO, 200), (SACK, -300)):
            of = Download(scheme, sender, delay, 0, ASSUMPTION)
            settings = [word for word in shlex.split(of.settings()) if word != "--set"]
            opened = run(ROOT / ONE_CHANNEL, trace=False, set=settings).summary["digest"]
            assert opened == run(of.scenario(), trace=False).summary["digest"], of.settings()
    assert len(set(SHOWN)) == len(SHOWN)
    sooner = Download(BUFFER, SACK, -500, 0, SOONER)
    settings = [word for word in shlex.split(sooner.settings()) if word != "--set"]
    opened = run(ROOT / ONE_CHANNEL, trace=False, set=settings).summary["digest"]
    assert opened == run(sooner.scenario(), trace=False).summary["digest"]
    for of in CROSSINGS:
        settings = [word for word in shlex.split(of.settings_of_today()) if word != "--set"]
        opened = run(ROOT / TODAYS_SENDER, trace=False, set=settings).summary["digest"]
        assert opened == run(of.scenario(), trace=False).summary["digest"], of.settings_of_today()


def test_traces_of_todays_senders_show_what_a_gap_costs_and_why() -> None:
    cubic, bbr = (cross(Download(NO_BUFFER, sender, -300, 0, PLAIN)) for sender in TODAYS[:2])
    # All that is under way is lost with a gap and no buffer, and nothing but the timer says so.
    for one in (cubic, bbr):
        assert one.timeouts == 1.0
        assert one.repeats_s == pytest.approx(one.expired_s)
        assert one.path_s > one.expired_s > 0.3
    # CUBIC fills the queue and waits for a longer round trip; its window is halved and more, that of BBR is not.
    assert cubic.window > 2 * bbr.window
    assert cubic.expired_s > bbr.expired_s
    assert cubic.later < 0.7 * cubic.window
    assert bbr.later > 0.9 * bbr.window
    kept = cross(Download(BUFFER, TODAYS[1], -300, 0, PLAIN))
    assert (kept.timeouts, kept.repeated) == (0.0, 0.0)


def test_repetitions_of_migration_and_of_foreign_agents_differ_in_when_handovers_come() -> None:
    for scheme, sender in ((MIGRATION, MIGRATING), (BETWEEN[0], TODAYS[0])):
        one, other = (download(Download(scheme, sender, -200, repetition, PLAIN)) for repetition in (0, 1))
        assert one.handovers == other.handovers == HANDOVERS
        assert one.goodput_bps != other.goodput_bps


def test_a_trace_shows_when_the_timer_ran_out_and_when_the_window_began_anew() -> None:
    silent = watch(Look(NO_BUFFER, RENO, -200))
    # Nothing is acknowledged after the handover: the timer runs from its beginning, for the least RTO of 1 s.
    assert 1.0 <= silent.expired_s - silent.restarted_s <= 1.01
    assert silent.restarted_s < 0.05
    assert silent.heard_s > silent.expired_s
    acknowledged = watch(Look(NO_BUFFER, RENO, 0))
    assert acknowledged.restarted_s > silent.restarted_s
    assert acknowledged.expired_s > silent.expired_s
    # Tahoe answers duplicate ACKs by a slow start, without a timeout.
    tahoe = watch(Look(NO_BUFFER, TAHOE, 100))
    assert tahoe.slow_starts > tahoe.timeouts


def test_quic_goes_from_address_to_address_twenty_times() -> None:
    for delay in (-200, 200):
        moved = download(Download(MIGRATION, MIGRATING, delay, 0, PLAIN))
        assert moved.handovers == HANDOVERS
        assert moved.goodput_bps > 0.5 * download(Download(BUFFER, QUIC, None, 0, PLAIN)).goodput_bps


def test_trees_have_as_many_base_stations_whatever_their_depth_and_idle_mobile_nodes_cost_cellular_ip_less() -> None:
    def count(scheme: Scheme, depth: int, idle: int) -> Counted:
        return grow(Grown(scheme, depth, idle, 0))

    for depth in DEPTHS:
        links = run(Grown(BICAST, depth, 9, 0).scenario(), trace=False).summary["links"]
        names = [one["name"] for one in links if one["name"].startswith(f"link-{depth}-")]
        assert len(names) == 2 * STATIONS, depth
    cellular = next(one for one in NAMED if one.key == "semi-soft")
    # A message goes up to where the old and the new way meet: a deep tree has more links on the way.
    assert count(BICAST, 4, 9).messages > count(BICAST, 1, 9).messages
    assert count(cellular, 4, 9).messages < count(cellular, 4, 0).messages


def test_as_many_runs_as_asked_for_are_made_and_other_studies_have_none_to_choose() -> None:
    assert len(micromobility.points((BUFFER,), (RENO,), (0,), 7, ASSUMPTION)) == 1 + 7
    for words, said in (
        (["overheads", "--runs", "9"], "has its own numbers of runs"),
        (["micromobility", "--runs", "9", "--quick"], "--quick and --runs"),
    ):
        refused = subprocess.run(
            [sys.executable, "-m", "careof", "study", *words], capture_output=True, text=True, check=False
        )
        assert refused.returncode == 2
        assert said in refused.stderr


def test_linux_hosts_and_places_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WorldError, match="is simulated"):
        micromobility.carry_out(None, None, world="linux")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write there"):
        micromobility.carry_out(tmp_path / "file" / "out", None)


def test_the_page_holds_what_is_printed() -> None:
    before, rest = PAGE.read_text().split(BEGIN)
    held, after = rest.split(END)
    if os.environ.get("UPDATE_DOCS") == "1":
        printed = micromobility.carry_out(None, None).as_markdown().split("\n", 2)[2].strip()
        PAGE.write_text(f"{before}{BEGIN}\n{printed}\n\n{END}{after}")
        return
    # The whole takes minutes: two points by all their runs, and all that hangs on no run.
    wanted = [
        *micromobility.points((BUFFER,), (RENO,), (-500,), micromobility.REPETITIONS, ASSUMPTION),
        *micromobility.points((NO_BUFFER,), (SACK,), (100,), micromobility.REPETITIONS, ASSUMPTION),
    ]
    results = Results(download(one) for one in wanted)
    for scheme, sender, delay in ((BUFFER, RENO, -500), (NO_BUFFER, SACK, 100)):
        for what, digits in (("throughput", 3), ("timeouts", 2)):
            shown = results.mean(scheme, sender, delay, what).shown(digits)
            column = 2 + DELAYS_MS.index(delay)
            lines = [line.strip("| ").split(" | ") for line in held.splitlines()]
            cells = {line[column] for line in lines if line[:2] == [sender.name, scheme.name] and len(line) > column}
            assert shown in cells, "run UPDATE_DOCS=1 pytest tests/studies"
    some = Study(micromobility.TITLE, [], tables=[micromobility.assumed()])
    for line in some.as_markdown().splitlines()[5:]:
        assert line in held, "run UPDATE_DOCS=1 pytest tests/studies"
