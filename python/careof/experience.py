"""What people heard and saw: the measurements of voice flows and of films in words and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from careof import text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from careof.native import Json

MOST_TOLD = 3
"""Flows that have a sentence each; of more, one speaks of the worst."""

MOST_HISTOGRAMS = 20
"""More than this have no table on a terminal."""

_SATISFIED = ((90, "very good"), (80, "good"), (70, "fair"), (60, "poor"), (50, "bad"))
"""The least R of each category of users, and a word for it (ITU-T G.107, Table B.1)."""

_VOICE_COLUMNS = (
    ("missing_part", "missing"),
    ("longest_gap_s", "longest gap"),
    ("delay_mean_s", "delay"),
    ("jitter_max_s", "jitter, most"),
    ("mouth_to_ear_s", "mouth to ear"),
    ("bursts", "bursts"),
    ("rating", "R"),
    ("mos", "MOS"),
)
_VIDEO_COLUMNS = (
    ("startup_delay_s", "began after"),
    ("rebufferings", "stood still"),
    ("rebuffering_s", "for"),
    ("played_s", "played"),
    ("mean_rate_bps", "mean rate"),
    ("lowest_rate_bps", "lowest"),
    ("highest_rate_bps", "highest"),
    ("switches", "switches"),
)
_QUANTILES = ("samples", "min_s", "p50_s", "p90_s", "p99_s", "p999_s", "max_s")


def of_voice(summary: Json) -> list[str]:
    """What was heard of voice flows: a sentence for each of a few, of many the worst."""
    calls = list(summary.get("voice", []))
    if len(calls) <= MOST_TOLD:
        return [_heard(call, summary) for call in calls]
    worst = max(calls, key=lambda call: (call["missing_part"] or 0.0, call["longest_gap_s"] or 0.0))
    return [f"Of {len(calls)} voice flows the worst: {_heard(worst, summary)}"]


def _heard(call: Json, summary: Json) -> str:
    name = call["flow"]
    if not call["packets_due"]:
        return f"Nothing of {name} was to be heard yet."
    if call["mos"] is None:
        judged = ""
    else:
        word = next((word for least, word in _SATISFIED if call["rating"] >= least), "worse than bad")
        judged = f", which is {word} (MOS {call['mos']:.1f})"
    if call["mouth_to_ear_s"] is None:
        return f"Nothing of {name} was heard{judged}."
    delay = text.seconds(call["mouth_to_ear_s"])
    if not call["missing_part"]:
        return f"{name} was heard whole, {delay} from mouth to ear{judged}."
    gap = f"at most {text.seconds(call['longest_gap_s'])} in a row, at {text.seconds(call['longest_gap_at_s'])}"
    missing = f"{call['missing_part'] * 100:.2g} % of it missing"
    return f"{name} was heard with {missing}, {gap}{_whence(call, summary)}{judged}."


def _whence(call: Json, summary: Json) -> str:
    """Behind which handover the longest gap began, of those that the call crosses."""
    began = call["longest_gap_at_s"]
    before = [one for one in call["handovers"] if one["at_s"] <= began]
    if not before:
        of_run = [one["at_s"] for one in (*summary["handovers"], *call["handovers"])]
        return ", before any handover" if of_run and began < min(of_run) else ""
    at = before[-1]
    lost = "1 packet was" if at["packets_missing"] == 1 else f"{at['packets_missing']} packets were"
    return f", after the handover at {text.seconds(at['at_s'])}, from which on {lost} missing"


def of_video(summary: Json) -> list[str]:
    """What was seen of films: a sentence for each of a few, of many the worst."""
    films = list(summary.get("video", []))
    if len(films) <= MOST_TOLD:
        return [_seen(film, summary) for film in films]
    worst = max(films, key=lambda film: (film["startup_delay_s"] is None, film["rebuffering_s"]))
    return [f"Of {len(films)} films the worst: {_seen(worst, summary)}"]


def _seen(film: Json, summary: Json) -> str:
    name = film["flow"]
    if film["startup_delay_s"] is None:
        return f"{name} never began."
    rate = text.rate(film["mean_rate_bps"])
    count = int(film["switches"])
    changes = {0: "without a change of rate", 1: "with one change of rate"}.get(count, f"with {count} changes of rate")
    how = f"at {rate} in the mean, {changes}"
    began = f"{name} began after {text.seconds(film['startup_delay_s'])} and played {text.seconds(film['played_s'])}"
    if not film["rebufferings"]:
        return f"{began} without standing still, {how}."
    longest = max(film["rebuffers"], key=lambda one: float(one["length_s"]))
    times = {1: "once", 2: "twice"}.get(film["rebufferings"], f"{film['rebufferings']} times")
    worst = f"{text.seconds(longest['length_s'])} at most, from {text.seconds(longest['begin_s'])} on"
    before = [one["at_s"] for one in summary["handovers"] if one["at_s"] <= longest["begin_s"]]
    whence = f", behind the handover at {text.seconds(before[-1])}" if before else ""
    return f"{began}, {how}; its picture stood still {times} ({worst}{whence})."


def video_table(films: Sequence[Json]) -> str:
    """A row a film."""
    rows = [[str(film["flow"]), *(_value(key, film[key]) for key, _ in _VIDEO_COLUMNS)] for film in films]
    return text.table(["video", *(title for _, title in _VIDEO_COLUMNS)], rows)


def tables(summary: Json) -> list[str]:
    """What there is of voice and films, and the histograms of voice, a table each; of many histograms none."""
    found = []
    if summary.get("voice"):
        found.append(voice_table(summary["voice"]))
    if summary.get("video"):
        found.append(video_table(summary["video"]))
    calls = {call["flow"] for call in summary.get("voice", [])}
    histograms = [one for one in summary.get("histograms", []) if one["flow"] in calls]
    if 0 < len(histograms) <= MOST_HISTOGRAMS:
        found.append(histogram_table(histograms))
    return found


def voice_table(calls: Sequence[Json]) -> str:
    """A row a voice flow."""
    rows = [[str(call["flow"]), *(_value(key, call[key]) for key, _ in _VOICE_COLUMNS)] for call in calls]
    return text.table(["voice", *(title for _, title in _VOICE_COLUMNS)], rows)


def histogram_table(histograms: Sequence[Json]) -> str:
    """A row a histogram: its quantiles."""
    heads = ["", "of", "samples", "least", "median", "90 %", "99 %", "99.9 %", "most"]
    return text.table(heads, histogram_rows(histograms), left=2)


def histogram_rows(histograms: Sequence[Json]) -> list[list[str]]:
    """A row a histogram: what it is of, and its quantiles."""
    return [
        [str(one["quantity"]), str(one["flow"]), *(_value(key, one[key]) for key in _QUANTILES)] for one in histograms
    ]


def _value(key: str, number: Any) -> str:
    if number is None:
        return "-"
    if key == "missing_part":
        return f"{number * 100:.2g} %"
    if key in ("rating", "mos"):
        return f"{number:.2f}" if key == "mos" else f"{number:.0f}"
    if key.endswith("_bps"):
        return text.rate(number)
    return text.seconds(number) if key.endswith("_s") else f"{number:,}"
