"""The study `crosslayer`: the paper's equations, what is simulated beside them, and the page that holds both."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path

import pytest

from careof import native
from careof.errors import InputError, WorldError
from careof.studies import Row, Study, Table, crosslayer
from careof.studies._crosslayer_model import (
    COMPARED,
    FMIPV6,
    HANDOVER_INTER,
    HANDOVER_INTRA,
    HMIPV6_INTER,
    HMIPV6_INTRA,
    RTO_BY_MAP,
    RTO_DIRECT,
    TABLE_1,
    TCP_CM,
    Delays,
    Segment,
    Sum,
    premises,
    total,
)
from careof.studies._crosslayer_paths import FREEZE, HELPED, PATHS, Crossing, Way
from careof.studies._crosslayer_paths import TCP_CM as WITH_TCP_CM
from careof.studies._crosslayer_protocols import ROAMING, TOLD, WAYS
from careof.studies._crosslayer_ring import APART_M, BURST, LOSSES, LOSSY_HANDOVERS, SPEEDS, Carried, Round, carry
from careof.studies._crosslayer_rows import c6, throughput
from careof.studies._crosslayer_tables import throughput_lines
from careof.studies._crosslayer_today import ROUND_TRIPS_MS, SENDERS, moves

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "studies" / "crosslayer.md"
BEGIN = "<!-- Printed by `careof study crosslayer --markdown`; UPDATE_DOCS=1 pytest tests/studies renews it. -->\n"
END = "<!-- End of what is printed. -->\n"

PRINTED = {
    ("tcp-cm", "eq. 5"): "T_{CN-oAR} + T_{HA-nAR} + T_{HA-nAR} + T_{CN-nAR} + T_{CN-nAR} + T_{CN-nAR}",
    ("fast-retransmit", "eq. 6"): (
        "T_{CN-oAR} + T_{HA-nAR} + T_{HA-nAR} + T_{CN-nAR} + T_{CN-nAR} + T_{CN-nAR} + T_{CN-nAR}"
    ),
    ("freeze", "eq. 7"): "T_{CN-oAR} + T_{HA-nAR} + T_{HA-nAR} + T_{CN-nAR} + T_{CN-nAR} + T_{CN-nAR} + T_{CN-nAR}",
    ("mobile-tcp", "eq. 8"): "T_{CN-oAR} + T_{HA-nAR} + T_{HA-nAR} + T_{CN-nAR} + T_{CN-nAR} + T_{CN-nAR}",
    ("fmipv6", "eq. 10"): "T_{CN-oAR} + T_{CN-oAR} + T_{CN-oAR} + T_{oAR-nAR} + T_{oAR-nAR} + T_{CN-oAR}",
    ("hmipv6-intra", "eq. 13"): (
        "T_{CN-MAP} + T_{MAP-oAR} + T_{MAP-oAR} + T_{CN-MAP} + T_{CN-MAP} + T_{CN-MAP} + T_{MAP-nAR} + T_{MAP-nAR}"
        " + T_{MAP-nAR} + T_{CN-MAP}"
    ),
    ("hmipv6-inter", "eq. 15"): (
        "2 * (T_{CN-oAR} + T_{MAP-nAR} + T_{MAP-nAR} + T_{MAP-nAR} + T_{MAP-nAR} + T_{HA-MAP} + T_{HA-MAP}"
        " + T_{MAP-nAR} + T_{CN-MAP} + T_{CN-MAP} + T_{CN-MAP} + T_{MAP-nAR})"
    ),
    ("tcp-cm-fmipv6", "eq. 16"): "T_{CN-oAR} + 2T_{oAR-nAR} + T_{CN-oAR}",
    ("tcp-cm-hmipv6-intra", "eq. 17"): "2T_{CN-MAP} + 3T_{MAP-nAR}",
    ("tcp-cm-hmipv6-inter", "eq. 18"): "2T_{CN-oAR} + 2T_{MAP-nAR} + 2T_{MAP-nAR} + 2T_{HA-MAP}",
    # Lines of Table 1 that are legible.
    ("hmipv6-intra", "Table 1"): "4T_{CN-MAP} + 2T_{MAP-oAR} + 2T_{MAP-nAR}",
    ("hmipv6-inter", "Table 1"): "2T_{CN-oAR} + 4T_{CN-MAP} + 12T_{MAP-nAR} + 4T_{HA-MAP}",
    ("fast-retransmit", "Table 1"): "T_{CN-oAR} + 3T_{CN-nAR} + 2T_{HA-nAR}",
    ("mobile-tcp", "Table 1"): "T_{CN-oAR} + 3T_{CN-nAR} + 2T_{HA-nAR}",
    ("tcp-cm", "Table 1"): "T_{CN-oAR} + 2T_{CN-nAR} + 2T_{HA-nAR}",
    ("tcp-cm-hmipv6-intra", "Table 1"): "4T_{CN-MAP} + 2T_{MAP-oAR} + 2T_{MAP-nAR}",
    ("tcp-cm-hmipv6-inter", "Table 1"): "2T_{CN-oAR} + 2T_{MAP-nAR} + 2T_{MAP-nAR} + 2T_{HA-MAP}",
}
"""As the paper's text has them."""


