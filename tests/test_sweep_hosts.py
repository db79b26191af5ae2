"""Sweeps on Linux hosts. Where a machine can have none, the tests that make some say so and are skipped."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from careof import load, native
from careof.errors import InputError
from careof.sweeps import hosts, make_plan, table
from linux_hosts import need_linux_hosts

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Command

SHORT = ["--set", "duration=2 s", "--world", "linux"]


@pytest.fixture
def transfer(tmp_path: Path) -> Path:
    """A scenario of 100 kB over one link."""
    path = tmp_path / "transfer.toml"
    path.write_text(
        """\
title = "A transfer"
duration = "2 s"
[links]
radio = { rate = "10 Mbit/s", delay = "5 ms", queue = "50 packets" }
[mobility]
protocol = "mobile-ipv4"
[[flow]]
name = "file"
from = "correspondent"
to = "mobile"
kind = "bulk"
size = "100 kB"
"""
    )
    return path


def test_each_run_of_the_grid_is_made_on_linux_hosts(careof: Command, transfer: Path) -> None:
    need_linux_hosts()
    out = transfer.parent / "t.parquet"
    done = careof("sweep", transfer, "--vary", "flow.tcp.congestion=reno,cubic,rino", *SHORT, "--out", out)
    assert done.returncode == 0, done.stderr
    rows = pq.read_table(out).to_pylist()
    assert [(row["flow.tcp.congestion"], row["run"]) for row in rows] == [("reno", 0), ("cubic", 0), ("rino", 0)]
    assert [row["bytes_delivered"] for row in rows] == [100_000, 100_000, None]
    assert [row["error"] is None for row in rows] == [True, True, False]
    assert 'no congestion control "rino"' in rows[2]["error"]
    assert "on Linux hosts" in done.stdout
    assert "1 of 3 runs failed" in done.stdout
    # What is there is left as it is, and is not taken for a simulated sweep.
    again = careof("sweep", transfer, "--vary", "flow.tcp.congestion=reno,cubic,rino", *SHORT, "--out", out, "--resume")
    assert again.returncode == 0, again.stderr
    assert "nothing to go on with" in again.stderr
    other = ["--vary", "flow.tcp.congestion=reno,cubic,rino", "--set", "duration=2 s", "--resume"]
    refused = careof("sweep", transfer, *other, "--out", out)
    assert refused.returncode == 2
    assert '"linux" there, "sim" asked for' in refused.stderr.replace("'", '"')


def test_only_the_runs_that_are_missing_are_made(transfer: Path) -> None:
    need_linux_hosts()
    plan = make_plan(transfer, vary=["flow.tcp.congestion=reno,cubic"], repeat=2, set=["duration=1 s"], world="linux")
    about = plan.grid().plan(plan.world)
    told: list[float] = []
    with ExitStack() as stack:
        made = hosts.records(stack, plan, about, [0, 1, 3], 1, lambda done, _: told.append(done), lambda _: None)
        records = list(made)
    assert [record[:3] for (record,) in records] == ["[2,"]
    assert told
    assert min(told) >= 3
    assert max(told) <= 4
    assert told == sorted(told)


def test_a_grid_that_one_world_cannot_run_may_be_one_of_the_other(transfer: Path) -> None:
    plan = make_plan(transfer, set=["flow.mptcp=true"], world="linux")
    assert plan.grid().plan("linux")["runs"] == 1
    with pytest.raises(InputError, match="mptcp"):
        plan.grid().plan("sim")


def test_a_cell_sets_what_its_row_says() -> None:
    axes = [{"settings": ["a=1", "a=2"]}, {"settings": ["b=x", "b=y", "b=z"]}]
    cells = [" ".join(table.settings(axes, cell)) for cell in range(6)]
    assert cells == ["a=1 b=x", "a=1 b=y", "a=1 b=z", "a=2 b=x", "a=2 b=y", "a=2 b=z"]


def test_the_rows_of_a_run_made_alone_are_those_of_the_sweep(careof: Command, transfer: Path) -> None:
    out, alone = transfer.parent / "t.parquet", transfer.parent / "alone"
    assert careof("sweep", transfer, "--out", out).returncode == 0
    assert careof("run", transfer, "--out", alone).returncode == 0
    (row,) = native.sweep_rows(load(alone).summary)
    found = pq.read_table(out).to_pylist()[0]
    names = [column["name"] for column in make_plan(transfer).grid().plan()["columns"]]
    assert row == [found[name] for name in names]
