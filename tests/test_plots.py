"""Curves and their pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import careof
from careof.plot import ladder, series
from careof.plot.series import Outage, Panel, Role, Series, Shape, Span
from careof.plot.thin import thin
from careof.plot.trace import Step
from conftest import SMALL


@pytest.fixture(scope="module")
def run(finished: Path) -> careof.Run:
    return careof.load(finished)


def test_thinning_keeps_what_sticks_out() -> None:
    lots = np.random.default_rng(1)
    x = np.sort(lots.uniform(0, 1000, 300_000))
    y = lots.normal(0, 1, x.size)
    y[[17, 150_000, 299_990]] = [90, -80, 70]
    kept = thin(x, y, 1000)
    assert kept.size <= 1000
    assert {0, 17, 150_000, 299_990, x.size - 1} <= set(kept.tolist())
    assert (np.diff(kept) > 0).all()


def test_little_is_not_thinned() -> None:
    x = np.array([0.0, 1.0, 1.0, 2.0])
    assert thin(x, x, 4).tolist() == [0, 1, 2, 3]
    assert thin(np.zeros(5000), np.arange(5000.0), 100).size <= 100


def test_the_time_sequence_graph_shows_the_spurious_window(run: careof.Run) -> None:
    graph = {one.role: one for one in run.plot.panels("download")[0].series}
    summary = run.summary["flows"][0]
    assert graph[Role.RETRANSMISSION].x.size == summary["segments_retransmitted"]
    assert graph[Role.TIMEOUT].x.size == summary["timeouts"]
    assert graph[Role.ACK].y.max() <= graph[Role.DATA].y.max() + 1461
    span = run.plot.panels("download")[0].spans[0]
    assert span.start_s == pytest.approx(run.summary["handovers"][0]["at_s"])
    assert span.end_s > span.start_s


def test_graphs_are_figures_for_notebooks(run: careof.Run) -> None:
    for figure in (run.plot.time_sequence(), run.plot.cwnd("download"), run.plot.rtt(), run.plot.queues()):
        assert len(figure.data) > 0
        assert figure.to_json()
    with pytest.raises(careof.InputError, match="no flow 'upload'"):
        run.plot.cwnd("upload")


def test_the_bands_cover_the_time_in_which_nothing_was_delivered(run: careof.Run) -> None:
    (handover,) = run.summary["handovers"]
    delivered = run.plot.trace.delivered("download")["time"]
    after = np.concatenate([[handover["at_s"]], delivered[delivered > handover["at_s"]]])
    longest = int(np.argmax(np.diff(after)))
    assert after[longest + 1] - after[longest] > 20
    bands = [span for span in run.plot.panels("download")[0].spans if span.stall]
    assert any(
        (span.start_s, span.end_s) == pytest.approx((after[longest], after[longest + 1]), abs=1e-6) for span in bands
    )
    gaps = np.diff(delivered)
    assert len(bands) == np.count_nonzero(gaps >= run.summary["stall_threshold_s"])


def test_a_silence_too_short_for_a_stall_is_shaded_after_a_handover() -> None:
    quick = careof.run(SMALL, set={"links.gsm": "wavelan", "duration": "4 s"})
    assert quick.summary["stalls"] == []
    ((flow,),) = (one["flows"] for one in quick.summary["handovers"])
    (band,) = [span for span in series.spans(quick.plot.trace, "download") if span.stall]
    assert band.start_s == flow["longest_silence_at_s"]
    assert band.end_s - band.start_s == pytest.approx(flow["longest_silence_s"])


def test_a_close_up_follows_the_switch_to_the_new_path() -> None:
    time = np.array([0.0, 1.0, 2.0, 3.0, 40.0])
    acknowledged = np.array([0.0, 100e3, 200e3, 300e3, 310e3])
    panel = Panel(
        "time-sequence",
        "Time and sequence",
        "byte",
        [
            Series("acknowledged", Role.ACK, Shape.STEPS, time, acknowledged),
            Series("window", Role.WINDOW, Shape.STEPS, time, acknowledged + 16e3),
        ],
        [Span(2.0, 3.0, "handover")],
        end_s=60.0,
    )
    handover = {"at_s": 2.0, "ready_at_s": 3.0, "until_s": 60.0, "stall_after_s": 2.0, "recovery_90_s": None}
    outages = [Outage(1.0, 1.5), Outage(4.0, 6.0), Outage(11.0, 20.0), Outage(59.0, 59.5)]
    near = series.close_up(handover, outages)
    assert 0 < near.from_s < 2.0
    assert 20 < near.to_s < 30
    cut = series.cut(panel, near, "near")
    assert cut.y_range == (284e3, 348e3)
    assert all(one.x.size for one in cut.series)


def test_the_picture_is_a_png(finished: Path) -> None:
    assert (finished / "plot-download.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_the_ladder_shows_the_registration_of_the_handover(run: careof.Run) -> None:
    ladders = ladder.ladders(run.plot.trace, run.scenario["nodes"])
    handover = next(one for one in ladders if one.title.startswith("Handover 1"))
    assert handover.nodes[0] == "mobile"
    names = [row.name for row in handover.rows if not isinstance(row, Step)]
    assert names.index("RegistrationRequest") < names.index("RegistrationReply")
    drawn = ladder.svg(handover)
    assert drawn.startswith("<svg")
    assert "home-agent" in drawn