def counted(latex: str) -> dict[str, int]:
    """How often each segment stands in a formula; read by other means than the model reads its own."""
    factor = 2 if latex.startswith("2 *") else 1
    found: Counter[str] = Counter()
    for number, name in re.findall(r"(\d*)T_\{([A-Za-z-]+)\}", latex):
        found[name] += factor * int(number or 1)
    return dict(found)


def of(formula: Sum) -> dict[str, int]:
    return {segment.value: count for segment, count in formula.counts.items()}


def test_the_equations_are_those_that_the_paper_prints() -> None:
    held = {(one.key, reading.place): reading.sum for one in TABLE_1 for reading in one.readings}
    for place, latex in PRINTED.items():
        assert of(held[place]) == counted(latex), place
    assert of(HANDOVER_INTRA) == {"MAP-nAR": 2}
    assert of(RTO_DIRECT) == {"CN-oAR": 2}
    assert of(RTO_BY_MAP) == {"MAP-oAR": 2, "CN-MAP": 2}
    assert of(HANDOVER_INTER) == {"MAP-nAR": 6, "HA-MAP": 2, "CN-MAP": 2}


def test_with_equal_delays_each_protocol_takes_the_multiple_of_t_that_the_paper_states() -> None:
    equal = Delays.equal(0.1, 0.0)
    multiples = {one.key: one.seconds(equal) / 0.1 for one in COMPARED}
    assert multiples == pytest.approx(
        {
            "tcp-cm": 5,
            "fast-retransmit": 6,
            "freeze": 6,
            "mobile-tcp": 6,
            "fmipv6": 6,
            "hmipv6-intra": 4,
            "hmipv6-inter": 10,
        }
    )
    # "Over" four and ten: the paths within a domain take some time.
    local = Delays.equal(0.1, 0.01)
    assert HMIPV6_INTRA.seconds(local) == pytest.approx(0.44)
    assert HMIPV6_INTER.seconds(local) == pytest.approx(1.12)


def test_both_readings_stand_where_the_paper_contradicts_itself() -> None:
    printed = {(one.key, reading.place): reading.sum.over_internet for one in TABLE_1 for reading in one.readings}
    assert [printed[key, f"eq. {number}"] for key, number in _NUMBERED] == [6, 7, 7, 6]
    assert {one.key for one in TABLE_1 if one.agrees} == {"fmipv6", "mobile-tcp", "tcp-cm-fmipv6"}
    assert all(one.remark for one in TABLE_1 if not one.agrees)
    # Equation 15 is twice the way of the last segment and equation 14, but for one term.
    _, printed_15, by_14 = (reading.sum for reading in HMIPV6_INTER.readings)
    assert of(by_14) == of(HMIPV6_INTER.sum)
    assert of(printed_15) == of(by_14) | {"CN-MAP": 6}


_NUMBERED = (("tcp-cm", 5), ("fast-retransmit", 6), ("freeze", 7), ("mobile-tcp", 8))


def drawn(chance: random.Random) -> Delays:
    return Delays(*(chance.choice([0.0, chance.uniform(0, 1)]) for _ in fields(Delays)))


