"""The rows of the study `vertical`: what the thesis measured, what we measured, and when the two agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from careof.studies._vertical_runs import link

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from careof.native import Json
    from careof.studies._vertical_observed import Observed

    Runs = Mapping[str, Observed]

EXACT = 1e-9
"""Relative; for what follows from arithmetic or from the protocol."""

AXIS_END_S = 116.0
"""On the time axis of Figures 7-2 and 7-3 the transfer ends here."""
AXIS_STABLE_S = 58.0
"""And from here on its mean is called the stable one."""
AXIS_HANDOVER_S = 6.0
"""Where the handover is on that axis: what it makes the sender send again is sent "in the interval 6-22 seconds"."""
AXIS_HANDOVER_OTHER_S = 12.0
"""Where it is on the axis of Figure 7-1."""


@dataclass(frozen=True)
class Part:
    """One number of the thesis beside ours."""

    what: str
    paper: float | int | str
    ours: float | int
    low: float | None = None
    high: float | None = None
    digits: int | None = None
    """Decimals worth showing; None for a whole number."""

    @property
    def shown(self) -> float | int:
        """Ours with the decimals worth showing."""
        return round(self.ours) if not self.digits else round(float(self.ours), self.digits)

    @property
    def match(self) -> bool | None:
        """Whether ours is in the band; None where the number is reported and no criterion."""
        if self.low is None and self.high is None:
            return None
        above = self.low is None or self.ours >= self.low - EXACT * abs(self.low)
        return above and (self.high is None or self.ours <= self.high + EXACT * abs(self.high))


@dataclass(frozen=True)
class Finding:
    """A row: its number and what comes with it."""

    id: str
    what: str
    parts: tuple[Part, ...]
    """The first is the row's own."""
    explanation: str = ""

    @property
    def match(self) -> bool:
        """Whether every part that is a criterion is in its band."""
        return all(part.match is not False for part in self.parts)


def findings(runs: Runs) -> list[Finding]:
    """All rows."""
    return [row(runs) for row in _ROWS]


def same_time_s(handover_on_axis_s: float = AXIS_HANDOVER_S) -> float:
    """How long the thesis's transfer went on after the handover."""
    return AXIS_END_S - handover_on_axis_s


def whole_s(run: Observed, handover_on_axis_s: float = AXIS_HANDOVER_S) -> tuple[float, float]:
    """The thesis's whole time after the handover, in a run of ours."""
    return run.after_s, run.after_s + same_time_s(handover_on_axis_s)


def stable_s(run: Observed, handover_on_axis_s: float = AXIS_HANDOVER_S) -> tuple[float, float]:
    """The thesis's stable part of it."""
    begin, end = whole_s(run, handover_on_axis_s)
    return begin + AXIS_STABLE_S - handover_on_axis_s, end


def same_bytes(base: Observed) -> float:
    """What the first run carries over GSM in the thesis's time: the other runs are timed over as much."""
    return base.carried(whole_s(base)[1])


def throughput(run: Observed, count: float) -> float:
    """Bytes a second over the first `count` bytes after the handover."""
    return count / run.time_for(count)


def capacity(scenario: Json, names: tuple[str, ...]) -> float:
    """Bits that fit into a path of links: rate of the first by the round trip over all."""
    links = [link(scenario, name) for name in names]
    round_trip_ns = sum(float(one["down"]["delay_ns"] + one["up"]["delay_ns"]) for one in links)
    return float(links[0]["down"]["rate_bps"]) * round_trip_ns / 1e9


def line_limit(scenario: Json) -> float:
    """Bytes a second that GSM carries, framing included."""
    down = link(scenario, "gsm")["down"]
    return float(down["rate_bps"]) / float(down["framing"]["bits_per_byte"])


def _exact(what: str, paper: float, ours: float, digits: int | None = None) -> Part:
    return Part(what, paper, ours, paper, paper, digits)


def _within(what: str, paper: float, ours: float, share: float, digits: int | None = None) -> Part:
    return Part(what, paper, ours, round(paper * (1 - share), 6), round(paper * (1 + share), 6), digits)


def _twofold(what: str, paper: float, ours: float) -> Part:
    return Part(what, paper, ours, paper / 2, paper * 2, 1)


def _v1(runs: Runs) -> Finding:
    scenario = runs["download"].scenario
    parts = (
        _exact("WaveLAN and Ethernet", 7000, capacity(scenario, ("wavelan", "ethernet")), 0),
        _exact("GSM and Ethernet", 6720, capacity(scenario, ("gsm", "ethernet")), 0),
        _exact("Ethernet", 5000, capacity(scenario, ("ethernet",)), 0),
    )
    return Finding("V1", "capacity of the path, rate by round trip (bit)", parts)


