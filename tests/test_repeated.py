"""Tables that stand for several handovers or flows, from the file to the numbers."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

import careof as library
from careof import native, phases
from linux_hosts import need_linux_hosts

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Command

SCENARIO = """\
title = "Back and forth"
duration = "{duration} s"

[links]
wifi = {{ rate = "4 Mbit/s", delay = "5 ms" }}
lte = {{ rate = "2 Mbit/s", delay = "20 ms" }}

[mobility]

[[handover]]
{when}
from = "wifi"
to = "lte"
style = "break-before-make"
interruption = "50 ms"

[[flow]]
name = "download"
count = 3
from = "correspondent"
to = "mobile"
"""
POISSON = 'every = "{mean} s"\nspacing = "poisson"\nleast_spacing = "{least} s"'


@pytest.fixture
def drawn(tmp_path: Path) -> Path:
    file = tmp_path / "drawn.toml"
    file.write_text(SCENARIO.format(duration=60, when=POISSON.format(mean=8, least=2)), encoding="utf-8")
    return file


def instants(run: library.Run) -> list[float]:
    return [round(one["at_s"], 6) for one in run.summary["handovers"]]


def test_check_prints_the_instants_of_a_first_run_and_each_run_tells_its_own(careof: Command, drawn: Path) -> None:
    run = library.run(drawn, trace=False)
    overview = native.overview(str(drawn), drawn.read_text(encoding="utf-8"))
    planned = [round(one["at_ns"] / 1e9, 6) for one in overview["drawn_handovers"]]
    assert instants(run) == planned
    assert [round(one["at_ns"] / 1e9, 6) for one in run.scenario["handovers"]] == planned
    assert all(late - early > 2 for early, late in pairwise(planned))
    links = [(one["from"], one["to"]) for one in run.summary["handovers"]]
    assert links == [("wifi", "lte"), ("lte", "wifi")] * (len(links) // 2) + [("wifi", "lte")] * (len(links) % 2)
    other = library.run(drawn, trace=False, repetition=1)
    assert instants(other) != planned
    assert instants(library.run(drawn, trace=False, repetition=1)) == instants(other)
    done = careof("check", drawn)
    assert done.returncode == 0, done.stderr
    assert "handovers drawn 8 s apart in the mean" in done.stdout
    assert "handovers wifi → lte → wifi are drawn in each run, 8 s apart in the mean and 2 s at least" in done.stdout
    assert all(f"{at:.3g}" in done.stdout for at in planned[:3])


def test_both_worlds_draw_the_same_instants(tmp_path: Path) -> None:
    need_linux_hosts()
    file = tmp_path / "short.toml"
    file.write_text(SCENARIO.format(duration=4, when=POISSON.format(mean=1, least=0.5)), encoding="utf-8")
    runs = [library.run(file, trace=False, world=world) for world in native.WORLDS]
    first, second = ([one["at_ns"] for one in run.scenario["handovers"]] for run in runs)
    assert first == second
    assert len(first) > 1
    assert len(runs[1].summary["handovers"]) == len(first)


def test_parallel_flows_have_numbers_and_books_of_their_own(careof: Command, tmp_path: Path) -> None:
    file = tmp_path / "every.toml"
    file.write_text(SCENARIO.format(duration=60, when='every = "20 s"'), encoding="utf-8")
    run = library.run(file, trace=False)
    assert [flow["name"] for flow in run.summary["flows"]] == ["download-1", "download-2", "download-3"]
    assert all(flow["bytes_delivered"] > 0 for flow in run.summary["flows"])
    assert instants(run) == [20, 40]
    assert [len(one["flows"]) for one in run.summary["handovers"]] == [3, 3]
    done = careof("check", file)
    assert "download-1 and 2 more" in done.stdout
    table = tmp_path / "t.parquet"
    swept = careof("sweep", file, "--vary", "assist=[],default", "--set", "duration=25 s", "--out", table, "--json")
    assert swept.returncode == 0, swept.stderr
    assert json.loads(swept.stdout)["runs"] == 2


@pytest.mark.parametrize(
    ("when", "shifted"),
    [
        ('every = "10 s"', ["handover.0.at=10.000000005 s"]),
        ('at = ["10 s", "15 s"]', ['handover.0.at=["10.000000005 s", "15.000000005 s"]']),
        ('at = "10 s"', ["handover.0.at=10.000000005 s"]),
        (POISSON.format(mean=8, least=2), []),
    ],
)
def test_a_series_puts_off_all_handovers_of_a_table(when: str, shifted: list[str]) -> None:
    text = SCENARIO.format(duration=30, when=when)
    scenario = native.check("x.toml", text)
    assert phases.overrides(scenario, 5) == shifted
    later = native.check("x.toml", text, shifted)
    assert [one["at_ns"] for one in later["handovers"]] == [one["at_ns"] + 5 for one in scenario["handovers"]]