def test_no_time_becomes_shorter_when_a_path_becomes_longer() -> None:
    chance = random.Random("monotone")
    for _ in range(200):
        delays = drawn(chance)
        segment = chance.choice(list(Segment))
        more = chance.uniform(0, 1)
        name = next(one.name for one in fields(Delays) if one.name == f"{segment.lower().replace('-', '_')}_s")
        longer = replace(delays, **{name: delays.of(segment) + more})
        for protocol in TABLE_1:
            for reading in protocol.readings:
                grown = reading.sum.seconds(longer) - reading.sum.seconds(delays)
                assert grown == pytest.approx(more * reading.sum.counts.get(segment, 0), abs=1e-9)


def test_equal_delays_are_multiples_of_one_whatever_that_is() -> None:
    chance = random.Random("equal")
    for _ in range(200):
        internet, local = chance.uniform(0, 1), chance.uniform(0, 0.1)
        for protocol in TABLE_1:
            for reading in protocol.readings:
                expected = reading.sum.over_internet * internet + reading.sum.local * local
                assert reading.sum.seconds(Delays.equal(internet, local)) == pytest.approx(expected)
                together = (reading.sum.over_internet + reading.sum.local) * internet
                assert reading.sum.seconds(Delays.equal(internet)) == pytest.approx(together)


def test_delays_are_seconds() -> None:
    for wrong in (-0.001, float("nan"), float("inf")):
        with pytest.raises(InputError, match="ha_nar_s"):
            replace(Delays.equal(0.1), ha_nar_s=wrong)
    with pytest.raises(ValueError, match="MAP-CN"):
        Sum.parse("MAP-CN")


def test_the_parts_of_the_time_sum() -> None:
    delays = Delays.equal(0.05, 0.005)
    handover = HANDOVER_INTER.seconds(delays)
    first, registered = delays.cn_oar_s, delays.cn_oar_s + handover
    # Equation 15: all of it twice.
    assert 2 * total(first, handover, 0.0) == pytest.approx(HMIPV6_INTER.seconds(delays))
    assert total(first, handover, registered) == pytest.approx(HMIPV6_INTER.seconds(delays))


def test_a_premise_that_does_not_hold_is_said() -> None:
    assert all(one.holds for one in premises(Delays.equal(0.05, 0.005)))
    # Access routers in one place, and a MAP far from the new one and near to the correspondent.
    far = replace(Delays.equal(0.05, 0.005), oar_nar_s=0.0, map_nar_s=0.2, cn_map_s=0.01)
    assert {one.of: one.holds for one in premises(far)} == {"eq. 10": False, "eq. 13": False, "eq. 15": True}


def test_a_term_can_be_left_out() -> None:
    assert TCP_CM.sum.without(Segment.CN_OAR).in_t == "4 T"
    assert FMIPV6.sum.without(Segment.CN_OAR).counts[Segment.CN_OAR] == 3


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Study:
    told: list[tuple[float, float]] = []
    study = crosslayer.carry_out(
        tmp_path_factory.mktemp("crosslayer"), lambda done, of: told.append((done, of)), quick=True
    )
    assert told[-1] == (told[-1][1], told[-1][1])
    return study


def rows(study: Study, name: str) -> list[Row]:
    return [one for one in study.rows if one.id.split()[0] == name]


def table(study: Study, title: str) -> Table:
    return next(one for one in study.tables if one.title.startswith(title))


def test_there_are_ten_sets_of_delays_and_more() -> None:
    assert len({(one.cn_ha, one.ha_oar, one.ha_nar, one.cn_oar, one.cn_nar) for one in PATHS}) >= 10


def test_tcp_cm_takes_the_paper_s_time_where_the_home_agent_tunnels(quick: Study) -> None:
    (found,) = [one for one in quick.rows if one.id == "C1 tcp-cm tunnel"]
    assert found.match is True
    assert (found.low, found.high) == (-5.0, 5.0)
    equations = table(quick, "C1: all sets of delays, by the home agent")
    by_table_1, ours = (equations.head.index(name) for name in ("TCP-CM by Table 1", "TCP-CM"))
    assert len(equations.lines) == len(PATHS)
    for line in equations.lines:
        assert float(line[ours]) == pytest.approx(float(line[by_table_1]), rel=0.05), line


def test_every_time_that_is_not_the_paper_s_is_that_of_the_steps_taken_and_explained(quick: Study) -> None:
    found = [one for one in rows(quick, "C1") if one.id.endswith(("tunnel", "straight"))]
    assert len(found) == 2 * len(HELPED)
    for row in found:
        assert row.explanation, row.what
        own = [one for one in row.parts if one["what"].startswith("from the steps as simulated")]
        assert all(one["match"] is True for one in own), row.what
        assert own, row.id