def _v2(runs: Runs) -> Finding:
    base, whole = runs["download"], runs["download-1460"]
    first_timeout = _first_timeout(base)
    parts = (
        _exact("MSS 1420, as in the thesis's trace", 11, base.outstanding(base.switch_s)),
        _exact("MSS 1460", 11, whole.outstanding(whole.switch_s)),
        _exact("of these, sent over GSM before its first timeout", 11, _sent_before(base, first_timeout)),
    )
    words = (
        f"{_WINDOW:,} bytes hold eleven whole segments of either size. The thesis's download shows segments of "
        "1420 bytes (974121 to 975540), its upload 1460, and so do our runs. With 1460 the tunnel makes packets "
        "of 1520 bytes, which the home agent fragments in the run that serves this row alone."
    )
    return Finding("V2", "WaveLAN to GSM: segments in flight at the handover", parts, words)


def _v3(runs: Runs) -> Finding:
    base = runs["download"]
    return Finding("V3", "RTO at the handover (s)", (_exact("RTO", 0.2, base.rto.at(base.switch_s), 2),))


def _v4(runs: Runs) -> Finding:
    base = runs["download"]
    answered = base.acked_at(int(base.first.end[0])) - base.after_s
    words = (
        "With an RTO of 200 ms, doubled each time, they come 0.2, 0.6 and 1.4 s after the segment; the fourth "
        f"would come at 3.0 s, and the ACK is there after {answered:.2f} s."
    )
    part = _exact("timeouts", 3, base.timeouts_of_first())
    return Finding("V4", "timeouts of the first segment over GSM before its ACK", (part,), words)


def _v5(runs: Runs) -> Finding:
    base = runs["download"]
    sent, answered = base.silence()
    end = whole_s(base)[1]
    parts = (
        Part("before the gap", 15, len(base.repeated(base.after_s, sent).time), 10, 20),
        Part("from then on", 3, len(base.repeated(sent, end).time)),
        Part("duplicate ACKs during the gap", 15, base.duplicates(sent, answered), 10, 20),
        Part("duplicate ACKs from then on", 3, base.duplicates(answered, end)),
        _exact("packets of the flow lost", 0, base.drops),
    )
    words = (
        "Each of the eleven segments is sent again: the first by its three timeouts, the others as ACKs of "
        "originals come in, and some of these a second time because Linux 2.0 lets a segment that an ACK finds "
        "overdue time out two ticks later although it has just been sent. How many of those there are, and what "
        "the back-off has grown to when the gap begins, hangs on milliseconds; see below for other instants of "
        "the handover."
    )
    return Finding("V5", "segments sent again though nothing was lost", parts, words)


def _v6(runs: Runs) -> Finding:
    base = runs["download"]
    gap, silence = base.gap(), base.silence()
    parts = (
        Part("no new data at the receiver", 26, gap[1] - gap[0], 18, 32, 1),
        Part("a new segment waits for its ACK", 26, silence[1] - silence[0], 18, 32, 1),
    )
    return Finding("V6", "gap with no new data (s)", parts)


def _v7(runs: Runs) -> Finding:
    base, other = runs["download"], AXIS_HANDOVER_OTHER_S
    parts = (
        _within("whole time after the handover", 680, base.rate(*whole_s(base)), 0.1, 0),
        _within("stable part", 900, base.rate(*stable_s(base)), 0.1, 0),
        _exact("limit of the line", 960, line_limit(base.scenario), 0),
        Part("whole time, were the handover at 12 s of that axis", 680, base.rate(*whole_s(base, other)), digits=0),
        Part("stable part, were the handover at 12 s of that axis", 900, base.rate(*stable_s(base, other)), digits=0),
    )
    crossed = 11 * _line_time(base.scenario, 1420) + _propagation(base.scenario)
    words = (
        "Bytes sent for GSM and acknowledged; what was still on WaveLAN is not counted. The thesis's 58 s and 116 "
        "s are read on the axis of Figures 7-2 and 7-3 with the handover at 6 s: it sends again from 6 s on, and "
        "at 24 s a segment that only the ACK of the eleventh allows, for which eleven segments must have crossed "
        f"GSM ({crossed:.1f} s). At 12 s, as on the axis of Figure 7-1, the handover would be too late for that; "
        "what this reading would give is listed all the same."
    )
    return Finding("V7", "throughput after the handover (byte/s)", parts, words)


