"""The directory of a run holds all that makes it again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from careof.ingredients import keep, keep_given
from conftest import CAREOF, ROOT

if TYPE_CHECKING:
    from conftest import Command

TRACE = "time_s,rate_mbit_s\n0,8\n2,1\n"
SCENARIO = """\
title = "Over a trace"
duration = "4 s"
[links]
wifi = { preset = "wifi-good", trace = "NAME", between = ["server", "terminal"] }
[[flow]]
name = "download"
from = "server"
to = "terminal"
kind = "bulk"
"""


def digest(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["digest"])


@pytest.mark.parametrize("name", ["here.csv", "below/here.csv", "../outside.csv", "/absolute.csv"])
def test_a_run_with_a_trace_is_made_again_without_the_trace(careof: Command, tmp_path: Path, name: str) -> None:
    home = tmp_path / "home" / "mine"
    trace = tmp_path / "absolute.csv" if name.startswith("/") else home / name
    trace.parent.mkdir(parents=True, exist_ok=True)
    trace.write_text(TRACE, encoding="utf-8")
    home.mkdir(parents=True, exist_ok=True)
    scenario = home / "s.toml"
    named = str(trace) if name.startswith("/") else name
    scenario.write_text(SCENARIO.replace("NAME", named), encoding="utf-8")
    first = digest(careof("run", scenario, "--no-trace", "--out", tmp_path / "run", "--json"))
    trace.unlink()
    shutil.rmtree(tmp_path / "home")
    moved = tmp_path / "elsewhere" / "moved"
    moved.parent.mkdir()
    (tmp_path / "run").rename(moved)
    again = careof(
        "run", moved / "scenario.toml", "--no-trace", "--out", tmp_path / "again", "--json", cwd=moved.parent
    )
    assert digest(again) == first


def test_a_trace_that_was_given_on_the_command_line_is_kept_too(careof: Command, tmp_path: Path) -> None:
    (tmp_path / "first.csv").write_text(TRACE, encoding="utf-8")
    (tmp_path / "second.csv").write_text(TRACE.replace("2,1", "2,4"), encoding="utf-8")
    (tmp_path / "s.toml").write_text(SCENARIO.replace("NAME", "first.csv"), encoding="utf-8")
    words = ["--set", "links.wifi.trace=second.csv", "--no-trace", "--json"]
    first = digest(careof("run", "s.toml", *words, "--out", "o", cwd=tmp_path))
    (tmp_path / "second.csv").unlink()
    (tmp_path / "first.csv").unlink()
    overrides = json.loads((tmp_path / "o" / "summary.json").read_text(encoding="utf-8"))["overrides"]
    given = [word for one in overrides for word in ("--set", one)]
    assert overrides == ["links.wifi.trace=traces/second.csv"]
    again = careof("run", "scenario.toml", *given, "--no-trace", "--json", cwd=tmp_path / "o")
    assert digest(again) == first


def test_what_names_no_file_stays_as_it_is(tmp_path: Path) -> None:
    overrides = ["links.wifi.trace=none", "duration=3 s", "assist.window-clamp.from=always", 'handover.0.walk="round"']
    assert keep_given(overrides, tmp_path) == overrides
    text = '[[handover]]\nwalk = "random-waypoint"\n[links]\nwifi = { trace = "none" }\n'
    assert keep(text, tmp_path, tmp_path / "run") == text
    assert list(tmp_path.iterdir()) == []


def test_two_files_of_one_name_stay_two(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "t.csv").write_text(folder, encoding="utf-8")
    (tmp_path / "home").mkdir()
    text = '[links]\none = { trace = "../a/t.csv" }\ntwo = { trace_up = { file = "../b/t.csv", start = "1 s" } }\n'
    kept = keep(text, tmp_path / "home", tmp_path / "run")
    assert '"traces/t.csv"' in kept
    assert '"traces/2-t.csv"' in kept
    assert (tmp_path / "run" / "traces" / "2-t.csv").read_text(encoding="utf-8") == "b"


def with_files() -> list[Path]:
    """The ready scenarios that name a file, in whichever way."""
    found = sorted((ROOT / "scenarios").rglob("*.toml"))
    return [path for path in found if ".csv" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", with_files(), ids=lambda path: path.stem)
def test_every_ready_scenario_is_good_where_it_was_kept(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    kept = tmp_path / "scenario.toml"
    kept.write_text(keep(text, path.parent, tmp_path), encoding="utf-8")
    resolved = [
        subprocess.run([CAREOF, "check", one, "--json"], cwd=os.sep, capture_output=True, text=True, check=True).stdout
        for one in (path, kept)
    ]
    assert resolved[0] == resolved[1]