def test_fast_handovers_and_anchor_points_take_the_steps_that_their_rfcs_have(quick: Study) -> None:
    found = {one.id: one for one in quick.rows}
    for name, roamings in (("C1", ROAMING), ("C2", TOLD)):
        for roaming in roamings:
            row = found[f"{name} {roaming.key}"]
            (steps,) = row.parts
            assert steps["match"] is True, (row.what, steps)
            assert row.explanation, row.what
    assert len({one.name for one in WAYS}) == len(set(WAYS)) >= 10
    times = table(quick, "C1 and C2: all sets")
    predicted, intra, inter = (times.head.index(one.name) for one in (ROAMING[0], *ROAMING[2:]))
    for line in times.lines:
        assert int(line[predicted]) < int(line[times.head.index(ROAMING[1].name)])
        assert int(line[intra]) < int(line[inter])


def test_what_is_missing_says_so(quick: Study) -> None:
    missing = {line[0] for line in table(quick, "What is missing").lines}
    assert "FTP" in missing
    assert any(what.startswith("the MAC of IEEE 802.11b") for what in missing)


def test_a_sender_that_is_told_is_not_slower_and_needs_no_slow_start(quick: Study) -> None:
    for name in ("C3", "C4", "C5"):
        (row,) = rows(quick, name)
        assert row.match is True, (row.id, row.parts)
    above = [one for row in rows(quick, "C6") for one in row.parts if one["what"].startswith("TCP-CM above")]
    # At 1 Mbit/s what was in flight from the mobile node waits for its timer, which one handover does not make up for.
    assert [one["match"] for one in above] == [True, True, True, False]


def test_replay_needs_no_changed_end_host_and_is_no_later_than_tcp_cm(quick: Study) -> None:
    found = table(quick, "What is left for TCP-CM")
    tcp_cm, replay, nothing = (found.head.index(f"{name} (ms / %)") for name in ("TCP-CM", "replay", "nothing"))
    assert len(found.lines) == 2 * len(SENDERS)
    for line in found.lines:
        waited = {which: int(line[which].split()[0]) for which in (tcp_cm, replay, nothing)}
        assert 0 < waited[replay] < min(waited[tcp_cm], waited[nothing]), line
        # The home registration, half a round trip here, and the way of the data from the home agent.
        assert waited[replay] >= 75, line


def test_a_trend_that_the_runs_do_not_show_is_no_match() -> None:
    still = carry(Round(11, upload=False, handovers=0, seed=1))
    assert still.met == 0
    fast = [
        replace_seconds(Round(11, upload=False, handovers=count, seed=seed, assist=assist), seconds * (1 + seed / 1000))
        for seed in (1, 2, 3)
        for count, assist, seconds in ((1, "none", 100), (1, "tcp-cm", 90), (8, "none", 200), (8, "tcp-cm", 110))
    ]
    assert c6(fast, 11, upload=False).match is True
    slower = [
        one._replace(seconds=300.0) if one.of.assist == "tcp-cm" and one.of.handovers == 8 else one for one in fast
    ]
    found = c6(slower, 11, upload=False)
    assert found.match is False
    assert [one["match"] for one in found.parts] == [True, True, False, False]


def replace_seconds(file: Round, seconds: float) -> Carried:
    return Carried(file, seconds, [], file.handovers)


def test_bursts_lose_the_share_that_they_should() -> None:
    for loss in LOSSES:
        file = Round(1, upload=False, handovers=4, seed=1, path_s=9.0, loss=loss)
        native.check_world("sim", "ring", file.scenario(), [])
        begins, ends = (
            float(re.findall(rf"{key} = ([0-9.e-]+)", file.scenario())[0]) for key in ("good_to_bad", "bad_to_good")
        )
        assert 1 / ends == pytest.approx(BURST)
        # The share of time in the bad state, which loses everything.
        assert begins / (begins + ends) == pytest.approx(loss, rel=1e-4)
        assert file.moves == replace(file, loss=0.0).moves
    assert "loss" not in Round(1, upload=False, handovers=4, seed=1).scenario()


