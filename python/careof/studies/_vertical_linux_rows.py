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

    def holds(self, value: float) -> bool | None:
        """Whether it is in the band; None where the number is reported and no criterion."""
        if self.low is None and self.high is None:
            return None
        above = self.low is None or value >= self.low * (1 - EXACT)
        return above and (self.high is None or value <= self.high * (1 + EXACT))


def _rto_after(run: Observed) -> float:
    """The highest RTO after the handover, over that before."""
    after = run.rto.between(run.switch_s, float("inf")).value
    return float(after.max()) / run.rto.at(run.switch_s)


def _gap(run: Observed) -> float:
    begin, end = run.gap()
    return end - begin


def _silence(run: Observed) -> float:
    begin, end = run.silence()
    return end - begin


def _again(run: Observed) -> float:
    """Until the first new segment after the window."""
    return len(run.repeated(run.after_s, run.silence()[0]).time)


def _again_later(run: Observed) -> float:
    return len(run.repeated(run.silence()[0], whole_s(run)[1]).time)


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


def _until_more(run: Observed) -> float:
    """From the handover until the window that was under way is a small part of what has been acknowledged since."""
    goal = run.acked.at(run.switch_s) + _MORE
    return run.acked_at(int(goal) + 1) - run.switch_s


_MORE = 100_000

_DOWN, _BACK = "download", "back"

TARGETS = (
    Target("V2", "segments in flight at the handover", _DOWN, 11, 10, 12, lambda run: run.outstanding(run.switch_s)),
    Target(
        "V3", "RTO at the handover (s)", _DOWN, 0.2, 0.2, 0.3, lambda run: run.rto.at(run.switch_s), 3,
        "Today's RTO is the smoothed RTT and at least 200 ms more, that of Linux 2.0 at least 200 ms in all.",
    ),
    Target(
        "V4", "timeouts of the first segment over GSM before its ACK", _DOWN, 3, 3, 3,
        lambda run: run.timeouts_of_first(), 0,
        "Nothing has changed: no sender can know that the path has become slower before an ACK comes over it.",
    ),
    Target(
        "V5", "segments sent again before the first new one", _DOWN, 15, 10, 20, _again, 0,
        "The legacy kernel sends the whole window again, go-back-N, as ACKs of the originals come in. Today's learns "
        "from the first of these, by its timestamp or by F-RTO, that nothing was lost, takes its timeouts back and "
        "goes on with new data.",
    ),
    Target(
        "V5", "and later, in the thesis's time", _DOWN, 3, None, None, _again_later, 0,
        "While the copies of the window drain, only duplicate ACKs come. Linux 2.0 has backed off far by then, because "
        "segments that it has just sent again time out at once; the legacy kernel has not, times out once more and "
        "sends the window again a second time, and a third.",
    ),
    Target("V5", "packets of the flow lost after the handover", _DOWN, 0, 0, 0, lambda run: run.lost(run.switch_s)),
    Target("V6", "a new segment waits for its ACK (s)", _DOWN, 26, 18, 32, _silence, 1),
    Target("V6", "no new data at the receiver (s)", _DOWN, 26, 18, 32, _gap, 1),
    Target(
        "V7", "throughput after the handover (byte/s)", _DOWN, 680, 612, 748, lambda run: run.rate(*whole_s(run)), 0,
        "Each window that is sent again takes the line for 17 s, and the legacy kernel does so more than once.",
    ),
    Target("V7", "its stable part (byte/s)", _DOWN, 900, 810, 990, lambda run: run.rate(*stable_s(run))),
    Target("V8", "RTT at the end of the transfer (s)", _DOWN, 11, 5.5, 22, _last_round, 1),
    Target(
        "V8", "RTO at the end of the transfer (s)", _DOWN, 20, 10, 40, lambda run: run.rto.at(whole_s(run)[1]), 1,
        "Today's estimator keeps the largest deviation of a round trip and lowers it only once a round trip, which "
        "takes long where each is ten seconds and longer than the one before.",
    ),
    Target(
        "V11", "GSM to WaveLAN: segments that still arrive over GSM", _BACK, 11, 10, 11, lambda run: _late(run)[0]
    ),
    Target("V11", "for how long (s)", _BACK, 15, 13, 18, lambda run: _late(run)[1], 1),
    Target(
        "V11", f"until {_MORE // 1000} kB more are acknowledged (s)", _BACK, 15, 13, 18, _until_more, 1,
        "With SACK the sender hears of every segment that overtakes. After a few it takes what waits for GSM for lost "
        "and sends it over WaveLAN: wrongly, and to its benefit.",
    ),
    Target("V12", "share of segments that overtakes while GSM delivers", _BACK, 1, 1, 1, _share_ahead, 2),
    Target(
        "V12", "segments sent again though nothing was lost", _BACK, 0, 0, 0,
        lambda run: len(run.repeated(run.switch_s).time),
    ),
    Target("V13", "RTO before (s)", _BACK, 20, None, None, lambda run: run.rto.at(run.switch_s), 1),
    Target(
        "V13", "highest RTO after the handover, over that before", _BACK, 2.5, 1.5, None, _rto_after, 2,
        "Today a sample that is far below the mean no longer counts as deviation in full, so the RTO does not rise "
        "when the path becomes faster. No switch brings the old rule back.",
    ),
    Target("V13", "RTO in the end (s)", _BACK, 0.2, 0.2, 0.3, lambda run: float(run.rto.value[-1]), 3),
)  # fmt: skip
