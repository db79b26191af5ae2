"""careof as a library."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import careof
from careof import _careof, cli, errors, toml
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
    assert loaded.summary == written.summary
    # Only a directory has captures.
    assert {key: value for key, value in loaded.summary.items() if key != "captures"} == run.summary
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
    simulation = careof.native.World("sim", "x", SMALL, ["duration=40000 s", 'links.gsm.rate="10 Mbit/s"'], trace=False)
    ticker.start()
    during = []
    try:
        # A machine that is busy with something else may let the ticker starve once, but not again and again.
        for end in range(2_000, 42_000, 2_000):
            began = time.monotonic()
            simulation.advance(end)
            ended = time.monotonic()
            during.append(sum(began < at < ended for at in ticks))
            if during[-1] > 5:
                break
    finally:
        stop.set()
        ticker.join()
    assert during[-1] > 5, during


def test_everything_public_is_there_although_it_is_loaded_late() -> None:
    program = "import careof; print(*dir(careof)); [getattr(careof, name) for name in careof.__all__]; careof.nothing"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert set(careof.__all__) <= set(done.stdout.split())
    assert done.stderr.splitlines()[-1] == "AttributeError: module 'careof' has no attribute 'nothing'"


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


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"seed": -1}, "seed = -1: .* from 0 to 18446744073709551615"),
        ({"seed": 2**64}, "seed"),
        ({"seed": "7"}, "seed = '7'"),
        ({"seed": True}, "seed"),
        ({"repetition": 1.5}, "repetition"),
        ({"repetition": -1}, "repetition"),
        ({"snap_length": 0}, "snap_length = 0: .* from 1 to 65535"),
    ],
)
def test_a_number_out_of_range_is_refused(numbers: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(careof.ScenarioError, match=words):
        careof.run(SMALL, out=tmp_path / "o", **numbers)
    assert list(tmp_path.iterdir()) == []


def test_the_largest_numbers_are_taken() -> None:
    assert careof.run(SMALL, seed=2**64 - 1, repetition=2**64 - 1, trace=False).summary["seed"] == 2**64 - 1


@pytest.mark.parametrize(
    "value",
    [
        {"profile": "linux-2.0", "window": "16 KiB"},
        {"a b": [1, -2.5, True, []], "c": {}, "d": {"e": 'quoted " \\ \n \x7f µ'}},
        [{"at": "1 s"}, {"at": "2 s"}],
    ],
)
def test_what_is_set_is_written_as_toml(value: object) -> None:
    assert tomllib.loads(f"x = {toml.inline(value)}") == {"x": value}


def test_tables_and_lists_can_be_set() -> None:
    handovers = [{"at": "1 s", "from": "wavelan", "to": "gsm"}, {"at": "3 s", "from": "gsm", "to": "wavelan"}]
    changed = careof.run(SMALL, set={"flow.0.tcp": {"profile": "linux-2.0"}, "handover": handovers}, trace=False)
    assert changed.flows["profile"].to_pylist() == ["linux-2.0"]
    assert changed.handovers["at_s"].to_pylist() == [1.0, 3.0]
    with pytest.raises(careof.ScenarioError, match="override seed: None"):
        careof.run(SMALL, set={"seed": None})


def test_a_full_disk_is_told_by_the_place_people_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write = Path.write_text

    def full(path: Path, *arguments: Any, **options: Any) -> int:
        if path.name == "report.html":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return write(path, *arguments, **options)

    (tmp_path / "small.toml").write_text(SMALL)
    monkeypatch.setattr(Path, "write_text", full)
    assert cli.main(["run", str(tmp_path / "small.toml"), "--out", str(tmp_path / "o")]) == 1
    talk = capsys.readouterr().err
    assert talk.startswith(f"error: {tmp_path / 'o'}")
    assert "No space left" in talk
    assert "hint: make room" in talk
    assert ".partial" not in talk
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]


def test_a_panic_of_the_native_module_is_an_ordinary_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    panic = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})

    def presets() -> str:
        raise panic("index out of bounds")

    monkeypatch.setattr(_careof, "presets", presets)
    assert cli.main(["presets"]) == 1
    talk = capsys.readouterr().err
    assert talk.startswith("error: internal error: index out of bounds\n")
    assert "please report" in talk


def test_both_directions_of_a_flow_are_drawn() -> None:
    both = 'kind = "request-response"\nrequest = "400 B"\nresponse = "30 kB"'
    plot = careof.run(SMALL.replace('kind = "bulk"', both)).plot
    responses, requests = plot.flows()
    assert requests == f"{responses}.requests"
    sent = {flow: plot.trace.sent(flow)["len"] for flow in (responses, requests)}
    assert sent[responses].max() > 1000
    assert set(sent[requests]) == {400.0}
    delivered = {flow: plot.trace.delivered(flow)["bytes"] for flow in (responses, requests)}
    assert delivered[responses][-1] > 10 * delivered[requests][-1] > 0
    assert all(panel.series for panel in plot.panels(requests))


def test_a_directory_has_a_name_in_unicode(tmp_path: Path) -> None:
    with pytest.raises(careof.OutputError, match="is not UTF-8"):
        careof.run(SMALL, out=tmp_path / "o\udcff")
    assert list(tmp_path.iterdir()) == []


def test_a_scenario_says_from_which_silence_on_it_is_a_stall_and_all_are_listed() -> None:
    usual = careof.run(SMALL, trace=False)
    run = careof.run(SMALL, set={"stall_threshold": "100 ms"}, trace=False)
    assert run.summary["digest"] == usual.summary["digest"]
    assert run.summary["stall_threshold_s"] == 0.1
    assert run.stalls.num_rows > usual.stalls.num_rows
    assert min(run.stalls["length_s"].to_pylist()) >= 0.1
    assert {"flow", "begin_s", "length_s", "ended_by"} <= set(run.stalls.column_names)
