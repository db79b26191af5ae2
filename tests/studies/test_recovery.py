"""The study `recovery`: what careof is for, in both worlds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from careof import native
from careof.studies import _recovery_kinds, recovery
from careof.studies._recovery_kinds import KINDS
from careof.studies._recovery_runs import CASES, QUICK, SCENARIO, Case, Measured, Setup
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


def test_a_sender_is_at_full_speed_within_a_round_trip_in_the_simulator(tmp_path: Path) -> None:
    study = recovery.carry_out(tmp_path / "o", None, quick=True)
    assert len(study.rows) == len(QUICK) + 2 * len(KINDS)
    assert all(row.match for row in study.rows), study.for_people(Style(None))
    for row in study.rows[: len(QUICK)]:
        assert part(row, "without: median stall") > stall(row), row.what
    runs = json.loads((tmp_path / "o" / "runs.json").read_text())
    assert len(runs) == 2 * 2 * len(QUICK) + 2 * 2 * len(KINDS)


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
    assert all(run["kernel"] for run in runs if "kind" not in run)


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
    assert recovery.quantile(values, of) == expected
