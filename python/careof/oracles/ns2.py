"""Our classic senders beside those of ns-2: the same transfer over the same link, packet by packet.

Both run from a `Case`. What ns-2 is told so that the experiment is the same stands in ``ns2.tcl`` and in `theirs`:
RFC 6298's clock with a fine grain, no delayed acknowledgements, no limited transmit but for SACK, one segment as
first window, and for Reno no ``bugFix_``: Fall and Floyd's Reno (1996) leaves recovery with the first partial
acknowledgement and may halve again. Sizes are ns-2's, so that times agree to the nanosecond. What still differs by
design has its reason in `_reason`.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from careof import native
from careof.errors import InputError, InternalError
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

#: The least retransmission timeout of both sides, in seconds: who is silent for longer has timed out.
LEAST_TIMEOUT_S: Final = 1.0


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

    @property
    def reason(self) -> str | None:
        """Why ours differs by design; None where it does not differ, or where nobody knows."""
        return None if self.same_order else _reason(self)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        at = self.first_difference
        return {
            **asdict(self.case),
            "case": self.case.name,
            "same_segments": self.same_segments,
            "same_order": self.same_order,
            "same_transmissions": self.same_transmissions,
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
            kept.append(Sent(one.at_s, one.segment, counts[one.segment], one.cwnd))
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
    return tuple(Sent(at, segment, nth, cwnd) for at, segment, nth, _, cwnd, _ in native.transfer(scene))


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
    """ns-2's trace of the link's entry, with the window between: ``+ 0.5 0 1 tcp 1040 ...`` and ``0.5 ... cwnd_ 2``."""
    counts: dict[int, int] = {}
    sent: list[Sent] = []
    cwnd = 1.0
    for line in trace.splitlines():
        words = line.split()
        if words[0] == "+":
            segment = int(words[10])
            counts[segment] = counts.get(segment, 0) + 1
            sent.append(Sent(float(words[1]), segment, counts[segment], cwnd))
        elif words[-2] == "cwnd_":
            cwnd = float(words[-1])
    return sent


def _unsent_copies(sent: Sequence[Sent]) -> set[int]:
    """Where a new segment was sent a second time as the very next thing, and no timer had to do with it."""
    return {
        index + 1
        for index, (a, b) in enumerate(pairwise(sent))
        if a.segment == b.segment and (a.transmission, b.transmission) == (1, 2) and b.at_s - a.at_s < LEAST_TIMEOUT_S
    }


def _reason(verdict: Verdict) -> str | None:
    """What ns-2 is known to do otherwise, where the trace up to the first difference shows it."""
    at = verdict.first_difference
    if at is None:
        return None
    variant, before = verdict.case.variant, verdict.theirs[: at + 1]
    timed_out = any(b.at_s - a.at_s >= LEAST_TIMEOUT_S and b.transmission > 1 for a, b in pairwise(before))
    if verdict.sent_twice:
        return "what follows a segment that ns-2's Vegas sent twice: it looks at the send time of one never sent"
    if variant == "sack" and _goes_back_besides(verdict):
        return "after a timeout ns-2 sends again what had arrived as well; RFC 6675 does not"
    if any(one.cwnd < 2 for one in before[-3:]) and timed_out:
        return "after a timeout ns-2 lets a halved window fall below two segments; RFC 5681 does not"
    at_once = [one for one in verdict.ours[: at + 1] if one.at_s == verdict.ours[min(at, len(verdict.ours) - 1)].at_s]
    if variant == "newreno" and len(at_once) > 2:
        return "in a recovery ns-2's NewReno sends at most two segments for an acknowledgement"
    return None


def _goes_back_besides(verdict: Verdict) -> bool:
    """Whether ns-2, after a timeout, sent again what had arrived before, and what ours sent again otherwise.

    Up to the first of those the order must be the same; what they take of the window may shift the rest.
    """
    case, wanted = verdict.case, again(verdict.ours)
    arrived: set[int] = set()
    timed_out = gone_back = False
    for one in verdict.theirs:
        if one.transmission > 1:
            # Only a timeout leaves its window at one segment.
            timed_out |= one.cwnd <= 1
            if one.segment in (wanted if gone_back else wanted[:1]):
                wanted.remove(one.segment)
            elif timed_out and one.segment in arrived:
                gone_back = True
            else:
                return False
        lost = any(segment == one.segment and one.transmission <= times for segment, times in case.drops)
        if not lost and not any(start <= one.at_s < start + length for start, length in case.outages):
            arrived.add(one.segment)
    return gone_back and not wanted


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
    return cases[::7] if quick else cases


# ---- for people


def summary(verdicts: Sequence[Verdict]) -> str:
    """One line: how many cases, how many alike, how many differing with a reason."""
    alike = sum(verdict.same_order for verdict in verdicts)
    explained = sum(verdict.reason is not None for verdict in verdicts)
    unknown = len(verdicts) - alike - explained
    return (
        f"ns-2: {len(verdicts)} cases, {alike} with the same segments sent again in the same order, "
        f"{explained} differing with reason, {unknown} differing"
    )


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
                    str(sum(verdict.same_order for verdict in mine)),
                    str(sum(verdict.same_transmissions for verdict in mine)),
                    str(sum(verdict.reason is not None for verdict in mine)),
                ]
            )
        head = ["variant", "cases", "same segments sent again in the same order", "all alike", "differing with reason"]
        parts.append(table(head, rows))
        parts += [f"{verdict.case.name}\n  {_word(verdict)}" for verdict in verdicts if not verdict.same_order]
    twice = sum(bool(verdict.sent_twice) for verdict in verdicts)
    if twice:
        parts.append(
            f"Left out in {twice} case{'s' if twice > 1 else ''}: a copy that ns-2's Vegas sends of a new segment "
            "(it looks at the send time of a segment that was never sent)."
        )
    parts.append(style.bold(summary(verdicts)))
    return "\n\n".join(parts)


def _word(verdict: Verdict) -> str:
    if verdict.same_order:
        return "same"
    return f"differs: {verdict.reason}" if verdict.reason else "DIFFERS"


def _numbers(segments: Sequence[int]) -> str:
    most = 12
    shown = " ".join(map(str, segments[:most])) or "-"
    return shown if len(segments) <= most else f"{shown} ... ({len(segments)})"
