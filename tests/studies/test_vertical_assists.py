"""The thesis's future work: cures for its handovers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from careof import native
from careof.studies import Study
from careof.studies import _vertical_assists as assists
from careof.studies import _vertical_assists_tables as tables
from careof.studies._vertical_assists import Case, Cell
from careof.studies._vertical_assists_runs import (
    AFTER_S,
    CURES,
    METRICS,
    NAME,
    NONE,
    REVERSE,
    SCENARIO,
    SENDERS,
    STATIONS,
    WORLDS,
    Cure,
    Setup,
    World,
    baseline,
    measure,
    refusal,
)
from careof.sweeps.confidence import Interval

if TYPE_CHECKING:
    from careof.studies import Row, Table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "studies" / "vertical.md"
BEGIN = (
    "<!-- The tables behind the rows of `careof study vertical`; UPDATE_DOCS=1 pytest tests/studies renews them. -->\n"
)
END = "<!-- End of the tables. -->\n"

ALWAYS_THERE = {
    "none",
    "red",
    "codel",
    "codel, slow",
    "drop",
    "default",
    "replay",
    "window-clamp",
    "none, base stations",
    "none, reverse tunnel",
    "split",
}

SOFT_TO_SLOW = World(to_slow=True, gap=False, upload=False, far=False)
GAP_TO_SLOW = World(to_slow=True, gap=True, upload=False, far=False)


def cure(key: str) -> Cure:
    return next(one for one in CURES if one.key == key)


def same(value: float) -> Interval:
    return Interval(value, value, value)


def cell(key: str = "none", **changes: object) -> Cell:
    means = {metric: same(1.0) for metric in METRICS}
    whole: dict[str, object] = {
        "case": Case(SOFT_TO_SLOW, "linux", cure(key)), "missing": "", "means": means, "gain": None, "runs": 2,
        "never_resumed": 0, "never_recovered": 0,
    }  # fmt: skip
    return Cell(**(whole | changes))  # type: ignore[arg-type]


def part(row: Row, what: str) -> float:
    return next(float(one["ours"]) for one in row.parts if one["what"] == what)


def test_the_worlds_are_the_scenarios_of_the_thesis_in_all_their_forms() -> None:
    assert len(set(WORLDS)) == len(WORLDS) == 4 * 2 * 2
    assert len({world.key for world in WORLDS}) == len(WORLDS)
    for world in WORLDS:
        found = native.check(NAME, SCENARIO, Setup(world, "linux", NONE, 0, 1).settings)
        links = {one["name"]: one for one in found["links"]}
        round_trip_ms = sum(links["ethernet"][way]["delay_ns"] for way in ("down", "up")) / 1e6
        assert round_trip_ms == (100 if world.number in (3, 4) else 0.5)
        handover = found["handovers"][0]
        assert handover["from"] == ("wavelan" if world.number in (1, 3) else "gsm")
        assert (handover["interruption_ns"] > 0) == world.gap
        assert found["flows"][0]["from"] == ("mobile" if world.upload else "correspondent")


def test_a_cure_changes_nothing_but_what_it_is() -> None:
    for world in WORLDS:
        for sender in SENDERS:
            plain = Setup(world, sender, NONE, 3, 10)
            for one in CURES:
                setup = Setup(world, sender, one, 3, 10)
                assert setup.handover_at_s == plain.handover_at_s
                assert [key for key in plain.settings if key not in setup.settings] == []


def test_handovers_are_spread_and_a_run_holds_the_minute_after_the_last() -> None:
    for world in WORLDS:
        setups = [Setup(world, "linux", NONE, repetition, 10) for repetition in range(10)]
        assert len({setup.handover_at_s for setup in setups}) == 10
        assert all(setup.duration_s - setup.handover_at_s >= AFTER_S for setup in setups)


def test_each_cure_is_there_or_refused_in_words_and_none_is_forgotten() -> None:
    said = {case: refusal(Setup(case.world, case.sender, case.cure, 0, 1)) for case in assists.cases(quick=False)}
    assert len(said) == len(WORLDS) * len(SENDERS) * len(CURES)
    assert not {case.cure.key for case, words in said.items() if words} & ALWAYS_THERE
    assert all("\n" not in words for words in said.values())


def test_a_cure_that_is_refused_is_listed_with_what_the_simulator_says() -> None:
    missing = cell("replay", missing="there is no replay today", means={}, runs=0)
    found = tables.tables([cell(), missing])
    assert found[-1].lines == [["replay", "there is no replay today", "everywhere"]]
    assert [line[0] for line in found[0].lines] == ["none"]
    row = found[0].rows[1]
    assert row.ours is None
    assert row.explanation == "there is no replay today"


def test_a_cure_without_any_effect_takes_no_line() -> None:
    found: Table = tables.tables(
        [cell(), cell("red", gain=same(0.0)), cell("codel", means=cell().means | {"share": same(0.5)})]
    )[0]
    assert [line[0] for line in found.lines] == ["none", "codel"]
    assert found.text == "The same in every digit as with none: red."
    assert len(found.rows) == 3


@pytest.mark.parametrize(
    ("gain", "expected"),
    [
        (Interval(0.10, 0.05, 0.15), "+ "),
        (Interval(-0.10, -0.15, -0.05), "- "),
        (Interval(0.10, -0.05, 0.25), ""),
        (Interval(0.005, 0.004, 0.006), ""),
        (None, ""),
    ],
)
def test_goodput_is_marked_where_it_differs_for_sure_and_by_enough(gain: Interval | None, expected: str) -> None:
    assert tables.mark(cell(gain=gain)) == expected


def test_what_did_not_happen_in_a_run_is_a_lower_bound() -> None:
    assert " / ≥ 1 / " in tables.shown(cell(never_resumed=1))
    back = World(to_slow=False, gap=False, upload=False, far=False)
    assert tables.shown(cell(case=Case(back, "linux", NONE), never_recovered=1)).endswith("≥ 1")
    row = tables.tables([cell(never_resumed=1)])[0].rows[0]
    assert part(row, "runs in which no new byte came") == 1


def test_gains_are_those_over_the_baseline_at_the_same_instants() -> None:
    wanted = [Case(GAP_TO_SLOW, "linux-2.0", one) for one in (NONE, cure("default"), STATIONS)]
    none, default, stations = assists.carry_out(wanted, 2, None)
    pairs = [
        [min(measure(Setup(GAP_TO_SLOW, "linux-2.0", one, repetition, 2)).share, 1) for one in (NONE, cure("default"))]
        for repetition in range(2)
    ]
    assert default.gain is not None
    assert default.gain.mean == pytest.approx(sum(after - before for before, after in pairs) / 2)
    assert none.gain is None
    assert stations.gain is None
    assert baseline(cure("snoop")) is STATIONS
    assert baseline(cure("split")) is REVERSE


def test_rows_are_data() -> None:
    cells = assists.carry_out([Case(GAP_TO_SLOW, "linux", NONE)], 2, None)
    row = tables.tables(cells)[0].rows[0]
    assert row.id == "V15-1-down-gap-linux-none"
    assert row.match is None
    assert isinstance(row.ours, float)
    assert 0 < row.ours <= 105
    assert row.interval is not None
    assert row.interval[0] <= row.ours <= row.interval[1]
    assert {one["what"] for one in row.parts} >= {"stall after the handover (s)", "unnecessary retransmissions"}
    json.dumps(row.parts, allow_nan=False)


def test_the_page_holds_the_tables_as_they_are() -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, begin, rest = page.partition(BEGIN)
    held, end, after = rest.partition(END)
    assert begin, "the page has lost the mark before the tables"
    assert end, "the page has lost the mark after the tables"
    if os.environ.get("UPDATE_DOCS"):
        cells = assists.carry_out(assists.cases(quick=False), assists.REPETITIONS, None)
        shown = Study(title="", rows=[], tables=tables.tables(cells)).tables_as_markdown()
        PAGE.write_text(f"{before}{begin}\n{shown}\n\n{end}{after}", encoding="utf-8")
        return
    # All of it takes many minutes; these lines hang on links, TCP and Mobile IP alone.
    sample = [
        case
        for case in assists.cases(quick=False)
        if case.world.to_slow and case.sender == "linux-2.0" and case.cure.key in ("none", "codel, slow")
    ]
    expected = tables.tables(assists.carry_out(sample, assists.REPETITIONS, None))
    assert [len(one.lines) for one in expected] == [2, 2]
    for one in expected:
        section = held.partition(f"### {one.title}\n")[2].partition("### ")[0]
        for line in one.lines:
            assert f"| {' | '.join(line)} |\n" in section, "run UPDATE_DOCS=1 pytest tests/studies"
    titles = [tables.title(world, sender) for world in WORLDS for sender in SENDERS if not (world.upload or world.far)]
    assert [line.removeprefix("### ") for line in held.splitlines() if line.startswith("### ")][:8] == titles
    assert not [one.key for one in CURES if one.key not in held]


def held(kind: str) -> dict[str, list[list[str]]]:
    """A table of the page: of each cure what its cells say, in the order of the columns."""
    section = PAGE.read_text(encoding="utf-8").partition(f"### {kind}\n")[2].partition("### ")[0]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    found = {key: [cell.split(" / ") for cell in cells] for key, *cells in lines[2:]}
    for words in section.splitlines():
        if words.startswith("The same in every digit as with none: "):
            for key in words.partition(": ")[2].removesuffix(".").split("; "):
                found.setdefault(key, found["none"])
    return found


def percent(cells: list[str]) -> float:
    return float(cells[0].partition("±")[0].lstrip("+- "))


def test_what_the_page_makes_of_its_tables_still_holds() -> None:
    download = 0
    soft, today = held("WaveLAN to GSM, soft, sender linux-2.0"), held("WaveLAN to GSM, soft, sender linux")
    assert percent(soft["window-clamp"][download]) > percent(soft["none"][download]) + 20
    assert percent(soft["codel"][download]) > percent(soft["none"][download]) + 10
    assert float(today["none"][download][3]) > 100
    assert all(float(today[key][download][3]) < 20 for key in ("codel", "window-clamp"))
    gap = held("WaveLAN to GSM, gap of 2 s, sender linux")
    assert all(percent(cells) < 10 for cells in gap["re-route"])
    assert percent(gap["window-clamp"][download]) >= percent(gap["none"][download])
    assert float(gap["window-clamp"][download][3]) < float(gap["none"][download][3]) / 5
    assert all(percent(cells) > 80 for cells in gap["default"])
    assert percent(gap["replay"][download]) > percent(gap["none"][download]) + 3
    assert all(80 <= percent(cells) <= 95 for cells in soft["small window"])
    back, today = held("GSM to WaveLAN, soft, sender linux-2.0"), held("GSM to WaveLAN, soft, sender linux")
    assert percent(back["re-route"][download]) > percent(back["drop"][download]) > percent(back["none"][download]) + 5
    assert percent(back["replay"][download]) > percent(back["none"][download]) + 20
    assert percent(back["codel"][download]) < percent(back["none"][download]) - 20
    assert all(percent(cells) > 95 for cells in today["none"])
    assert all(percent(today["small window"][far]) < 20 for far in (1, 3))
    gap = held("GSM to WaveLAN, gap of 2 s, sender linux")
    assert float(gap["none"][download][1]) > 15
    for key in ("replay", "hold-last", "re-route", "codel"):
        assert all(percent(cells) > percent(none) + 20 for cells, none in zip(gap[key], gap["none"], strict=True)), key
    for key in ("lcd-kick", "fast-retransmit", "ack-hold"):
        assert all(abs(percent(cells) - percent(none)) < 3 for cells, none in zip(gap[key], gap["none"], strict=True))
