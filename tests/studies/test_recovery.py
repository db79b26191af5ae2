"""The study `recovery`: what careof is for, in both worlds."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from careof import native, run
from careof.errors import OutputError
from careof.studies import _recovery_causes, _recovery_draws, _recovery_kinds, recovery
from careof.studies._done import Done
from careof.studies._recovery_draws import draw, measure
from careof.studies._recovery_kinds import KINDS, Kind, Trouble
from careof.studies._recovery_parts import Events, Parts
from careof.studies._recovery_runs import CASES, QUICK, SCENARIO, Case, Measured, Setup
from careof.studies._recovery_words import quantile
from careof.text import Style
from linux_hosts import need_linux_hosts

if TYPE_CHECKING:
    from pathlib import Path

    from careof.studies import Row, Study


def part(row: Row, what: str) -> float:
    """A figure beside the row's own; endless if it says never."""
    value = next(part["ours"] for part in row.parts if part["what"] == what)
    return float("inf") if value == "never" else float(value)


def stall(row: Row) -> float:
    """The row's own figure."""
    assert isinstance(row.ours, float | str)
    return float("inf") if row.ours == "never" else float(row.ours)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, list[dict[str, Any]]]:
    """The quick study, simulated, and its single runs."""
    out = tmp_path_factory.mktemp("quick") / "o"
    study = recovery.carry_out(out, None, quick=True)
    runs: list[dict[str, Any]] = json.loads((out / "runs.json").read_text())
    return study, runs


def test_a_sender_is_at_full_speed_within_a_round_trip_in_the_simulator(
    quick: tuple[Study, list[dict[str, Any]]],
) -> None:
    study, runs = quick
    assert len(study.rows) == len(QUICK) + 2 * len(KINDS)
    assert all(row.match for row in study.rows), study.for_people(Style(None))
    for row in study.rows[: len(QUICK)]:
        assert part(row, "without: median stall") > stall(row), row.what
    assert len(runs) == 2 * 2 * len(QUICK) + 2 * 2 * len(KINDS)
    of_kinds = [one for one in runs if one.get("assist") == "default" and "kind" in one]
    assert len(of_kinds) == 2 * len(KINDS)
    for one in of_kinds:
        for parts in one["handovers"]:
            assert min(parts["found_s"], parts["registered_s"], parts["delivered_s"]) >= 0, one
    assert len(study.tables[0].lines) == 2 * len(KINDS)


def test_the_parts_of_a_handover_are_those_of_its_trouble(quick: tuple[Study, list[dict[str, Any]]]) -> None:
    _, runs = quick

    def parts(kind: str, upload: bool) -> dict[str, float]:
        first: dict[str, float] = next(
            one["handovers"][0]
            for one in runs
            if (one.get("kind"), one["upload"], one["assist"]) == (kind, upload, "default")
        )
        return first

    round_trip_s = 0.1
    for upload in (False, True):
        hard, lost = parts("hard", upload), parts("one-request-lost", upload)
        # The outage; one round trip to the home agent; what is kept there, or here, sets out at once.
        assert hard["found_s"] == pytest.approx(0.5, abs=1e-3)
        assert hard["registered_s"] == pytest.approx(round_trip_s, abs=2e-3)
        assert hard["delivered_s"] < round_trip_s
        assert lost["found_s"] == pytest.approx(hard["found_s"], abs=1e-3)
        assert lost["registered_s"] > hard["registered_s"] + 2 * round_trip_s
        # Seven probes, 60 ms apart, and the time for the last one's answer.
        died = parts("silent-death", upload)
        assert 6 * 0.06 + round_trip_s < died["found_s"] < 1.0
        assert died["registered_s"] == pytest.approx(round_trip_s, abs=2e-3)
        back = parts("silent-outage", upload)
        assert back["found_s"] < 1.0
        assert back["found_s"] + back["registered_s"] > 3.0
        assert parts("soft-up", upload)["found_s"] < 1e-3


