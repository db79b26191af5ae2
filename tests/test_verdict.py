"""The sentences that a run begins with."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import careof
from careof.verdict import verdict

if TYPE_CHECKING:
    from careof.runs import Run

SCENARIOS = Path(__file__).parent.parent / "scenarios"


def said(run: Run) -> list[str]:
    return verdict(run.summary, run.scenario)


def silence(run: Run) -> float:
    return max(float(one["longest_silence_s"]) for one in run.summary["handovers"])


def of(name: str, **overrides: str) -> Run:
    return careof.run(SCENARIOS / f"{name}.toml", set=overrides, trace=False)


@pytest.mark.parametrize("name", ["wavelan-to-gsm", "foreign-agents", "ipv6/outage"])
def test_what_is_said_to_help_makes_the_longest_silence_shorter(name: str) -> None:
    run = of(name)
    tip = said(run)[-1]
    assert tip.startswith("To try: --set "), said(run)
    words = shlex.split(tip.removeprefix("To try: ").replace(",", " ").replace(";", " "))
    given = [words[at + 1].rstrip(".") for at, word in enumerate(words) if word == "--set"]
    better = of(name, **dict(one.split("=", 1) for one in given))
    assert silence(better) < silence(run), f"{given}: {silence(better)} after {silence(run)}"


def test_the_silence_is_divided_into_the_time_without_a_path_and_the_rest() -> None:
    run = of("ipv6/outage")
    handover = run.summary["handovers"][0]
    first = said(run)[0]
    parts = re.search(r"for ([\d.]+) s at most: for ([\d.]+) s no path was ready, then ([\d.]+) s passed", first)
    assert parts is not None, first
    whole, without, rest = map(float, parts.groups())
    assert whole == pytest.approx(handover["longest_silence_s"], rel=0.01)
    assert without == pytest.approx(handover["interruption_s"], rel=0.02)
    assert without + rest == pytest.approx(whole, rel=0.01)


def test_stalls_are_counted_and_added_up() -> None:
    run = of("wavelan-to-gsm")
    stalled = sum(float(one["length_s"]) for one in run.summary["stalls"])
    counted = next(one for one in said(run) if one.startswith("In all"))
    times, together = re.fullmatch(
        r"In all, download stalled (\w+) for .* or more, ([\d.]+) s together\.", counted
    ).groups()  # type: ignore[union-attr]
    assert {"once": 1, "twice": 2}[times] == len(run.summary["stalls"])
    assert float(together) == pytest.approx(stalled, rel=0.01)


def test_many_handovers_are_told_of_by_their_median_and_the_worst() -> None:
    run = of("two-home-agents")
    assert len(run.summary["handovers"]) > 3
    first, second, *_ = said(run)
    assert first.startswith("In 6 handovers the longest silence was ")
    assert second.startswith("The worst: ")


def test_a_run_without_handovers_says_its_longest_silence() -> None:
    run = of("bench/dumbbell1", duration="5 s")
    assert re.fullmatch(r"The longest silence was [\d.]+ m?s \(bulk\)\.", said(run)[0])


def test_a_handover_in_which_nobody_waits_is_said_to_have_cost_nothing() -> None:
    run = of("wavelan-to-gsm", **{"flow.0.stop": "5 s"})
    assert said(run)[0] == "No flow waited for data at a handover or after it."
