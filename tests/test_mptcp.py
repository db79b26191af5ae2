"""Flows over Multipath TCP from the command line: where they run, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import ROOT
from linux_hosts import need_linux_hosts

if TYPE_CHECKING:
    from conftest import Command

SCENARIO = ROOT / "scenarios" / "mptcp-wifi-to-lte.toml"
SHORT = ("--set", "duration=6 s", "--set", "handover.at=2 s")
KERNEL = Path("/proc/sys/net/mptcp/enabled")


def test_the_simulator_refuses_it_by_its_key_and_names_the_other_world(careof: Command, tmp_path: Path) -> None:
    for command in (
        ("run", SCENARIO, "--out", tmp_path / "o"),
        ("check", SCENARIO, "--world", "sim"),
        ("compare", SCENARIO, "--worlds", "--out", tmp_path / "w"),
        ("sweep", SCENARIO, "--vary", "flow.mptcp.subflows=1,2", "--out", tmp_path / "t.parquet"),
    ):
        done = careof(*command)
        assert done.returncode != 0, command
        said = done.stdout + done.stderr
        assert "flow.0.mptcp" in said, said
        assert "--world linux" in said, said
        assert "Traceback" not in said, said


def test_a_check_says_which_world_carries_it(careof: Command) -> None:
    done = careof("check", SCENARIO)
    assert done.returncode == 0, done.stderr
    assert "not for --world sim: flow.0.mptcp" in done.stdout
    assert "not for --world linux" not in done.stdout
    done = careof("check", SCENARIO, "--set", "flow.mptcp.enabled=false")
    assert "not for --world" not in done.stdout
    done = careof("check", SCENARIO, "--json", "--set", "flow.mptcp.backup=lte")
    assert json.loads(done.stdout)["flows"][0]["mptcp"] == {
        "scheduler": "default",
        "subflows": 2,
        "backup": ["lte"],
        "fullmesh": False,
        "stale_loss_count": 4,
    }


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("mobility.care_of=foreign-agent", 'write care_of = "co-located"'),
        ("mobility.protocol=mobile-ipv6", "leave `mptcp` out"),
        ("flow.to=home-agent", "no end of this flow moves"),
        ("flow.mptcp.subflows=9", "flow.0.mptcp.subflows"),
        ("flow.mptcp.backup=ethernet", 'the mobile node\'s links are "wifi" and "lte"'),
        ("flow.quic=cubic", "leave `mptcp` or `quic` out"),
        ("flow.tcp.mss=500", "flow.0.tcp.mss"),
    ],
)
def test_what_it_cannot_have_is_said_with_its_place(careof: Command, override: str, said: str) -> None:
    done = careof("check", SCENARIO, "--world", "linux", "--set", override)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_two_ways_over_the_kernel_are_run_explained_and_compared(careof: Command, tmp_path: Path) -> None:
    need_linux_hosts()
    if not KERNEL.exists():
        pytest.skip(f"this kernel has no Multipath TCP: there is no {KERNEL}")
    for name, enabled in (("multipath", "true"), ("single", "false")):
        settings = (*SHORT, "--set", f"flow.mptcp.enabled={enabled}")
        done = careof("run", SCENARIO, "--world", "linux", *settings, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
    summaries = [json.loads((tmp_path / name / "summary.json").read_text()) for name in ("multipath", "single")]
    assert [one["flows"][0]["profile"] for one in summaries] == ["mptcp", "modern"]
    for summary in summaries:
        assert not any(summary["conservation"].values())
        assert summary["flows"][0]["bytes_delivered"] > 0
    done = careof("explain", tmp_path / "multipath")
    assert done.returncode == 0, done.stderr
    done = careof("compare", tmp_path / "multipath", tmp_path / "single")
    assert done.returncode in (0, 1), done.stderr
    assert "download" in done.stdout
