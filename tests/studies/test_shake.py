"""The study `shake`: its points, and what is made of its runs."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from careof import run
from careof.errors import OutputError, WorldError
from careof.studies import Study, shake
from careof.studies._shake_rows import emulated, points
from careof.studies._shake_runs import DQ, OPEN, PROFILES, Bonded, Transfer, Transferred
from careof.studies._shake_tables import bonds, is_even, left_open, more_points

PAGE = Path(__file__).parents[2] / "docs/studies/shake.md"
BEGIN = "<!-- Printed by `careof study shake --markdown`; UPDATE_DOCS=1 pytest tests/studies renews it. -->\n"
END = "<!-- The end of what is printed. -->\n"


def _made_up(of: Transfer) -> Transferred:
    """All links used whole, but for jitter, which nobody restores the order behind."""
    whole = 0.9 * of.net.rate_kbps * of.links
    suffers = of.net.jitter_ms and of.links > 1 and not (of.scheme and of.scheme.resequencer)
    return Transferred(of, whole / of.links / 2 if suffers else whole, 9 * of.net.jitter_ms, 2 * of.net.delay_ms / 1000)


def test_each_point_is_run_as_often_as_asked_and_none_twice() -> None:
    wanted = shake.transfers(3)
    assert len(wanted) == len(set(wanted)) == 3 * len({*points(), *more_points()})
    pairs = bonds(2)
    assert len(pairs) == len(set(pairs))
    assert {one.profile for one in pairs} == set(PROFILES)
    assert len(PROFILES) == 16


def test_the_promise_about_the_sum_is_for_pairs_that_are_alike() -> None:
    even = [profile.name for profile in PROFILES if is_even(profile)]
    assert even == [
        "baseline",
        "rtt_40",
        "jit_5",
        "jit_20",
        "loss_05",
        "loss_2",
        "dual_lte",
        "lte_starlink",
        "congested",
    ]


def test_rows_and_tables_say_what_was_run() -> None:
    done = [_made_up(one) for one in shake.transfers(2)]
    study = shake.study_of(done, [(one, 10.0 * len(one.use)) for one in bonds(1)])
    by = {row.id: row for row in study.rows}
    assert list(by) == ["S1", "S2", "S3", "S4", "S5", "S6", "S7"]
    assert by["S7"].match
    assert not by["S1"].match, "made up, DQ is no better than D"
    assert all(row.match for table in study.tables for row in table.rows)
    assert "| auto" in study.as_markdown()


def test_scenarios_are_those_of_the_point() -> None:
    summary = run(replace(emulated(384, 100, 3), size_mb=1).scenario(), trace=False).summary
    assert not any(summary["conservation"].values())
    home, mobile = summary["multipath"]
    assert [path["link"] for path in home["paths"]] == ["link1", "link2", "link3"]
    assert all(path["packets"] > 0 for path in home["paths"])
    assert sum(path["packets"] for path in mobile["paths"]) == 0, "the paper's mobile node answers straight"
    for scheme in OPEN:
        one = replace(left_open(scheme, 0, "sack"), size_mb=1)
        assert run(one.scenario(), trace=False).summary["flows"][0]["bytes_delivered"] == 1_000_000, scheme.name
    alone = run(Bonded(PROFILES[0], (0,)).scenario(), trace=False).summary
    assert "multipath" not in alone
    assert DQ in OPEN


def test_what_cannot_be_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(WorldError, match="simulated"):
        shake.carry_out(None, None, world="linux")
    (tmp_path / "file").touch()
    with pytest.raises(OutputError):
        shake.carry_out(tmp_path / "file" / "out", None)


def test_the_page_holds_what_is_printed() -> None:
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    held, after = rest.split(END)
    if os.environ.get("UPDATE_DOCS") == "1":
        printed = shake.carry_out(None, None).as_markdown().split("\n", 2)[2].strip()
        PAGE.write_text(f"{before}{BEGIN}\n{printed}\n\n{END}{after}", encoding="utf-8")
        return
    # The whole takes minutes: what hangs on no run.
    for line in Study(shake.TITLE, [], tables=[shake.assumed()]).as_markdown().splitlines()[5:]:
        assert line in held, "run UPDATE_DOCS=1 pytest tests/studies"
