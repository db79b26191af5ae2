"""Two runs side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest

import careof
from careof import Run, compare, run
from careof.divergence import figures
from careof.pairing import pairs
from conftest import SMALL

if TYPE_CHECKING:
    from conftest import Command


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    here = tmp_path_factory.mktemp("pair")
    careof.run(SMALL, out=here / "a")
    careof.run(SMALL, out=here / "b", set={"handover.0.at": "3 s", "flow.0.name": "other"})
    return here / "a", here / "b"


def test_a_run_compared_with_itself_is_the_same(pair: tuple[Path, Path]) -> None:
    comparison = careof.compare(pair[0], pair[0])
    assert comparison.identical
    assert comparison.settings == []
    assert all(one.difference in {0, None} for one in comparison.metrics)


def test_settings_and_metrics_that_differ_are_named(careof: Command, pair: tuple[Path, Path]) -> None:
    done = careof("compare", *pair, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert not found["identical"]
    assert {"key": "handovers.0.at_ns", "a": 2_000_000_000, "b": 3_000_000_000}.items() <= next(
        one for one in found["settings"] if one["key"] == "handovers.0.at_ns"
    ).items()
    at = next(one for one in found["metrics"] if (one["where"], one["key"]) == ("handover 1", "at_s"))
    assert (at["a"], at["b"], at["difference"], at["ratio"]) == (2.0, 3.0, 1.0, 1.5)
    assert {"flow download / other", "handover 1"} == {one["where"] for one in found["metrics"]}
    assert "handover.0.at " in careof("compare", *pair).stdout


def test_a_long_setting_is_cut_in_the_table(careof: Command, pair: tuple[Path, Path], tmp_path: Path) -> None:
    run(SMALL, out=tmp_path / "c", set={"description": "First line\n" + "more\n" * 50}, trace=False)
    printed = careof("compare", pair[0], tmp_path / "c").stdout
    assert "First line …\n" in printed
    assert "more" not in printed


def test_a_page_lays_both_over_each_other(careof: Command, pair: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "both.html"
    done = careof("compare", pair[0], pair[0], "--out", page)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(page)
    text = page.read_text(encoding="utf-8")
    assert '"A data"' in text
    assert '"B data"' in text
    assert '"B less A"' in text
    assert "From handover 1 on" in text


def test_a_flow_that_has_carried_everything_is_not_silent() -> None:
    short = run(SMALL, set={"flow.0.size": "600 kB"})
    (flow,) = short.summary["flows"]
    assert flow["complete"]
    assert 2 < flow["last_delivery_s"] < 5
    ((in_handover,),) = (one["flows"] for one in short.summary["handovers"])
    assert in_handover["longest_silence_s"] <= flow["last_delivery_s"] - 2
    gone = run(SMALL, set={"flow.0.size": "100 kB"})
    ((in_handover,),) = (one["flows"] for one in gone.summary["handovers"])
    assert in_handover["longest_silence_s"] is None
    assert figures(gone)["download", 1, "delivered_before_bytes"] == 100_000


def test_what_a_trace_shows_is_compared_in_numbers(pair: tuple[Path, Path], tmp_path: Path) -> None:
    slower = run(SMALL, out=tmp_path / "c", set={"links.wavelan.rate": "1 Mbit/s"})
    comparison = compare(pair[0], slower)
    found = {(one.where, one.key): one for one in comparison.traced}
    where = "flow download in handover 1"
    before = found[where, "goodput_before_bps"]
    assert before.ratio == pytest.approx(0.5, rel=0.05)
    assert found[where, "delivered_before_bytes"].a == pytest.approx(before.a * 2 / 8)
    assert found[where, "rto_at_handover_s"].b >= found[where, "srtt_at_handover_s"].b > 0
    first = next(time for time in trace_of(slower, "timeout") if time > 2)
    assert found[where, "first_timeout_s"].b == pytest.approx(first - 2)
    (apart,) = comparison.apart
    assert apart.most_bytes < -100_000
    assert 2 <= apart.most_at_s <= 6
    assert 0.2 < apart.share < 0.6
    assert json.dumps(comparison.as_json(), allow_nan=False)


def test_the_main_figures_are_printed_even_where_they_agree(careof: Command, pair: tuple[Path, Path]) -> None:
    printed = careof("compare", pair[0], pair[0], "--all").stdout
    assert "flow download in handover 1" in printed
    assert "RTO at it" in printed
    assert "the same bytes at all times" in printed
    assert "also different" not in printed


def test_a_run_without_a_trace_can_be_compared(careof: Command, pair: tuple[Path, Path], tmp_path: Path) -> None:
    run(SMALL, out=tmp_path / "c", trace=False)
    done = careof("compare", pair[0], tmp_path / "c", "--out", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    assert "longest silence" in done.stdout
    assert "ready to data" in done.stdout
    assert "RTO at it" not in done.stdout


def test_flows_of_other_names_are_compared_by_their_role(pair: tuple[Path, Path], tmp_path: Path) -> None:
    upload = {"flow.0.name": "other", "flow.0.from": "mobile", "flow.0.to": "correspondent"}
    run(SMALL, out=tmp_path / "up", set=upload)
    assert pairs(*map(careof.load, pair)) == [("download", "other")]
    assert pairs(careof.load(pair[0]), careof.load(tmp_path / "up")) == [("download", None), (None, "other")]
    comparison = compare(*pair)
    assert {one.key for one in comparison.settings} == {"flows.download.name", "handovers.0.at_ns"}
    assert [one.flow for one in comparison.apart] == ["download / other"]
    assert any(one.where == "flow download / other in handover 1" for one in comparison.traced)
    comparison.write(tmp_path / "page.html")
    assert "Flow download / other: A and B" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_an_assist_is_one_row_and_the_rest_is_for_those_who_ask(
    careof: Command, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    run(SMALL, out=tmp_path / "helped", set={"assist": "default"})
    few = careof("compare", pair[0], tmp_path / "helped").stdout.splitlines()
    rows = [line.split() for line in few]
    assert ["assist", "replay", "-", "on"] in rows
    assert not any("replay.packets" in line for line in few)
    tables = "\n".join(few).split("\n\n")
    figures = [len(table.splitlines()) - 1 for table in tables if table.startswith("flow ") and "B - A" in table]
    assert sum(figures) == 20
    assert "more figures differ: --all" in few[-1]
    everything = careof("compare", pair[0], tmp_path / "helped", "--all").stdout
    assert "assists.replay.packets" in everything
    assert "RTO at it" in everything
    assert "--all" not in everything


def trace_of(one: Run, kind: str) -> list[float]:
    """When things of a kind happened, in seconds."""
    rows = one.events.filter(pc.equal(one.events["kind"].cast("string"), kind))
    return [time / 1e9 for time in rows["time_ns"].to_pylist()]


def test_a_page_needs_a_place(careof: Command, pair: tuple[Path, Path], tmp_path: Path) -> None:
    for out in (tmp_path, tmp_path / "missing" / "x.html", Path("/proc/x.html")):
        done = careof("compare", *pair, "--out", out)
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: {out}: ")
    assert list(tmp_path.iterdir()) == []
