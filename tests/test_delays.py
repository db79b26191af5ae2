"""Histograms of the delay of TCP flows, held against the run's own events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import careof
from careof.experience import tables
from careof.report import report_html
from careof.runs import dump
from linux_hosts import need_linux_hosts

if TYPE_CHECKING:
    from pathlib import Path

    from careof.runs import Run

SCENARIO = """
duration = "6 s"
[links]
wifi = { rate = "8 Mbit/s", delay = "8 ms" }
lte = { rate = "2 Mbit/s", delay = "30 ms" }
[mobility]
routing = "reverse-tunnel"
[[handover]]
at = "3 s"
from = "wifi"
to = "lte"
style = "break-before-make"
interruption = "300 ms"
[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
[[flow]]
name = "messages"
from = "mobile"
to = "correspondent"
kind = "paced"
rate = "80 kbit/s"
message = "200 B"
"""


def delays_by_the_events(run: Run, flow: str) -> Any:
    """From the first transmission of each segment until its first byte was delivered, in nanoseconds and in order."""
    one = next(row for row in run.summary["flows"] if row["name"] == flow)
    rows = [row for row in run.events.to_pylist() if row["flow"] == flow]
    sent = {
        row["seq"]: row["time_ns"]
        for row in rows
        if row["kind"] == "segment-sent"
        and row["node"] == one["from"]
        and row["len_bytes"] > 0
        and not row["retransmission"]
    }
    came = [row for row in rows if row["kind"] == "data-delivered" and row["node"] == one["to"]]
    totals = np.array([row["delivered_bytes"] for row in came])
    times = np.array([row["time_ns"] for row in came])
    # The first byte of data has the number 1.
    found = [
        (times[place], at) for seq, at in sorted(sent.items()) if (place := np.searchsorted(totals, seq)) < len(came)
    ]
    return np.array([at - begin for at, begin in found])


def of(run: Run, quantity: str, flow: str) -> Any:
    rows = run.summary["histograms"]
    return next(row for row in rows if (row["quantity"], row["flow"]) == (quantity, flow))


@pytest.mark.parametrize("world", ["sim", "linux"])
def test_delay_and_jitter_are_those_of_the_events(world: str) -> None:
    if world == "linux":
        need_linux_hosts()
    run = careof.run(SCENARIO, world=world)
    assert [(row["quantity"], row["flow"]) for row in run.summary["histograms"]] == [
        (quantity, flow) for flow in ("download", "messages") for quantity in ("delay", "jitter")
    ]
    assert run.histograms.num_rows == 4
    for flow in ("download", "messages"):
        delays = delays_by_the_events(run, flow)
        assert len(delays) > 20
        for quantity, values in (("delay", delays), ("jitter", np.abs(np.diff(delays)))):
            found = of(run, quantity, flow)
            assert found["samples"] == len(values) == sum(bucket["samples"] for bucket in found["buckets"])
            for key, exact in (("min_s", values.min()), ("max_s", values.max()), ("mean_s", values.mean())):
                assert found[key] == pytest.approx(exact / 1e9, abs=2e-9), (flow, quantity, key)
            for key, part in (("p50_s", 0.5), ("p90_s", 0.9), ("p99_s", 0.99)):
                exact = np.sort(values)[int(np.ceil(len(values) * part)) - 1]
                assert found[key] == pytest.approx(exact / 1e9, rel=1 / 64, abs=2e-9), (flow, quantity, key)
        # No link of either path is faster than light.
        assert of(run, "delay", flow)["min_s"] >= 0.008


def test_they_are_drawn_in_the_report_and_leave_the_terminal_alone(tmp_path: Path) -> None:
    run = careof.run(SCENARIO, out=tmp_path / "run")
    assert tables(run.summary) == []
    page = report_html(run)
    for row in run.summary["histograms"]:
        assert f"histogram of the {row['quantity']} of {row['flow']}" in page
    summary = (tmp_path / "run/summary.json").read_text()
    assert summary == dump(run.summary)
    buckets = [line for line in summary.splitlines() if '"from_s"' in line]
    assert len(buckets) == sum(len(row["buckets"]) for row in run.summary["histograms"])
    assert all(line.rstrip(",").endswith("}") for line in buckets)
