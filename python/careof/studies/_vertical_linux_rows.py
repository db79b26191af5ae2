"""What is read off each run of the study `vertical` on a real kernel, and what the thesis has for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from careof.studies._vertical_rows import EXACT, stable_s, whole_s

if TYPE_CHECKING:
    from collections.abc import Callable

    from careof.studies._vertical_observed import Observed


@dataclass(frozen=True)
class Target:
    """A number of the thesis, and how to read it off a run."""

    id: str
    what: str
    setup: str
    """The runs it is read off."""
    paper: float | int | str
    low: float | None
    high: float | None
    read: Callable[[Observed], float]
    digits: int = 0
    explanation: str = ""
    """Why the kernel cannot be the thesis's stack here."""

    def shown(self, value: float) -> float | int:
        """With the decimals worth showing."""
        return round(value, self.digits) if self.digits else round(value)

    def holds(self, value: float) -> bool:
        """Whether it is in the band."""
        above = self.low is None or value >= self.low * (1 - EXACT)
        return above and (self.high is None or value <= self.high * (1 + EXACT))


def _rto_after(run: Observed) -> float:
    """The highest RTO after the handover, over that before."""
    after = run.rto.between(run.switch_s, float("inf")).value
    return float(after.max()) / run.rto.at(run.switch_s)


def _gap(run: Observed) -> float:
    begin, end = run.gap()
    return end - begin


def _again(run: Observed) -> float:
    return len(run.repeated(run.after_s, whole_s(run)[1]).time)


def _last_round(run: Observed) -> float:
    """The round trip of the last segment in the thesis's time that was sent once."""
    end = whole_s(run)[1]
    return next(one.duration for one in reversed(run.rounds) if one.sent + one.duration <= end)


def _late(run: Observed) -> tuple[int, float]:
    """How many segments still come over the old link, and for how long."""
    late = run.over(run.old)
    late = late.pick(late.time > run.switch_s)
    return len(np.unique(late.seq)), float(late.time[-1]) - run.switch_s


def _share_ahead(run: Observed) -> float:
    came, ahead = run.overtaken()
    return ahead / came


TARGETS = (
    Target(
        "V2", "segments in flight at the handover", "download", 11, 10, 12, lambda run: run.outstanding(run.switch_s)
    ),
    Target("V3", "RTO at the handover (s)", "download", 0.2, 0.2, 0.3, lambda run: run.rto.at(run.switch_s), 3),
    Target(
        "V4",
        "timeouts of the first segment over GSM before its ACK",
        "download",
        3,
        3,
        3,
        lambda run: run.timeouts_of_first(),
    ),
    Target("V5", "segments sent again in the thesis's time", "download", 18, 10, 25, _again),
    Target("V5", "packets of the flow lost", "download", 0, 0, 0, lambda run: run.drops),
    Target("V6", "gap with no new data (s)", "download", 26, 18, 32, _gap, 1),
    Target(
        "V7", "throughput after the handover (byte/s)", "download", 680, 612, 748, lambda run: run.rate(*whole_s(run))
    ),
    Target("V7", "its stable part (byte/s)", "download", 900, 810, 990, lambda run: run.rate(*stable_s(run))),
    Target("V8", "RTT at the end of the transfer (s)", "download", 11, 5.5, 22, _last_round, 1),
    Target(
        "V8", "RTO at the end of the transfer (s)", "download", 20, 10, 40, lambda run: run.rto.at(whole_s(run)[1]), 1
    ),
    Target("V11", "GSM to WaveLAN: segments that still arrive over GSM", "back", 11, 10, 11, lambda run: _late(run)[0]),
    Target("V11", "for how long (s)", "back", 15, 13, 18, lambda run: _late(run)[1], 1),
    Target(
        "V12", "share of segments over WaveLAN that overtakes older data meanwhile", "back", 1, 1, 1, _share_ahead, 2
    ),
    Target(
        "V12",
        "segments sent again meanwhile though nothing was lost",
        "back",
        "none",
        0,
        0,
        lambda run: len(run.repeated(run.switch_s).time),
    ),
    Target("V13", "RTO before (s)", "back", 20, 10, 40, lambda run: run.rto.at(run.switch_s), 1),
    Target("V13", "highest RTO after the handover, over that before", "back", 2.5, 1.5, None, _rto_after, 2),
    Target("V13", "RTO in the end (s)", "back", 0.2, 0.2, 0.3, lambda run: float(run.rto.value[-1]), 3),
)