def of_events(*rows: dict[str, object]) -> Events:
    """Events of a run that was never made."""
    columns = {name: pa.string() for name in ("kind", "node", "link", "flow", "message", "cause", "detail")}
    schema = pa.schema([("time_ns", pa.int64()), *columns.items()])
    return Events(pa.Table.from_pylist([dict.fromkeys(schema.names) | row for row in rows], schema))


def at(seconds: float, kind: str, **columns: object) -> dict[str, object]:
    """An event."""
    return {"time_ns": round(seconds * 1e9), "kind": kind, **columns}


def registration(asked: float, answered: float, words: str = "registration accepted (0)") -> list[dict[str, object]]:
    """A request and its reply."""
    return [
        at(asked, "message-sent", node="mobile", message="RegistrationRequest", detail=""),
        at(answered, "message-received", node="mobile", message="RegistrationReply", detail=words),
    ]


def test_a_reply_that_denies_and_a_byte_from_before_are_not_the_end_of_a_part() -> None:
    events = of_events(
        *registration(0.0, 0.1),
        at(1.05, "data-delivered", flow="a"),
        at(1.7, "handover", node="mobile", cause="path-silent", link="new.up"),
        at(1.8, "handover", node="mobile", cause="path-silent", link="old.up"),
        *registration(1.8, 1.9, "registration denied by the home agent: insufficient resources (130)"),
        *registration(2.0, 2.1),
        at(2.2, "data-delivered", flow="a"),
        at(2.5, "data-delivered", flow="b"),
    )
    parts = events.parts(1.0, "old")
    assert parts.each_s == pytest.approx((0.8, 0.3, 0.4, 1.5))
    assert events.parts(1.0, "old", until_s=2.0).each_s == (pytest.approx(0.8), *[float("inf")] * 3)
    assert events.parts(3.0, "old").as_json() == {"found_s": None, "registered_s": None, "delivered_s": None}


def test_a_silence_counts_from_the_trouble_on_and_is_endless_if_nothing_comes() -> None:
    early = [at(0.1, "data-delivered", flow="a"), at(3.9, "data-delivered", flow="a")]
    late = [at(5.0, "data-delivered", flow="a"), at(5.2, "data-delivered", flow="a")]
    assert of_events(*early, *late).silence_s(4.0, 5.3) == pytest.approx(1.0)
    assert of_events(*early).silence_s(4.0, 5.3) == float("inf")
    assert of_events().silence_s(4.0, 5.3) == float("inf")


def test_a_run_in_which_the_node_is_not_on_the_path_that_dies_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = next(kind for kind in KINDS if kind.id == "silent-death")
    away = '[[handover]]\nat = "2 s"\nfrom = "old"\nto = "new"\nstyle = "make-before-break"\n'
    elsewhere = replace(kind, handovers=kind.handovers + away)
    monkeypatch.setattr(recovery, "KINDS", (kind,))

    def row(*assisted: Kind) -> Row:
        runs = [
            _recovery_kinds.measure(one, upload=True, assist=assist, phase_s=0.0, world="sim")
            for assist, kinds in (("default", assisted), ("none", (kind,)))
            for one in kinds
        ]
        return recovery.kind_rows(runs)[1]

    alone = row(elsewhere)
    assert (alone.ours, alone.match) == ("not measured", False)
    both = row(elsewhere, kind)
    assert (both.ours, both.match) == (row(kind).ours, True)
    assert "1 of 3 runs measured nothing" in both.explanation


def test_a_handover_drawn_by_chance_is_its_number() -> None:
    assert draw(7) == draw(7)
    draws = [draw(number) for number in range(400)]
    assert len({one.scenario(3.0) for one in draws}) == 400
    for low, high, values in (
        (256, 50_000, [one.old.rate_kbit_s for one in draws]),
        (0.010, 0.300, [one.new.delays_s for one in draws]),
        (0.3, 8.0, [one.outage_s for one in draws]),
    ):
        assert low * 0.99 <= min(values) < low * 1.2
        assert high * 0.8 < max(values) <= high * 1.01
    assert 100 < sum(one.upload for one in draws) < 300
    assert 100 < sum(one.old == one.new for one in draws) < 300
    assert {one.congestion for one in draws} == {"reno", "cubic", "bbr"}
    for one in draws[:20]:
        native.check("drawn", one.scenario(3.0), [])
    # What it came to is what its scenario alone comes to.
    made = measure(draw(7))
    alone = run(made.scenario, trace=False).summary["handovers"][0]
    assert alone["stall_after_s"] == made.stall_s


