"""A run in a process of its own. The simulator serves as well as real hosts to try it, and needs nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import careof
from careof import apart, errors
from careof.runs import plan
from conftest import SMALL

if TYPE_CHECKING:
    from collections.abc import Callable

LONG = SMALL.replace('"6 s"', '"100000 s"').replace("gsm = {", "gsm = { rate = '1 Gbit/s',")


def test_it_is_the_same_run(tmp_path: Path) -> None:
    here = careof.run(SMALL, out=tmp_path / "here")
    there = apart.carry_out(plan(SMALL, out=tmp_path / "there"), None, None)
    assert there.path == tmp_path / "there"
    assert there.summary == here.summary
    assert (tmp_path / "there" / "report.html").exists()
    kept = apart.carry_out(plan(SMALL), None, None)
    assert kept.path is None
    assert kept.events.to_pylist() == here.events.to_pylist()
    assert kept.scenario_text == SMALL
    assert not apart.carry_out(plan(SMALL, trace=False), None, None).traced


def test_progress_comes_through() -> None:
    seen: list[tuple[float, float]] = []
    apart.carry_out(plan(SMALL, trace=False), lambda now, whole: seen.append((now, whole)), None)
    assert seen[-1] == (6.0, 6.0)


def test_errors_come_through_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(errors.ScenarioError, match="duration"):
        apart.carry_out(plan(SMALL.replace("6 s", "six")), None, None)
    with pytest.raises(errors.OutputError) as refused:
        apart.carry_out(plan(SMALL, out="/proc/x"), None, None)
    assert refused.value.hint is not None
    with pytest.raises(errors.InputError, match="no world"):
        careof.run(SMALL, world="moon", out=tmp_path / "o")
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_gives_up_takes_the_run_with_it(tmp_path: Path) -> None:
    class EnoughError(Exception):
        pass

    def enough(_now: float, _whole: float) -> None:
        raise EnoughError

    with pytest.raises(EnoughError):
        apart.carry_out(plan(LONG, out=tmp_path / "o"), enough, None)
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_dies_is_an_error_with_its_signal(tmp_path: Path) -> None:
    def kill(_now: float, _whole: float) -> None:
        for child in children(os.getpid()):
            os.kill(child, signal.SIGKILL)

    with pytest.raises(errors.RunError, match="SIGKILL"):
        apart.carry_out(plan(LONG, out=tmp_path / "o"), kill, None)


def test_nothing_goes_on_when_the_program_is_killed(tmp_path: Path) -> None:
    program = "import sys; from careof import apart; from careof.runs import plan; "
    program += "apart.carry_out(plan(sys.argv[1], out=sys.argv[2]), None, None)"
    out, said = tmp_path / "out", tmp_path / "said"
    out.mkdir()
    with said.open("w") as complaints:
        parent = subprocess.Popen([sys.executable, "-c", program, LONG, out / "o"], stderr=complaints)
        wait_for(lambda: bool(list(out.glob(".*.partial/events.parquet"))))
        (child,) = children(parent.pid)
        parent.kill()
        parent.wait()
    wait_for(lambda: not Path(f"/proc/{child}").exists())
    assert list(out.iterdir()) == []
    assert said.read_text() == ""


def test_a_process_of_one_thread_is_alone() -> None:
    program = "from careof import apart, cli; alone = apart.is_alone(); import numpy, pyarrow; print(alone)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
    thread = threading.Event()
    threading.Thread(target=thread.wait).start()
    assert not apart.is_alone()
    thread.set()


def children(parent: int) -> list[int]:
    """Processes whose parent that is."""
    found = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    return [int(number) for number in found.split()]


def wait_for(condition: Callable[[], bool], timeout_s: float = 300) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
