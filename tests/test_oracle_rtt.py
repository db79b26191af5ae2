"""`careof oracle rtt`: estimators of the retransmission timeout on series of round trips, made here and measured."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from careof.errors import InputError
from careof.oracles import rtt
from careof.oracles.command import TRACES
from conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Command

SHARED = ROOT.parent / "shared" / "traces"


def silent(_done: float, _of: float) -> None:
    """Nobody looks on."""


def steady(count: int = 60) -> str:
    """A table of round trips of 50 ms each, one a second, and one segment without an acknowledgement."""
    rows = [f"{second},{second},50.0" for second in range(count)]
    return "\n".join(["# t0_unix_s=0", "t_s,seq,rtt_ms", *rows, f"{count},{count},-1", ""])


def test_what_is_made_here_needs_no_files(careof: Command, tmp_path: Path) -> None:
    done = careof("oracle", "rtt", cwd=tmp_path)
    assert done.returncode == 0
    assert f"{TRACES}: not there" in done.stdout
    assert "no measured series" in done.stdout
    rows = json.loads(careof("oracle", "rtt", "--json", cwd=tmp_path).stdout)
    assert {row["estimator"] for row in rows} == {"rfc6298", "linux", "fast-decrease"}
    steps = [row for row in rows if row["steps_down"] == 1 and row["floor_s"] is not None]
    worst = {
        row["estimator"]: max(r["settled_after_round_trips"] for r in steps if r["estimator"] == row["estimator"])
        for row in steps
    }
    assert worst["fast-decrease"] < 10 < 50 < min(worst["rfc6298"], worst["linux"])


def test_a_users_series_is_judged_and_lost_segments_are_left_out(careof: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(steady(), encoding="utf-8")
    (tmp_path / "rates.csv").write_text("t_s,mbps\n0,1\n", encoding="utf-8")
    rows = json.loads(careof("oracle", "rtt", tmp_path, "--json").stdout)
    mine = [row for row in rows if row["series"] == "mine"]
    assert all(row["measured"] and (row["samples"], row["exceeding"]) == (59, 0) for row in mine)
    assert len(mine) == 6
    # After a while Linux' RTO is 250 ms; that of RFC 6298 is never below a second.
    waste = {row["estimator"]: row["waste_s"] for row in mine if row["floor_s"] is None}
    assert waste["linux"] == pytest.approx(0.2, abs=0.01)
    assert waste["rfc6298"] == waste["fast-decrease"] == pytest.approx(0.95, abs=0.001)
    done = careof("oracle", "rtt", tmp_path)
    assert done.returncode == 0
    assert "1 measured series: fast-decrease has +0 timeouts too short" in done.stdout


def test_what_cannot_be_read_is_said_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(steady(), encoding="utf-8")
    (tmp_path / "short.csv").write_text(steady(3), encoding="utf-8")
    (tmp_path / "words.csv").write_text("t_s,rtt_ms\n0,fast\n", encoding="utf-8")
    (tmp_path / "noise.csv").write_bytes(bytes(range(256)))
    series, skipped = rtt.series_in(tmp_path)
    assert [one["name"] for one in series] == ["mine"]
    assert [reason.partition(":")[0] for reason in skipped] == ["noise.csv", "short.csv", "words.csv"]
    assert "fewer than 50" in skipped[1]


def test_samples_out_of_order_are_refused(careof: Command, tmp_path: Path) -> None:
    rows = [f"{100 - second},50.0" for second in range(60)]
    (tmp_path / "back.csv").write_text("\n".join(["t_s,rtt_ms", *rows]), encoding="utf-8")
    done = careof("oracle", "rtt", tmp_path)
    assert done.returncode == 2
    assert "in order" in done.stderr


def test_a_directory_without_series_is_refused_with_a_hint(careof: Command, tmp_path: Path) -> None:
    done = careof("oracle", "rtt", tmp_path)
    assert done.returncode == 2
    assert "t_s and rtt_ms" in done.stderr
    with pytest.raises(InputError):
        rtt.series_in(tmp_path / "nowhere")


def test_one_more_timeout_on_a_measured_series_ends_in_status_1() -> None:
    def row(estimator: str, exceeding: int, *, measured: bool) -> rtt.Json:
        return {
            "series": "one",
            "estimator": estimator,
            "floor_s": None,
            "exceeding": exceeding,
            "measured": measured,
            "steps_down": 0,
        }

    for measured, status in ((True, 1), (False, 0)):
        rows = [row("rfc6298", 3, measured=measured), row("fast-decrease", 4, measured=measured)]
        assert rtt.Comparison(rows, []).exit_status == status


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no traces in {SHARED}")
def test_on_measured_paths_following_a_fall_makes_no_timeout_too_short() -> None:
    comparison = rtt.compare(SHARED, silent)
    assert comparison.worse == []
    assert len({row["series"] for row in comparison.rows if row["measured"]}) >= 5
