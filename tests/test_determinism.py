"""Same scenario, same seed: the same bytes, in another process, at another time, watched or not."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import careof
from conftest import ROOT, SMALL

if TYPE_CHECKING:
    from conftest import Command


def fingerprints(directory: Path) -> dict[str, str]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_the_same_run_twice_gives_the_same_bytes(careof: Command, finished: Path, tmp_path: Path) -> None:
    scenario = ROOT / "scenarios" / "wavelan-to-gsm.toml"
    done = careof("run", scenario, "--seed", "7", "--plot", "png", "--out", tmp_path / "again")
    assert done.returncode == 0, done.stderr
    assert fingerprints(tmp_path / "again") == fingerprints(finished)


def test_watching_a_run_does_not_change_it(careof: Command, finished: Path, tmp_path: Path) -> None:
    scenario = ROOT / "scenarios" / "wavelan-to-gsm.toml"
    done = careof("run", scenario, "--seed", "7", "--no-trace", "--json", "--out", tmp_path / "blind")
    watched = json.loads((finished / "summary.json").read_text())
    # What the captures hold is all that is added.
    assert len(watched.pop("captures")) == 2
    assert json.loads(done.stdout) == watched


def test_how_a_run_is_cut_into_slices_does_not_change_it() -> None:
    def in_slices(count: int) -> tuple[Any, list[bytes]]:
        simulation = native.World("sim", "small", SMALL)
        events = []
        for number in range(1, count + 1):
            simulation.advance(simulation.duration_s * number / count)
            events.append(simulation.take_events())
        rows = [sum(len(part[0].values) // 8 for part in events).to_bytes(8)]
        return simulation.finish(), rows

    native = careof.native
    assert in_slices(1) == in_slices(3) == in_slices(100)


def test_seed_and_repetition_give_other_runs() -> None:
    digests = {
        careof.run(SMALL, seed=seed, repetition=repetition, trace=False).summary["digest"]
        for seed in (1, 2)
        for repetition in (0, 1)
    }
    assert len(digests) == 4


def test_runs_in_one_process_do_not_touch_each_other() -> None:
    alone = careof.run(SMALL, trace=False).summary
    first, second = (careof.native.World("sim", "<text>", SMALL, trace=False) for _ in range(2))
    for step in range(1, 61):
        first.advance(step / 10)
        second.advance(step / 10)
    assert first.finish().items() <= alone.items()
    assert second.finish().items() <= alone.items()
