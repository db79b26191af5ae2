"""Series: one scenario over the phases of its handovers, and two series side by side."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from careof import medians, native, phases, runs
from careof.errors import InputError, NotARunError
from careof.runs import plan
from careof.series_comparison import Agreement, Sizes, compare_series
from careof.worlds import kernel_overrides, timer_hz
from conftest import SMALL

if TYPE_CHECKING:
    from conftest import Command


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> phases.Series:
    here = tmp_path_factory.mktemp("series")
    return phases.carry_out(runs.plan(SMALL, out=here / "a"), 4, jobs=2)


def test_the_interval_of_a_median_is_the_exact_one_of_order_statistics() -> None:
    # Ranks from the tails of the binomial distribution: six samples are the fewest, by their least and greatest.
    for count, rank in [(5, 0), (6, 1), (8, 1), (9, 2), (10, 2), (12, 3), (20, 6), (100, 40)]:
        found = medians.median([float(n) for n in range(1, count + 1)])
        assert found is not None
        assert found.median == (count + 1) / 2
        assert (found.low, found.high) == ((rank, count + 1 - rank) if rank else (None, None)), count


def test_what_never_came_is_later_than_everything() -> None:
    found = medians.median([3.0, None, 1.0, 2.0])
    assert found is not None
    assert (found.median, found.missing) == (2.5, 1)
    late = medians.median([None, None, 1.0])
    assert late is not None
    assert math.isinf(late.median)
    assert late.as_json()["median"] is None
    assert late.for_people("s")[0] == "never"
    assert medians.median([]) is None


def test_handovers_are_spread_over_a_segment_or_a_timeout_of_the_slower_path() -> None:
    def link(name: str, rate_bps: int | None, delay_ns: int) -> dict[str, object]:
        way = {"rate_bps": rate_bps, "delay_ns": delay_ns, "mtu_bytes": 1500}
        return {"name": name, "down": way, "up": way}

    slow, fast, other = link("slow", 12_000, 100_000_000), link("fast", 10**9, 1_000_000), link("other", 1_000, 0)
    scenario = {"links": [slow, fast, other], "handovers": [{"from": "slow", "to": "fast", "at_ns": 5_250_000_000}]}
    assert phases.spread_ns(scenario) == 1_000_000_000
    assert phases.slower_round_trip_ns(scenario) == 1_200_000_000
    scenario["links"] = [link("slow", None, 100_000_000), fast, other]
    assert phases.spread_ns(scenario) == 400_000_000
    assert phases.overrides(scenario, 0) == []
    assert phases.overrides(scenario, 125_000_001) == ["handover.0.at=5.375000001 s"]


def test_a_series_is_a_directory_of_runs_whose_first_is_the_scenario_itself(series: phases.Series) -> None:
    alone = runs.run(SMALL)
    assert series.runs[0].summary["digest"] == alone.summary["digest"]
    assert series.runs[0].summary["overrides"] == []
    times = [run.summary["handovers"][0]["at_s"] for run in series.runs]
    step = series.spread_s / 4
    assert times == pytest.approx([times[0] + n * step for n in range(4)], abs=2e-9)
    assert [run.summary["run"] for run in series.runs] == [0, 1, 2, 3]
    loaded = phases.load_series(series.path)
    assert loaded.as_json() == series.as_json()
    assert json.loads((series.path / phases.INDEX).read_text()) == series.as_json()
    assert phases.is_series(series.path)
    assert not phases.is_series(series.path / "00")


def test_a_series_takes_the_place_of_a_longer_one_and_of_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "a"
    phases.carry_out(runs.plan(SMALL, out=out, trace=False), 3, jobs=2)
    shorter = phases.carry_out(runs.plan(SMALL, out=out, trace=False), 2, jobs=2)
    assert sorted(entry.name for entry in out.iterdir()) == ["00", "01", phases.INDEX]
    assert shorter.segment_sizes == {}
    (out / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match=r"mine\.txt"):
        phases.carry_out(runs.plan(SMALL, out=out), 2)
    with pytest.raises(NotARunError):
        phases.load_series(tmp_path)


def test_a_series_agrees_with_itself_and_not_with_one_of_another_rate(series: phases.Series, tmp_path: Path) -> None:
    same = compare_series(series, series.path)
    assert same.agrees
    assert {one.key for one in same.figures if one.agrees} >= {"goodput_bps", "stall_after_s"}
    assert all(one.distance == 0 for one in same.sizes)
    assert same.sizes
    other = phases.carry_out(runs.plan(SMALL, out=tmp_path / "b", set={"flow.0.tcp.mss": 600}), 2, jobs=2)
    apart = compare_series(series, other)
    assert not apart.agrees
    assert not any(one.agrees for one in apart.sizes)


def test_medians_that_chance_may_have_parted_are_open_and_no_agreement() -> None:
    early, late = 0.33, 0.67
    two_values = [early] * 6 + [late] * 4, [early] * 4 + [late] * 6
    a, b = (medians.median(samples) for samples in two_values)
    one = Agreement("pages", "longest_silence_s", a, b, allowed=0.07)
    assert (one.agrees, one.is_open) == (False, True)
    far = medians.median([late + 0.5] * 10)
    assert not Agreement("pages", "longest_silence_s", a, far, allowed=0.07).is_open
    # Five values bound no median.
    few = medians.median([late] * 5)
    assert Agreement("pages", "longest_silence_s", a, few, allowed=0.07).is_open
    assert Agreement("pages", "longest_silence_s", a, few, allowed=0.07).agrees is False
    assert not Agreement("pages", "longest_silence_s", a, a, allowed=0.07).is_open


def test_sizes_are_alike_where_few_segments_would_have_to_change() -> None:
    a = Counter({1448: 96, 100: 4})
    assert Sizes("f", a, Counter({1448: 192, 52: 8})).distance == pytest.approx(0.04)
    assert Sizes("f", a, Counter({1448: 100})).agrees
    assert not Sizes("f", a, Counter({1428: 100})).agrees


def test_the_command_makes_and_compares_series(
    careof: Command, series: phases.Series, small: Path, tmp_path: Path
) -> None:
    done = careof("run", small, "--repeat", "2", "--jobs", "2", "--out", tmp_path / "s", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["repetitions"] == 2
    done = careof("compare", series.path, tmp_path / "s")
    assert done.returncode == 0, done.stderr
    assert "figures that are judged" in done.stdout
    for words, hint in [
        (("compare", series.path, series.path / "00"), "00"),
        (("compare", series.path), "--worlds"),
        (("compare", series.path, series.path, "--repeat", "2"), "--worlds"),
        (("run", small, "--jobs", "2"), "--repeat"),
    ]:
        done = careof(*words)
        assert done.returncode == 2
        assert hint in done.stderr


@pytest.mark.parametrize("tcp", ['"linux"', '{ congestion = "reno" }'])
def test_simulated_senders_of_linux_are_those_of_the_kernel_they_are_compared_with(tcp: str) -> None:
    job = plan(SMALL.replace("[[flow]]", f"[[flow]]\ntcp = {tcp}"))
    assert list(kernel_overrides(job, "6.18.44", None)) == []
    older = list(kernel_overrides(job, "6.1.0-13-amd64", 250))
    assert older == ['flow.0.tcp.kernel="6.1"', "flow.0.tcp.timer_hz=250"]
    (flow,) = native.check(job.name, job.text, older)["flows"]
    assert (flow["tcp"]["kernel"], flow["tcp"]["timer_hz"]) == ("6.1", 250)
    assert list(kernel_overrides(job, "a kernel of somebody's own", None)) == []
    assert list(kernel_overrides(plan(SMALL, set={"flow.tcp.profile": "sack"}), "6.1.0", 250)) == []


def test_what_a_scenario_says_of_the_kernel_stays() -> None:
    text = SMALL.replace("[[flow]]", '[[flow]]\ntcp = { kernel = "6.18", timer_hz = 1000 }')
    assert list(kernel_overrides(plan(text), "6.1.0", 250)) == []
    said = plan(SMALL, set={"flow.tcp.kernel": '"6.18"'})
    assert list(kernel_overrides(said, "6.1.0", 250)) == ["flow.0.tcp.timer_hz=250"]


def test_a_machine_says_how_often_its_kernel_ticks() -> None:
    hz = timer_hz()
    assert hz is not None
    assert 100 <= hz <= 1000


def test_series_of_a_walk_are_compared_by_all_its_handovers(tmp_path: Path) -> None:
    walk = Path(__file__).resolve().parents[1] / "scenarios" / "micromobility" / "seven-hosts-hawaii-msf.toml"
    of = runs.plan(walk, out=tmp_path / "a", trace=False, set=["duration=14 s"])
    series = phases.carry_out(of, 2, jobs=2)
    # The radio: 6 ms each way, and 1500 bytes at 4 Mbit/s.
    assert phases.slower_round_trip_ns(series.scenario) == 15_000_000
    same = compare_series(series, series.path)
    judged = {one.key: one for one in same.figures if one.where == "all handovers"}
    assert set(judged) == {"interruption_median_s", "stall_after_median_s"}
    assert all(one.agrees for one in judged.values())
