"""Traces of links: those that come with the scenarios, recorded ones, and runs over them."""

from __future__ import annotations

from pathlib import Path

import pytest

import careof
from careof import traces
from conftest import ROOT, Command

RECORDED = ROOT / "../shared/traces"

recorded = pytest.mark.skipif(not RECORDED.is_dir(), reason=f"there is no {RECORDED}")

# A file for each form, what of it holds from when on, and its columns.
CONVERTED: dict[str, tuple[str, list[tuple[float, ...]], str]] = {
    "bytes-per-second": ("1,2500000\n2,0\n", [(0, 20), (1, 0)], "time_s,rate_mbit_s"),
    "leocc": (
        "t_ms,pkts_1500B,owd_ms\n0,1,12\n10,50,9\n",
        [(0, 1.2, 12), (0.01, 60, 9)],
        "time_s,rate_mbit_s,delay_ms",
    ),
    "mbit-per-second": ("3.5 0.5\n4.5\t2\t9\n", [(0, 0.5), (1, 2)], "time_s,rate_mbit_s"),
    "ping": ("# t0\nt_s,seq,rtt_ms\n0.5,1,40\n0.7,2,-1\n5.8,3,41\n", [(0, 20), (5.3, 20.5)], "time_s,delay_ms"),
    "raca": ("t_s,dl_kbps\n4,100\n4,200\n6,\n7,50\n", [(0, 0.2), (3, 0.05)], "time_s,rate_mbit_s"),
}


@pytest.mark.parametrize("name", sorted(traces.SYNTHETIC))
def test_the_traces_of_the_scenarios_are_what_their_script_makes(name: str) -> None:
    assert (ROOT / "scenarios/traces" / name).read_text(encoding="utf-8") == traces.SYNTHETIC[name]()


def test_every_trace_there_is_made() -> None:
    assert {path.name for path in (ROOT / "scenarios/traces").iterdir()} == set(traces.SYNTHETIC)


@pytest.mark.parametrize("form", sorted(traces.FORMS))
def test_a_recorded_trace_is_converted(form: str) -> None:
    lines, rows, columns = CONVERTED[form]
    head, *body = traces.convert(form, lines.splitlines(keepends=True)).splitlines()
    assert head == columns
    assert [tuple(map(float, line.split(","))) for line in body] == [pytest.approx(row) for row in rows]


def test_a_trace_that_cannot_be_read_is_told_with_file_line_and_value(careof: Command, tmp_path: Path) -> None:
    trace = tmp_path / "walk.csv"
    trace.write_text("time_s,rate_mbit_s\n0,5\n1,-3\n", encoding="utf-8")
    done = careof("run", ROOT / "scenarios/lte-to-lte.toml", "--set", f"links.west.trace={trace}", cwd=tmp_path)
    assert done.returncode == 2
    assert f'"-3" as rate_mbit_s in {trace}, line 3' in done.stderr
    assert "a number from 0" in done.stderr


@recorded
def test_a_run_over_mahimahis_recorded_link_carries_no_more_than_the_record() -> None:
    folder = RECORDED / "mahimahi"
    run = careof.run(
        ROOT / "scenarios/lte-to-lte.toml",
        set={
            "links.west.trace": str(folder / "Verizon-LTE-short.down"),
            "links.west.trace_up": str(folder / "Verizon-LTE-short.up"),
            "handover": [],
        },
        trace=False,
    )
    west = next(link for link in run.summary["links"] if link["name"] == "west.down")
    assert 0.5 < west["utilisation"] <= 1
    assert run.scenario["links"][0]["down"]["trace"]["file"] == "Verizon-LTE-short.down"


@recorded
def test_paired_walks_are_converted_and_run(tmp_path: Path) -> None:
    folder = RECORDED / "wifi-cellular"
    overrides: dict[str, object] = {}
    for link, kind in (("wifi", "wifi"), ("lte", "cellular")):
        source = folder / f"7_5_{kind}.csv"
        converted = tmp_path / source.name
        with source.open(encoding="utf-8") as lines:
            converted.write_text(traces.convert("bytes-per-second", lines), encoding="utf-8")
        overrides[f"links.{link}.trace"] = str(converted)
    run = careof.run(ROOT / "scenarios/wifi-walk.toml", set=overrides, trace=False)
    carried = {link["name"]: link["delivered_bytes"] for link in run.summary["links"]}
    assert carried["wifi.down"] > 10_000_000
    assert carried["lte.down"] > 10_000_000
