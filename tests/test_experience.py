"""What people heard and saw, in sentences and tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import careof
from careof.experience import histogram_table, of_video, of_voice, video_table, voice_table
from careof.report.histogram import histogram
from careof.verdict import verdict

if TYPE_CHECKING:
    from careof.runs import Run

WORKLOADS = Path(__file__).parent.parent / "scenarios/workloads.toml"


@pytest.fixture(scope="module")
def run() -> Run:
    return careof.run(WORKLOADS, trace=False)


def test_the_verdict_says_what_each_listener_heard_and_the_viewer_saw(run: Run) -> None:
    sentences = " ".join(verdict(run.summary, run.scenario))
    for name in ("heard", "said", "film"):
        assert re.search(rf"\b{name} (was heard|began after)", sentences), sentences
    assert re.search(r"\(MOS \d\.\d\)", sentences), sentences


def test_the_gap_of_the_sentence_is_that_of_the_summary(run: Run) -> None:
    call = run.summary["voice"][0]
    assert call["longest_gap_s"] == max(one["longest_gap_s"] for one in call["handovers"])
    assert "after the handover at 20 s, from which on" in of_voice(run.summary)[0]
    assert call["packets_lost"] + call["packets_late"] == sum(one["packets_missing"] for one in call["handovers"])


def test_tables_have_a_row_for_each_call_film_and_histogram(run: Run) -> None:
    summary = run.summary
    assert [len(run.voice), len(run.video), len(run.histograms)] == [2, 1, 10]
    for words, rows in (
        (voice_table(summary["voice"]), 2),
        (video_table(summary["video"]), 1),
        (histogram_table(summary["histograms"]), 10),
    ):
        assert len(words.splitlines()) >= rows + 1, words


def test_a_histogram_is_drawn_with_all_its_samples(run: Run) -> None:
    for one in run.summary["histograms"]:
        drawn = histogram(one)
        zeros = sum(bucket["samples"] for bucket in one["buckets"] if bucket["from_s"] == 0)
        counted = [int(found.replace(",", "")) for found in re.findall(r"<title>([\d,]+) from", drawn)]
        assert sum(counted) + zeros == one["samples"] == sum(bucket["samples"] for bucket in one["buckets"])


def _call(**other: Any) -> dict[str, Any]:
    call = {
        "flow": "x",
        "packets_due": 100,
        "missing_part": 0.0,
        "longest_gap_s": None,
        "longest_gap_at_s": None,
        "mouth_to_ear_s": 0.1,
        "rating": 92.0,
        "mos": 4.4,
        "handovers": [],
    }
    return {"voice": [call | other], "handovers": []}


def test_calls_of_which_little_or_all_is_heard_are_told_apart() -> None:
    assert of_voice(_call()) == ["x was heard whole, 100 ms from mouth to ear, which is very good (MOS 4.4)."]
    silent = _call(mouth_to_ear_s=None, missing_part=1.0, rating=0.0, mos=1.0)
    assert of_voice(silent) == ["Nothing of x was heard, which is worse than bad (MOS 1.0)."]
    assert of_voice(_call(packets_due=0)) == ["Nothing of x was to be heard yet."]
    holes = _call(missing_part=0.05, longest_gap_s=0.4, longest_gap_at_s=3.0, rating=None, mos=None)
    assert of_voice(holes) == ["x was heard with 5 % of it missing, at most 400 ms in a row, at 3 s."]


def test_a_call_of_which_only_the_beginning_is_missing_was_not_heard_whole() -> None:
    late = _call(missing_part=0.2, longest_gap_s=2.0, longest_gap_at_s=0.07, rating=None, mos=None)
    assert of_voice(late) == ["x was heard with 20 % of it missing, at most 2 s in a row, at 70 ms."]


def test_a_gap_is_told_by_the_handover_before_it() -> None:
    def told(began: float, handovers: list[float], of_call: list[float]) -> str:
        crossed = [{"at_s": at, "packets_missing": 7, "longest_gap_s": 0.1} for at in of_call]
        call = _call(missing_part=0.05, longest_gap_s=0.4, longest_gap_at_s=began, handovers=crossed)
        return of_voice(call | {"handovers": [{"at_s": at} for at in handovers]})[0]

    behind = "after the handover at 20 s, from which on 7 packets were missing"
    assert behind in told(20.1, [10.0, 20.0, 40.0], [10.0, 20.0, 40.0])
    # It was longer than what each handover cost, because it began before the last one and ended behind it.
    assert behind in told(39.9, [20.0, 40.0], [20.0, 40.0])
    assert ", before any handover, which" in told(9.0, [10.0], [10.0])
    assert "handover" not in told(50.0, [20.0], []), "between two hosts that do not move"
    assert ", before any handover, which" in told(9.0, [], [10.0]), "of many mobile nodes none is listed"


def test_a_film_that_never_began_says_so() -> None:
    assert of_video({"video": [{"flow": "film", "startup_delay_s": None}], "handovers": []}) == ["film never began."]