def test_handovers_drawn_by_chance_make_a_table_and_leave_the_worst_behind(tmp_path: Path) -> None:
    study = recovery.carry_out_handovers(tmp_path / "o", None, count=45, first=11)
    assert study.rows[0].id == "all"
    assert part(study.rows[0], "handovers") == 45
    assert sum(part(row, "handovers") for row in study.rows[1:]) == 45
    made = json.loads((tmp_path / "o" / "handovers.json").read_text())
    assert [one["number"] for one in made] == list(range(11, 56))
    assert len(study.tables[0].lines) == 10
    worst = int(study.tables[0].lines[0][0])
    assert max(made, key=lambda one: one["stall_rtt"] or float("inf"))["number"] == worst
    again = recovery.carry_out_handovers(None, None, count=1, first=worst)
    assert again.tables[0].lines[0] == study.tables[0].lines[0]
    text = (tmp_path / "o" / f"handover-{worst}.toml").read_text()
    assert text == _recovery_draws.measure(draw(worst)).scenario


def test_a_long_stall_has_the_cause_that_its_events_show() -> None:
    schema = pa.schema(
        [("time_ns", pa.int64()), ("kind", pa.string()), ("node", pa.string())]
        + [(name, pa.int64()) for name in ("seq", "ack", "len_bytes")]
    )

    def segment(seconds: float, kind: str, node: str, **columns: int) -> dict[str, object]:
        return dict.fromkeys(schema.names) | at(seconds, f"segment-{kind}", node=node, **columns)

    def sent(seconds: float, seq: int) -> dict[str, object]:
        return segment(seconds, "sent", "correspondent", seq=seq, ack=1, len_bytes=100)

    def came(seconds: float, seq: int) -> dict[str, object]:
        return segment(seconds, "received", "mobile", seq=seq, ack=1, len_bytes=100)

    def why(*rows: dict[str, object]) -> str:
        # 100 is missing; the new path is ready at 2 s, and what is missing comes at 3 s.
        before = [sent(0.5, 100), sent(0.6, 200), segment(0.9, "sent", "mobile", seq=1, ack=100, len_bytes=0)]
        events = pa.Table.from_pylist([*before, *rows, came(3.0, 100)], schema)
        return _recovery_causes.read(events, 2.0, 1.0, upload=False)

    later = came(0.8, 200)
    assert why(later, came(2.2, 300)) == "repetition last"
    assert why(later, came(2.2, 100)) == "original refused"
    assert why(later, sent(2.2, 100)) == "repaired anew"
    assert why(came(0.8, 0), sent(2.2, 100)) == "other"


