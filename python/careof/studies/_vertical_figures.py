"""Figures 7-1 to 7-11 of the thesis, drawn again from our runs: what each shows, as numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from careof.plot.series import Role, Series, Shape
from careof.studies._vertical_rows import line_limit, same_time_s, stable_s, whole_s

if TYPE_CHECKING:
    from collections.abc import Mapping

    from careof.studies._vertical_observed import Crossing, Numbers, Observed

    Runs = Mapping[str, Observed]


@dataclass(frozen=True)
class Mark:
    """A stretch of time for which the thesis gives a number."""

    start_s: float
    end_s: float
    text: str


@dataclass(frozen=True)
class Chart:
    """A figure over time. Series of the RTO belong to the axis on the right."""

    number: str
    title: str
    note: str
    """What the thesis's figure shows."""
    x_title: str
    start_s: float
    end_s: float
    series: list[Series]
    marks: tuple[Mark, ...] = ()
    top: float | None = None
    """The axis of bytes ends here; None is where the data does."""


@dataclass(frozen=True)
class Arrow:
    """A packet between two hosts."""

    sent_s: float
    arrived_s: float
    to_right: bool
    text: str
    old: bool
    """Whether it took the link from before the handover."""


@dataclass(frozen=True)
class Ladder:
    """A figure of packets between two hosts, time running down."""

    number: str
    title: str
    note: str
    left: str
    right: str
    links: tuple[str, str]
    """The link from before the handover and that after it."""
    arrows: list[Arrow]


def figures(runs: Runs) -> list[Chart | Ladder]:
    """All of them, in the thesis's order."""
    return [
        _figure_1(runs["download"]),
        _figure_2(runs["download"]),
        _figure_3(runs["download"]),
        _variant(
            runs["window-4096"], "7-4", "window 4096, MSS 1024", "Mean throughput 790 byte/s, low and stable RTO."
        ),
        _variant(runs["window-2144"], "7-5", "window 2144, MSS 536", "Mean throughput 700 byte/s."),
        _figure_6(runs["upload"]),
        _figure_7(runs["upload"]),
        _figure_8(runs["back"]),
        _figure_9(runs["back"]),
        _figure_10(runs["back"]),
        _figure_11(runs["back"]),
    ]


def _figure_1(run: Observed) -> Chart:
    return Chart(
        "7-1",
        "WaveLAN to GSM, download: segments sent",
        "The handover is at 12 s; the rate falls from WaveLAN's to GSM's.",
        "time (s)",
        0.0,
        run.switch_s + same_time_s(),
        _segments(run, 0.0, 1),
        (Mark(run.switch_s, run.switch_s, "handover; thesis: 12 s"),),
    )


def _figure_2(run: Observed) -> Chart:
    start, end = (at - run.after_s for at in run.silence())
    return Chart(
        "7-2",
        "WaveLAN to GSM, download: after the handover",
        "Eleven segments, three timeouts of the first, the window sent again, then 26 s without a new segment.",
        _SINCE,
        -0.5,
        end + 8,
        [*_exchange(run), _rto(run)],
        (Mark(start, end, f"{end - start:.1f} s; thesis: 26 s"),),
    )


def _figure_3(run: Observed) -> Chart:
    end = same_time_s()
    return Chart(
        "7-3",
        "WaveLAN to GSM, download: the whole transfer after the handover",
        "680 byte/s over the whole time, 900 in its stable part, 960 on the line. RTT up to 11 s, RTO to about 20 s.",
        _SINCE,
        -1.0,
        end,
        [*_exchange(run), _limit(run, end), _rto(run)],
        (
            Mark(0, end, f"{run.rate(*whole_s(run)):.0f} byte/s; thesis: 680"),
            Mark(stable_s(run)[0] - run.after_s, end, f"{run.rate(*stable_s(run)):.0f} byte/s; thesis: 900"),
        ),
    )


def _variant(run: Observed, number: str, what: str, note: str) -> Chart:
    end = same_time_s()
    return Chart(
        number,
        f"WaveLAN to GSM, download, {what}",
        note,
        _SINCE,
        -1.0,
        end,
        [*_exchange(run), _limit(run, end), _rto(run)],
    )


def _figure_6(run: Observed) -> Ladder:
    base = int(run.first.seq[0])
    arrows = [
        *_arrows(run, "gsm.up", base, to_right=True, old=False),
        *_arrows(run, "gsm.down", base, to_right=False, old=False),
        *_arrows(run, "wavelan.up", base, to_right=True, old=True),
        *_arrows(run, "wavelan.down", base, to_right=False, old=True),
    ]
    return Ladder(
        "7-6",
        "WaveLAN to GSM, upload: the first seconds",
        "The first segment is sent again three times before its ACK, the second twice.",
        "mobile node",
        "home agent",
        ("WaveLAN", "GSM"),
        _early(arrows, run.acked_at(int(run.first.end[0])) - run.switch_s),
    )


def _figure_7(run: Observed) -> Chart:
    end = same_time_s()
    return Chart(
        "7-7",
        "WaveLAN to GSM, upload: after the handover",
        "Less than 390 byte/s, but normal throughput with another tool: an artefact, not a target.",
        _SINCE,
        -1.0,
        end,
        [*_exchange(run, older=True), _limit(run, end), _rto(run)],
        (Mark(0, end, f"{run.rate(*whole_s(run)):.0f} byte/s; thesis: less than 390"),),
    )