def _v8(runs: Runs) -> Finding:
    base = runs["download"]
    end = whole_s(base)[1]
    duplicate = base.acks.time[base.acks.duplicate & (base.acks.time < end)]
    calm = float(duplicate[-1]) if len(duplicate) else base.after_s
    rounds = [one for one in base.rounds if one.sent >= calm and one.sent + one.duration <= end]
    first, last = rounds[0].duration, rounds[-1].duration
    parts = (
        _twofold("RTT after the last duplicate ACK", 1.5, first),
        _twofold("RTT at the end of the transfer", 11, last),
        _twofold("RTO at the end of the transfer", 20, base.rto.at(end)),
        Part("RTT at the end over that at the begin", "grows", last / first, 1.5, None, 1),
    )
    least = _line_time(base.scenario, 1420) + _propagation(base.scenario)
    words = (
        f"A segment of 1420 bytes needs {least:.2f} s on this path when nothing else is there (1487 bytes in the "
        "tunnel and in PPP at 960 byte/s, 699.5 ms of delay both ways, the ACK), so the thesis's 1.5 s cannot be "
        "the round trip of one: we take it for a figure read off the graph. Ours begins with two segments in "
        "flight and grows as the window does."
    )
    return Finding("V8", "the queue at the home agent inflates RTT and RTO (s)", parts, words)


def _v9(runs: Runs) -> Finding:
    base, small = runs["download"], runs["window-4096"]
    count = same_bytes(base)
    rate = throughput(small, count)
    gain = 100 * (rate / base.rate(*whole_s(base)) - 1)
    begin, end = _last_third(small, count)
    rounds = [one.duration for one in small.rounds if begin <= one.sent and one.sent + one.duration <= end]
    rto = small.rto.between(begin, end).value
    waiting = int(small.queue(small.new).between(begin, end).value.max())
    share = float(rto[-1]) / base.rto.at(whole_s(base)[1])
    parts = (
        Part("gain over 16 KiB, for the same bytes (%)", 16, gain, 10, 25, 1),
        Part("throughput (byte/s)", 790, rate, digits=0),
        Part("RTT in the last third, longest over shortest", "constant", max(rounds) / min(rounds), 1, 1.1, 2),
        Part("packets waiting at the home agent in the last third, most", "none", waiting, None, 3),
        Part("RTO in the last third, end over begin", "stable", float(rto[-1] / rto[0]), None, 1.05, 2),
        Part("RTO at the end over that with 16 KiB", "much lower", share, None, 0.5, 2),
    )
    words = (
        "Timed over the bytes that the run with 16 KiB carries in the thesis's time, and compared with that run. "
        "The window of four segments keeps one on the line, one under way and two waiting: the queue stays, as it "
        "must with four segments for a pipe of two, but it does not grow, and the RTO sinks towards it."
    )
    return Finding("V9", "window 4096, MSS 1024", parts, words)


def _v10(runs: Runs) -> Finding:
    small = runs["window-2144"]
    count = same_bytes(runs["download"])
    rate = throughput(small, count)
    parts = (
        _within("throughput for the same bytes (byte/s)", 700, rate, 0.1, 0),
        Part("timeouts of the first segment over GSM", "several", small.timeouts_of_first(), 2, None),
    )
    most = 536 / _line_time(small.scenario, 536)
    words = (
        "The thesis does not say over how many bytes; we take those of V7 and V9. Four segments of 536 bytes fill "
        f"the pipe, which carries at most {most:.0f} byte/s of them, and the start costs some seconds, so that the "
        f"mean grows with the length of the transfer: ours is at 700 after {_count_at(small, 700) / 1000:.0f} kB "
        f"and at {rate:.0f} after these {count / 1000:.0f}. A shorter transfer would explain the thesis's figure; "
        "its text names no other cause."
    )
    return Finding("V10", "window 2144, MSS 536", parts, words)


def _v11(runs: Runs) -> Finding:
    back = runs["back"]
    late = back.over(back.old)
    late = late.pick(late.time > back.switch_s)
    parts = (
        Part("segments", 11, len(np.unique(late.seq)), 10, 11),
        Part("for how long (s)", 15, float(late.time[-1]) - back.switch_s, 13, 18, 1),
    )
    return Finding("V11", "GSM to WaveLAN: segments that still arrive over GSM", parts)


def _v12(runs: Runs) -> Finding:
    back = runs["back"]
    late = back.over(back.old)
    came, ahead = back.overtaken()
    parts = (
        _exact("share that overtakes older data", 1, ahead / came if came else 0.0, 2),
        Part("segments over WaveLAN out of order", "each", ahead, 1, None),
        Part("duplicate ACKs", "each", back.duplicates(back.switch_s, float(late.time[-1]) + 1), 1, None),
    )
    words = (
        "Each ACK of a segment that came over GSM lets one out over WaveLAN, which arrives before the rest of the "
        "queue. No fast retransmit follows: Linux 2.0 counts as duplicates only ACKs that carry data."
    )
    return Finding("V12", "GSM to WaveLAN: segments over WaveLAN while GSM still delivers", parts, words)


