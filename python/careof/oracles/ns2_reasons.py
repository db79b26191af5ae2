"""Why a sender of ns-2 parts from ours where it does: what it is known to do otherwise, each where the trace shows it.

A reason speaks of the first transmission that differs (`Verdict.departure`), in segment or time. What comes after it is
not judged: another window, or another moment, leads to other losses.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from careof.oracles.ns2 import Sent, Verdict

#: The least retransmission timeout of both sides, in seconds: who is silent for longer has timed out.
LEAST_TIMEOUT_S: Final = 1.0

#: Windows of ns-2 are printed to a thousandth of a segment.
WINDOW: Final = 0.02

#: RFC 5681 section 3.1: the least a halved window comes to, segments.
LEAST_WINDOW: Final = 2.0

#: What ns-2's NewReno sends for one acknowledgement of a recovery.
MOST_AT_ONCE: Final = 2


class Reason(NamedTuple):
    """Something that ns-2 does otherwise."""

    words: str
    shows: Callable[[Verdict, int], bool]
    """Whether the transmissions up to the one with this index show it."""


def reason_of(verdict: Verdict) -> str | None:
    """The first reason that the trace shows."""
    at = verdict.departure
    if at is None or at >= min(len(verdict.ours), len(verdict.theirs)):
        return None
    return next((reason.words for reason in REASONS if reason.shows(verdict, at)), None)


def _tie(verdict: Verdict, at: int) -> bool:
    """ns-2's queue dropped a packet at the very instant at which another left; ours took it."""
    pairs = zip(verdict.ours[: at + 1], verdict.theirs[: at + 1], strict=True)
    first = next(((a, b) for a, b in pairs if a.lost != b.lost), None)
    return first is not None and first[1].lost and first[1].tied


def _sent_twice(verdict: Verdict, at: int) -> bool:
    # The copy is taken out of the trace; its number in the sequence is no more than that of the departure.
    return any(one.segment in verdict.sent_twice for one in verdict.theirs[: at + 1])


def _ring_not_cleared(verdict: Verdict, at: int) -> bool:
    """An acknowledgement of several segments passed the end of the ring in which ns-2's Vegas keeps its send times.

    The ring has as many places as the window. Such an acknowledgement clears none of them, so that the segments kept
    there later count as sent twice and give no measurement.
    """
    ring = verdict.case.window
    before = verdict.theirs[:at]
    for index, repair in enumerate(before):
        if repair.transmission == 1:
            continue
        last = max(one.segment for one in before[:index])
        reused = any(one.segment >= repair.segment + ring for one in before[index:])
        if repair.segment // ring < last // ring and reused:
            return True
    return False


def _shorter_delay(verdict: Verdict, at: int) -> bool:
    """Ours is earlier by what was sent over the longer delay and is still under way."""
    delay = verdict.case.delay_s
    for change in verdict.case.changes:
        until = change.at_s + 2 * delay
        if change.delay_s < delay and change.at_s <= verdict.ours[at].at_s < verdict.theirs[at].at_s <= until:
            return True
        delay = change.delay_s
    return False


def _below_two(verdict: Verdict, at: int) -> bool:
    """The fast retransmission before has left ns-2's window below two segments, and ours not."""
    begin = _recovery(verdict.theirs[: at + 1])
    if begin is None:
        return False
    return verdict.theirs[begin].cwnd < LEAST_WINDOW <= verdict.ours[begin].cwnd


def _threshold_of_second_timeout(verdict: Verdict, at: int) -> bool:
    """A timeout follows a timeout of the same segment, and ns-2's ssthresh is lower than ours since."""
    for index, (a, b) in enumerate(pairwise(verdict.theirs[: at + 1])):
        again = a.segment == b.segment and a.transmission > 1 and b.at_s - a.at_s >= LEAST_TIMEOUT_S
        if again and verdict.theirs[at].ssthresh < verdict.ours[at].ssthresh and index < at:
            return True
    return False


def _whole_threshold(verdict: Verdict, at: int) -> bool:
    """Half of the flight is not whole; ns-2 has rounded it down."""
    pairs = zip(verdict.ours[: at + 1], verdict.theirs[: at + 1], strict=True)
    return any(a.ssthresh % 1 > WINDOW and b.ssthresh == int(a.ssthresh) for a, b in pairs)


def _growth_at_the_end(verdict: Verdict, at: int) -> bool:
    """Since a fast retransmission ns-2's window is ahead by the growth of the acknowledgements that ended one."""
    recoveries = 0
    for index in range(1, at + 1):
        ours, theirs = verdict.ours[index], verdict.theirs[index]
        if ours.transmission > 1:
            recoveries += not _is_timeout(verdict.theirs[index - 1], theirs)
            continue
        # One segment each where ours is in slow start, a part of one in congestion avoidance.
        step, ahead = 1 / max(ours.cwnd, 1.0), theirs.cwnd - ours.cwnd
        in_slow_start = abs(ahead - 1) < WINDOW
        if recoveries and (in_slow_start or step - WINDOW < ahead < recoveries * step + WINDOW):
            return True
    return False