def only(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Of the other kinds of trouble these only: on real hosts all of them take minutes."""
    few = tuple(kind for kind in KINDS if kind.id in names)
    assert len(few) == len(names)
    monkeypatch.setattr(_recovery_kinds, "KINDS", few)
    monkeypatch.setattr(recovery, "KINDS", few)


def test_every_kind_of_trouble_is_one_that_both_worlds_can_make(tmp_path: Path) -> None:
    assert len({kind.id for kind in KINDS}) == len(KINDS)
    for kind in KINDS:
        for world in native.WORLDS:
            text = _recovery_kinds.scenario(kind, upload=True, assist="default", at_s=6.0, world=world, folder=tmp_path)
            native.check_world(world, kind.id, text, [])


def test_every_case_is_measured_on_a_real_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_linux_hosts()
    only(monkeypatch, "silent-death")
    study: Study = recovery.carry_out(tmp_path / "o", None, quick=True, world="linux")
    assert len(study.rows) == len(QUICK) + 2
    runs = json.loads((tmp_path / "o" / "runs.json").read_text())
    assert len(runs) == 2 * 2 * len(QUICK) + 2 * 2
    assert all(one["kernel"] for one in runs if "kind" not in one)
    for one in (one for one in runs if "kind" in one):
        (parts,) = one["handovers"]
        assert one["used"] in ("old", "new")
        # Nobody but the path monitor finds it out.
        assert one["assist"] == "default" or one["used"] == "new" or parts["found_s"] is None, one


@pytest.mark.measures
def test_the_default_assists_end_the_stall_on_a_real_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    need_linux_hosts()
    only(monkeypatch)
    study: Study = recovery.carry_out(None, None, quick=True, world="linux")
    assert len(study.rows) == len(QUICK)
    long = [row for row in study.rows if "outage 3 s" in row.what]
    assert len(long) == 2
    for row in long:
        # A backed-off timer is later still.
        assert stall(row) < part(row, "without: median stall") / 2, study.for_people(Style(None))


def test_every_run_asks_for_what_the_worlds_can_do() -> None:
    assert len({case.id for case in CASES}) == len(CASES) == 2 * 2 * 6 * 3
    for case in CASES:
        for assist in ("default", "none"):
            for world in native.WORLDS:
                setup = Setup(case, assist, 0, 10, world)
                native.check_world(world, "study", SCENARIO, setup.settings)


def test_repetitions_begin_at_different_instants_of_the_same_second() -> None:
    case = CASES[0]
    begins = [Setup(case, "none", repetition, 10, "sim").handover_at_s for repetition in range(10)]
    assert len(set(begins)) == 10
    assert max(begins) - min(begins) < 1.0
    gaps = [b - a for a, b in zip(sorted(begins), sorted(begins)[1:], strict=False)]
    assert gaps == pytest.approx([0.1] * 9)


def test_a_flow_that_never_resumes_makes_no_match() -> None:
    case = Case(upload=False, round_trip_ms=10, outage_s=1.0, congestion="reno")

    def measured(assist: str, stall_rtt: float) -> Measured:
        setup = Setup(case, assist, 0, 1, "sim")
        return Measured(setup, stall_rtt, stall_rtt, timeouts=0, retransmitted=0, unnecessary=0, kernel=None)

    row = recovery.row(case, [measured("default", float("inf")), measured("none", 40.0)])
    assert row.match is False
    assert row.ours == "never"
    assert part(row, "without: median stall") == 40.0
    assert recovery.row(case, [measured("default", 0.9), measured("none", 40.0)]).match is True


@pytest.mark.parametrize(
    ("values", "of", "expected"),
    [([3.0, 1.0, 2.0], 0.5, 2.0), ([1.0, 2.0], 0.5, 1.5), ([0.0, 1.0, float("inf")], 0.95, float("inf"))],
)
def test_quantiles_lie_between_what_was_measured(values: list[float], of: float, expected: float) -> None:
    assert quantile(values, of) == expected


def test_a_study_that_was_interrupted_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "done.jsonl"
    setup = Setup(CASES[0], assist="none", repetition=0, of=1, world="sim")
    once = Measured(
        setup, stall_rtt=1.5, recovery_rtt=float("inf"), timeouts=1, retransmitted=2, unnecessary=0, kernel=None
    )
    parts = (Parts(0.1, 0.2, float("inf")),)
    trouble = Trouble("k", True, "none", 0.25, silence_s=1.0, bytes_delivered=7, handovers=parts, used=None)
    made = []

    def make(what: Measured | Trouble, _progress: object = None) -> Measured | Trouble:
        made.append(what)
        return what

    for _ in range(2):
        done = Done(tmp_path)
        assert done.or_make(Measured, partial(make, once))(None) == once
        assert done.or_make(Trouble, partial(make, trouble))(None) == trouble
    assert made == [once, trouble]
    whole = path.read_text()
    # Interrupted in the middle of a line: the run is made again.
    path.write_text(whole[:-20])
    assert Done(tmp_path).or_make(Trouble, partial(make, trouble))(None) == trouble
    assert (made, path.read_text()) == ([once, trouble, trouble], whole)
    assert Done(None).or_make(Measured, partial(make, once))(None) == once
    path.write_text(whole.replace('"careof": "', '"careof": "0'))
    with pytest.raises(OutputError, match="another build"):
        Done(tmp_path)