def _v13(runs: Runs) -> Finding:
    back = runs["back"]
    before = back.rto.at(back.switch_s)
    after = back.rto.between(back.switch_s, float("inf"))
    peak = int(np.argmax(after.value))
    floor = float(after.value[-1])
    down = peak + int(np.flatnonzero(after.value[peak:] <= floor * (1 + EXACT))[0])
    changes = int(np.count_nonzero(np.diff(after.value[peak : down + 1])))
    highest = float(after.value[peak])
    parts = (
        Part("highest after the handover over that before", 2.5, highest / before, 1.5, None, 2),
        _exact("in the end (s)", 0.2, floor, 2),
        Part("before (s)", 20, before, digits=1),
        Part("highest (s)", "above 50", highest, digits=1),
        Part("updates from the highest to the last", "a large amount", changes),
        Part("time they take (s)", "not given", float(after.time[down] - after.time[peak]), digits=2),
    )
    words = (
        "The mean deviation grows with every sample far from the mean, whichever side it is on. The ACK of the "
        "last segment from GSM covers all that WaveLAN had brought ahead of it, and each of these segments is a "
        "sample. The deviation is worked off sample by sample, so that the RTO falls with the number of ACKs: at "
        "WaveLAN's rate in a short time."
    )
    return Finding("V13", "GSM to WaveLAN: the RTO rises although the RTT falls, then decays", parts, words)


def _v14(runs: Runs) -> Finding:
    upload = runs["upload"]
    first = upload.first
    before_ack = upload.acked_at(int(first.end[0]))
    second = upload.sending(int(first.end[0]))
    rate = upload.rate(*whole_s(upload))
    parts = (
        Part("first segment, before its ACK", 3, int(np.count_nonzero(first.again & (first.time < before_ack))), 2, 4),
        Part("second segment", 2, int(np.count_nonzero(second.again)), 1, 3),
        Part("throughput (byte/s), in the thesis an unexplained artefact", "below 390", rate, digits=0),
    )
    timeouts, _ = upload.timeouts
    early = int(np.count_nonzero((timeouts > upload.begins_s) & (timeouts < upload.switch_s)))
    older = upload.entered(upload.new)
    older = older.pick(older.again & (older.seq < first.seq[0]))
    words = (
        "The home agent sends ACKs over GSM from the moment it accepts the registration, while the mobile node "
        "waits for the reply and goes on over WaveLAN. For that time ACKs are late by GSM's delay, so the RTO of "
        f"200 ms runs out ({_times(early)} before the mobile node has used GSM at all) and the window falls to one "
        "segment: the thesis sees one segment only sent directly after the handover, too. Ours then sends "
        f"{len(older.time)} older segments again over GSM ahead of the first new one, which is why its three "
        "timeouts are of longer RTOs than the 200 ms that it would begin with."
    )
    return Finding("V14", "WaveLAN to GSM, upload: sent again", parts, words)


_WINDOW = 16_384
_HEADERS = 40
_TUNNEL = 20


def _line_time(scenario: Json, mss: int) -> float:
    """Seconds that a tunnelled full segment takes on GSM."""
    framing = link(scenario, "gsm")["down"]["framing"]
    return float(mss + _HEADERS + _TUNNEL + framing["overhead_bytes"]) / line_limit(scenario)


def _propagation(scenario: Json) -> float:
    """Seconds that a segment and its ACK take beside that: delays, and the ACK on the line."""
    gsm = link(scenario, "gsm")
    acked = float(_HEADERS + gsm["up"]["framing"]["overhead_bytes"]) / line_limit(scenario)
    return float(gsm["down"]["delay_ns"] + gsm["up"]["delay_ns"]) / 1e9 + acked


def _count_at(run: Observed, rate: float) -> float:
    """After how many bytes over the new link their mean rate is last as low as this."""
    after = run.acked.between(run.after_s, float("inf"))
    count = after.value - float(run.first.seq[0] - 1)
    low = np.flatnonzero(count[1:] <= rate * (after.time[1:] - run.after_s))
    return float(count[low[-1] + 1]) if len(low) else 0.0


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _first_timeout(run: Observed) -> float:
    times, _ = run.timeouts
    after = times[times > run.switch_s]
    return float(after[0]) if len(after) else float("inf")


def _sent_before(run: Observed, until: float) -> int:
    entered = run.entered(run.new)
    return len(np.unique(entered.seq[entered.time < until]))


def _last_third(run: Observed, count: float) -> tuple[float, float]:
    """Of the time that the run takes for `count` bytes."""
    took = run.time_for(count)
    return run.after_s + 2 * took / 3, run.after_s + took


_ROWS: tuple[Callable[[Runs], Finding], ...] = (
    _v1, _v2, _v3, _v4, _v5, _v6, _v7, _v8, _v9, _v10, _v11, _v12, _v13, _v14,
)  # fmt: skip