def _figure_8(run: Observed) -> Chart:
    late = float(run.over(run.old).time[-1])
    return Chart(
        "7-8",
        "GSM to WaveLAN, download: segments sent",
        "The handover is at 70 s, and the rate rises only 15 s later.",
        "time (s)",
        0.0,
        late + 5,
        _segments(run, 0.0, 1),
        (Mark(run.switch_s, late, f"{late - run.switch_s:.1f} s; thesis: 15 s"),),
    )


def _figure_9(run: Observed) -> Ladder:
    over = run.over(run.old)
    late = float(over.time[-1]) - run.switch_s
    base = int(over.seq[over.time > run.switch_s][0])
    arrows = [
        *_arrows(run, "gsm.down", base, to_right=True, old=True),
        *_arrows(run, "gsm.up", base, to_right=False, old=True),
        *_arrows(run, "wavelan.down", base, to_right=True, old=False),
        *_arrows(run, "wavelan.up", base, to_right=False, old=False),
    ]
    return Ladder(
        "7-9",
        "GSM to WaveLAN, download: both links after the handover",
        "Eleven segments still arrive over GSM, for 15 s; what takes WaveLAN meanwhile overtakes them.",
        "home agent",
        "mobile node",
        ("GSM", "WaveLAN"),
        _early(arrows, late + 0.5),
    )


def _figure_10(run: Observed) -> Chart:
    late = float(run.over(run.old).time[-1])
    return Chart(
        "7-10",
        "GSM to WaveLAN, download: the exchange over GSM and the RTO",
        "The RTO rises from 20 s to more than 50 s although the RTT falls.",
        "time (s)",
        0.0,
        late + 2,
        [*_absolute(run), _rto(run, 0.0)],
        (Mark(run.switch_s, late, "both links deliver"),),
        top=1.25 * float(run.sent.seq[run.sent.time <= late].max()),
    )


def _figure_11(run: Observed) -> Chart:
    late = float(run.over(run.old).time[-1])
    return Chart(
        "7-11",
        "GSM to WaveLAN, download: the first seconds over WaveLAN and the RTO",
        "It takes many updates until the RTO is at 200 ms.",
        "time (s)",
        late - 2,
        late + 6,
        [*_absolute(run), _rto(run, 0.0)],
    )


_SINCE = "time since the handover (s)"
_SLACK_S = 0.01


def _segments(run: Observed, since: float, base: int) -> list[Series]:
    sent = run.sent
    return [
        Series(name, role, Shape.POINTS, sent.time[chosen] - since, (sent.seq[chosen] - base).astype(np.float64))
        for name, role, chosen in (("segment", Role.DATA, ~sent.again), ("sent again", Role.RETRANSMISSION, sent.again))
    ]


def _absolute(run: Observed) -> list[Series]:
    """Segments and ACKs at the sender."""
    acks = Series("ACK", Role.ACK, Shape.POINTS, run.acks.time, (run.acks.ack - 1).astype(np.float64))
    return [acks, *_segments(run, 0.0, 1)]


def _exchange(run: Observed, *, older: bool = False) -> list[Series]:
    """Segments and ACKs at the sender after the handover: what GSM carries, and if wanted what is older."""
    base = int(run.first.seq[0])
    acks = Series("ACK", Role.ACK, Shape.POINTS, run.acks.time - run.after_s, (run.acks.ack - base).astype(np.float64))
    return [_from(one, older=older) for one in (acks, *_segments(run, run.after_s, base))]


def _from(series: Series, *, older: bool) -> Series:
    keep = (series.x >= -_SLACK_S) & (older | (series.y >= 0))
    return replace(series, x=series.x[keep], y=series.y[keep])


def _rto(run: Observed, since: float | None = None) -> Series:
    since = run.after_s if since is None else since
    return Series("RTO", Role.RTO, Shape.STEPS, run.rto.time - since, run.rto.value)


def _limit(run: Observed, end: float) -> Series:
    rate = line_limit(run.scenario)
    time: Numbers = np.linspace(0.0, end, 500)
    return Series(f"limit of the line, {rate:.0f} byte/s", Role.WINDOW, Shape.STEPS, time, rate * time)


def _arrows(run: Observed, link: str, base: int, *, to_right: bool, old: bool) -> list[Arrow]:
    """What a one-way link delivered after the handover; segments are counted from that at `base`."""
    return [
        Arrow(one.entered - run.switch_s, one.left - run.switch_s, to_right, _named(one, base, run.mss), old)
        for one in run.crossings(link)
        if one.left >= run.switch_s
    ]


def _named(crossing: Crossing, base: int, mss: int) -> str:
    """Segments and ACKs by number; an ACK has the number of the segment that it asks for."""
    data = crossing.end > crossing.seq
    number = ((crossing.seq if data else crossing.ack) - base) // mss + 1
    return f"{'segment' if data else 'ACK'} {number}" if number > 0 else f"older {'segment' if data else 'ACK'}"


def _early(arrows: list[Arrow], until: float) -> list[Arrow]:
    return sorted((one for one in arrows if one.sent_s <= until), key=lambda one: one.sent_s)
