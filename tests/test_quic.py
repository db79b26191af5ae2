"""Flows over QUIC from the command line: runs, captures, comparisons, sweeps, and what is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import careof
from conftest import ROOT

if TYPE_CHECKING:
    from conftest import Command

SCENARIO = ROOT / "scenarios" / "quic-wifi-to-lte.toml"
SHORT = ("duration=24 s", "flow.download.start=17 s")
TCP = 'flow=[{ name = "download", from = "correspondent", to = "mobile", start = "17 s" }]'


def flow(*overrides: str) -> dict[str, Any]:
    run = careof.run(SCENARIO, set=list(overrides), trace=False)
    (download,) = run.summary["flows"]
    return dict(download)


def settings(*overrides: str) -> list[str]:
    return [word for override in overrides for word in ("--set", override)]


def test_the_ready_scenario_is_carried_through_the_handover_with_and_without_migration() -> None:
    for migration in ("true", "false"):
        download = flow(*SHORT, f"flow.quic.migration={migration}")
        assert (download["profile"], download["variant"]) == ("quic", "cubic")
        assert download["last_delivery_s"] > 23.9
        assert 0.5 < download["longest_silence_s"] < 3
        assert 19.9 < download["longest_silence_at_s"] < 20.1


def test_a_run_is_the_same_bytes_each_time_and_its_packets_are_datagrams(careof: Command, tmp_path: Path) -> None:
    for name in ("a", "b"):
        done = careof("run", SCENARIO, *settings(*SHORT), "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
    summaries = [json.loads((tmp_path / name / "summary.json").read_text()) for name in ("a", "b")]
    assert summaries[0] == summaries[1]
    assert not any(summaries[0]["conservation"].values())
    for node in ("mobile", "correspondent"):
        capture = Path("packets") / f"{node}.pcapng"
        assert (tmp_path / "a" / capture).read_bytes() == (tmp_path / "b" / capture).read_bytes()
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is missing: nobody else reads the captures")

    def frames(node: str, *arguments: str) -> list[str]:
        command = [tshark, "-r", str(tmp_path / "a" / "packets" / f"{node}.pcapng"), "-o", "udp.check_checksum:TRUE"]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    data = frames("correspondent", "-Y", "udp.port == 5001", "-T", "fields", "-e", "udp.checksum.status")
    assert len(data) > 1000
    assert set(data) == {"1"}
    assert frames("correspondent", "-Y", "tcp") == []
    sources = frames("correspondent", "-Y", "udp.srcport == 5001", "-T", "fields", "-e", "ip.src")
    assert len(set(sources)) == 2, "a care-of address on either link"


def test_migration_and_mobile_ip_are_compared_with_each_other_and_with_tcp(careof: Command, tmp_path: Path) -> None:
    for name, overrides in (("a", SHORT), ("b", (*SHORT, "flow.quic.migration=false")), ("c", ("duration=24 s", TCP))):
        done = careof("run", SCENARIO, *settings(*overrides), "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
    for other in ("b", "c"):
        done = careof("compare", tmp_path / "a", tmp_path / other)
        assert done.returncode in (0, 1), done.stderr
        assert "download" in done.stdout


def test_congestion_control_of_quic_can_vary_in_a_sweep(careof: Command, tmp_path: Path) -> None:
    vary = ["--vary", "flow.quic.congestion=cubic,new-reno", "--vary", "flow.quic.migration=true,false"]
    done = careof("sweep", SCENARIO, *settings(*SHORT), *vary, "--out", tmp_path / "t.parquet")
    assert done.returncode == 0, done.stderr
    rows = pq.read_table(tmp_path / "t.parquet").to_pylist()
    assert [row["error"] for row in rows] == [None] * 4
    assert [row["variant"] for row in rows] == ["cubic", "cubic", "new-reno", "new-reno"]
    assert len({row["digest"] for row in rows}) == 4


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["flow.quic.congestion=bbr"], "flow.0.quic.congestion"),
        (["mobility.care_of=foreign-agent", "mobility.routing=triangle"], "flow.0.quic.migration"),
        (["flow.quic.congestion=vegas"], "new-reno"),
        (["flow.0.tcp=reno"], "carried by one of both"),
    ],
)
def test_what_quic_cannot_have_is_said_with_its_place(
    careof: Command, tmp_path: Path, overrides: list[str], said: str
) -> None:
    done = careof("run", SCENARIO, *settings(*overrides), "--out", tmp_path / "o")
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr
