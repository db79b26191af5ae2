"""Our classic senders beside those of ns-2: the same transfer over the same link, packet by packet.

Both run from a `Case`. What ns-2 is told so that the experiment is the same stands in ``ns2.tcl`` and in `theirs`:
RFC 6298's clock with a fine grain, no delayed acknowledgements, no limited transmit but for SACK, one segment as
first window, and for Reno no ``bugFix_``: Fall and Floyd's Reno (1996) leaves recovery with the first partial
acknowledgement and may halve again. Sizes are ns-2's, so that times agree within what ns-2 prints of them
(`TOLERANCE_S`). What still differs has its reason in `careof.oracles.ns2_reasons`.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from careof import native
from careof.errors import InputError, InternalError
from careof.oracles.ns2_reasons import LEAST_TIMEOUT_S, reason_of
from careof.oracles.parallel import in_parallel
from careof.text import Style, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

SCRIPT: Final = Path(__file__).with_name("ns2.tcl")
HINT: Final = "apt-get install ns2"

#: The sender and the receiver of ns-2 for each of our profiles.
AGENTS: Final = {
    "tahoe": ("Agent/TCP", "Agent/TCPSink"),
    "reno": ("Agent/TCP/Reno", "Agent/TCPSink"),
    "newreno": ("Agent/TCP/Newreno", "Agent/TCPSink"),
    "sack": ("Agent/TCP/Sack1", "Agent/TCPSink/Sack1"),
    "vegas": ("Agent/TCP/Vegas", "Agent/TCPSink"),
}
VARIANTS: Final = tuple(AGENTS)

#: IP and TCP headers in bytes, as ns-2 counts them.
HEADERS: Final = 40

#: Times of both sides are the same within this, in seconds: ns-2 prints them to the microsecond.
TOLERANCE_S: Final = 2e-6

#: Limits within which times are counted for people, seconds.
WITHIN_S: Final = (TOLERANCE_S, 1e-3, 0.1, 1.0)


@dataclass(frozen=True)
class Change:
    """The link becomes another at an instant, in both directions."""

    at_s: float
    rate_bps: int
    delay_s: float


@dataclass(frozen=True)
class Case:
    """One transfer over one link, and what befalls it."""

    variant: str
    #: Data segments by number, from 1, and how many of their first transmissions are lost.
    drops: tuple[tuple[int, int], ...] = ()
    #: Begin and length: nothing passes in either direction.
    outages: tuple[tuple[float, float], ...] = ()
    changes: tuple[Change, ...] = ()
    rate_bps: int = 10_000_000
    delay_s: float = 0.05
    #: Packets that may wait for the link.
    queue: int = 1_000
    segments: int = 200
    #: Data in a segment, bytes.
    mss: int = 1_000
    #: The receiver's, segments.
    window: int = 40
    until_s: float = 120.0

    @property
    def name(self) -> str:
        """``sack, window 40, drops 40 42:2``."""
        parts = [self.variant, f"window {self.window}"]
        standard = Case(self.variant)
        if (self.rate_bps, self.delay_s) != (standard.rate_bps, standard.delay_s):
            parts.append(_link(self.rate_bps, self.delay_s))
        if self.queue != standard.queue:
            parts.append(f"queue {self.queue}")
        if self.drops:
            parts.append("drops " + " ".join(f"{k}" if n == 1 else f"{k}:{n}" for k, n in self.drops))
        parts += [f"outage {start:g}+{length:g} s" for start, length in self.outages]
        parts += [f"from {c.at_s:g} s {_link(c.rate_bps, c.delay_s)}" for c in self.changes]
        return ", ".join(parts)

    @property
    def limited_transmit(self) -> bool:
        """As our profiles have it."""
        return self.variant == "sack"

    @property
    def careful(self) -> bool:
        """Whether duplicates of what was sent before the last loss start no fast retransmit (``bugFix_``)."""
        return self.variant != "reno"


@dataclass(frozen=True)
class Sent:
    """A data segment that a sender handed to the link."""

    at_s: float
    segment: int
    #: The how-manieth time, from 1.
    transmission: int
    #: The congestion window then, segments.
    cwnd: float
    #: The slow start threshold then, segments.
    ssthresh: float = 0.0
    #: It was lost on entry, or the queue was full.
    lost: bool = False
    #: Of ns-2: it was dropped at the very instant at which another packet left the queue.
    tied: bool = False


@dataclass(frozen=True)
class Verdict:
    """What the two senders did in one case."""

    case: Case
    ours: tuple[Sent, ...]
    #: Without the copies of `sent_twice`.
    theirs: tuple[Sent, ...]
    #: New segments that ns-2's Vegas sent twice at once, because it looked at the send time of a segment never sent.
    sent_twice: tuple[int, ...] = ()

    @property
    def same_segments(self) -> bool:
        """The same segments were sent again, as often."""
        return sorted(again(self.ours)) == sorted(again(self.theirs))

    @property
    def same_order(self) -> bool:
        """The same segments were sent again in the same order."""
        return again(self.ours) == again(self.theirs)

    @property
    def same_transmissions(self) -> bool:
        """Everything was sent in the same order, new segments as well."""
        return self.first_difference is None

    @cached_property
    def first_difference(self) -> int | None:
        """Index of the first transmission that is not of the same segment."""
        both = list(zip(self.ours, self.theirs, strict=False))
        for index, (a, b) in enumerate(both):
            if a.segment != b.segment:
                return index
        return None if len(self.ours) == len(self.theirs) else len(both)

    @cached_property
    def departure(self) -> int | None:
        """Index of the first transmission that is of another segment, or at another time."""
        for index, (a, b) in enumerate(zip(self.ours, self.theirs, strict=False)):
            if a.segment != b.segment or abs(a.at_s - b.at_s) > TOLERANCE_S:
                return index
        return self.first_difference

    @property
    def agrees(self) -> bool:
        """Everything was sent in the same order and at the same times."""
        return self.departure is None

    def share_within(self, seconds: float) -> float:
        """The share of transmissions of ours whose counterpart in ns-2, by segment and transmission, is that near."""
        return self.near(seconds) / max(len(self.ours), 1)

    def near(self, seconds: float) -> int:
        """How many are."""
        theirs = {(one.segment, one.transmission): one.at_s for one in self.theirs}
        pairs = ((one.at_s, theirs.get((one.segment, one.transmission))) for one in self.ours)
        return sum(other is not None and abs(at - other) <= seconds for at, other in pairs)

    @cached_property
    def reason(self) -> str | None:
        """Why ours differs; None where it does not differ, or where nobody knows."""
        return reason_of(self)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        at = self.departure
        return {
            **asdict(self.case),
            "case": self.case.name,
            "same_segments": self.same_segments,
            "same_order": self.same_order,
            "same_transmissions": self.same_transmissions,
            "same_times": self.agrees,
            "compared": len(self.ours) if self.departure is None else self.departure,
            "transmissions": len(self.ours),
            "within": {f"{seconds:g}": self.share_within(seconds) for seconds in WITHIN_S},
            "retransmitted": again(self.ours),
            "retransmitted_ns2": again(self.theirs),
            "first_difference": None
            if at is None
            else {
                "transmission": at + 1,
                "ours": asdict(self.ours[at]) if at < len(self.ours) else None,
                "ns2": asdict(self.theirs[at]) if at < len(self.theirs) else None,
            },
            "sent_twice_by_ns2": list(self.sent_twice),
            "reason": self.reason,
        }


def again(sent: Iterable[Sent]) -> list[int]:
    """The segments that were sent again, in order."""
    return [one.segment for one in sent if one.transmission > 1]


def compare_all(
    cases: Sequence[Case], progress: Callable[[float, float], None] = lambda _done, _whole: None
) -> list[Verdict]:
    """Run both sides of every case; `progress` is told how many are done and how many there are.

    Raises:
        InputError: ns-2 is not installed, or a case makes no sense.
    """
    if shutil.which("ns") is None:
        raise InputError("ns-2 is not installed: there is no command ns", hint=HINT)
    return in_parallel(compare, cases, progress)


def compare(case: Case) -> Verdict:
    """Run both sides of a case."""
    all_theirs = theirs(case)
    copies = _unsent_copies(all_theirs) if case.variant == "vegas" else set()
    counts: dict[int, int] = {}
    kept = []
    for index, one in enumerate(all_theirs):
        if index not in copies:
            counts[one.segment] = counts.get(one.segment, 0) + 1
            kept.append(replace(one, transmission=counts[one.segment]))
    return Verdict(case, ours(case), tuple(kept), tuple(all_theirs[index].segment for index in sorted(copies)))


def ours(case: Case) -> tuple[Sent, ...]:
    """What our sender does."""
    scene = {
        "profile": case.variant,
        "mss": case.mss,
        "window": case.window,
        "initial_window": 1,
        "limited_transmit": case.limited_transmit,
        "careful": case.careful,
        "segments": case.segments,
        # ns-2's Vegas knows no SYN: its first packet is full-sized.
        "syn": HEADERS + (case.mss if case.variant == "vegas" else 0),
        "rate": case.rate_bps,
        "delay": _nanos(case.delay_s),
        "queue": case.queue,
        "drops": [list(drop) for drop in case.drops],
        "outages": [[_nanos(start), _nanos(start + length)] for start, length in case.outages],
        "changes": [[_nanos(c.at_s), c.rate_bps, _nanos(c.delay_s)] for c in case.changes],
        "until": _nanos(case.until_s),
    }
    return tuple(
        Sent(at, segment, nth, cwnd, ssthresh, lost)
        for at, segment, nth, lost, cwnd, ssthresh in native.transfer(scene)
    )


def theirs(case: Case) -> tuple[Sent, ...]:
    """What ns-2's sender does.

    Its list of losses counts packets, ours names segments: the run is repeated until the packets lost are those
    that were meant, which they are at once where no retransmission comes before.
    """
    ordinals = sorted(segment for segment, _ in case.drops)
    for _ in range(2 + sum(times for _, times in case.drops)):
        sent = _run(case, ordinals)
        meant = [
            ordinal
            for ordinal, one in enumerate(sent)
            if any(one.segment == segment and one.transmission <= times for segment, times in case.drops)
        ]
        if meant == ordinals:
            break
        ordinals = meant
    return tuple(one for one in sent if one.segment > 0)


def _run(case: Case, ordinals: Sequence[int]) -> list[Sent]:
    agent, sink = AGENTS[case.variant]
    options: dict[str, object] = {
        "agent": agent,
        "sink": sink,
        "rate": case.rate_bps,
        "delay": case.delay_s,
        "queue": case.queue,
        "segments": case.segments,
        "size": case.mss,
        "window": case.window,
        "drops": " ".join(map(str, ordinals)),
        "outages": " ".join(f"{start!r} {start + length!r}" for start, length in case.outages),
        "changes": " ".join(f"{c.at_s!r} {c.rate_bps} {c.delay_s!r}" for c in case.changes),
        "until": case.until_s,
        "watch": 1,
        "Agent/TCP/singledup_": int(case.limited_transmit),
        "Agent/TCP/bugFix_": int(case.careful),
    }
    words = [str(word) for pair in options.items() for word in pair]
    command = ["ns", str(SCRIPT), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise InternalError(f"ns-2 did not take the script: {done.stderr.strip() or done.stdout.strip()}", hint=None)
    return _read(done.stdout)


def _read(trace: str) -> list[Sent]:
    """ns-2's trace of the link's entry, with the window between: ``+ 0.5 0 1 tcp 1040 ...`` and ``0.5 ... cwnd_ 2``.

    ``d`` is a packet just entered that was dropped, ``-`` one that leaves the queue for the link.
    """
    counts: dict[int, int] = {}
    sent: list[Sent] = []
    cwnd, ssthresh = 1.0, 0.0
    dropped_at = None
    for line in trace.splitlines():
        words = line.split()
        if words[0] == "+":
            segment = int(words[10])
            counts[segment] = counts.get(segment, 0) + 1
            sent.append(Sent(float(words[1]), segment, counts[segment], cwnd, ssthresh))
        elif words[0] == "d":
            sent[-1] = replace(sent[-1], lost=True)
            dropped_at = words[1]
        elif words[0] == "-":
            if words[1] == dropped_at:
                sent[-1] = replace(sent[-1], tied=sent[-1].lost)
            dropped_at = None
        elif words[-2] == "cwnd_":
            cwnd = float(words[-1])
        elif words[-2] == "ssthresh_":
            ssthresh = float(words[-1])
    return sent


def _unsent_copies(sent: Sequence[Sent]) -> set[int]:
    """Where a new segment was sent a second time as the very next thing, and no timer had to do with it."""
    return {
        index + 1
        for index, (a, b) in enumerate(pairwise(sent))
        if a.segment == b.segment and (a.transmission, b.transmission) == (1, 2) and b.at_s - a.at_s < LEAST_TIMEOUT_S
    }


def _nanos(seconds: float) -> int:
    return round(seconds * 1e9)


def _link(rate_bps: int, delay_s: float) -> str:
    return f"{rate_bps / 1e6:g} Mbit/s {delay_s * 1e3:g} ms"


# ---- the standard suite

#: One to four losses in a window, near and far from each other.
DROPS: Final = (
    *((10,), (30,), (40,), (60,)),
    *((10, 12), (40, 41), (40, 42), (40, 45), (40, 60)),
    *((26, 28, 30), (40, 41, 42), (40, 44, 50)),
    *((26, 28, 30, 31), (40, 41, 42, 43), (40, 42, 44, 46)),
)
OUTAGES_S: Final = (0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0)
CHANGES: Final = (
    Change(1.03, 1_000_000, 0.05),
    Change(1.03, 1_000_000, 0.2),
    Change(1.03, 200_000, 0.3),
    Change(1.03, 100_000, 0.7),
    Change(1.03, 10_000_000, 0.5),
    Change(1.03, 2_000_000, 0.005),
)


#: A link whose times are binary fractions, exact in ns-2's floating point: 2^-9 s a segment, 2^-4 s one way. Where
#: the sender stands beside its bottleneck, each acknowledgement arrives at the very instant at which a packet leaves
#: the queue; with decimal times the rounding would say which comes first.
EXACT: Final = Case("reno", rate_bps=1 << 22, delay_s=0.0625, mss=984)
#: Packets that may wait: slow start overflows the first, and the sawtooth both.
SMALL_QUEUES: Final = (8, 20)


def small_queues(variant: str) -> list[Case]:
    """Losses of a drop-tail queue, alone, and with outages and changes of the link."""
    cases = []
    for queue in SMALL_QUEUES:
        exact = replace(EXACT, variant=variant, queue=queue, window=200, segments=600)
        slow = replace(exact, rate_bps=1 << 19, window=100, segments=400)
        narrow = replace(slow, window=12, segments=200)
        cases += [exact, slow, narrow, replace(narrow, drops=((40, 1), (42, 1)))]
        cases += [replace(exact, outages=((1.03, length),)) for length in (0.3, 1.0, 3.0)]
        changes = (Change(1.03, 1 << 20, 0.25), Change(1.03, 1 << 24, 0.0625))
        cases += [replace(exact, changes=(change,)) for change in changes]
        cases.append(replace(exact, outages=((1.03, 1.0),), changes=(Change(2.03, 1 << 20, 0.25),)))
    return cases


def suite(variants: Iterable[str] = VARIANTS, *, quick: bool = False) -> list[Case]:
    """The standard cases."""
    cases = []
    for variant in variants:
        for window in (20, 40):
            cases += [Case(variant, tuple((k, 1) for k in drops), window=window) for drops in DROPS]
        slow = [(12,), (20, 22), (20, 22, 24), (20, 22, 24, 26)]
        cases += [Case(variant, tuple((k, 1) for k in drops), rate_bps=1_000_000) for drops in slow]
        cases += [Case(variant, outages=((1.03, length),), segments=600) for length in OUTAGES_S]
        cases += [Case(variant, changes=(change,), segments=600) for change in CHANGES]
        cases += small_queues(variant)
    return cases[::7] if quick else cases


# ---- for people


def summary(verdicts: Sequence[Verdict]) -> str:
    """One line: how many cases, how many alike, how many differing with a reason; how near the times are."""
    alike = sum(verdict.agrees for verdict in verdicts)
    explained = sum(verdict.reason is not None for verdict in verdicts)
    ordered = sum(verdict.same_order for verdict in verdicts)
    return (
        f"ns-2: {len(verdicts)} cases, {alike} alike in every segment and time, {explained} differing with reason, "
        f"{len(verdicts) - alike - explained} differing; {ordered} with the same segments sent again in the same order"
    )


def times(verdicts: Sequence[Verdict]) -> str:
    """How near times are, of all transmissions and by case; how much was compared before the first difference."""
    whole = max(sum(len(verdict.ours) for verdict in verdicts), 1)
    cases = max(len(verdicts), 1)
    parts = []
    for seconds in WITHIN_S:
        segments = sum(verdict.near(seconds) for verdict in verdicts) / whole
        all_of_case = sum(verdict.near(seconds) == len(verdict.ours) for verdict in verdicts) / cases
        parts.append(f"{seconds * 1e3:g} ms: {segments:.1%} of transmissions, {all_of_case:.1%} of cases whole")
    before = sum(len(verdict.ours) if verdict.departure is None else verdict.departure for verdict in verdicts) / whole
    return "Times within " + "; ".join(parts) + f". Before the first difference: {before:.1%} of transmissions."


def for_people(verdicts: Sequence[Verdict], style: Style) -> str:
    """For a terminal: each variant's score, then what differs; a single case with its segments."""
    parts = []
    if len(verdicts) <= len(VARIANTS):
        rows = [
            [verdict.case.name, _numbers(again(verdict.ours)), _numbers(again(verdict.theirs)), _word(verdict)]
            for verdict in verdicts
        ]
        parts.append(table(["case", "sent again", "by ns-2", ""], rows, left=4))
    else:
        rows = []
        for variant in dict.fromkeys(verdict.case.variant for verdict in verdicts):
            mine = [verdict for verdict in verdicts if verdict.case.variant == variant]
            rows.append(
                [
                    variant,
                    str(len(mine)),
                    str(sum(verdict.agrees for verdict in mine)),
                    str(sum(verdict.same_transmissions for verdict in mine)),
                    str(sum(verdict.same_order for verdict in mine)),
                    str(sum(verdict.reason is not None for verdict in mine)),
                ]
            )
        head = ["variant", "cases", "alike with times", "same order", "same order of those sent again", "with reason"]
        parts.append(table(head, rows))
        parts += _by_reason(verdicts)
    twice = sum(bool(verdict.sent_twice) for verdict in verdicts)
    if twice:
        parts.append(
            f"Left out in {twice} case{'s' if twice > 1 else ''}: a copy that ns-2's Vegas sends of a new segment "
            "(it looks at the send time of a segment that was never sent)."
        )
    parts.append(times(verdicts))
    parts.append(style.bold(summary(verdicts)))
    return "\n\n".join(parts)


def _by_reason(verdicts: Sequence[Verdict]) -> list[str]:
    """What differs, by reason; without one, each case with the place."""
    named = dict.fromkeys(verdict.reason for verdict in verdicts if verdict.reason)
    parts = []
    for reason in named:
        cases = [verdict for verdict in verdicts if verdict.reason == reason]
        most = 3
        more = f", and {len(cases) - most} more" if len(cases) > most else ""
        parts.append(f"{reason}: {'; '.join(verdict.case.name for verdict in cases[:most])}{more}")
    parts += [f"{verdict.case.name}\n  {_word(verdict)}" for verdict in verdicts if _is_unexplained(verdict)]
    return parts


def _is_unexplained(verdict: Verdict) -> bool:
    return not verdict.agrees and verdict.reason is None


def _word(verdict: Verdict) -> str:
    at = verdict.departure
    if at is None:
        return "same"
    if verdict.reason:
        return f"differs from transmission {at + 1} on: {verdict.reason}"
    return f"DIFFERS from transmission {at + 1} on: {_one(verdict.ours, at)}, ns-2 {_one(verdict.theirs, at)}"


def _one(sent: Sequence[Sent], at: int) -> str:
    if at >= len(sent):
        return "nothing"
    one = sent[at]
    return f"segment {one.segment} ({one.transmission}) at {one.at_s:.6f} s with cwnd {one.cwnd:.2f}"


def _numbers(segments: Sequence[int]) -> str:
    most = 12
    shown = " ".join(map(str, segments[:most])) or "-"
    return shown if len(segments) <= most else f"{shown} ... ({len(segments)})"