def test_the_instants_are_the_same_with_either_sender() -> None:
    file = Round(11, upload=False, handovers=8, seed=3, assist="none", path_s=9.0)
    assert file.moves == replace(file, assist="tcp-cm").moves
    assert file.moves != replace(file, seed=4).moves
    assert all(2 <= gap <= 3 for _, gap in file.moves)


def test_who_moves_evenly_meets_a_handover_every_network() -> None:
    for name, speed in SPEEDS:
        file = Round(1, upload=False, handovers=0, seed=2, speed_m_s=speed)
        instants = [at for at, _ in file.moves]
        assert 0 <= instants[0] <= APART_M / speed, name
        steps = [later - sooner for sooner, later in itertools.pairwise(instants)]
        assert all(step == pytest.approx(APART_M / speed, abs=0.002) for step in steps)
        assert file.moves == replace(file, assist="tcp-cm").moves
        native.check_world("sim", "ring", file.scenario(), [])


def test_every_scenario_is_one_that_the_simulator_can_carry_out() -> None:
    for one in crosslayer.crossings_of_all():
        native.check_world("sim", "cross", one.scenario(), [f"assist={one.helped.key}", *one.helped.settings])
    native.check_world("sim", "ring", Round(1, upload=True, handovers=8, seed=1, path_s=9.0).scenario(), [])
    for roam in crosslayer.roams_of_all():
        native.check_world("sim", "roam", roam.scenario(), [f"assist={roam.roaming.assist}"])
    for move in moves(ROUND_TRIPS_MS):
        native.check_world("sim", "today", move.scenario(), list(move.mechanism.settings))
    # A warning comes as long before as an acknowledgement needs to stop the sender.
    assert 'notice = "200 ms"' in Crossing(PATHS[0], Way.TUNNEL, FREEZE).scenario()
    assert "notice" not in Crossing(PATHS[0], Way.TUNNEL, WITH_TCP_CM).scenario()


def test_on_linux_hosts_there_is_no_such_study() -> None:
    with pytest.raises(WorldError, match="simulated"):
        crosslayer.carry_out(None, None, world="linux")


def test_a_quick_study_writes_its_rows_and_figures(quick: Study) -> None:
    files = {one.name: one for one in quick.files}
    assert sorted(files) == ["figure-10.png", "figure-11.png", "rows.json", "today.png"]
    written = json.loads(files["rows.json"].read_text())
    assert [one["id"] for one in written[: len(quick.rows)]] == [one.id for one in quick.rows]
    for name in ("figure-10.png", "figure-11.png", "today.png"):
        assert files[name].read_bytes().startswith(b"\x89PNG")


def test_the_page_holds_what_is_printed(quick: Study) -> None:
    before, rest = PAGE.read_text().split(BEGIN)
    held, after = rest.split(END)
    if os.environ.get("UPDATE_DOCS") == "1":
        printed = crosslayer.carry_out(None, None).as_markdown().split("\n", 2)[2].strip()
        PAGE.write_text(f"{before}{BEGIN}\n{printed}\n\n{END}{after}")
        return
    lines = set(held.splitlines())
    # What does not hang on how many files there are.
    parts = Study(
        quick.title,
        [one for one in quick.rows if one.id.split()[0] not in ("C3", "C6", "C7")],
        tables=[one for one in quick.tables if not one.title.startswith(("C6", "C7"))],
    )
    for line in parts.as_markdown().splitlines()[1:]:
        assert line in lines, "run UPDATE_DOCS=1 pytest tests/studies"
    # Of what does, two points by all their files.
    still = carry(Round(1, upload=True, handovers=0, seed=1))
    wanted = [one for one in crosslayer.lossy_rounds([still], crosslayer.SEEDS) if one.loss == LOSSES[-1]]
    files = [carry(one) for one in (*wanted, *crosslayer.rounds([still], crosslayer.SEEDS, (8,)))]
    lossless = throughput_lines([still, *files], 1, upload=True)[0][-1]
    lossy = throughput(files, 1, upload=True, loss=LOSSES[-1])
    for point in (
        lossless,
        ["", f"{LOSSES[-1]:.1%}", *(lossy[LOSSY_HANDOVERS, which].shown(1) for which in ("tcp-cm", "none", "gap"))],
    ):
        assert f"| {' | '.join(point)} |" in lines, "run UPDATE_DOCS=1 pytest tests/studies"
