"""careof as a library."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

import careof
from careof import errors
from conftest import SMALL


@pytest.fixture(scope="module")
def run() -> careof.Run:
    return careof.run(SMALL, seed=3)


def test_a_run_in_memory_has_tables_and_summary(run: careof.Run) -> None:
    assert run.path is None
    assert run.summary["seed"] == run.scenario["seed"] == 3
    assert run.flows["name"].to_pylist() == ["download"]
    assert run.handovers["to"].to_pylist() == ["gsm"]
    assert run.events.num_rows > 1000
    assert "Small" in repr(run)


def test_tables_speak_the_arrow_protocol_that_polars_and_pandas_take(run: careof.Run) -> None:
    for table in (run.events, run.flows, run.handovers):
        assert pa.table(table.__arrow_c_stream__() and table).equals(table)
    buffer = run.events["time_ns"].chunk(0).buffers()[1]
    assert run.events["time_ns"].chunk(0).to_numpy(zero_copy_only=True).ctypes.data >= buffer.address


def test_memory_and_directory_hold_the_same(run: careof.Run, tmp_path: Path) -> None:
    written = careof.run(SMALL, seed=3, out=tmp_path / "o")
    loaded = careof.load(tmp_path / "o")
    assert written.path == loaded.path == tmp_path / "o"
    assert loaded.summary == written.summary == run.summary
    assert loaded.scenario == written.scenario == run.scenario
    assert loaded.scenario_text == SMALL
    assert loaded.events.to_pylist() == run.events.to_pylist()


def test_settings_are_replaced_by_mapping_or_list() -> None:
    for replaced in ({"duration": "1 s", "handover": []}, ["duration=1 s", "handover=[]"]):
        run = careof.run(SMALL, set=replaced, trace=False)
        assert run.duration_s == 1.0


def test_progress_is_told_how_far_the_run_is() -> None:
    seen: list[tuple[float, float]] = []
    careof.run(SMALL, trace=False, progress=lambda now, whole: seen.append((now, whole)))
    assert seen[-1] == (6.0, 6.0)
    assert seen == sorted(seen)


@pytest.mark.parametrize("duration", ["1 us", "100 ms", "0.3 s", "1.1 s", "2.7 s"])
def test_a_run_ends_at_its_duration(duration: str) -> None:
    seen: list[tuple[float, float]] = []
    changed = {"duration": duration, "handover": []}
    careof.run(SMALL, set=changed, trace=False, progress=lambda now, whole: seen.append((now, whole)))
    assert seen[-1][0] == pytest.approx(seen[-1][1])


def test_other_threads_run_while_a_simulation_does() -> None:
    ticks: list[float] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    ticker = threading.Thread(target=tick)
    simulation = careof.native.Simulation("x", SMALL, ["duration=2000 s", 'links.gsm.rate="10 Mbit/s"'], trace=False)
    ticker.start()
    try:
        began = time.monotonic()
        simulation.advance(2000)
        ended = time.monotonic()
    finally:
        stop.set()
        ticker.join()
    while_simulating = sum(began < at < ended for at in ticks)
    assert while_simulating > 5 or ended - began < 0.1


def test_errors_stand_in_one_tree(tmp_path: Path) -> None:
    with pytest.raises(careof.ScenarioError, match="title"):
        careof.run("title = 1\n")
    with pytest.raises(careof.ScenarioError, match="no such file"):
        careof.run(tmp_path / "missing.toml")
    (tmp_path / "file").touch()
    with pytest.raises(careof.OutputError, match="is a file"):
        careof.run(SMALL, out=tmp_path / "file")
    with pytest.raises(careof.NotARunError, match=r"summary\.json"):
        careof.load(tmp_path)
    drawn = errors.__doc__ or ""
    for name in vars(errors).values():
        if isinstance(name, type) and issubclass(name, careof.CareofError):
            assert name.__name__ in drawn


def test_a_run_without_a_trace_has_no_events() -> None:
    run = careof.run(SMALL, trace=False)
    assert not run.traced
    with pytest.raises(careof.NotARunError, match="kept no events"):
        _ = run.events


def test_all_metrics_of_a_summary_are_defined(run: careof.Run) -> None:
    defined = {one["key"] for one in careof.metric_definitions()}
    assert {key for flow in run.summary["flows"] for key in flow} - {"name"} <= defined
    assert {key for one in run.summary["handovers"] for key in one} - {"from", "to", "style"} <= defined