def _few_at_once(verdict: Verdict, at: int) -> bool:
    now = verdict.ours[at].at_s
    return sum(one.at_s == now for one in verdict.ours[: at + 1]) > MOST_AT_ONCE


def _pipe(verdict: Verdict, at: int) -> bool:
    """In a recovery from several losses: ours has sent where ns-2 still counts a lost segment as under way."""
    begin = _recovery(verdict.theirs[: at + 1]) or _recovery(verdict.ours[: at + 1])
    if begin is None or verdict.ours[at].at_s >= verdict.theirs[at].at_s:
        return False
    return len(_missing(verdict.theirs[:at])) >= 1


def _new_before_hole(verdict: Verdict, at: int) -> bool:
    """In a recovery ours sends new data, by RFC 6675's rule 2, and ns-2 a hole that is not lost yet by IsLost()."""
    begin = _recovery(verdict.theirs[: at + 1])
    ours, theirs = verdict.ours[at], verdict.theirs[at]
    return begin is not None and ours.transmission == 1 and theirs.transmission > 1


def _recover_exactly(verdict: Verdict, at: int) -> bool:
    """Ours repairs fast the first segment after what had been sent when the timer ran out; ns-2 waits for the timer."""
    ours, theirs = verdict.ours[at], verdict.theirs[at]
    if ours.transmission == 1 or ours.at_s >= theirs.at_s:
        return False
    before = verdict.theirs[:at]
    timeouts = [index + 1 for index, (a, b) in enumerate(pairwise(before)) if _is_timeout(a, b)]
    return bool(timeouts) and max(one.segment for one in before[: timeouts[-1]]) == ours.segment - 1


def _goes_back(verdict: Verdict, at: int) -> bool:
    """After a timeout ns-2 sends again what had arrived."""
    before, theirs = verdict.theirs[:at], verdict.theirs[at]
    if theirs.transmission == 1 or theirs.segment in _missing(before):
        return False
    return any(_is_timeout(a, b) for a, b in pairwise(verdict.theirs[: at + 1]))


def _is_timeout(a: Sent, b: Sent) -> bool:
    return b.transmission > 1 and b.at_s - a.at_s >= LEAST_TIMEOUT_S


def _missing(sent: Sequence[Sent]) -> set[int]:
    """Segments that were lost each time they were sent."""
    arrived = {one.segment for one in sent if not one.lost}
    return {one.segment for one in sent} - arrived


def _recovery(sent: Sequence[Sent]) -> int | None:
    """Index of the last retransmission, if it came without a timeout."""
    for index in range(len(sent) - 1, 0, -1):
        if sent[index].transmission > 1:
            return None if _is_timeout(sent[index - 1], sent[index]) else index
    return None


def _of(variants: set[str], shows: Callable[[Verdict, int], bool]) -> Callable[[Verdict, int], bool]:
    return lambda verdict, at: verdict.case.variant in variants and shows(verdict, at)


REASONS: Final = (
    Reason(
        "at one instant ns-2 runs first what was scheduled first: its queue was still full when a packet arrived",
        _tie,
    ),
    Reason(
        "what follows a segment that ns-2's Vegas sent twice: it looks at the send time of one never sent", _sent_twice
    ),
    Reason(
        "ns-2's Vegas takes no round trips of segments whose places in its ring of send times were not cleared: an "
        "acknowledgement of several passed the ring's end",
        _of({"vegas"}, _ring_not_cleared),
    ),
    Reason(
        "when the delay falls, ns-2's link lets packets arrive a transmission time apart behind the last one sent "
        "before; ours lets them arrive right behind it",
        _shorter_delay,
    ),
    Reason("ns-2 lets a halved window fall below two segments; RFC 5681 does not", _below_two),
    Reason(
        "at each further timeout of a segment ns-2 halves ssthresh again; RFC 5681 section 3.1 holds it",
        _threshold_of_second_timeout,
    ),
    Reason("after a timeout ns-2 sends again what had arrived as well; RFC 6675 does not", _of({"sack"}, _goes_back)),
    Reason(
        "ns-2's SACK repairs fast only what lies beyond the first segment after those sent before a timeout",
        _of({"sack"}, _recover_exactly),
    ),
    Reason(
        "in a recovery ns-2's SACK repeats any hole before it sends new data; RFC 6675 repeats first only what is lost "
        "by IsLost()",
        _of({"sack"}, _new_before_hole),
    ),
    Reason(
        "ns-2's SACK counts lost segments as under way; RFC 6675's pipe does not, and lets ours send earlier",
        _of({"sack"}, _pipe),
    ),
    Reason(
        "ns-2 rounds ssthresh down to whole segments; RFC 5681 halves bytes",
        _of({"tahoe", "reno", "newreno", "sack"}, _whole_threshold),
    ),
    Reason(
        "ns-2 lets the acknowledgement that ends a recovery also open the window; RFC 5681 section 3.2 step 6 and "
        "RFC 6582 set it",
        _of({"reno", "newreno"}, _growth_at_the_end),
    ),
    Reason(
        "in a recovery ns-2's NewReno sends at most two segments for an acknowledgement", _of({"newreno"}, _few_at_once)
    ),
)
